import MillBase
import MillColumnar
import MillExpr
import MillState

/// min, max and the one value of a scalar subquery, over input that may be taken back.
///
/// All values of all groups are kept in one ordered table by (group's row number, value, representation) with the sum of their
/// weights, so the next minimum is there when the present one goes: O(log n) per row. Of equal values the one with the fewest
/// digits is the least, so the answer does not tell of the order in which they came. Payload: 1 when there is a value, the value as of the last
/// `refresh` (24 bytes), and the sum of the weights of all rows, NULL or not.
final class OrderedExtremumAccumulator: Accumulator {
    enum Kind { case min, max, single }

    let byteCount = 40
    private let type: SQLType
    private let kind: Kind
    private let slot: ValueSlot
    private let encoder: KeyEncoder
    private let values: OrderedTable
    private var key = KeyBuffer()

    private static let valueOffset = 8
    private static let rowsOffset = 32

    init(type: SQLType, kind: Kind) {
        self.type = type
        self.kind = kind
        slot = ValueSlot(type)
        encoder = KeyEncoder(order: [KeyOrder(type)])
        // Per entry: weight, then the value.
        values = OrderedTable(payloadBytes: 32, payloadStrings: slot.type.physical == .string ? [8] : [], stringsOwner: slot)
    }

    var outsideByteCount: Int { values.byteCount + slot.heapByteCount }

    var stringOffset: Int? { type.physical == .string ? Self.valueOffset : nil }

    var tables: [any DurableTable] { [values] }

    func finishRestore(_ strings: StringHeap) { slot.keep([strings, values.restoredStrings].compactMap { $0 }) }

    private func setKey(group: UInt32) {
        key.removeAll()
        withUnsafeBytes(of: group.bigEndian) { key.append($0) }
    }

    func update(_ groups: GroupRows, values column: Column?, weights: UnsafePointer<Int64>?) {
        guard let column else { return }
        for index in 0..<groups.count {
            let weight = weights?[index] ?? 1
            guard weight != 0 else { continue }
            groups.pointer(index, Int64.self, at: Self.rowsOffset).pointee &+= weight
            guard !column.isNull(index) else { continue }
            setKey(group: groups.numbers[index])
            encoder.encode([column], row: index, into: &key)
            column.appendRepresentation(row: index, to: &key)
            let (payload, inserted) = values.findOrInsert(key.bytes)
            if inserted { slot.store(column, index, at: payload + 8) }
            let sum = payload.load(as: Int64.self) &+ weight
            if sum == 0 {
                slot.discard(payload + 8)
                _ = values.remove(key.bytes)
            } else {
                payload.storeBytes(of: sum, as: Int64.self)
            }
        }
    }

    func refresh(_ groups: GroupRows) {
        for index in 0..<groups.count {
            setKey(group: groups.numbers[index])
            let state = groups.payloads[index] + groups.offset
            let entry = kind == .max ? values.last(prefix: key.bytes) : values.first(prefix: key.bytes)
            state.storeBytes(of: entry == nil ? 0 : 1, as: Int64.self)
            let value = state + Self.valueOffset
            if let entry {
                value.copyMemory(from: entry.payload + 8, byteCount: 24)
            } else {
                value.initializeMemory(as: UInt8.self, repeating: 0, count: 24)
            }
        }
    }

    func release(_ group: UInt32, _ state: UnsafeMutableRawPointer) {
        setKey(group: group)
        let prefix = key.bytes
        if type.physical == .string {
            values.scan(from: prefix) { key, payload in
                guard key.prefix(prefix.count).elementsEqual(prefix) else { return false }
                slot.discard(UnsafeMutableRawPointer(mutating: payload) + 8)
                return true
            }
        }
        _ = values.removeAll(prefix: prefix)
    }

    func adopt(_ groups: [GroupMove], from other: OrderedExtremumAccumulator) {
        var copy = KeyBuffer()
        for group in groups {
            setKey(group: group.from.number)
            let prefix = key.bytes
            other.values.scan(prefix: prefix) { key, payload in
                copy.removeAll()
                withUnsafeBytes(of: group.to.number.bigEndian) { copy.append($0) }
                copy.append(UnsafeRawBufferPointer(rebasing: key[prefix.count...]))
                let entry = values.findOrInsert(copy.bytes).payload
                entry.copyMemory(from: payload, byteCount: values.payloadBytes)
                slot.adopt(at: entry + 8)
                return true
            }
            if group.to.state.load(as: Int64.self) != 0 { slot.adopt(at: group.to.state + Self.valueOffset) }
        }
    }

    var wantsCompaction: Bool { slot.wantsCompaction }

    func compact(_ states: [UnsafeMutableRawPointer]) {
        var places = states.filter { $0.load(as: Int64.self) != 0 }.map { $0 + Self.valueOffset }
        values.settle()
        values.scan { _, payload in
            places.append(UnsafeMutableRawPointer(mutating: payload) + 8)
            return true
        }
        slot.renewHeap(places)
    }

    func output(_ payloads: [UnsafeMutableRawPointer], offset: Int, errors: inout [(Int, SQLError)]) -> Column {
        let column = slot.column(payloads, presentAt: offset, valueAt: offset + Self.valueOffset)
        guard kind == .single else { return column }
        for (index, payload) in payloads.enumerated() where payload.load(fromByteOffset: offset + Self.rowsOffset, as: Int64.self) > 1 {
            errors.append((index, .moreThanOneRow))
            column.setNull(index)
        }
        return column
    }
}
