package import MillBase
package import MillColumnar
import MillExpr
package import MillSQL

/// Literals, typed literals, intervals and parameters.
extension Binder {
    func bind(_ literal: Literal, at span: SourceSpan) throws(SQLError) -> BoundExpression {
        switch literal {
        case .null: return .literal(.null, .unknown)
        case .boolean(let value): return .literal(.boolean(value), .boolean)
        case .string(let text): return .literal(.string(text), .unknown)
        case .number(let text): return try number(text, at: span)
        case .bits: throw unsupported("type bit", at: span)
        case .hexBits: throw unsupported("type bit", hint: "Write a byte string as '\\x...'::bytea.", at: span)
        }
    }

    /// Integers get the smallest of integer, bigint and numeric that holds them.
    private func number(_ text: String, at span: SourceSpan) throws(SQLError) -> BoundExpression {
        if let value = Int64(text) { return .literal(.int(value), Int32(exactly: value) != nil ? .int32 : .int64) }
        guard let value = Binder.decimal(text) else {
            // PostgreSQL's numeric holds it; here a float does, which is what one writes so for.
            if text.lowercased().contains("e"), let float = Double(text), float.isFinite, float != 0 { return .literal(.float(float), .float64) }
            throw SQLError(.numericValueOutOfRange, "value \"\(text)\" is out of range for type numeric", hint: "A numeric has at most 38 digits.", at: span)
        }
        return .literal(.decimal(value), .numeric)
    }

    /// A number's text, with or without point and exponent; nil when 38 digits do not hold it.
    static func decimal(_ text: String) -> Decimal? {
        let lower = text.lowercased()
        let parts = lower.split(separator: "e", maxSplits: 1)
        guard let mantissa = parts.first, let exponent = parts.count == 2 ? Int(parts[1]) : 0, abs(exponent) <= 10_000 else { return nil }
        let pieces = mantissa.split(separator: ".", maxSplits: 1, omittingEmptySubsequences: false)
        let fraction = pieces.count == 2 ? pieces[1] : ""
        var digits = String(pieces[0] + fraction)
        var scale = fraction.count - exponent
        while scale > 38, digits.count > 1, digits.last == "0" {
            digits.removeLast()
            scale -= 1
        }
        if scale < 0 {
            guard digits.count - scale <= 400 else { return nil }
            digits += String(repeating: "0", count: -scale)
            scale = 0
        }
        guard scale <= 38, let value = Int128(digits.isEmpty ? "0" : digits), value.magnitude < 100_000_000_000_000_000_000_000_000_000_000_000_000
        else { return nil }
        return Decimal(unscaled: value, scale: Int32(scale))
    }

    /// `DATE '...'`: the same as a cast of the text.
    func bindTypedLiteral(_ name: TypeName, _ text: String, at span: SourceSpan) throws(SQLError) -> BoundExpression {
        try coerce(.literal(.string(text), .unknown), to: try type(of: name), .explicit, at: span)
    }

    /// `INTERVAL '15' SECOND`: a bare number counts the field that was named last.
    func bindInterval(_ text: String, _ fields: IntervalFields?, at span: SourceSpan) throws(SQLError) -> BoundExpression {
        var text = text
        if let unit = fields?.to ?? fields?.from {
            let isBare = !text.isEmpty && text.utf8.allSatisfy { (48...57).contains($0) || $0 == 45 || $0 == 43 || $0 == 46 || $0 == 32 }
            let isYearToMonth = fields?.from == .year && fields?.to == .month
            if isBare, !isYearToMonth { text += " \(unit.rawValue)" }
        }
        return try coerce(.literal(.string(text), .unknown), to: .interval, .explicit, at: span)
    }

    func bindParameter(_ number: Int, at span: SourceSpan) throws(SQLError) -> BoundExpression {
        guard (1...65_535).contains(number) else { throw SQLError(.undefinedParameter, "there is no parameter $\(number)", at: span) }
        if number <= context.parameterValues.count { return context.parameterValues[number - 1] }
        while parameters.count < number { parameters.append(nil) }
        return .parameter(number, parameters[number - 1] ?? .unknown)
    }

    /// The characters that `varchar(n)` and its kin hold at most; nil for types without a length.
    /// - Throws: 22023 for a length of 0.
    static func length(of name: TypeName) throws(SQLError) -> Int? {
        guard case .named(let object, let modifiers) = name.kind, let length = modifiers.first else { return nil }
        guard TypeNames.type(named: object.last.name, modifiers: modifiers) == .varchar else { return nil }
        guard (1...10_485_760).contains(length) else {
            throw SQLError(
                .invalidParameterValue, "length for type \(object.last.name) must be \(length < 1 ? "at least 1" : "at most 10485760")",
                at: name.span.source)
        }
        return length
    }

    /// The type that a name with its modifiers means.
    /// - Throws: 42704 for an unknown name, 0A000 for kinds of types that are not there, 22023 for wrong modifiers.
    package func type(of name: TypeName) throws(SQLError) -> SQLType {
        switch name.kind {
        case .interval: return .interval
        case .array: throw unsupported("array type", at: name.span.source)
        case .structure: throw unsupported("struct type", at: name.span.source)
        case .map: throw unsupported("map type", at: name.span.source)
        case .named(let object, let modifiers):
            let text = object.last.name
            let isSystem = object.parts.count == 1 || object.parts[object.parts.count - 2].name == "pg_catalog"
            if isSystem {
                if let type = TypeNames.type(named: text, modifiers: modifiers) { return type }
                if TypeNames.type(named: text) != nil {
                    let written = modifiers.map(String.init).joined(separator: ",")
                    throw SQLError(.invalidParameterValue, "invalid type modifier \(text)(\(written))", at: name.span.source)
                }
            }
            let full = object.parts.map(\.name).joined(separator: ".")
            throw SQLError(.undefinedObject, "type \"\(full)\" does not exist", at: name.span.source)
        }
    }
}
