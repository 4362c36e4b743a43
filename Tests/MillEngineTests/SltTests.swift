import MillBase
import MillColumnar
import MillEngine
import MillExpr
import MillIO
import MillSQL
import Testing

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

/// Every file under Tests/slt and Tests/errors, each on an engine of its own with one and with three workers.
///
/// With MILLRACE_BLESS set, what was answered is written into the files instead; the diff is to be read. Files in `pg_compat` are
/// never written here: their answers come from PostgreSQL, by Scripts/bless-slt. MILLRACE_SLT keeps the files whose path has it.
@Suite struct SltTests {
    @Test(arguments: SltTests.paths, [1, 3])
    func aFileGetsItsAnswers(path: String, workerCount: Int) async throws {
        let files = LocalFileSystem()
        let text = try Self.read(path, files)
        let file = try SltFile(text)
        let isBlessing = getenv("MILLRACE_BLESS") != nil && !path.contains("/pg_compat/")
        let world = try await EngineWorld(workerCount: workerCount)
        var answers: [Int: [String]] = [:]
        for record in file.records {
            let statement = record.text.joined(separator: "\n")
            if case .file(let path) = record.kind {
                try world.write(statement + "\n", to: path)
                continue
            }
            let result: Result<[EngineWorld.Answer], SQLError>
            do throws(SQLError) { result = .success(try await world.run(statement)) } catch { result = .failure(error) }
            let notices = world.session.takeMessages().compactMap { if case .notice(let notice) = $0 { "NOTICE: \(notice.message)" } else { nil } }
            let place = "\(path):\(record.line)"
            let answer = Self.check(record, result, notices, place, statement)
            answers[record.line] = answer
            if !isBlessing, let expected = record.expected {
                #expect(answer == expected, "\(place)\n\(statement)")
            }
            // Most are now run as they were planned before.
            if workerCount == 1, case .success = result, Self.isQuery(statement) {
                do throws(SQLError) { #expect(Self.check(record, .success(try await world.run(statement)), [], place, statement) == answer, "\(place), asked again\n\(statement)") } catch {
                    Issue.record("\(place), asked again: \(error)\n\(statement)")
                }
                _ = world.session.takeMessages()
            }
        }
        await world.stop()
        if isBlessing, workerCount == 1 { try Self.write(file.text(replacing: answers), to: path, files) }
    }

    /// The lines that a record should have below `----`.
    private static func check(
        _ record: SltFile.Record, _ result: Result<[EngineWorld.Answer], SQLError>, _ notices: [String], _ place: String, _ statement: String
    ) -> [String] {
        switch (record.kind, result) {
        case (.file, _): return record.expected ?? []
        case (.ok, .success): return notices
        case (.error(let pattern), .failure(let error)):
            #expect(matches(error, pattern), "\(place): \(error), not \(pattern)\n\(statement)")
            guard record.expected != nil else { return [] }
            var lines = ["ERROR: \(error.message)"]
            if let detail = error.detail { lines.append("DETAIL: \(detail)") }
            if let hint = error.hint { lines.append("HINT: \(hint)") }
            // Where it points, as the text there.
            if let span = error.span { lines.append("AT: " + String(decoding: Array(statement.utf8)[span.start..<span.end], as: UTF8.self)) }
            return lines.map { $0.replacing("\n", with: " ") }
        case (.query(let types, let isSorted), .success(let answers)):
            guard let answer = answers.last, let schema = answer.schema else { break }
            let found = String(schema.map { letter($0.type) })
            #expect(found == types, "\(place): the columns are \(found), not \(types)\n\(statement)")
            let lines = answer.rows.map { row in
                row.map { $0.map { $0.isEmpty ? "(empty)" : $0.replacing("\n", with: "\\n") } ?? "NULL" }.joined(separator: " ")
            }
            return isSorted ? lines.sorted { Array($0.utf8).lexicographicallyPrecedes(Array($1.utf8)) } : lines
        case (_, .failure(let error)): Issue.record("\(place): \(error)\n\(statement)")
        case (_, .success): Issue.record("\(place): no error\n\(statement)")
        }
        return record.expected ?? []
    }

    private static func isQuery(_ text: String) -> Bool {
        guard let statements = try? Session.parse(text), statements.count == 1, case .query = statements[0].statement else { return false }
        return true
    }

    private static func matches(_ error: SQLError, _ pattern: String) -> Bool {
        if pattern.isEmpty { return true }
        if pattern.utf8.count == 5, pattern.allSatisfy({ $0.isUppercase || $0.isNumber }) { return error.sqlState.code == pattern }
        guard let expression = try? Regex(pattern) else { return false }  // The file's mistake shows as a failed match.
        return "\(error.sqlState): \(error.message)".contains(expression)
    }

    private static func letter(_ type: SQLType) -> Character {
        switch type.base {
        case .int16, .int32, .int64: "I"
        case .float32, .float64, .numeric: "R"
        case .boolean: "B"
        default: "T"
        }
    }

    // MARK: Files

    static let paths: [String] = {
        let tests = #filePath.split(separator: "/").dropLast(2).map { "/" + $0 }.joined()
        let files = LocalFileSystem()
        let directories = [tests + "/errors"] + ((try? files.list(tests + "/slt")) ?? []).map { tests + "/slt/" + $0 }
        let wanted = getenv("MILLRACE_SLT").map { String(cString: $0) }
        return directories.flatMap { directory in ((try? files.list(directory)) ?? []).filter { $0.hasSuffix(".slt") }.map { "\(directory)/\($0)" } }
            .filter { path in wanted.map { path.contains($0) } ?? true }
    }()

    private static func read(_ path: String, _ files: LocalFileSystem) throws -> String {
        let file = try files.open(path, .read)
        var bytes = [UInt8](repeating: 0, count: try file.size())
        let count = try bytes.withUnsafeMutableBytes { try file.read(at: 0, into: $0) }
        return String(decoding: bytes[..<count], as: UTF8.self)
    }

    private static func write(_ text: String, to path: String, _ files: LocalFileSystem) throws {
        let file = try files.open(path, .create)
        try Array(text.utf8).withUnsafeBytes { try file.write($0, at: 0) }
    }
}
