import MillColumnar
import MillIO
import MillObjectStore
import MillParquet

/// Rows of a data file that are deleted by their values: what other writers leave. We never write such.
///
/// A row goes when a delete file has one with the same values in the columns of its `equality_ids`; NULL is the same as NULL, NaN as NaN,
/// and 0 is not -0.
struct EqualityDeletes {
    private struct Keys {
        var fieldIDs: [Int]
        var rows: Set<[Scalar]>
    }

    private var all: [Keys] = []

    /// Deleted rows that are held in memory for one data file.
    static let rowsMax = 20_000_000

    /// The columns that have to be read to tell.
    var fieldIDs: [Int] { Array(Set(all.flatMap(\.fieldIDs))).sorted() }
    var isEmpty: Bool { all.isEmpty }

    /// - Parameter deletes: those of equality that hold for the file.
    init(_ deletes: [DataFile], _ schema: IcebergSchema, _ store: any ObjectStore) throws(IcebergError) {
        var count = 0
        for delete in deletes {
            guard delete.format == "PARQUET" else { throw .unsupported("equality deletes in files of format \(delete.format)") }
            let ids = delete.equalityIDs.sorted()
            let rows = try Self.rows(delete, ids, schema, store)
            count += rows.count
            guard count <= Self.rowsMax else { throw .unsupported("more than \(Self.rowsMax) equality deletes for one data file") }
            if let known = all.firstIndex(where: { $0.fieldIDs == ids }) {
                all[known].rows.formUnion(rows)
            } else {
                all.append(Keys(fieldIDs: ids, rows: Set(rows)))
            }
        }
    }

    private static func rows(_ delete: DataFile, _ ids: [Int], _ schema: IcebergSchema, _ store: any ObjectStore) throws(IcebergError)
        -> [[Scalar]]
    {
        guard !ids.isEmpty else { throw .malformed(location: delete.path, what: "equality deletes name no column") }
        let object: any File
        do throws(IOFailure) { object = try store.openForReading(delete.path) } catch { throw .io(error) }
        var result: [[Scalar]] = []
        do throws(ParquetError) {
            let file = try ParquetFile(object)
            var requests: [ParquetScan.Request] = []
            for id in ids {
                guard let place = file.columns.firstIndex(where: { $0.fieldID == Int32(clamping: id) }) else {
                    throw .badRequest("\"\(delete.path)\" has no column with the identifier \(id), by which it deletes")
                }
                // A column that was dropped since keeps the type that the file has.
                requests.append(.init(place, as: schema.field(id: id)?.type.sqlType))
            }
            let scan = try ParquetScan(file, requests)
            while let batch = try scan.next() {
                for row in 0..<batch.count { result.append(batch.columns.map { $0.scalar(row) }) }
            }
        } catch { throw .parquet(error) }
        return result
    }

    /// Whether a row is deleted. `column` gives the column of a field.
    func contains(_ row: Int, _ column: (Int) -> Column?) -> Bool {
        all.contains { keys in
            keys.rows.contains(keys.fieldIDs.map { column($0)?.scalar(row) ?? .null })
        }
    }
}
