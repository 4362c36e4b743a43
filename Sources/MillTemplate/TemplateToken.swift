/// A piece of a template, as the lexer hands it to the parser.
enum TemplateToken: Hashable {
    /// Text that is copied to the output, whitespace control already applied.
    case text(String)
    /// `{{` and its end.
    case printBegin, printEnd
    /// `{%` and its end.
    case blockBegin, blockEnd
    case name(String)
    case string(String)
    case int(Int)
    case float(Double)
    /// An operator or a bracket.
    case sign(String)
    case end

    /// How a message shows it.
    var shown: String {
        switch self {
        case .text: "text"
        case .printBegin: "{{"
        case .printEnd: "}}"
        case .blockBegin: "{%"
        case .blockEnd: "%}"
        case .name(let text), .sign(let text): text
        case .string(let text): "\"\(text)\""
        case .int(let value): String(value)
        case .float(let value): "\(value)"
        case .end: "the end of the template"
        }
    }
}
