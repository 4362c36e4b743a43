import MillBase
import MillColumnar

/// min and max over input that is never taken back. Payload: 1 when a value is present, then the value (24 bytes).
final class AppendOnlyExtremumAccumulator: MergeableAccumulator {
    let byteCount = 32
    private let type: SQLType
    private let isMax: Bool
    private let slot: ValueSlot

    init(type: SQLType, isMax: Bool) {
        self.type = type
        self.isMax = isMax
        slot = ValueSlot(type)
    }

    var outsideByteCount: Int { slot.heapByteCount }

    var stringOffset: Int? { type.physical == .string ? 8 : nil }

    func finishRestore(_ strings: StringHeap) { slot.keep([strings]) }

    func update(_ groups: GroupRows, values: Column?, weights: UnsafePointer<Int64>?) {
        guard let values else { return }
        switch type.physical {
        case .bool8: fold(UInt8.self, groups, values, weights) { $0 < $1 }
        case .int16: fold(Int16.self, groups, values, weights) { $0 < $1 }
        case .int32: fold(Int32.self, groups, values, weights) { $0 < $1 }
        case .int64: fold(Int64.self, groups, values, weights) { $0 < $1 }
        case .float32: fold(Float.self, groups, values, weights) { Float.totalOrder($0, $1) < 0 }
        case .float64: fold(Double.self, groups, values, weights) { Double.totalOrder($0, $1) < 0 }
        case .decimal: fold(Decimal.self, groups, values, weights) { Decimal.totalOrder($0, $1) < 0 }
        case .interval: fold(Interval.self, groups, values, weights) { Interval.totalOrder($0, $1) < 0 }
        case .string: foldStrings(groups, values, weights)
        }
    }

    /// - Parameter less: an order by value, and by representation among equal values.
    @inline(__always)
    private func fold<T: BitwiseCopyable>(
        _: T.Type, _ groups: GroupRows, _ column: Column, _ weights: UnsafePointer<Int64>?, _ less: (T, T) -> Bool
    ) {
        let values = UnsafePointer(column.values(T.self))
        let validity = column.validity
        let isMax = isMax
        for index in 0..<groups.count {
            if let validity, validity[index >> 6] &>> UInt64(index & 63) & 1 == 0 { continue }
            if let weights, weights[index] == 0 { continue }
            let present = groups.pointer(index, Int64.self)
            let value = groups.pointer(index, T.self, at: 8)
            if present.pointee == 0 {
                present.pointee = 1
                value.pointee = values[index]
            } else if isMax ? less(value.pointee, values[index]) : less(values[index], value.pointee) {
                value.pointee = values[index]
            }
        }
    }

    private func foldStrings(_ groups: GroupRows, _ column: Column, _ weights: UnsafePointer<Int64>?) {
        let values = UnsafePointer(column.values(StringView.self))
        for index in 0..<groups.count where !column.isNull(index) && weights?[index] != 0 {
            let state = groups.payloads[index] + groups.offset
            if state.load(as: Int64.self) != 0 {
                let order = StringView.compare(values[index], (state + 8).load(as: StringView.self))
                guard isMax ? order > 0 : order < 0 else { continue }
                slot.discard(state + 8)
            }
            state.storeBytes(of: 1, as: Int64.self)
            slot.store(column, index, at: state + 8)
        }
    }

    func merge(_ source: GroupState, into target: GroupState) {
        guard source.state.load(as: Int64.self) != 0 else { return }
        let (from, to) = (source.state + 8, target.state + 8)
        if target.state.load(as: Int64.self) != 0 {
            let order = order(from, to)
            guard isMax ? order > 0 : order < 0 else { return }
            slot.discard(to)
        }
        target.state.copyMemory(from: source.state, byteCount: byteCount)
        // The value is the target's now, and does not go with the source.
        source.state.storeBytes(of: 0, as: Int64.self)
    }

    func release(_ group: UInt32, _ state: UnsafeMutableRawPointer) {
        if state.load(as: Int64.self) != 0 { slot.discard(state + 8) }
    }

    func adopt(_ groups: [GroupMove], from other: AppendOnlyExtremumAccumulator) {
        for group in groups where group.to.state.load(as: Int64.self) != 0 { slot.adopt(at: group.to.state + 8) }
    }

    /// How two stored values compare: by value, and by representation among equal ones.
    private func order(_ a: UnsafeRawPointer, _ b: UnsafeRawPointer) -> Int {
        func compare<T: Comparable>(_: T.Type) -> Int {
            let (left, right) = (a.load(as: T.self), b.load(as: T.self))
            return left < right ? -1 : left == right ? 0 : 1
        }
        switch type.physical {
        case .bool8: return compare(UInt8.self)
        case .int16: return compare(Int16.self)
        case .int32: return compare(Int32.self)
        case .int64: return compare(Int64.self)
        case .float32: return Float.totalOrder(a.load(as: Float.self), b.load(as: Float.self))
        case .float64: return Double.totalOrder(a.load(as: Double.self), b.load(as: Double.self))
        case .decimal: return Decimal.totalOrder(a.load(as: Decimal.self), b.load(as: Decimal.self))
        case .interval: return Interval.totalOrder(a.load(as: Interval.self), b.load(as: Interval.self))
        case .string: return StringView.compare(a.load(as: StringView.self), b.load(as: StringView.self))
        }
    }

    var wantsCompaction: Bool { slot.wantsCompaction }

    func compact(_ states: [UnsafeMutableRawPointer]) {
        slot.renewHeap(states.filter { $0.load(as: Int64.self) != 0 }.map { $0 + 8 })
    }

    func output(_ payloads: [UnsafeMutableRawPointer], offset: Int, errors: inout [(Int, SQLError)]) -> Column {
        slot.column(payloads, presentAt: offset, valueAt: offset + 8)
    }
}

/// A value of any type in 24 bytes outside a column; long strings go to a heap of its own.
///
/// The heap only grows, because batches may point into it. Discarded strings are garbage until `renewHeap` moves the others.
final class ValueSlot {
    let type: SQLType
    private var heap = StringHeap()
    /// Where strings lie that came back from a checkpoint, until they move.
    private var restored: [StringHeap] = []
    private var garbageBytes = 0
    var heapByteCount: Int { heap.byteCount + restored.reduce(0) { $0 + $1.byteCount } }
    var wantsCompaction: Bool { garbageBytes > 1 << 20 && garbageBytes > heapByteCount / 2 }

    init(_ type: SQLType) { self.type = type }

    func store(_ column: Column, _ row: Int, at target: UnsafeMutableRawPointer) {
        switch type.physical {
        case .string: target.storeBytes(of: heap.view(copying: column.values(StringView.self)[row]), as: StringView.self)
        default: target.copyMemory(from: column.data + row * type.physical.stride, byteCount: type.physical.stride)
        }
    }

    /// The value at `target` was stored by another slot.
    func adopt(at target: UnsafeMutableRawPointer) {
        guard type.physical == .string else { return }
        target.storeBytes(of: heap.view(copying: target.load(as: StringView.self)), as: StringView.self)
    }

    /// The value at `target` is not needed any more.
    func discard(_ target: UnsafeMutableRawPointer) {
        guard type.physical == .string else { return }
        let view = target.load(as: StringView.self)
        if !view.isInline { garbageBytes += view.count }
    }

    /// Strings that were stored before lie in other heaps.
    func keep(_ heaps: [StringHeap]) {
        if type.physical == .string { restored = heaps }
    }

    /// Moves all strings to a new heap; `places` are all that hold one.
    func renewHeap(_ places: [UnsafeMutableRawPointer]) {
        let fresh = StringHeap(firstChunkBytes: 1 << 20)
        for place in places { place.storeBytes(of: fresh.view(copying: place.load(as: StringView.self)), as: StringView.self) }
        heap = fresh
        restored = []
        garbageBytes = 0
    }

    /// The stored values as a column; where the flag at `presentAt` is 0 the value is NULL.
    func column(_ payloads: [UnsafeMutableRawPointer], presentAt: Int?, valueAt: Int) -> Column {
        let result = Column(type, uninitialized: payloads.count)
        let stride = type.physical.stride
        for (index, payload) in payloads.enumerated() {
            if let presentAt, payload.load(fromByteOffset: presentAt, as: Int64.self) == 0 {
                result.setNull(index)
            } else {
                (result.data + index * stride).copyMemory(from: payload + valueAt, byteCount: stride)
            }
        }
        if type.physical == .string { for heap in restored + [heap] { result.keep(heap) } }
        return result
    }
}
