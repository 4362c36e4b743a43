import CMemory

/// The bytes of long strings: grows by chunks that never move, freed as a whole with its last owner.
///
/// One thread fills it; once a column that points into it is shared, nothing is written to bytes already handed out.
/// Every chunk has 64 readable bytes after its end, which vectorised readers may touch.
package final class StringHeap: @unchecked Sendable {
    private var chunks: [UnsafeMutableRawPointer] = []
    /// Chunks of a heap that has outgrown single ones, each a large page of the system: a page fault for each 4 KiB took a tenth of the
    /// time of a join that keeps whole rows, and more with several threads, which all fault in one address space.
    private var largeChunks: [UnsafeMutableRawPointer] = []
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
        for chunk in largeChunks { mill_large_free(chunk, Self.largeChunkBytes) }
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
        let (chunk, size) = largeChunk(atLeast: count) ?? smallChunk(atLeast: count)
        byteCount += size
        free.pointee = Free(start: chunk, count: size)
    }

    private func smallChunk(atLeast count: Int) -> (UnsafeMutableRawPointer, Int) {
        let size = max(count, nextChunkBytes)
        nextChunkBytes = min(nextChunkBytes * 2, Self.smallChunkBytesMax)
        let chunk = UnsafeMutableRawPointer.allocate(byteCount: size + Self.slackBytes, alignment: 16)
        chunks.append(chunk)
        return (chunk, size)
    }

    /// nil while the heap is small, for what does not fit, and when the system has no memory of that kind.
    private func largeChunk(atLeast count: Int) -> (UnsafeMutableRawPointer, Int)? {
        let size = Self.largeChunkBytes - Self.slackBytes
        guard byteCount > Self.largeChunkBytes, count <= size, let chunk = mill_large_allocate(Self.largeChunkBytes, false) else { return nil }
        largeChunks.append(chunk)
        return (chunk, size)
    }

    private static let smallChunkBytesMax = 1 << 20
    private static let largeChunkBytes = 2 << 20
    private static let slackBytes = 64

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
