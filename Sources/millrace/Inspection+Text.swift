import MillColumnar

/// What `millrace inspect` prints for people: sections of aligned lines.
extension Inspection {
    var text: String {
        var lines = ["directory   \(directory)" + (isRunning ? " (a process is using it: what follows was read while it went on)" : "")]
        lines.append("versions    program \(versions.program), checkpoint \(versions.checkpoint), plan \(versions.plan)")
        lines += checkpointLines + journalLines + definitionLines + logLines
        if let transactions {
            lines += ["", "transactions", "  up to \(transactions.last) in \(transactions.files) files of \(transactions.bytes) bytes"]
        }
        if !notes.isEmpty { lines += ["", "notes"] + notes.map { "  \($0)" } }
        let verified = isVerified ? "all checksums were compared" : "--verify compares all checksums"
        lines += ["", damage.isEmpty ? "no damage found (\(verified))" : "damage"] + damage.map { "  \($0)" }
        return lines.map { $0 + "\n" }.joined()
    }

    private var checkpointLines: [String] {
        guard let checkpoint else { return ["", "checkpoint  none"] }
        let bytes = checkpoint.files.reduce(0) { $0 + $1.bytes }
        var lines = [
            "", "checkpoint  \(checkpoint.number): epoch \(checkpoint.epoch), opened \(Self.time(checkpoint.openedAtMicros)), \(checkpoint.workers) workers, "
                + "transactions up to \(checkpoint.dmlPosition), \(checkpoint.files.count) page files of \(bytes) bytes",
        ]
        lines += Self.aligned(
            [["object", "node", "table", "worker", "kind", "rows", "pages", "bytes"]]
                + checkpoint.tables.map { table in
                    [
                        "\(table.name) (\(table.object))", "\(table.node)", "\(table.table)", "\(table.worker)", table.kind, "\(table.rows)", "\(table.pages)",
                        "\(table.bytes)",
                    ]
                })
        return lines + Self.lines(of: checkpoint.offsets)
    }

    private var journalLines: [String] {
        journals.flatMap { journal in
            [
                "", "journal     of checkpoint \(journal.checkpoint): \(journal.entries) entries up to epoch \(journal.lastEpoch), transactions up to "
                    + "\(journal.dmlPosition)",
            ] + Self.lines(of: journal.offsets)
        }
    }

    private static func lines(of offsets: [Offset]) -> [String] {
        offsets.isEmpty ? [] : aligned([["source", "topic", "partition", "offset"]] + offsets.map { ["\($0.name) (\($0.source))", $0.topic, "\($0.partition)", "\($0.offset)"] })
    }

    private var definitionLines: [String] {
        guard !definitions.isEmpty else { return [] }
        return ["", "definitions"]
            + Self.aligned(
                [["id", "name", "kind", "state", "plan version"]]
                    + definitions.map { ["\($0.id)", "\($0.schema).\($0.name)", $0.kind, $0.state ?? "", $0.planVersion.map(String.init) ?? ""] })
    }

    private var logLines: [String] {
        guard !partitions.isEmpty else { return [] }
        return ["", "log"]
            + Self.aligned(
                [["topic", "partition", "from", "to", "bytes"]]
                    + partitions.map { [$0.topic, "\($0.partition)", "\($0.startOffset)", "\($0.endOffset)", "\($0.bytes)"] })
    }

    private static func time(_ micros: Int64) -> String {
        let column = Column(.timestamptz, capacity: 1)
        column.append(.int(micros))
        return column.text(0) ?? ""
    }

    /// Columns as wide as their widest value.
    private static func aligned(_ rows: [[String]]) -> [String] {
        let widths = (rows.first ?? []).indices.map { column in rows.map { $0[column].count }.max() ?? 0 }
        return rows.map { row in
            var line = " "
            for (cell, width) in zip(row, widths) { line += " " + cell + String(repeating: " ", count: width - cell.count + 1) }
            while line.last == " " { line.removeLast() }
            return line
        }
    }
}
