import MillIO

/// The bytes of one column chunk, read from the file a window at a time.
struct ChunkBytes {
    private let file: any File
    /// Where the chunk ends in the file.
    let end: Int
    private var window: PageMemory
    private var windowStart = 0
    private var windowCount = 0

    private static let windowBytes = 1 << 20

    init(_ file: any File, end: Int) {
        self.file = file
        self.end = end
        window = PageMemory(count: 0)
    }

    /// `count` bytes at a place of the file, valid until the next call.
    mutating func bytes(at offset: Int, _ count: Int) throws(ChunkFailure) -> UnsafeRawBufferPointer {
        guard count >= 0, offset >= 0, count <= end - offset else { throw .malformed(.cutShort) }
        if offset < windowStart || offset + count > windowStart + windowCount { try fill(at: offset, count) }
        return UnsafeRawBufferPointer(start: window.base + (offset - windowStart), count: count)
    }

    private mutating func fill(at offset: Int, _ count: Int) throws(ChunkFailure) {
        let wanted = min(max(count, Self.windowBytes), end - offset)
        if window.count < wanted { window = PageMemory(count: wanted) }
        (windowStart, windowCount) = (offset, 0)
        do throws(IOFailure) {
            windowCount = try file.read(at: offset, into: UnsafeMutableRawBufferPointer(start: window.base, count: wanted))
        } catch { throw .io(error) }
        guard windowCount >= count else { throw .malformed(.cutShort) }
    }

    /// The header of the page at a place of the file, and how many bytes it takes.
    mutating func header(at offset: Int) throws(ChunkFailure) -> (PageHeader, byteCount: Int) {
        var offered = min(Self.headerBytes, end - offset)
        while true {
            var reader = CompactReader(try bytes(at: offset, offered))
            do throws(Malformed) {
                let header = try PageHeader(&reader)
                return (header, reader.position)
            } catch {
                // Bounds of long values may make a header long.
                guard error == .cutShort, offered < end - offset, offered < Self.headerBytesMax else { throw .malformed(error) }
                offered = min(offered * 8, end - offset)
            }
        }
    }

    private static let headerBytes = 8 << 10
    private static let headerBytesMax = 32 << 20
}

/// What went wrong with a chunk, before it is said in which file.
enum ChunkFailure: Error {
    case malformed(Malformed)
    case io(IOFailure)
}
