import MillBase
import MillConnectorKit
import MillStore

/// What REPLAY REJECTS tells of records and values that still cannot be read: where each is, and why.
struct ReplayReport {
    private(set) var notices: [SQLError] = []

    /// Records or values that one notice names.
    private static let namedMax = 10

    /// - Parameter refused: what of the corrected records cannot be read; positions are their places in the choice.
    init(_ choice: Engine.ReplayChoice, _ refused: [Reject], source: String) {
        var records: [String] = []
        var values: [String] = []
        for reject in refused {
            let entry = choice.entries[Int(reject.position)]
            let place = "\(entry.split.name), offset \(entry.position)"
            if let column = reject.column { values.append("\(place), column \"\(column)\": \(reject.reason)") } else { records.append("\(place): \(reject.reason)") }
        }
        if let failure = choice.failure {
            records += choice.uncorrected.map { "\($0.split.name), offset \($0.position): \(failure.message)" }
            if choice.uncorrected.isEmpty {
                notices.append(
                    SQLError(
                        .successfulCompletion, "WHERE fails for some records, which stay in \"\(source)_rejects\"", detail: failure.message,
                        hint: "Write it so that it has an answer for every record."))
            }
        }
        if !records.isEmpty {
            let count = choice.entries.count + choice.uncorrected.count
            notices.append(
                SQLError(
                    .successfulCompletion, "\(records.count) of \(count) records still cannot be read and stay in \"\(source)_rejects\"",
                    detail: Self.text(records),
                    hint: "USING gives the corrected record, such as USING replace(convert_from(raw, 'UTF8'), '''', '\"')."))
        }
        if !values.isEmpty {
            notices.append(
                SQLError(
                    .successfulCompletion, "values of replayed records cannot be read (\(values.count)): each is NULL, and in \"\(source)_rejects\"",
                    detail: Self.text(values)))
        }
    }

    private static func text(_ lines: [String]) -> String {
        let rest = lines.count - namedMax
        return (lines.prefix(namedMax) + (rest > 0 ? ["and \(rest) more"] : [])).joined(separator: "\n")
    }
}
