import MillBase
import MillColumnar
import MillExpr
import MillPgWire

/// Arrays in PostgreSQL's binary format, as the array's text: the engine has no array type.
///
/// Layout, all big-endian: int32 dimensions, int32 whether NULLs are among the elements, oid of the elements; for each dimension
/// int32 length and int32 lower bound; for each element int32 length, -1 for NULL, and its bytes.
/// Source: `array_recv` in PostgreSQL's `src/backend/utils/adt/arrayfuncs.c`.
extension PgParameter {
    /// - Throws: 22P03 for bytes that are no such array, 0A000 for more than one dimension.
    static func arrayText(_ bytes: ArraySlice<UInt8>, of element: PgOID) throws(SQLError) -> String {
        var rest = bytes
        func take(_ count: Int) throws(SQLError) -> ArraySlice<UInt8> {
            guard count >= 0, count <= rest.count else {
                throw SQLError(.invalidBinaryRepresentation, "insufficient data left in message")
            }
            defer { rest = rest.dropFirst(count) }
            return rest.prefix(count)
        }
        func number() throws(SQLError) -> Int { Int(try PgBinary.integer(Int32.self, try take(4))) }
        let dimensions = try number()
        _ = try number()
        guard PgOID(UInt32(truncatingIfNeeded: try number())) == element else {
            throw SQLError(.invalidBinaryRepresentation, "binary data has an array element type other than the parameter's")
        }
        guard dimensions <= 1 else { throw SQLError(.featureNotSupported, "an array of \(dimensions) dimensions is not supported") }
        guard dimensions == 1 else { return ArrayText.text([]) }
        let count = try number()
        _ = try number()
        var elements: [String?] = []
        // Every element takes four bytes at least, so a false count ends here.
        for _ in 0..<max(count, 0) {
            let length = try number()
            elements.append(length == -1 ? nil : try text(of: decode(try take(length), as: element), as: element))
        }
        guard rest.isEmpty else { throw SQLError(.invalidBinaryRepresentation, "incorrect binary data format in bind parameter") }
        return ArrayText.text(elements)
    }

    private static func text(of value: Value, as type: PgOID) -> String? {
        switch value {
        case .null: return nil
        case .text(let text): return text
        case .scalar(let scalar):
            guard let type = type.sqlType else { return nil }
            let column = Column(type, capacity: 1)
            column.append(scalar)
            return column.text(0)
        }
    }
}
