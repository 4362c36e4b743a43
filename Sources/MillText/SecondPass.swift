import MillBase
import MillColumnar

/// Types whose values the C++ decoder hands over as text, for MillColumnar to read: rare in streams, and read the same way as the
/// literals of statements.
enum SecondPass {
    /// The text of a JSON string to an interval.
    case interval
    /// JSON text to its canonical form.
    case jsonb

    init?(for type: SQLType) {
        switch type {
        case .interval: self = .interval
        case .jsonb: self = .jsonb
        default: return nil
        }
    }

    /// The column of values from the column of texts; a text that is none becomes NULL and is reported with its raw bytes and the
    /// reason.
    /// - Parameter rawIsJSON: raw bytes are JSON text, as all that JSON records give to the rejects.
    func run(_ texts: Column, rawIsJSON: Bool, reject: (_ row: Int, _ raw: [UInt8], _ reason: String) -> Void) -> Column {
        let type: SQLType = self == .interval ? .interval : .jsonb
        let result = Column(type, capacity: texts.count)
        let views = texts.values(StringView.self)
        var text: [UInt8] = []
        for row in 0..<texts.count {
            if texts.isNull(row) {
                result.appendNull()
                continue
            }
            views[row].withBytes { bytes in
                do throws(SQLError) {
                    switch self {
                    case .interval: result.append(try TextInput.interval(bytes))
                    case .jsonb:
                        text.removeAll(keepingCapacity: true)
                        try JSONCanonicalizer.canonicalize(bytes, to: &text)
                        text.withUnsafeBufferPointer { result.append(bytes: $0) }
                    }
                } catch {
                    result.appendNull()
                    reject(row, rawIsJSON ? rawJSON(bytes) : Array(bytes), error.message)
                }
            }
        }
        return result
    }

    /// The value as JSON text.
    private func rawJSON(_ text: UnsafeBufferPointer<UInt8>) -> [UInt8] {
        guard self == .interval else { return Array(text) }
        var raw: [UInt8] = []
        JSONCanonicalizer.appendString(text, to: &raw)
        return raw
    }
}
