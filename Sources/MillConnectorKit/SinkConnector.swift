package import MillBase
package import MillColumnar

/// A target of CREATE SINK: resolves its options once, then brings epochs of a relation's changes into it, each exactly once.
///
/// Path: the relation's changes, consolidated epoch by epoch, lie in the sink's durable outbox; the sink's own thread gives them to a
/// `SinkWriter` and commits. The target says by itself how far it is (`SinkWriter.committedEpoch`), in one step with the rows, so a restart
/// sends what is missing and nothing twice. Only epochs that a checkpoint holds are sent: the target is never ahead of this server.
///
/// The engine knows this protocol and never a connector. Calls block; they are made off the workers, by one thread at a time.
///
/// Errors: those that `SQLError.mayPass` are tried again with a pause, from `open` on; any other stops the sink until RESUME, and is shown.
package protocol SinkConnector: Sendable {
    /// Looks at the target and makes it where the options say so: every mistake that can be told before a row is sent is told here, by
    /// CREATE SINK.
    func prepare() throws(SQLError) -> SinkTarget
    /// Opens the target for writing.
    /// - Parameters:
    ///   - sink: what the target knows the sink by; drawn at CREATE SINK, of no other sink ever.
    ///   - incarnation: what `prepare` said. If the target is another one now, such as a table made anew under its name: 55000.
    func open(sink: SinkName, incarnation: String?) throws(SQLError) -> any SinkWriter
}

/// What `prepare` found.
package struct SinkTarget: Sendable {
    /// Tells the target from another that is made later in its place, such as a table's UUID; nil when nothing does.
    package var incarnation: String?
    /// For the client of CREATE SINK.
    package var notices: [String]

    package init(incarnation: String? = nil, notices: [String] = []) {
        self.incarnation = incarnation
        self.notices = notices
    }
}

/// 128 random bits in 32 hexadecimal digits.
package struct SinkName: Hashable, Sendable, CustomStringConvertible {
    package let description: String
    package init(_ description: String) { self.description = description }
}

/// An open target. Owned by one thread.
///
/// Calls come in this order: `write` of one epoch's batches, of the next epoch's, ..., `commit` through the last of them, and again. After
/// an error it is closed and another one opened, which begins behind its own `committedEpoch`.
package protocol SinkWriter: AnyObject {
    /// The last epoch whose rows the target holds, with all before it; nil when it holds none of this sink.
    var committedEpoch: Int64? { get }
    /// Rows and bytes written since the last commit, for those that commit by size, and for SHOW SINKS.
    var pending: SinkPending { get }
    /// Takes changes of an epoch: of each row at most one weight, no weight 0, within an epoch rows taken back before rows that are added.
    /// A sink that only adds gets no rows that are taken back.
    /// - Returns: rows that the target would not take; the others of the batch are taken.
    func write(_ batch: DeltaBatch, epoch: Int64) throws(SQLError) -> [RefusedRow]
    /// Empties the target of all rows that this sink has put there, in one step with the next `commit` and before what is written from here on:
    /// what the sink reads has begun anew. Only asked of sinks with a key.
    /// - Throws: 0A000 for a target that cannot; the sink then stops with that.
    func clear() throws(SQLError)
    /// Makes all that was written visible in one step, with the fact that `epoch` is the last one. Once it returns that is durable.
    func commit(through epoch: Int64) throws(SQLError)
    /// Work that keeps the target healthy, such as compaction; called between commits when there is time. May be cut off at any moment.
    func maintain() throws(SQLError)
    /// Takes back what was not committed and lets go of the target. Never fails; once.
    func close()
}

extension SinkWriter {
    package func maintain() throws(SQLError) {}

    package func clear() throws(SQLError) {
        throw SQLError(
            .featureNotSupported, "what the sink reads has begun anew, and its target cannot be emptied",
            hint: "Drop the sink and create it again for an empty target.")
    }
}

package struct SinkPending: Hashable, Sendable {
    package var rowCount: Int64
    package var byteCount: Int64

    package init(rowCount: Int64 = 0, byteCount: Int64 = 0) {
        self.rowCount = rowCount
        self.byteCount = byteCount
    }
}

/// A row of a batch that the target would not take.
package struct RefusedRow: Hashable, Sendable {
    /// Its place in the batch.
    package var row: Int
    /// The column that is to blame; nil when it is the whole row.
    package var column: String?
    package var reason: String

    package init(row: Int, column: String?, reason: String) {
        self.row = row
        self.column = column
        self.reason = reason
    }
}
