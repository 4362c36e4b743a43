import CMemory

/// The unit of storage of a `StateTable`, and of copying while a reader holds a snapshot.
///
/// One worker writes a page; once a snapshot shares it, the writer copies it before its next change, so a reader on any
/// thread sees bytes that no longer change.
final class StatePage: @unchecked Sendable {
    /// Bytes of a page, unless one row is larger.
    static let bytes = 16 << 10

    let memory: UnsafeMutableRawPointer
    let byteCount: Int
    /// What the memory is a part of; nil when the page owns it.
    private let slab: PageSlab?

    /// A zeroed page of its own.
    init(byteCount: Int) {
        self.byteCount = byteCount
        slab = nil
        memory = .allocate(byteCount: byteCount, alignment: 64)
        memory.initializeMemory(as: UInt8.self, repeating: 0, count: byteCount)
    }

    init(copying other: StatePage) {
        byteCount = other.byteCount
        slab = nil
        memory = .allocate(byteCount: byteCount, alignment: 64)
        memory.copyMemory(from: other.memory, byteCount: byteCount)
    }

    /// The next zeroed part of a slab; nil when it has none left.
    init?(of slab: PageSlab, byteCount: Int) {
        guard let memory = slab.take(byteCount) else { return nil }
        self.memory = memory
        self.byteCount = byteCount
        self.slab = slab
    }

    /// Whether the page is the first of a slab, and that.
    func slab(after other: StatePage?) -> PageSlab? { slab === other?.slab ? nil : slab }

    deinit {
        if slab == nil { memory.deallocate() }
    }
}

/// Room for many pages in one large page of the system, for tables that have outgrown single ones. Freed with its last page.
final class PageSlab: @unchecked Sendable {
    // Safe to share: only the table's owner takes parts; readers hold it to keep the memory.
    static let bytes = 2 << 20

    private let memory: UnsafeMutableRawPointer
    private var used = 0

    /// nil when the system has no memory of that kind.
    init?() {
        guard let memory = mill_large_allocate(Self.bytes, true) else { return nil }
        self.memory = memory
    }

    deinit { mill_large_free(memory, Self.bytes) }

    /// Has the system hand out its memory.
    func populate() { mill_large_populate(memory, Self.bytes) }

    fileprivate func take(_ byteCount: Int) -> UnsafeMutableRawPointer? {
        guard used + byteCount <= Self.bytes else { return nil }
        defer { used += byteCount }
        return memory + used
    }
}
