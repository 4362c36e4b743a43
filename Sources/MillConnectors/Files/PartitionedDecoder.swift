package import MillBase
package import MillColumnar
package import MillConnectorKit

/// Adds the columns whose values are in a file's path, as `column=value`, to those that another decoder reads from the file.
///
/// The path counts where both have a column. A value in a path that its column's type cannot be stops the split.
package final class PartitionedDecoder: Decoder {
    private let fields: [Field]
    private let wanted: [Int]
    private let make: ([Int]) throws(SQLError) -> any Decoder
    /// By the wanted columns that come from the path.
    private var decoders: [[Int]: any Decoder] = [:]
    /// Of the file read last.
    private var file: SplitFile?
    private var values: [Int: Scalar] = [:]

    /// - Parameter make: a decoder of these columns, in this order.
    package init(fields: [Field], wanted: [Int], make: @escaping ([Int]) throws(SQLError) -> any Decoder) {
        self.fields = fields
        self.wanted = wanted
        self.make = make
    }

    package func decode(_ chunk: RawChunk) throws(SQLError) -> DecodedChunk {
        if file !== chunk.file {
            values = try chunk.file.map { (file) throws(SQLError) in try self.values(of: file) } ?? [:]
            file = chunk.file
        }
        let given = values.keys.sorted()
        var result = try decoder(without: given).decode(chunk)
        guard !given.isEmpty else { return result }
        for (index, batch) in result.batches.enumerated() {
            var read = batch.columns.makeIterator()
            let columns = wanted.map { field in
                if let value = values[field] { return Column.constant(value, fields[field].type, count: batch.count) }
                guard let column = read.next() else { preconditionFailure("a decoder gives the columns that it was made for") }
                return column
            }
            result.batches[index] = DeltaBatch(columns: columns, count: batch.count, weights: batch.weights)
        }
        return result
    }

    package func mayStop(at chunk: RawChunk) -> Bool {
        guard chunk.file?.partition.isEmpty ?? true else { return true }
        return plain?.mayStop(at: chunk) ?? true
    }

    package var takesAnyOrder: Bool { plain?.takesAnyOrder ?? false }

    /// That of files without such paths; nil when it cannot be made, which `decode` then says.
    private var plain: (any Decoder)? { try? decoder(without: []) }

    private func decoder(without given: [Int]) throws(SQLError) -> any Decoder {
        if let found = decoders[given] { return found }
        let made = try make(wanted.filter { !given.contains($0) })
        decoders[given] = made
        return made
    }

    private func values(of file: SplitFile) throws(SQLError) -> [Int: Scalar] {
        var values: [Int: Scalar] = [:]
        let names = fields.map(\.name)
        for part in file.partition {
            guard let index = ColumnNames.place(of: part.column, among: names) else { continue }
            guard let text = part.value else {
                if wanted.contains(index) { values[index] = .null }
                continue
            }
            do throws(SQLError) {
                let value = try TextInput.scalar(text, as: fields[index].type)
                if wanted.contains(index) { values[index] = value }
            } catch {
                throw SQLError(
                    error.sqlState,
                    "the path \"\(file.location)\" says \"\(text)\" for column \"\(fields[index].name)\", which is \(fields[index].type.name)",
                    hint: "Declare the column as varchar, or name the files by another pattern.")
            }
        }
        return values
    }
}
