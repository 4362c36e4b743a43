/// JSON (RFC 8259) written front to back.
struct JSONText {
    private(set) var text = ""
    private var needsComma = false

    mutating func object(_ body: (inout JSONText) -> Void) { enclosed("{", "}", body) }

    mutating func array<C: Collection>(_ elements: C, _ body: (inout JSONText, C.Element) -> Void) {
        enclosed("[", "]") { text in
            for element in elements {
                text.separate()
                body(&text, element)
                text.needsComma = true
            }
        }
    }

    mutating func field(_ name: String, _ body: (inout JSONText) -> Void) {
        separate()
        quote(name)
        text += ":"
        body(&self)
        needsComma = true
    }

    mutating func value(_ value: Bool) { text += value ? "true" : "false" }
    mutating func value(_ value: Int64?) { text += value.map(String.init) ?? "null" }

    mutating func value(_ value: String?) {
        if let value { quote(value) } else { text += "null" }
    }

    private mutating func enclosed(_ open: String, _ close: String, _ body: (inout JSONText) -> Void) {
        text += open
        needsComma = false
        body(&self)
        text += close
        needsComma = true
    }

    private mutating func separate() {
        if needsComma { text += "," }
        needsComma = false
    }

    private mutating func quote(_ value: String) {
        text += "\""
        for scalar in value.unicodeScalars {
            switch scalar {
            case "\"": text += "\\\""
            case "\\": text += "\\\\"
            case "\u{0}"..<"\u{20}":
                let digits = String(scalar.value, radix: 16)
                text += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
            default: text.unicodeScalars.append(scalar)
            }
        }
        text += "\""
    }
}
