/// The bytes of long strings: grows by chunks that never move, freed as a whole with its last owner.
///
/// One thread fills it; once a column that points into it is shared, nothing is written to bytes already handed out.
/// Every chunk has 64 readable bytes after its end, which vectorised readers may touch.
package final class StringHeap: @unchecked Sendable {
    private var chunks: [UnsafeMutableRawPointer] = []
    /// Behind a fixed address: every string asks for it, and a variable of a class is checked for overlapping access.
    private let free: UnsafeMutablePointer<Free>
    private var nextChunkBytes: Int

    /// What is left of the last chunk.
    private struct Free {
        var start: UnsafeMutableRawPointer?
        var count = 0
    }

    /// Bytes allocated by all chunks.
    package private(set) var byteCount = 0
    /// What else must live as long as this heap, such as a mapped file or a network buffer.
    private let owner: AnyObject?

    package init(firstChunkBytes: Int = 16 << 10) {
        nextChunkBytes = max(firstChunkBytes, 64)
        free = .allocate(capacity: 1)
        free.initialize(to: Free())
        owner = nil
    }

    /// A heap without bytes of its own that keeps `owner` alive, whose memory views point into.
    package init(keeping owner: AnyObject) {
        nextChunkBytes = 16 << 10
        free = .allocate(capacity: 1)
        free.initialize(to: Free())
        self.owner = owner
    }

    deinit {
        for chunk in chunks { chunk.deallocate() }
        free.deallocate()
    }

    /// Uninitialised room for `count` bytes.
    package func allocate(_ count: Int) -> UnsafeMutableRawPointer {
        if count > free.pointee.count { addChunk(atLeast: count) }
        let result = free.pointee.start.unsafelyUnwrapped
        free.pointee = Free(start: result + count, count: free.pointee.count &- count)
        return result
    }

    private func addChunk(atLeast count: Int) {
        let size = max(count, nextChunkBytes)
        nextChunkBytes = min(nextChunkBytes * 2, 1 << 20)
        let chunk = UnsafeMutableRawPointer.allocate(byteCount: size + 64, alignment: 16)
        chunks.append(chunk)
        byteCount += size
        free.pointee = Free(start: chunk, count: size)
    }

    /// A view of a copy of `bytes`.
    package func view(copying bytes: UnsafeBufferPointer<UInt8>) -> StringView {
        guard bytes.count > StringView.inlineBytesMax else {
            guard let base = bytes.baseAddress else { return .empty }
            return StringView(base, count: bytes.count)
        }
        let room = allocate(bytes.count)
        room.copyMemory(from: bytes.baseAddress.unsafelyUnwrapped, byteCount: bytes.count)
        return StringView(UnsafePointer(room.assumingMemoryBound(to: UInt8.self)), count: bytes.count)
    }

    package func view(copying view: StringView) -> StringView {
        view.isInline ? view : self.view(copying: UnsafeBufferPointer(start: view.pointer, count: view.count))
    }

    package func view(copying string: String) -> StringView {
        var string = string
        return string.withUTF8 { self.view(copying: $0) }
    }
}
