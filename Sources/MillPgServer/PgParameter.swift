package import MillBase
package import MillColumnar
package import MillPgWire

/// One parameter's value for an execution.
package struct PgParameter: Hashable, Sendable {
    package enum Value: Hashable, Sendable {
        case null
        /// Text in the input syntax of `type`, not yet read.
        case text(String)
        /// A value that came in binary, as a column of `type` holds it.
        case scalar(Scalar)
    }

    /// As `PgPrepared.parameterTypes` says.
    package var type: PgOID
    package var value: Value

    package init(type: PgOID, value: Value) {
        self.type = type
        self.value = value
    }

    /// Checks and reads what Bind brought.
    ///
    /// - Throws: 22021 for text that is not UTF-8, 22P03 for bytes that are not the type's binary form, 0A000 for a type
    ///   without one here.
    package init(_ parameter: BoundParameter) throws(SQLError) {
        type = parameter.type
        guard let bytes = parameter.bytes else {
            value = .null
            return
        }
        switch parameter.format {
        case .text: value = .text(try PgBinary.text(bytes[...]))
        case .binary: value = try Self.decode(bytes[...], as: parameter.type)
        }
    }

    static func decode(_ bytes: ArraySlice<UInt8>, as type: PgOID) throws(SQLError) -> Value {
        switch type {
        case .bool: return .scalar(.boolean(try PgBinary.boolean(bytes)))
        case .int2: return .scalar(.int(Int64(try PgBinary.integer(Int16.self, bytes))))
        case .int4: return .scalar(.int(Int64(try PgBinary.integer(Int32.self, bytes))))
        case .int8: return .scalar(.int(try PgBinary.integer(Int64.self, bytes)))
        case .oid, .regproc, .regclass, .regtype, .regnamespace:
            return .scalar(.int(Int64(try PgBinary.integer(UInt32.self, bytes))))
        case .float4: return .scalar(.float(Double(try PgBinary.float32(bytes))))
        case .float8: return .scalar(.float(try PgBinary.float64(bytes)))
        case .numeric: return .scalar(.decimal(Decimal(try PgNumeric(decoding: bytes))))
        case .bytea: return .scalar(.bytes(Array(bytes)))
        case .date: return .scalar(.int(Int64(try PgBinary.date(bytes))))
        case .time: return .scalar(.int(try PgBinary.time(bytes)))
        case .timestamp, .timestamptz: return .scalar(.int(try PgBinary.timestamp(bytes)))
        case .interval:
            let interval = try PgBinary.interval(bytes)
            return .scalar(.interval(Interval(months: interval.months, days: interval.days, micros: interval.micros)))
        case .jsonb: return .text(try PgBinary.text(try PgBinary.jsonb(bytes)))
        case .text, .varchar, .bpchar, .name, .unknown, .char, .json, .unspecified: return .text(try PgBinary.text(bytes))
        default:
            if let element = type.elementType { return .text(try arrayText(bytes, of: element)) }
            throw SQLError(
                .featureNotSupported, "no binary input function available for the type with oid \(type)",
                hint: "Send the parameter as text.")
        }
    }
}

extension Decimal {
    /// The decoded form has at most 38 digits, so it fits; a scale over 38 was refused with them.
    init(_ numeric: PgNumeric) {
        switch numeric {
        case .finite(let unscaled, let scale): self.init(unscaled: unscaled, scale: scale)
        case .notANumber: self.init(Decimal.Kind.nan)
        case .positiveInfinity: self.init(Decimal.Kind.positiveInfinity)
        case .negativeInfinity: self.init(Decimal.Kind.negativeInfinity)
        }
    }
}

extension PgNumeric {
    init(_ decimal: Decimal) {
        switch decimal.kind {
        case .finite: self = .finite(unscaled: decimal.unscaled, scale: decimal.scale)
        case .nan: self = .notANumber
        case .positiveInfinity: self = .positiveInfinity
        case .negativeInfinity: self = .negativeInfinity
        }
    }
}
