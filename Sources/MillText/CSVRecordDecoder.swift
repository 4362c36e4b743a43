import CJSONDecode
package import MillBase
package import MillColumnar
package import MillConnectorKit

/// Records of CSV (FORMAT PLAIN ENCODE CSV) to columns.
///
/// Fed with chunks whose records a reader has cut (`cut`), each with its file's header where it has one; feeds the circuit; owned by one
/// worker. What is accepted depends on the record and its file's header alone.
/// - Values belong to columns by the header's names, in any order: to the letter, else without regard to the case of letters and with `-`
///   for `_`. Columns that a file lacks are NULL, others are ignored. Without a header they belong to the declared columns in order.
/// - A record with more or fewer values than its file has columns, with a quote that is not closed or followed by more, that is not UTF-8 or
///   has a zero byte, is refused whole.
/// - A value that cannot be its column's type becomes NULL and a `Reject`.
/// - No bytes without quotes are NULL; `""` is an empty text or bytea, and NULL of other types.
///
/// Types are read as from texts in JSON (`JSONRecordDecoder`); boolean also from `t`, `f`, `1` and `0`, jsonb from JSON text.
package final class CSVRecordDecoder: Decoder {
    private let fields: [Field]
    private let kernel: TextKernel
    private let columns: RecordColumns
    /// The file whose header the places are of.
    private var placed: SplitFile?
    private var isPlaced = false

    package init(fields: [Field], wanted: [Int], delimiter: UInt8) {
        self.fields = fields
        kernel = TextKernel(csv: fields, delimiter: delimiter)
        columns = RecordColumns(fields, wanted.map { .field($0) }, kernel)
    }

    package func decode(_ chunk: RawChunk) throws(SQLError) -> DecodedChunk {
        if !isPlaced || placed !== chunk.file {
            kernel.setPlaces(try places(in: chunk.file))
            placed = chunk.file
            isPlaced = true
        }
        return columns.decode(chunk)
    }

    package var takesAnyOrder: Bool { true }

    /// The columns of a file with a header may be none of the source's.
    package func mayStop(at chunk: RawChunk) -> Bool { chunk.file?.header != nil }

    private func places(in file: SplitFile?) throws(SQLError) -> [Int32] {
        guard let file, let header = file.header else { return fields.indices.map { Int32($0) } }
        var places = Array(repeating: Int32(-1), count: header.count)
        for (index, field) in fields.enumerated() {
            if let place = ColumnNames.place(of: field.name, among: header), places[place] < 0 { places[place] = Int32(index) }
        }
        guard fields.isEmpty || places.contains(where: { $0 >= 0 }) || fields.allSatisfy({ file.hasPartition($0.name) }) else {
            let names = header.prefix(20).map { "\"\($0)\"" }.joined(separator: ", ")
            throw SQLError(
                .featureNotSupported, "file \"\(file.location)\" has none of the source's columns, but \(names)",
                hint: "Say without_header = 'true' if its first line is a record.")
        }
        return places
    }

    /// The records of `bytes`, which begin with one, and how many bytes they take; see `mill_csv_cut`.
    package struct Cut {
        package var starts: [UInt32]
        package var lengths: [Int32]
        package var byteCount: Int
    }

    /// - Parameter isLast: what has no end is a record all the same.
    package static func cut(_ bytes: UnsafeRawBufferPointer, delimiter: UInt8, isLast: Bool, countMax: Int, bytesMax: Int) -> Cut {
        guard let base = bytes.bindMemory(to: UInt8.self).baseAddress, countMax > 0 else {
            return Cut(starts: [], lengths: [], byteCount: 0)
        }
        let room = min(countMax, bytes.count / 2 + 1, 1 << 16)
        var consumed = 0
        var lengths: [Int32] = []
        let starts = [UInt32](unsafeUninitializedCapacity: room) { starts, count in
            lengths = [Int32](unsafeUninitializedCapacity: room) { lengths, lengthCount in
                lengthCount = Int(
                    mill_csv_cut(
                        base, bytes.count, delimiter, isLast, UInt32(room), bytesMax, starts.baseAddress, lengths.baseAddress, &consumed))
                count = lengthCount
            }
        }
        return Cut(starts: starts, lengths: lengths, byteCount: consumed)
    }

    /// The values of one record; nil when it is malformed.
    package static func values(_ record: UnsafeRawBufferPointer, delimiter: UInt8) -> [String]? {
        var values: [String] = []
        var rest = record[...]
        while true {
            var value: [UInt8] = []
            if rest.first == UInt8(ascii: "\"") {
                rest = rest.dropFirst()
                while true {
                    guard let quote = rest.firstIndex(of: UInt8(ascii: "\"")) else { return nil }
                    value += rest[..<quote]
                    rest = rest[(quote + 1)...]
                    guard rest.first == UInt8(ascii: "\"") else { break }
                    value.append(UInt8(ascii: "\""))
                    rest = rest.dropFirst()
                }
                guard rest.isEmpty || rest.first == delimiter else { return nil }
            } else {
                let stop = rest.firstIndex(of: delimiter) ?? rest.endIndex
                value += rest[..<stop]
                rest = rest[stop...]
            }
            guard let text = String(validating: value, as: UTF8.self) else { return nil }
            values.append(text)
            guard !rest.isEmpty else { return values }
            rest = rest.dropFirst()
        }
    }
}
