import MillBase
import MillColumnar
import MillEngine
import MillIO
import MillSQL

/// An engine over files in memory, with one session that takes SQL text.
final class EngineWorld: Sendable {
    /// What one statement answered.
    struct Answer: Sendable {
        var tag: String
        var schema: Schema?
        /// Text of every value, nil for NULL; a row of weight n comes n times.
        var rows: [[String?]] = []

        /// The rows without their order.
        var multiset: [[String?]: Int] { rows.reduce(into: [:]) { $0[$1, default: 0] += 1 } }
    }

    let files = MemoryFileSystem()
    let engine: Engine
    let session: Session

    init(workerCount: Int = 1) async {
        let environment = Environment(files: files, clock: SystemClock(), random: SystemRandomSource())
        engine = Engine(
            environment: environment, options: Engine.Options(workerCount: workerCount), assembly: Assembly(environment: environment, embedded: nil))
        await engine.start()
        session = Session(engine: engine, userName: "root", databaseName: "dev")
    }

    func stop() async { await engine.stop() }

    /// Writes a file that a source can read.
    func write(_ text: String, to path: String) throws {
        if let slash = path.lastIndex(of: "/") { try files.createDirectory(String(path[..<slash])) }
        let file = try files.open(path, .create)
        let bytes = Array(text.utf8)
        try bytes.withUnsafeBytes { try file.write($0, at: 0) }
    }

    /// Runs every statement of a text as a client would; the first error ends it.
    @discardableResult
    func run(_ text: String) async throws(SQLError) -> [Answer] {
        let statements: [ParsedStatement]
        do throws(SQLError) { statements = try Session.parse(text) } catch {
            session.statementFailed()
            throw error
        }
        var answers: [Answer] = []
        for statement in statements { answers.append(try await run(statement)) }
        return answers
    }

    private func run(_ statement: ParsedStatement) async throws(SQLError) -> Answer {
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
                for batch in batches { answer.rows += Self.rows(of: batch) }
            case .rows(let channel, let verb):
                answer.tag = verb
                while let batch = try await channel.next() { if answer.rows.count < 200_000 { answer.rows += Self.rows(of: batch) } }
            }
            try await session.settle()
            return answer
        } catch {
            session.statementFailed()
            throw error
        }
    }

    private static func rows(of batch: DeltaBatch) -> [[String?]] {
        (0..<batch.count).flatMap { row in
            [[String?]](repeating: batch.columns.map { $0.text(row) }, count: Int(clamping: min(max(batch.weight(row), 0), 10_000)))
        }
    }
}
