package import MillBase

/// One SQL statement.
package indirect enum Statement: Hashable, Sendable {
    case query(Query)
    case createRelation(CreateRelation)
    case createView(CreateView)
    case createSink(CreateSink)
    case createNamespace(CreateNamespace)
    case createIndex(CreateIndex)
    case drop(Drop)
    case alter(Alter)
    case comment(Comment)
    case insert(Insert)
    case update(Update)
    case delete(Delete)
    case truncate(Truncate)
    case copy(Copy)
    case show(Show)
    case describe(ObjectName)
    case set(SetParameter)
    /// nil for RESET ALL.
    case reset(SettingName?)
    case explain(Explain)
    case transaction(Transaction)
    case cursor(CursorStatement)
    case prepared(PreparedStatement)
    case discard(Discard)
    case flush
    case wait
    /// CANCEL JOB[S] 1, 2.
    case cancelJobs([Int])
    case jobControl(JobControl)
    case replayRejects(ReplayRejects)
}

/// A statement and the part of the text that it came from.
package struct ParsedStatement: Hashable, Sendable {
    package var statement: Statement
    /// From the first token to the last, without the semicolon; bytes of the whole text, as are all spans inside.
    package var span: SourceSpan
    /// The text of `span`.
    package var text: String

    package init(statement: Statement, span: SourceSpan, text: String) {
        self.statement = statement
        self.span = span
        self.text = text
    }
}
