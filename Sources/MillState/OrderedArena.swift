#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

/// The memory of a table's pages: single pages while the table is small, then 2 MiB blocks that ask for huge pages.
///
/// A search in a table larger than the caches touches three places of a page; with 4 KiB memory pages each also misses the
/// address translation cache, which costs as much as the data. A page given back is used again before new memory is taken;
/// memory goes back to the system with the arena. Owned by one thread.
struct OrderedArena: ~Copyable {
    private let pageBytes: Int
    private var blocks: [UnsafeMutableRawPointer] = []
    private var free: [UnsafeMutableRawPointer] = []
    private var cursor: UnsafeMutableRawPointer?
    private var room = 0
    /// Bytes taken from the system.
    private(set) var byteCount = 0

    private static let blockBytes = 2 << 20
    /// Bytes in single pages before blocks are worth their size.
    private static let smallBytesMax = 1 << 20

    init(pageBytes: Int) { self.pageBytes = pageBytes }

    deinit {
        for block in blocks { block.deallocate() }
    }

    /// A page of undefined content, aligned to 64 bytes.
    mutating func take() -> UnsafeMutableRawPointer {
        if let page = free.popLast() { return page }
        if byteCount < Self.smallBytesMax { return allocate(pageBytes, alignment: 64) }
        if room < pageBytes {
            let block = allocate(Self.blockBytes, alignment: Self.blockBytes)
            #if canImport(Glibc)
            // Only a hint: without huge pages the block works as it is.
            _ = madvise(block, Self.blockBytes, MADV_HUGEPAGE)
            #endif
            cursor = block
            room = Self.blockBytes
        }
        let page = cursor.unsafelyUnwrapped
        cursor = page + pageBytes
        room -= pageBytes
        return page
    }

    mutating func giveBack(_ page: UnsafeMutableRawPointer) { free.append(page) }

    private mutating func allocate(_ count: Int, alignment: Int) -> UnsafeMutableRawPointer {
        let block = UnsafeMutableRawPointer.allocate(byteCount: count, alignment: alignment)
        blocks.append(block)
        byteCount += count
        return block
    }
}
