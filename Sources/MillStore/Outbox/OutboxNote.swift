package import MillBase

/// A segment of an outbox.
package struct OutboxSegment: Sendable, Hashable {
    /// Names the file.
    package var number: UInt64
    /// Position of its first frame.
    package var start: UInt64
    /// Bytes that count.
    package var byteCount: UInt64

    package var end: UInt64 { start + byteCount }
}

/// What a sink has brought to its target, through restarts.
package struct OutboxTotals: Sendable, Hashable {
    package var rowsAdded: Int64 = 0
    package var rowsTakenBack: Int64 = 0
    package var byteCount: Int64 = 0

    package init() {}

    package mutating func add(_ frame: OutboxFrame) {
        byteCount += Int64(frame.byteCount)
        if frame.kind == .added { rowsAdded += Int64(frame.weightSum) }
        if frame.kind == .takenBack { rowsTakenBack += Int64(frame.weightSum) }
    }
}

/// What a checkpoint has of an outbox (`docs/internals/outbox.md`).
package struct OutboxNote: Sendable, Hashable {
    package static let kind = "outbox"
    private static let version: UInt32 = 1

    /// The epoch that ends at `end`; zero: the sink has been in no checkpoint yet.
    package var epoch = Epoch.zero
    package var start: UInt64 = 0
    package var end: UInt64 = 0
    /// The last that the target confirmed; zero: none.
    package var committed = Epoch.zero
    /// Up to here nothing is left to send.
    package var settled = Epoch.zero
    /// Confirmed before `start`.
    package var totals = OutboxTotals()
    package var commitCount: Int64 = 0
    /// Why it takes nothing more.
    package var detachment: SQLError?
    package var segments: [OutboxSegment] = []

    package init() {}

    package var bytes: [UInt8] {
        var writer = RecordWriter()
        writer.put(Self.version)
        for number in [epoch.number, start, end, committed.number, settled.number] { writer.put(number) }
        for number in [totals.rowsAdded, totals.rowsTakenBack, totals.byteCount, commitCount] { writer.put(number) }
        writer.put(UInt8(detachment == nil ? 0 : 1))
        writer.put(detachment?.sqlState.code ?? "")
        writer.put(detachment?.message ?? "")
        writer.put(detachment?.hint ?? "")
        writer.putList(segments) { writer, segment in
            for number in [segment.number, segment.start, segment.byteCount] { writer.put(number) }
        }
        return writer.bytes
    }

    /// - Throws: when it is not one of a known version.
    package init(_ bytes: [UInt8]) throws(RecordDamage) {
        var reader = RecordReader(bytes[...])
        guard try reader.get(UInt32.self) == Self.version else { throw RecordDamage() }
        epoch = Epoch(try reader.getNumber())
        start = try reader.getNumber()
        end = try reader.getNumber()
        committed = Epoch(try reader.getNumber())
        settled = Epoch(try reader.getNumber())
        totals.rowsAdded = try reader.get(Int64.self)
        totals.rowsTakenBack = try reader.get(Int64.self)
        totals.byteCount = try reader.get(Int64.self)
        commitCount = try reader.get(Int64.self)
        let isDetached = try reader.get(UInt8.self) == 1
        let (code, message, hint) = (try reader.getText(), try reader.getText(), try reader.getText())
        if isDetached {
            guard code.utf8.count == 5 else { throw RecordDamage() }
            detachment = SQLError(SQLState(code), message, hint: hint.isEmpty ? nil : hint)
        }
        segments = try reader.getList { (reader) throws(RecordDamage) in
            OutboxSegment(number: try reader.getNumber(), start: try reader.getNumber(), byteCount: try reader.getNumber())
        }
        guard reader.isAtEnd, start <= end else { throw RecordDamage() }
    }
}
