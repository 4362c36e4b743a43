import CMemory

/// The memory of a table's pages: single pages while the table is small, then 2 MiB blocks that ask for huge pages.
///
/// A search in a table larger than the caches touches three places of a page; with 4 KiB memory pages each also misses the
/// address translation cache, which costs as much as the data. A page given back is used again before new memory is taken;
/// memory is freed with the arena. Owned by one thread.
struct OrderedArena: ~Copyable {
    private let pageBytes: Int
    private var singles: [UnsafeMutableRawPointer] = []
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
        for page in singles { page.deallocate() }
        for block in blocks { mill_large_free(block, Self.blockBytes) }
    }

    /// A page of undefined content, aligned to 64 bytes.
    mutating func take() -> UnsafeMutableRawPointer {
        if let page = free.popLast() { return page }
        if room < pageBytes {
            guard byteCount >= Self.smallBytesMax, let block = mill_large_allocate(Self.blockBytes, false) else { return single() }
            blocks.append(block)
            byteCount += Self.blockBytes
            cursor = block
            room = Self.blockBytes
        }
        let page = cursor.unsafelyUnwrapped
        cursor = page + pageBytes
        room -= pageBytes
        return page
    }

    mutating func giveBack(_ page: UnsafeMutableRawPointer) { free.append(page) }

    private mutating func single() -> UnsafeMutableRawPointer {
        let page = UnsafeMutableRawPointer.allocate(byteCount: pageBytes, alignment: 64)
        singles.append(page)
        byteCount += pageBytes
        return page
    }
}
