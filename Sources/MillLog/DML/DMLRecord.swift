import CChecksum
import MillBase
import MillColumnar

/// Bytes of the DML log: its header and its records. The format is docs/internals/dml-log.md.
enum DMLRecord {
    static let headerBytes = 32
    static let frameBytes = 8
    /// Of a transaction's number and row number, before its changes.
    static let numbersBytes = 16
    /// Of a whole mark.
    static let markBytes = frameBytes + numbersBytes + 8
    /// Bytes of one transaction at most.
    static let payloadBytesMax = 1 << 30
    private static let magic = Array("MILLDMLS".utf8)
    private static let version: UInt32 = 2
    /// Numbers above this would overflow when they are counted on.
    private static let numberMax: UInt64 = 1 << 62

    struct Header: Equatable {
        var first: DMLPosition
        var nextRowID: Int64
    }

    /// What a record is.
    enum Frame {
        /// Everything up to `first` was durable before the mark was written.
        case mark(Header)
        case transaction(Header, payload: ArraySlice<UInt8>)
    }

    static func encode(_ header: Header) -> [UInt8] {
        var bytes = magic
        append(version, to: &bytes)
        append(header.first.number, to: &bytes)
        append(header.nextRowID, to: &bytes)
        append(checksum(bytes[...]), to: &bytes)
        return bytes
    }

    /// nil when the bytes are no header of a version that is known.
    /// - Returns: also whether the version is one from before marks, which is not appended to.
    static func header(_ bytes: ArraySlice<UInt8>) -> (header: Header, isOld: Bool)? {
        guard bytes.count >= headerBytes, bytes.starts(with: magic) else { return nil }
        var reader = Reader(bytes: bytes.prefix(headerBytes), at: bytes.startIndex + magic.count)
        guard let found = reader.integer(UInt32.self), (1...version).contains(found), let header = reader.header(),
            reader.integer(UInt32.self) == checksum(bytes.prefix(headerBytes - 4))
        else { return nil }
        return (header, found < version)
    }

    /// A mark.
    /// - Parameter durable: the last transaction that is durable, and the first row number that has not been given out.
    static func mark(_ durable: Header) -> [UInt8] {
        var bytes: [UInt8] = []
        var changes: [UInt8] = []
        append(durable.first.number, to: &changes)
        append(changes, number: .zero, nextRowID: durable.nextRowID, to: &bytes)
        return bytes
    }

    /// The part of a payload that does not depend on the transaction's number.
    static func encodeChanges(_ transaction: DMLTransaction) -> [UInt8] {
        var bytes: [UInt8] = []
        append(UInt32(truncatingIfNeeded: transaction.changes.count), to: &bytes)
        for change in transaction.changes {
            append(change.table.number, to: &bytes)
            append(UInt32(truncatingIfNeeded: change.batches.count), to: &bytes)
            for batch in change.batches { append(batch, to: &bytes) }
        }
        return bytes
    }

    /// Appends a whole record.
    static func append(_ changes: [UInt8], number: DMLPosition, nextRowID: Int64, to bytes: inout [UInt8]) {
        var head: [UInt8] = []
        append(number.number, to: &head)
        append(nextRowID, to: &head)
        append(UInt32(truncatingIfNeeded: head.count + changes.count), to: &bytes)
        append(checksum(changes[...], after: checksum(head[...])), to: &bytes)
        bytes += head
        bytes += changes
    }

    /// The record at the start of `bytes`; nil when it is not whole.
    static func frame(_ bytes: ArraySlice<UInt8>) -> Frame? {
        var reader = Reader(bytes: bytes, at: bytes.startIndex)
        guard let length = reader.integer(UInt32.self), let sum = reader.integer(UInt32.self), length >= 20, length <= payloadBytesMax,
            let payload = reader.take(Int(length)), checksum(payload) == sum
        else { return nil }
        var content = Reader(bytes: payload, at: payload.startIndex)
        guard let header = content.header() else { return nil }
        guard header.first == .zero else { return .transaction(header, payload: payload) }
        guard let durable = content.integer(UInt64.self), durable <= numberMax, content.isAtEnd else { return nil }
        return .mark(Header(first: DMLPosition(durable), nextRowID: header.nextRowID))
    }

    /// Whether a record may begin here: what is asked before a checksum is computed, as that of every place in a file would take hours.
    static func mayBegin(_ bytes: ArraySlice<UInt8>, from expected: DMLPosition) -> Bool {
        var reader = Reader(bytes: bytes, at: bytes.startIndex)
        guard let length = reader.integer(UInt32.self), length >= 20, Int(length) <= bytes.count - frameBytes, let sum = reader.integer(UInt32.self),
            // One in four billion has it; columns of small numbers have it everywhere.
            sum != 0, let number = reader.integer(UInt64.self)
        else { return false }
        if number == 0 { return Int(length) == markBytes - frameBytes }
        return number >= expected.number && number - expected.number <= UInt64(bytes.count)
    }

    /// A payload's transaction; nil when it contradicts itself or its tables.
    /// - Parameter types: of a table's columns; nil for a table that is no more.
    static func transaction(_ payload: ArraySlice<UInt8>, types: (ObjectID) -> [SQLType]?) -> DMLTransaction? {
        var reader = Reader(bytes: payload, at: payload.startIndex)
        guard reader.integer(UInt64.self) != nil, let nextRowID = reader.integer(Int64.self), let tableCount = reader.integer(UInt32.self) else { return nil }
        var transaction = DMLTransaction(changes: [], nextRowID: nextRowID)
        for _ in 0..<tableCount {
            guard let number = reader.integer(UInt32.self), let batchCount = reader.integer(UInt32.self) else { return nil }
            let table = ObjectID(number)
            let types = types(table)
            var batches: [DeltaBatch] = []
            for _ in 0..<batchCount {
                guard let batch = reader.batch(types) else { return nil }
                batches.append(batch)
            }
            if types != nil { transaction.changes.append(DMLTransaction.TableChange(table: table, batches: batches)) }
        }
        return reader.isAtEnd ? transaction : nil
    }

    static func checksum(_ bytes: ArraySlice<UInt8>, after start: UInt32 = 0) -> UInt32 {
        bytes.withUnsafeBytes { mill_crc32c(start, $0.baseAddress, $0.count) }
    }

    private static func append<T: FixedWidthInteger>(_ value: T, to bytes: inout [UInt8]) {
        withUnsafeBytes(of: value.littleEndian) { bytes.append(contentsOf: $0) }
    }

    private static func append(_ batch: DeltaBatch, to bytes: inout [UInt8]) {
        append(UInt32(truncatingIfNeeded: batch.count), to: &bytes)
        append(UInt16(truncatingIfNeeded: batch.columns.count), to: &bytes)
        bytes.append(batch.weights == nil ? 0 : 1)
        if let weights = batch.weights { bytes.append(contentsOf: UnsafeRawBufferPointer(start: weights.values, count: batch.count * 8)) }
        for column in batch.columns {
            let layout = column.type.physical
            bytes.append(layout.rawValue)
            bytes.append(column.validity == nil ? 0 : 1)
            if let validity = column.validity {
                bytes.append(contentsOf: UnsafeRawBufferPointer(start: validity, count: (batch.count + 63) / 64 * 8))
            }
            guard layout == .string else {
                bytes.append(contentsOf: UnsafeRawBufferPointer(start: column.data, count: batch.count * layout.stride))
                continue
            }
            let views = column.values(StringView.self)
            for row in 0..<batch.count { append(UInt32(truncatingIfNeeded: column.isNull(row) ? 0 : views[row].count), to: &bytes) }
            for row in 0..<batch.count where !column.isNull(row) { views[row].withBytes { bytes.append(contentsOf: $0) } }
        }
    }

    /// Takes values off the front of bytes; nil once there are too few.
    private struct Reader {
        let bytes: ArraySlice<UInt8>
        var at: Int

        var isAtEnd: Bool { at == bytes.endIndex }

        mutating func take(_ count: Int) -> ArraySlice<UInt8>? {
            guard count <= bytes.endIndex - at else { return nil }
            defer { at += count }
            return bytes[at..<at + count]
        }

        mutating func integer<T: FixedWidthInteger>(_: T.Type) -> T? {
            take(MemoryLayout<T>.size).map { T(littleEndian: $0.withUnsafeBytes { $0.loadUnaligned(as: T.self) }) }
        }

        /// A transaction's number and a row number, of which none is out of all bounds.
        mutating func header() -> Header? {
            guard let number = integer(UInt64.self), let nextRowID = integer(Int64.self), number <= numberMax, (0...Int64(numberMax)).contains(nextRowID)
            else { return nil }
            return Header(first: DMLPosition(number), nextRowID: nextRowID)
        }

        /// A batch of these types; of any when they are not known, without columns.
        mutating func batch(_ types: [SQLType]?) -> DeltaBatch? {
            guard let count = integer(UInt32.self).map(Int.init), (1...Limits.batchRowsMax).contains(count), let width = integer(UInt16.self).map(Int.init),
                let hasWeights = integer(UInt8.self)
            else { return nil }
            if let types, types.count != width { return nil }
            var weights: Weights?
            if hasWeights == 1 {
                guard let values = take(count * 8) else { return nil }
                let made = Weights(count: count)
                values.withUnsafeBytes { UnsafeMutableRawPointer(made.values).copyMemory(from: $0.baseAddress.unsafelyUnwrapped, byteCount: $0.count) }
                weights = made
            }
            var columns: [Column] = []
            for index in 0..<width {
                guard let layout = integer(UInt8.self).flatMap(PhysicalType.init) else { return nil }
                if let types, types[index].physical != layout { return nil }
                guard let column = column(types?[index] ?? layout.anyType, layout, count) else { return nil }
                if types != nil { columns.append(column) }
            }
            return DeltaBatch(columns: columns, count: count, weights: weights)
        }

        private mutating func column(_ type: SQLType, _ layout: PhysicalType, _ count: Int) -> Column? {
            guard let hasValidity = integer(UInt8.self) else { return nil }
            let column = Column(type, uninitialized: count)
            if hasValidity == 1 {
                guard let words = take((count + 63) / 64 * 8) else { return nil }
                let bitmap = column.ensureValidity()
                words.withUnsafeBytes { UnsafeMutableRawPointer(bitmap).copyMemory(from: $0.baseAddress.unsafelyUnwrapped, byteCount: $0.count) }
            }
            guard layout == .string else {
                guard let values = take(count * layout.stride) else { return nil }
                values.withUnsafeBytes { column.data.copyMemory(from: $0.baseAddress.unsafelyUnwrapped, byteCount: $0.count) }
                return column
            }
            let views = column.values(StringView.self)
            var lengths: [Int] = []
            for _ in 0..<count {
                guard let length = integer(UInt32.self) else { return nil }
                lengths.append(Int(length))
            }
            let heap = column.ownHeap()
            for row in 0..<count {
                guard let text = take(lengths[row]) else { return nil }
                views[row] = text.withUnsafeBufferPointer { heap.view(copying: $0) }
            }
            return column
        }
    }
}

extension PhysicalType {
    /// A type of this layout.
    fileprivate var anyType: SQLType {
        switch self {
        case .bool8: .boolean
        case .int16: .int16
        case .int32: .int32
        case .int64: .int64
        case .float32: .float32
        case .float64: .float64
        case .decimal: .numeric
        case .string: .bytea
        case .interval: .interval
        }
    }
}
