import MillBase
package import MillColumnar

extension JSONValue {
    /// A column's default as a value of its type; nil for what it cannot be. Source: Iceberg specification, appendix D, JSON.
    package func scalar(_ type: IcebergType) -> Scalar? {
        switch (self, type) {
        case (.boolean(let value), .boolean): return .boolean(value)
        case (.int(let value), .int) where Int32(exactly: value) != nil: return .int(value)
        case (.int(let value), .long): return .int(value)
        case (.int(let value), .float), (.int(let value), .double): return .float(Double(value))
        case (.double(let value), .float), (.double(let value), .double): return .float(value)
        case (.string(let value), .string): return .string(value)
        case (.string(let value), .uuid): return UUIDText.bytes(value).flatMap { UUIDText.text($0) }.map { .string($0) }
        case (.string(let value), .binary), (.string(let value), .fixed):
            return (try? TextInput.scalar("\\x" + value, as: .bytea))  // no value of the type: the caller says so
        case (.string(let value), .decimal), (.string(let value), .date), (.string(let value), .time), (.string(let value), .timestamp),
            (.string(let value), .timestamptz):
            return type.sqlType.flatMap { try? TextInput.scalar(value, as: $0) }  // as above
        default: return nil
        }
    }
}
