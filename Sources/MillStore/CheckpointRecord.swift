package import MillBase
package import MillConnectorKit
package import MillState

/// Where a table belongs: the same in every run, because plans are stored.
package struct TablePlace: Hashable, Sendable {
    package var job: ObjectID
    /// Node of the job's stream plan.
    package var node: Int
    /// Among the tables of the node's operator.
    package var ordinal: Int
    package var worker: Int

    package init(job: ObjectID, node: Int, ordinal: Int, worker: Int) {
        self.job = job
        self.node = node
        self.ordinal = ordinal
        self.worker = worker
    }
}

package typealias SourceOffsets = [ObjectID: [SourceSplit: SplitOffset]]

/// What is true at one epoch besides the content of tables.
package struct EpochPosition: Sendable, Hashable {
    package var epoch: Epoch
    /// Microseconds since 1970.
    package var openedAtMicros: Int64
    /// Transactions in the log of DML up to here are in the tables.
    package var dmlPosition: DMLPosition
    package var offsets: SourceOffsets
    /// What jobs have closed by on their sources, and close by in the next epoch. In the journal alone: a checkpoint has it in its notes.
    package var watermarks: [WatermarkKey: WatermarkStep]

    package init(
        epoch: Epoch, openedAtMicros: Int64, dmlPosition: DMLPosition, offsets: SourceOffsets, watermarks: [WatermarkKey: WatermarkStep] = [:]
    ) {
        self.epoch = epoch
        self.openedAtMicros = openedAtMicros
        self.dmlPosition = dmlPosition
        self.offsets = offsets
        self.watermarks = watermarks
    }

    /// Goes on to a later epoch that says what has changed.
    package mutating func take(_ changes: EpochPosition) {
        epoch = changes.epoch
        openedAtMicros = changes.openedAtMicros
        dmlPosition = changes.dmlPosition
        for (source, splits) in changes.offsets { offsets[source, default: [:]].merge(splits) { _, new in new } }
        watermarks.merge(changes.watermarks) { _, new in new }
    }

    package static let start = EpochPosition(epoch: .zero, openedAtMicros: 0, dmlPosition: .zero, offsets: [:])
}

/// Bytes kept beside tables for one object: `kind` says what they are.
package struct StateNote: Sendable, Hashable {
    package var object: ObjectID
    package var kind: String
    package var bytes: [UInt8]

    package init(object: ObjectID, kind: String, bytes: [UInt8]) {
        self.object = object
        self.kind = kind
        self.bytes = bytes
    }
}

/// One checkpoint: which bytes of which page files count, and what they are (`docs/internals/state.md`).
package struct CheckpointRecord: Sendable, Hashable {
    package struct PageFile: Sendable, Hashable {
        package var number: UInt64
        package var bytes: UInt64
    }

    package struct Table: Sendable, Hashable {
        package var id: TableID
        package var place: TablePlace
        package var shape: TableShape
    }

    package var number: UInt64
    package var position: EpochPosition
    package var workers: Int
    package var nextTable: UInt32
    package var files: [PageFile]
    package var tables: [Table]
    package var notes: [StateNote]

    static let magic = Array("MILLCKPT".utf8)
    static let version: UInt32 = 1
    static let headerBytes = 24
    /// Of a page file's bytes and a table's rows: more than there can be, and little enough to be summed up.
    static let countMax: UInt64 = 1 << 40

    // MARK: Bytes

    var bytes: [UInt8] {
        var body = RecordWriter()
        body.put(number)
        body.put(position.epoch.number)
        body.put(position.openedAtMicros)
        body.put(position.dmlPosition.number)
        body.put(UInt32(workers))
        body.put(nextTable)
        body.putList(files) { body, file in
            body.put(file.number)
            body.put(file.bytes)
        }
        body.putList(tables) { body, table in table.put(into: &body) }
        position.offsets.put(into: &body)
        body.putList(notes) { body, note in
            body.put(note.object.number)
            body.put(note.kind)
            body.put(bytes: note.bytes)
        }
        var whole = RecordWriter()
        for byte in Self.magic { whole.put(byte) }
        whole.put(Self.version)
        whole.put(UInt32(body.bytes.count))
        whole.put(checksum(body.bytes))
        whole.put(UInt32(0))
        return whole.bytes + body.bytes
    }

    /// - Throws: when the bytes are not a whole record of a known version.
    init(_ bytes: [UInt8]) throws(RecordDamage) {
        var header = RecordReader(bytes[...])
        guard Array(try header.take(8)) == Self.magic, try header.get(UInt32.self) == Self.version else { throw RecordDamage() }
        let count = Int(try header.get(UInt32.self))
        let sum = try header.get(UInt32.self)
        guard try header.get(UInt32.self) == 0 else { throw RecordDamage() }
        let part = try header.take(count)
        guard header.isAtEnd, checksum(part) == sum else { throw RecordDamage() }
        var body = RecordReader(part)
        number = try body.getNumber()
        let epoch = Epoch(try body.getNumber())
        let openedAt = try body.get(Int64.self)
        let dmlPosition = DMLPosition(try body.getNumber())
        workers = Int(try body.get(UInt32.self))
        nextTable = try body.get(UInt32.self)
        files = try body.getList { (body) throws(RecordDamage) in
            PageFile(number: try body.getNumber(), bytes: try body.getNumber(max: Self.countMax))
        }
        tables = try body.getList { (body) throws(RecordDamage) in try Table(&body) }
        position = EpochPosition(epoch: epoch, openedAtMicros: openedAt, dmlPosition: dmlPosition, offsets: try SourceOffsets(from: &body))
        notes = try body.getList { (body) throws(RecordDamage) in
            StateNote(object: ObjectID(try body.get(UInt32.self)), kind: try body.getText(), bytes: try body.getBytes())
        }
        guard body.isAtEnd, workers > 0 else { throw RecordDamage() }
    }

    package init(
        number: UInt64, position: EpochPosition, workers: Int, nextTable: UInt32, files: [PageFile], tables: [Table], notes: [StateNote]
    ) {
        self.number = number
        self.position = position
        self.workers = workers
        self.nextTable = nextTable
        self.files = files
        self.tables = tables
        self.notes = notes
    }
}

extension CheckpointRecord.Table {
    fileprivate func put(into body: inout RecordWriter) {
        body.put(id.number)
        body.put(place.job.number)
        body.put(UInt32(place.node))
        body.put(UInt16(place.ordinal))
        body.put(UInt16(place.worker))
        body.put(shape.kind.rawValue)
        body.put(shape.rowBytes)
        body.put(shape.layout)
        body.put(shape.used)
        body.put(shape.count)
        body.put(shape.first)
    }

    fileprivate init(_ body: inout RecordReader) throws(RecordDamage) {
        id = TableID(try body.get(UInt32.self))
        let job = ObjectID(try body.get(UInt32.self))
        let node = Int(try body.get(UInt32.self))
        let ordinal = Int(try body.get(UInt16.self))
        place = TablePlace(job: job, node: node, ordinal: ordinal, worker: Int(try body.get(UInt16.self)))
        guard let kind = TableShape.Kind(rawValue: try body.get(UInt8.self)) else { throw RecordDamage() }
        shape = TableShape(
            kind: kind, rowBytes: try body.get(UInt32.self), layout: try body.get(UInt32.self),
            used: try body.getNumber(max: CheckpointRecord.countMax), count: try body.getNumber(max: CheckpointRecord.countMax),
            first: try body.get(UInt32.self))
    }
}

extension [ObjectID: [SourceSplit: SplitOffset]] {
    func put(into body: inout RecordWriter) {
        body.putList(sorted { $0.key < $1.key }) { body, source in
            body.put(source.key.number)
            body.putList(source.value.sorted { $0.key < $1.key }) { body, split in
                body.put(split.key.name)
                body.put(split.key.topic)
                body.put(split.key.partition)
                body.put(split.value.position)
            }
        }
    }

    init(from body: inout RecordReader) throws(RecordDamage) {
        self = [:]
        let sources = try body.getList { (body) throws(RecordDamage) in
            let source = ObjectID(try body.get(UInt32.self))
            let splits = try body.getList { (body) throws(RecordDamage) in
                let split = SourceSplit(name: try body.getText(), topic: try body.getText(), partition: try body.get(Int32.self))
                return (split, SplitOffset(try body.get(Int64.self)))
            }
            return (source, splits)
        }
        for (source, splits) in sources { self[source] = [SourceSplit: SplitOffset](splits, uniquingKeysWith: { _, last in last }) }
    }
}
