import CMemory

/// Slots of 8 bytes that lead from hashes to rows, twice as many when they fill up.
///
/// A slot is 0 (empty) or `hash's upper 32 bits << 32 | row number + 1`. Its home is the hash's highest bits, so growing needs no row,
/// and slots lie in ascending order of hash but for collisions. Linear probing without tombstones.
struct Directory {
    private(set) var slots: UnsafeMutablePointer<UInt64>
    private(set) var bits = 6

    init() {
        slots = .allocate(capacity: 1 << bits)
        slots.initialize(repeating: 0, count: 1 << bits)
    }

    var count: Int { 1 << bits }
    var mask: Int { 1 << bits - 1 }
    var byteCount: Int { 8 << bits }
    /// Larger than the cache near the core: asking for slots ahead of time then pays.
    var isLarge: Bool { bits > 15 }

    @inline(__always) func home(_ hash: UInt64) -> Int { Int(truncatingIfNeeded: hash &>> UInt64(truncatingIfNeeded: 64 &- bits)) }

    @inline(__always) static func tag(_ hash: UInt64) -> UInt64 { hash & 0xFFFF_FFFF_0000_0000 }
    @inline(__always) static func row(_ entry: UInt64) -> RowNumber { UInt32(truncatingIfNeeded: entry) &- 1 }
    @inline(__always) static func entry(_ hash: UInt64, _ row: RowNumber) -> UInt64 { tag(hash) | UInt64(row &+ 1) }

    /// Makes room for `rows` rows in all, at a load of at most one half.
    mutating func reserve(_ rows: Int) {
        guard rows * 2 > count, bits < Self.bitsMax else { return }
        let old = self
        while rows * 2 > count, bits < Self.bitsMax { bits += 1 }
        // While that is little memory, twice what is needed now, so that growing stays rare.
        if !isLarge { bits += 1 }
        slots = Self.allocate(bits)
        let mask = mask
        for index in 0..<old.count where old.slots[index] != 0 {
            var slot = home(old.slots[index])
            while slots[slot] != 0 { slot = (slot &+ 1) & mask }
            slots[slot] = old.slots[index]
        }
        old.free()
    }

    /// Large enough for `populate` to be worth a thread.
    var isVeryLarge: Bool { bits >= Self.largeBits + 2 }

    /// Has the system hand out the slots' memory.
    func populate() { if bits >= Self.largeBits { mill_large_populate(slots, byteCount) } }

    func free() {
        if bits >= Self.largeBits { mill_large_free(slots, byteCount) } else { slots.deallocate() }
    }

    /// As many bits of the hash as a slot holds: with more it would have to be read from the row.
    private static let bitsMax = 32

    /// From 2 MiB on, slots lie in the system's large pages.
    private static let largeBits = 18

    private static func allocate(_ bits: Int) -> UnsafeMutablePointer<UInt64> {
        guard bits >= largeBits else {
            let slots = UnsafeMutablePointer<UInt64>.allocate(capacity: 1 << bits)
            slots.initialize(repeating: 0, count: 1 << bits)
            return slots
        }
        guard let memory = mill_large_allocate(8 << bits, true) else { fatalError("out of memory: the state of a view or query needs \(8 << bits) bytes more to find its rows by; restart goes on from the last checkpoint") }
        return memory.assumingMemoryBound(to: UInt64.self)
    }
}
