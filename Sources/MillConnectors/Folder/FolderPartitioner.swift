import MillBase
import MillColumnar
import MillConnectorKit

/// Shares rows out among directories by the values of columns. One thread at a time.
///
/// A directory's name is made once for each value that a batch has; rows are told apart by hashes first.
final class FolderPartitioner {
    struct Key: Hashable {
        /// From the folder on, with a slash at its end; empty without partition columns.
        var directory: String

        // By bytes: texts that Unicode calls equivalent are different values and different directories.
        static func == (one: Key, other: Key) -> Bool { one.directory.utf8.elementsEqual(other.directory.utf8) }
        func hash(into hasher: inout Hasher) { for byte in directory.utf8 { hasher.combine(byte) } }
    }

    struct Part {
        var key: Key
        var rows: [UInt32]
    }

    private let columns: [Int]
    private let fields: [Field]

    /// Most file systems take no longer names.
    private static let nameBytesMax = 255

    init(_ fields: [Field], _ columns: [Int]) {
        self.fields = fields
        self.columns = columns
    }

    /// - Parameters:
    ///   - rows: of the batch, in order; a row may be there several times.
    ///   - refused: gets rows whose values cannot name a directory, each once.
    func split(_ batch: DeltaBatch, _ rows: [UInt32], _ refused: inout [RefusedRow]) -> [Part] {
        guard !rows.isEmpty else { return [] }
        guard !columns.isEmpty else { return [Part(key: Key(directory: ""), rows: rows)] }
        let values = columns.map { batch.columns[$0] }
        let hashes = [UInt64](unsafeUninitializedCapacity: batch.count) { hashes, count in
            RowHash.hash(values, count: batch.count, into: hashes.baseAddress.unsafelyUnwrapped)
            count = batch.count
        }
        /// Of each hash the parts with it, mostly one.
        var places: [UInt64: [Int]] = [:]
        var parts: [(first: Int, key: Key?, rows: [UInt32])] = []
        for row in rows {
            let same = places[hashes[Int(row)], default: []].first { place in
                values.allSatisfy { $0.equals(Int(row), $0, parts[place].first, by: .representation) }
            }
            if let same {
                parts[same].rows.append(row)
                continue
            }
            places[hashes[Int(row)], default: []].append(parts.count)
            parts.append((Int(row), nil, [row]))
        }
        var result: [Part] = []
        for part in parts {
            switch directory(values, part.first) {
            case .success(let directory): result.append(Part(key: Key(directory: directory), rows: part.rows))
            case .failure(let unfit):
                var last: UInt32?
                for row in part.rows where row != last {
                    refused.append(RefusedRow(row: Int(row), column: unfit.column, reason: unfit.reason))
                    last = row
                }
            }
        }
        return result
    }

    private struct Unfit: Error {
        var column: String
        var reason: String
    }

    private func directory(_ values: [Column], _ row: Int) -> Result<String, Unfit> {
        var directory = ""
        for (place, column) in zip(columns, values) {
            let name = fields[place].name
            let text = fields[place].type == .boolean ? column.text(row).map { $0 == "t" ? "true" : "false" } : column.text(row)
            // Hive's name of a directory for it is that of NULL.
            if text?.isEmpty ?? false { return .failure(Unfit(column: name, reason: "an empty text cannot name a directory")) }
            let part = HivePath.directory(name, text)
            guard part.utf8.count <= Self.nameBytesMax else {
                return .failure(Unfit(column: name, reason: "the name of its directory has more than \(Self.nameBytesMax) bytes"))
            }
            directory += part + "/"
        }
        return .success(directory)
    }
}
