/// Types.
extension SQLPrinter {
    mutating func write(_ type: TypeName) {
        switch type.kind {
        case .named(let name, let modifiers): writeNamedType(name, modifiers)
        case .interval(let fields):
            write("interval")
            write(fields)
        case .array(let element):
            write(element)
            write("[]")
        case .structure(let fields):
            write("STRUCT<")
            list(fields) { printer, field in
                printer.write(field.name)
                printer.write(" ")
                printer.write(field.type)
            }
            write(">")
        case .map(let key, let value):
            write("MAP(")
            write(key)
            write(", ")
            write(value)
            write(")")
        }
    }

    private mutating func writeNamedType(_ name: ObjectName, _ modifiers: [Int]) {
        if name.parts.count == 1 { write(Self.typeName(name.last.name)) } else { write(name) }
        if !modifiers.isEmpty { parenthesized(modifiers) { $0.write(String($1)) } }
    }

    /// Words of the grammar that name types stay bare; `struct` and `map` would begin another type.
    private static func typeName(_ name: String) -> String {
        if name == "double precision" { return name }
        if name == "struct" || name == "map" || name == "array" { return quotedAlways(name) }
        guard let keyword = Keyword.byText[name] else { return quoted(name) }
        return keyword.isTypeWord || keyword.category == .typeOrFunction ? name : quoted(name)
    }

    /// ` DAY TO SECOND(3)`, `(3)`.
    mutating func write(_ fields: IntervalFields) {
        if let from = fields.from { write(" " + from.rawValue.uppercased()) }
        if let to = fields.to { write(" TO " + to.rawValue.uppercased()) }
        if let precision = fields.precision { write("(\(precision))") }
    }
}
