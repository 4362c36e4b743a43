import MillBase
import MillColumnar
import MillConnectors
import MillEngine
import MillIO
import MillLog
import MillMeta
import MillSQL

/// An engine over files in memory, with one session that takes SQL text.
final class EngineWorld: Sendable {
    /// What one statement answered.
    struct Answer: Sendable {
        var tag: String
        var schema: Schema?
        var batches: [DeltaBatch] = []

        /// Text of every value, nil for NULL; a row of weight n comes n times.
        var rows: [[String?]] { rows { $0.text($1) } }

        /// The rows without their order, values as SQL compares them: 1.0 is 1.00 and a day is 24 hours.
        var multiset: [String: Int] {
            let keys = rows { column, row -> String? in
                switch column.scalar(row) {
                case .interval(let interval): "\(interval.comparable) microseconds"
                case .decimal(let number) where number.kind == .finite: "\(Decimal(unscaled: number.normalized.unscaled, scale: number.normalized.scale))"
                case .float(let number) where number == 0: "0"
                default: column.text(row)
                }
            }
            return keys.reduce(into: [:]) { $0["(" + $1.map { $0 ?? "NULL" }.joined(separator: ", ") + ")", default: 0] += 1 }
        }

        private func rows(_ value: (Column, Int) -> String?) -> [[String?]] {
            batches.flatMap { batch in
                (0..<batch.count).flatMap { row in
                    [[String?]](
                        repeating: batch.columns.map { value($0, row) }, count: Int(clamping: min(max(batch.weight(row), 0), 10_000)))
                }
            }
        }
    }

    let files: MemoryFileSystem
    let engine: Engine
    let session: Session

    /// - Parameters:
    ///   - assembly: what makes sources; the program's own when nil.
    ///   - meta: what earlier engines have left; `engine.restore()` takes it up.
    ///   - dmlLog: where transactions are made durable.
    ///   - access: which files statements may name; all of `files` when nil.
    init(
        workerCount: Int = 1, assembly: (any SourceAssembly)? = nil, clock: any Clock = SystemClock(),
        splitDiscoveryNanos: UInt64 = 1_000_000_000, meta: MetaStore? = nil, dmlLog: DMLLog? = nil,
        access: FileAccess? = nil
    ) async throws {
        files = MemoryFileSystem()
        let environment = Environment(files: files, clock: clock, random: SystemRandomSource())
        engine = try Engine(
            environment: environment, options: Engine.Options(workerCount: workerCount, splitDiscoveryNanos: splitDiscoveryNanos),
            assembly: assembly ?? Assembly(environment: environment, embedded: nil, access: access), meta: meta, dmlLog: dmlLog)
        await engine.start()
        session = Session(engine: engine, userName: "root", databaseName: "dev")
    }

    /// Around an engine that a test has made.
    init(_ engine: Engine, files: MemoryFileSystem) {
        self.engine = engine
        self.files = files
        session = Session(engine: engine, userName: "root", databaseName: "dev")
    }

    func stop() async { await engine.stop() }

    /// A further client.
    func connect() -> Session { Session(engine: engine, userName: "root", databaseName: "dev") }

    /// Writes a file that a source can read.
    func write(_ text: String, to path: String) throws {
        if let slash = path.lastIndex(of: "/") { try files.createDirectory(String(path[..<slash])) }
        let file = try files.open(path, .create)
        let bytes = Array(text.utf8)
        try bytes.withUnsafeBytes { try file.write($0, at: 0) }
    }

    /// Runs every statement of a text as a client would; the first error ends it.
    @discardableResult
    func run(_ text: String) async throws(SQLError) -> [Answer] { try await run(text, on: session) }

    /// The same on another client's session.
    @discardableResult
    func run(_ text: String, on session: Session) async throws(SQLError) -> [Answer] {
        let statements: [ParsedStatement]
        do throws(SQLError) { statements = try session.parsed(text) } catch {
            session.statementFailed()
            throw error
        }
        var answers: [Answer] = []
        for statement in statements { answers.append(try await run(statement, on: session)) }
        return answers
    }

    private func run(_ statement: ParsedStatement, on session: Session) async throws(SQLError) -> Answer {
        do throws(SQLError) {
            let prepared = try await session.prepare(statement, parameterTypes: [])
            // A client that binds no values gets the error that PostgreSQL gives.
            guard prepared.parameterTypes.isEmpty || prepared.schema == nil else {
                throw SQLError(.undefinedParameter, "there is no parameter $1")
            }
            var answer = Answer(tag: "", schema: prepared.schema)
            switch try await session.execute(prepared, parameters: []) {
            case .done(let tag): answer.tag = tag
            case .table(let batches, let verb):
                answer.tag = verb
                answer.batches = batches
            case .rows(let channel, let verb):
                answer.tag = verb
                var count = 0
                while let batch = try await channel.next() {
                    count += batch.count
                    // More is for nobody to look at.
                    if count < 200_000 { answer.batches.append(batch) }
                }
            }
            try await session.settle()
            return answer
        } catch {
            session.statementFailed()
            throw error
        }
    }
}
