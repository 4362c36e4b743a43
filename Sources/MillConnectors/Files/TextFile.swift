import MillBase
import MillConnectorKit
import MillIO
import MillText

/// An open file of text records, and what is in front of the first one.
struct TextFile {
    let file: any File
    /// Where it ended when it was opened.
    let end: Int
    /// The byte where the first record begins, behind a byte order mark and a header.
    let firstRecord: Int
    /// The header of a file of CSV that has one.
    let header: [String]?

    /// A header has at most so many bytes.
    private static let headerBytesMax = 16 << 20

    init(_ file: any File, _ format: SourceFormat) throws(SQLError) {
        self.file = file
        do throws(IOFailure) { end = try file.size() } catch { throw error.sqlError }
        guard case .csv(let dialect) = format else {
            (firstRecord, header) = (0, nil)
            return
        }
        let mark = try Self.bytes(of: file, 0..<min(3, end)) == [0xEF, 0xBB, 0xBF] ? 3 : 0
        guard dialect.hasHeader else {
            (firstRecord, header) = (mark, nil)
            return
        }
        (firstRecord, header) = try Self.header(of: file, from: mark, to: end, dialect)
    }

    private static func header(of file: any File, from start: Int, to end: Int, _ dialect: CSVDialect) throws(SQLError) -> (Int, [String]) {
        var wanted = 64 << 10
        while true {
            let bytes = try bytes(of: file, start..<min(end, start + wanted))
            let isLast = start + bytes.count >= end
            let (names, byteCount) = bytes.withUnsafeBytes { bytes -> ([String]??, Int) in
                let cut = CSVRecordDecoder.cut(bytes, delimiter: dialect.delimiter, isLast: isLast, countMax: 1, bytesMax: .max)
                guard let first = cut.starts.first, let length = cut.lengths.first else { return (nil, cut.byteCount) }
                let record = UnsafeRawBufferPointer(rebasing: bytes[Int(first)..<Int(first) + Int(length)])
                return (.some(CSVRecordDecoder.values(record, delimiter: dialect.delimiter)), cut.byteCount)
            }
            if let names {
                guard let names else { throw unreadable(file, "is malformed or not UTF-8") }
                return (start + byteCount, names)
            }
            if isLast { return (end, []) }
            guard wanted < headerBytesMax else { throw unreadable(file, "is longer than \(headerBytesMax) bytes") }
            wanted *= 8
        }
    }

    private static func unreadable(_ file: any File, _ what: String) -> SQLError {
        SQLError(.dataCorrupted, "the header of file \"\(file.path)\" \(what)", hint: "Say without_header = 'true' if it has none.")
    }

    /// Bytes of the file; fewer when it has become shorter, which is found out by who reads on.
    static func bytes(of file: any File, _ range: Range<Int>) throws(SQLError) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: range.count)
        do throws(IOFailure) {
            let count = try bytes.withUnsafeMutableBufferPointer { (bytes) throws(IOFailure) in
                try file.read(at: range.lowerBound, into: UnsafeMutableRawBufferPointer(bytes))
            }
            bytes.removeLast(bytes.count - count)
        } catch { throw error.sqlError }
        return bytes
    }
}
