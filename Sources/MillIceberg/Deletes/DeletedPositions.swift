/// Rows of one data file by their positions: those that are deleted.
///
/// Sets of 65,536 neighbours each: as a sorted list while there are few, as bits beyond, which is also how they are stored (a Roaring
/// bitmap). Positions are not negative.
package struct DeletedPositions: Hashable, Sendable {
    /// By the position's upper 48 bits.
    private var blocks: [UInt64: Block] = [:]

    enum Block: Hashable, Sendable {
        /// Ascending.
        case list([UInt16])
        /// 1024 words.
        case bits([UInt64])

        /// As many as a list has at most.
        static let listMax = 4096
        static let words = 1024
    }

    package init() {}

    package init(_ positions: some Sequence<Int64>) {
        for position in positions { insert(position) }
    }

    package private(set) var count = 0
    package var isEmpty: Bool { count == 0 }

    package mutating func insert(_ position: Int64) {
        precondition(position >= 0, "a position is not negative")
        let key = UInt64(position) >> 16
        let low = UInt16(truncatingIfNeeded: position)
        var block = blocks.removeValue(forKey: key) ?? .list([])
        if block.insert(low) { count += 1 }
        blocks[key] = block
    }

    package mutating func formUnion(_ other: DeletedPositions) {
        for (key, block) in other.blocks {
            var mine = blocks.removeValue(forKey: key) ?? .list([])
            for low in block.values where mine.insert(low) { count += 1 }
            blocks[key] = mine
        }
    }

    package func contains(_ position: Int64) -> Bool {
        guard position >= 0, let block = blocks[UInt64(position) >> 16] else { return false }
        return block.contains(UInt16(truncatingIfNeeded: position))
    }

    /// All of them, ascending.
    package var positions: [Int64] {
        blocks.keys.sorted().flatMap { key in blocks[key]?.values.map { Int64(key << 16 | UInt64($0)) } ?? [] }
    }

    /// Blocks in order, of positions that share their upper 32 bits.
    var blocksByHighWord: [(high: UInt32, blocks: [(key: UInt16, block: Block)])] {
        var result: [(high: UInt32, blocks: [(key: UInt16, block: Block)])] = []
        for key in blocks.keys.sorted() {
            guard let block = blocks[key] else { continue }
            let high = UInt32(truncatingIfNeeded: key >> 16)
            if result.last?.high != high { result.append((high, [])) }
            result[result.count - 1].blocks.append((UInt16(truncatingIfNeeded: key), block))
        }
        return result
    }
}

extension DeletedPositions.Block {
    var values: [UInt16] {
        switch self {
        case .list(let values): return values
        case .bits(let words):
            var result: [UInt16] = []
            for (index, word) in words.enumerated() {
                var rest = word
                while rest != 0 {
                    result.append(UInt16(index * 64 + rest.trailingZeroBitCount))
                    rest &= rest - 1
                }
            }
            return result
        }
    }

    func contains(_ value: UInt16) -> Bool {
        switch self {
        case .list(let values):
            let place = Self.place(of: value, in: values)
            return place < values.count && values[place] == value
        case .bits(let words): return words[Int(value >> 6)] & 1 << UInt64(value & 63) != 0
        }
    }

    /// Whether it was not there.
    mutating func insert(_ value: UInt16) -> Bool {
        switch self {
        case .list(var values):
            // Empty while it is changed, so that the array has one owner and is not copied.
            self = .list([])
            let place = Self.place(of: value, in: values)
            let isNew = place == values.count || values[place] != value
            if isNew { values.insert(value, at: place) }
            self = values.count > Self.listMax ? .bits(Self.bits(values)) : .list(values)
            return isNew
        case .bits(var words):
            self = .list([])
            let bit = UInt64(1) << UInt64(value & 63)
            let isNew = words[Int(value >> 6)] & bit == 0
            words[Int(value >> 6)] |= bit
            self = .bits(words)
            return isNew
        }
    }

    private static func place(of value: UInt16, in values: [UInt16]) -> Int {
        if let last = values.last, value > last { return values.count }
        var (low, high) = (0, values.count)
        while low < high {
            let middle = (low + high) / 2
            if values[middle] < value { low = middle + 1 } else { high = middle }
        }
        return low
    }

    private static func bits(_ values: [UInt16]) -> [UInt64] {
        var words = [UInt64](repeating: 0, count: words)
        for value in values { words[Int(value >> 6)] |= 1 << UInt64(value & 63) }
        return words
    }
}
