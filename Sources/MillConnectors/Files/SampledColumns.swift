import MillBase
import MillColumnar
import MillConnectorKit
import MillIO
import MillText

/// The columns of a text file, told by its first records.
enum SampledColumns {
    private static let sampleBytes = 1 << 20
    private static let recordsMax = 10_000

    /// - Throws: 42P16 when there are no records to tell by.
    static func fields(of file: any File, _ format: SourceFormat) throws(SQLError) -> [Field] {
        let opened = try TextFile(file, format)
        let bytes = try TextFile.bytes(of: file, opened.firstRecord..<min(opened.end, opened.firstRecord + sampleBytes))
        let isLast = opened.firstRecord + bytes.count >= opened.end
        // Lines are records of CSV without quotes.
        let fields: [Field] =
            switch format {
            case .csv(let dialect): csv(bytes, opened.header, dialect, isLast: isLast)
            default: json(bytes, isLast: isLast)
            }
        guard !fields.isEmpty else {
            throw SQLError(.invalidTableDefinition, "file \"\(file.path)\" has no records that tell its columns", hint: "List the columns.")
        }
        return fields
    }

    private static func csv(_ bytes: [UInt8], _ header: [String]?, _ dialect: CSVDialect, isLast: Bool) -> [Field] {
        var names = header
        var guesses = Array(repeating: TypeGuess(), count: header?.count ?? 0)
        bytes.withUnsafeBytes { bytes in
            let cut = CSVRecordDecoder.cut(bytes, delimiter: dialect.delimiter, isLast: isLast, countMax: recordsMax, bytesMax: .max)
            for (start, length) in zip(cut.starts, cut.lengths) {
                let record = UnsafeRawBufferPointer(rebasing: bytes[Int(start)..<Int(start) + Int(length)])
                // One that is malformed or of another length is told of when it is read.
                guard let values = CSVRecordDecoder.values(record, delimiter: dialect.delimiter) else { continue }
                if names == nil {
                    names = values.indices.map { "column\($0)" }
                    guesses = values.map { _ in TypeGuess() }
                }
                guard values.count == guesses.count else { continue }
                for (index, value) in values.enumerated() where !value.isEmpty { guesses[index].see(value) }
            }
        }
        var seen: Set<String> = []
        return zip(names ?? [], guesses).filter { seen.insert($0.0).inserted }.map { Field($0, $1.type) }
    }

    private static func json(_ bytes: [UInt8], isLast: Bool) -> [Field] {
        var lines = bytes.split(separator: 10, maxSplits: recordsMax)
        if !isLast, bytes.last != 10 || lines.count > recordsMax { lines.removeLast() }
        var sample = JSONSample()
        for line in lines { sample.see(line) }
        return sample.fields
    }
}
