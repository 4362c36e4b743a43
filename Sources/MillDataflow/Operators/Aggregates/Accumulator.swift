import MillBase
import MillColumnar
import MillState

/// The running state of one aggregate call inside a group's row: where it lies, how rows change it, what it gives.
///
/// Fixed-size parts lie in the row's payload and are copied whole when a group is first touched in an epoch, so that the old
/// output can be taken back. What is not fixed-size (an ordered multiset for MIN and MAX under retraction, an exact float
/// sum) lies outside, and `refresh` caches its output in the payload before the epoch's output is made.
///
/// One non-generic class per kind: methods of generic classes behind a protocol run unspecialised.
protocol Accumulator: AnyObject {
    /// Bytes in the payload, a multiple of 8. All zero is the empty group.
    var byteCount: Int { get }
    /// Whether more of a value counts than that it is there.
    var readsValues: Bool { get }
    /// Adds rows. `weights` nil means +1 each; a weight of 0 leaves the row out.
    func update(_ groups: GroupRows, values: Column?, weights: UnsafePointer<Int64>?)
    /// Brings the cached output up to date for the groups that changed.
    func refresh(_ groups: GroupRows)
    /// The group is gone: lets go of what lies outside.
    func release(_ group: UInt32, _ state: UnsafeMutableRawPointer)
    /// Outside strings that nothing needs outweigh the others.
    var wantsCompaction: Bool { get }
    /// Rewrites what lies outside. `states` is this accumulator's place in every group. Between epochs only.
    func compact(_ states: [UnsafeMutableRawPointer])
    /// One output value per payload; `errors` receives the index and error of those that cannot be expressed.
    func output(_ payloads: [UnsafeMutableRawPointer], offset: Int, errors: inout [(Int, SQLError)]) -> Column
    var outsideByteCount: Int { get }
    /// Where in its place in a group a string lies; nil when none does.
    var stringOffset: Int? { get }
    /// What it keeps outside the groups.
    var tables: [any DurableTable] { get }
    /// Groups and tables have come back from a checkpoint; `strings` holds the long strings of the groups.
    func finishRestore(_ strings: StringHeap)
    /// Groups have come from where `other` serves them, as copies: takes over what that keeps of them outside the payload, and puts right
    /// what the payload says of it.
    func adopt(_ groups: [GroupMove], from other: Self)
}

extension Accumulator {
    var readsValues: Bool { true }
    func refresh(_ groups: GroupRows) {}
    func release(_ group: UInt32, _ state: UnsafeMutableRawPointer) {}
    var wantsCompaction: Bool { false }
    func compact(_ states: [UnsafeMutableRawPointer]) {}
    var outsideByteCount: Int { 0 }
    var stringOffset: Int? { nil }
    var tables: [any DurableTable] { [] }
    func finishRestore(_ strings: StringHeap) {}
    func adopt(_ groups: [GroupMove], from other: Self) {}

    /// The same from an accumulator of the same call, whatever both are.
    func adopt(_ groups: [GroupMove], fromTwin other: any Accumulator) {
        guard let other = other as? Self else { preconditionFailure("accumulators of one call are of one kind") }
        adopt(groups, from: other)
    }
}

/// An accumulator whose groups can become one: of sessions that a late row joins. Input that takes rows back has no use for it, for a
/// group that came together may have to come apart again.
protocol MergeableAccumulator: Accumulator {
    /// Adds what `source`'s group has seen to `target`'s group. The source is released afterwards.
    func merge(_ source: GroupState, into target: GroupState)
}

/// Where an accumulator lies in one group, and the group's row number.
struct GroupState {
    let number: UInt32
    let state: UnsafeMutableRawPointer

    /// Adds `count` integers of another state to this one's.
    @inline(__always) func add(_ other: GroupState, words count: Int) {
        let target = state.assumingMemoryBound(to: Int64.self)
        let source = other.state.assumingMemoryBound(to: Int64.self)
        for word in 0..<count { target[word] &+= source[word] }
    }
}

/// A group on its way from one operator to another of the same node.
struct GroupMove {
    let from: GroupState
    /// Its payload is a copy of the other's, or will be part of another group's.
    let to: GroupState

    /// The same groups for the accumulator at another place.
    func at(_ offset: Int) -> GroupMove {
        GroupMove(
            from: GroupState(number: from.number, state: from.state + offset), to: GroupState(number: to.number, state: to.state + offset))
    }

    static func of(_ theirs: [RowNumber], in other: StateTable, to ours: [RowNumber], in table: StateTable) -> [GroupMove] {
        zip(theirs, ours).map { their, our in
            GroupMove(
                from: GroupState(number: their, state: other.preparedPayload(their)),
                to: GroupState(number: our, state: table.preparedPayload(our)))
        }
    }
}

/// Groups by payload: for each of `count` rows, where the accumulator lies in its group, and the group's row number.
struct GroupRows {
    let payloads: UnsafePointer<UnsafeMutableRawPointer>
    let numbers: UnsafePointer<UInt32>
    let count: Int
    /// Where this accumulator lies in the payload.
    let offset: Int

    /// The same groups for the accumulator at another place.
    func at(_ offset: Int) -> GroupRows { GroupRows(payloads: payloads, numbers: numbers, count: count, offset: offset) }

    @inline(__always) func pointer<T>(_ index: Int, _: T.Type, at extra: Int = 0) -> UnsafeMutablePointer<T> {
        (payloads[index] + offset + extra).assumingMemoryBound(to: T.self)
    }
}

/// count(*) and count(x). Payload: Int64.
final class CountAccumulator: MergeableAccumulator {
    let byteCount = 8
    let readsValues = false

    func update(_ groups: GroupRows, values: Column?, weights: UnsafePointer<Int64>?) {
        let validity = values?.validity
        if validity == nil, weights == nil {
            for index in 0..<groups.count { groups.pointer(index, Int64.self).pointee &+= 1 }
            return
        }
        for index in 0..<groups.count {
            let present = validity.map { $0[index >> 6] &>> UInt64(index & 63) & 1 } ?? 1
            groups.pointer(index, Int64.self).pointee &+= Int64(bitPattern: present) &* (weights?[index] ?? 1)
        }
    }

    func merge(_ source: GroupState, into target: GroupState) { target.add(source, words: 1) }

    func output(_ payloads: [UnsafeMutableRawPointer], offset: Int, errors: inout [(Int, SQLError)]) -> Column {
        let column = Column(.int64, uninitialized: payloads.count)
        let values = column.values(Int64.self)
        for (index, payload) in payloads.enumerated() { values[index] = payload.load(fromByteOffset: offset, as: Int64.self) }
        return column
    }
}

/// sum and avg over integers, exact in 128 bits. Payload: low, high, count of present values.
///
/// 128 bits are enough: values are at most 2^63 in magnitude and a group's weights, each above 0 between epochs, sum to less than
/// 2^63 (`count` is an Int64), so the sum is at most 2^126. In the middle of an epoch it may wrap around, and come back.
final class IntegerSumAccumulator: MergeableAccumulator {
    let byteCount = 24
    private let result: SumResult

    init(_ result: SumResult) { self.result = result }

    func update(_ groups: GroupRows, values: Column?, weights: UnsafePointer<Int64>?) {
        guard let values else { return }
        switch values.type.physical {
        case .int16: add(Int16.self, groups, values, weights)
        case .int32: add(Int32.self, groups, values, weights)
        default: add(Int64.self, groups, values, weights)
        }
    }

    @inline(__always)
    private func add<T: FixedWidthInteger & SignedInteger>(_: T.Type, _ groups: GroupRows, _ column: Column, _ weights: UnsafePointer<Int64>?) {
        let values = UnsafePointer(column.values(T.self))
        let validity = column.validity
        guard let weights else {
            for index in 0..<groups.count {
                if let validity, validity[index >> 6] &>> UInt64(index & 63) & 1 == 0 { continue }
                let value = Int64(truncatingIfNeeded: values[index])
                Self.add((UInt64(bitPattern: value), value &>> 63), count: 1, to: groups.pointer(index, UInt64.self))
            }
            return
        }
        for index in 0..<groups.count {
            if let validity, validity[index >> 6] &>> UInt64(index & 63) & 1 == 0 { continue }
            let product = Int64(truncatingIfNeeded: values[index]).multipliedFullWidth(by: weights[index])
            Self.add((product.low, product.high), count: weights[index], to: groups.pointer(index, UInt64.self))
        }
    }

    @inline(__always)
    private static func add(_ value: (low: UInt64, high: Int64), count: Int64, to state: UnsafeMutablePointer<UInt64>) {
        let (low, carry) = state[0].addingReportingOverflow(value.low)
        state[0] = low
        state[1] = state[1] &+ UInt64(bitPattern: value.high) &+ (carry ? 1 : 0)
        state[2] = state[2] &+ UInt64(bitPattern: count)
    }

    func merge(_ source: GroupState, into target: GroupState) {
        let words = source.state.assumingMemoryBound(to: UInt64.self)
        let sum = (low: words[0], high: Int64(bitPattern: words[1]))
        Self.add(sum, count: Int64(bitPattern: words[2]), to: target.state.assumingMemoryBound(to: UInt64.self))
    }

    func output(_ payloads: [UnsafeMutableRawPointer], offset: Int, errors: inout [(Int, SQLError)]) -> Column {
        let column = Column(result.type, uninitialized: payloads.count)
        for (index, payload) in payloads.enumerated() {
            let state = (payload + offset).assumingMemoryBound(to: UInt64.self)
            let sum = Int128(Int64(bitPattern: state[1])) << 64 | Int128(state[0])
            result.store(Decimal(unscaled: sum, scale: 0), count: Int64(bitPattern: state[2]), in: column, index, &errors)
        }
        return column
    }
}

/// What a sum over exact numbers becomes.
struct SumResult {
    let type: SQLType
    let isAverage: Bool

    /// Writes the sum or the average; no values give NULL.
    func store(_ sum: Decimal, count: Int64, in column: Column, _ row: Int, _ errors: inout [(Int, SQLError)]) {
        guard count != 0 else { return column.setNull(row) }
        if type == .int64 {
            guard let value = Int64(exactly: sum.unscaled) else {
                errors.append((row, SQLError(.numericValueOutOfRange, "bigint out of range")))
                return column.setNull(row)
            }
            column.values(Int64.self)[row] = value
            return
        }
        do throws(SQLError) {
            // The quotient's digits depend on the dividend's scale: without trailing zeros equal sums have equal averages.
            let value = isAverage ? try Decimal.dividing(sum.normalized, Decimal(count)) : sum
            guard !value.isFinite || value.unscaled.magnitude < Decimal.unscaledLimit.magnitude else {
                throw SQLError(.numericValueOutOfRange, "value overflows numeric format")
            }
            column.values(Decimal.self)[row] = value
        } catch {
            store(error, in: column, row, &errors)
        }
    }

    /// The sum cannot be expressed: NULL and an error.
    func store(_ error: SQLError, in column: Column, _ row: Int, _ errors: inout [(Int, SQLError)]) {
        errors.append((row, error))
        column.setNull(row)
    }
}

/// bool_and and bool_or. Payload: how many true, how many false.
final class BooleanAccumulator: MergeableAccumulator {
    let byteCount = 16
    private let isAnd: Bool

    init(isAnd: Bool) { self.isAnd = isAnd }

    func update(_ groups: GroupRows, values: Column?, weights: UnsafePointer<Int64>?) {
        guard let values else { return }
        let flags = UnsafePointer(values.values(UInt8.self))
        for index in 0..<groups.count where !values.isNull(index) {
            groups.pointer(index, Int64.self)[flags[index] != 0 ? 0 : 1] &+= weights?[index] ?? 1
        }
    }

    func merge(_ source: GroupState, into target: GroupState) { target.add(source, words: 2) }

    func output(_ payloads: [UnsafeMutableRawPointer], offset: Int, errors: inout [(Int, SQLError)]) -> Column {
        let column = Column(.boolean, uninitialized: payloads.count)
        for (index, payload) in payloads.enumerated() {
            let counts = (payload + offset).assumingMemoryBound(to: Int64.self)
            if counts[0] == 0, counts[1] == 0 {
                column.setNull(index)
            } else {
                column.values(UInt8.self)[index] = (isAnd ? counts[1] == 0 : counts[0] != 0) ? 1 : 0
            }
        }
        return column
    }
}
