/// Which pages of a table have changed since its last seal, and which sealed ones must be taken before they change again.
///
/// Owned by the table's worker and kept behind a fixed address, because every write asks it. A page's state:
/// - `listed`: it changed since the last seal and is in `changed`;
/// - `pending`: the last seal holds it, and nobody may have taken its bytes yet;
/// - `shared`: a snapshot may hold its memory (`StateTable.snapshot`);
/// - `based`: a checkpoint holds it whole, so that its changed rows are enough for the next one.
///
/// The memory of a page never moves for a seal, so pointers into it stay good: who is about to change a pending page takes its bytes
/// first (`SealedPages.take`).
struct PageWatch: ~Copyable {
    static let listed: UInt8 = 1
    static let pending: UInt8 = 2
    static let shared: UInt8 = 4
    static let based: UInt8 = 8

    /// Whether anything is to be done before a write: pages are sealed or shared.
    private(set) var isOn = false
    /// Whether changes are noted for checkpoints.
    private(set) var isTracking = false
    private(set) var flags: UnsafeMutablePointer<UInt8>
    /// Pages for which there is room.
    private var capacity = 0
    /// Whether a seal has been made that counts, of a table that may have no pages.
    private(set) var hasSeal = false
    /// Pages that changed since the last seal, in the order they did.
    private(set) var changed: [UInt32] = []
    /// The last seal, while a page of it may be pending, and which of its entries each page is.
    private var sealed: SealedPages?
    private var entries: [UInt32] = []

    init() { flags = .allocate(capacity: 0) }

    deinit { flags.deallocate() }

    /// Room for so many pages; new ones are unchanged.
    mutating func reserve(_ pages: Int) {
        guard pages > capacity else { return }
        let larger = UnsafeMutablePointer<UInt8>.allocate(capacity: max(pages, 2 * capacity))
        larger.initialize(repeating: 0, count: max(pages, 2 * capacity))
        larger.update(from: flags, count: capacity)
        flags.deallocate()
        flags = larger
        capacity = max(pages, 2 * capacity)
    }

    mutating func track() {
        isOn = true
        isTracking = true
    }

    /// A snapshot holds the first pages.
    mutating func share(_ pages: Int) {
        reserve(pages)
        isOn = true
        for page in 0..<pages { flags[page] |= Self.shared }
    }

    mutating func unshare(_ page: Int) { flags[page] &= ~Self.shared }

    /// Nothing is to be done before a write to this page.
    @inline(__always) func isReady(_ page: Int) -> Bool { flags[page] & (Self.listed | Self.pending | Self.shared) == Self.listed }

    /// Takes the bytes that a seal holds of a page, so that it may change.
    mutating func settle(_ page: Int) {
        guard flags[page] & Self.pending != 0 else { return }
        flags[page] &= ~Self.pending
        sealed?.take(Int(entries[page]))
    }

    /// The same for all pages: their memory goes, or what they point at.
    mutating func settleAll() {
        guard let sealed else { return }
        for index in 0..<sealed.count { sealed.take(index) }
        endSeal()
    }

    /// Notes that a page changes from now on; it is settled.
    mutating func list(_ page: Int) {
        guard flags[page] & Self.listed == 0 else { return }
        flags[page] |= Self.listed
        if isTracking { changed.append(UInt32(truncatingIfNeeded: page)) }
    }

    /// Ends the last seal: all of it has been taken.
    private mutating func endSeal() {
        guard let sealed else { return }
        for index in 0..<sealed.count { flags[Int(sealed.page(index))] &= ~Self.pending }
        self.sealed = nil
    }

    /// The pages to seal now, ascending. The seal before must have been taken whole.
    mutating func takeChanged() -> [UInt32] {
        settleAll()
        changed.sort()
        defer { changed.removeAll(keepingCapacity: true) }
        return changed
    }

    func isBased(_ page: UInt32) -> Bool { flags[Int(page)] & Self.based != 0 }

    /// The pages of a seal are unchanged, and pending. Those it holds whole are based.
    mutating func begin(_ seal: SealedPages) {
        sealed = seal
        hasSeal = true
        for index in 0..<seal.count {
            let page = Int(seal.page(index))
            while entries.count <= page { entries.append(0) }
            entries[page] = UInt32(truncatingIfNeeded: index)
            flags[page] = flags[page] & ~Self.listed | Self.pending | Self.based
        }
    }

    /// A page is no more; should it come again, all of it is new.
    mutating func forget(_ page: Int) { flags[page] &= ~(Self.listed | Self.based) }

    /// No checkpoint holds anything of the table: all pages are listed and will be sealed whole.
    mutating func forgetBases(_ pages: Int) {
        hasSeal = false
        reserve(pages)
        for page in 0..<pages {
            flags[page] &= ~Self.based
            list(page)
        }
    }

    /// Pages that a checkpoint has just given back.
    mutating func noteRestored(_ pages: Int) {
        hasSeal = true
        reserve(pages)
        for page in 0..<pages { flags[page] |= Self.based }
    }
}
