import MillBase
import MillColumnar

/// LIKE, ILIKE and regular expressions. A pattern is compiled when it changes from row to row; a constant one once a batch
/// at most, and once for all where it is a literal.
enum PatternKernels {
    static func make(_ name: String, _ types: [SQLType], _ constants: [Scalar?]) -> Kernel? {
        switch name {
        case "like": return like(types.count, constants, negated: false, ignoringCase: false)
        case "not_like": return like(types.count, constants, negated: true, ignoringCase: false)
        case "ilike": return like(types.count, constants, negated: false, ignoringCase: true)
        case "not_ilike": return like(types.count, constants, negated: true, ignoringCase: true)
        case "matches": return regex(negated: false, ignoringCase: false)
        case "regexp_like": return regex(negated: false, ignoringCase: false)
        case "imatches": return regex(negated: false, ignoringCase: true)
        case "not_matches": return regex(negated: true, ignoringCase: false)
        case "not_imatches": return regex(negated: true, ignoringCase: true)
        case "regexp_replace": return replace()
        case "regexp_count": return count()
        case "regexp_substr": return substring()
        default: return nil
        }
    }

    // MARK: LIKE

    private static func like(_ arity: Int, _ constants: [Scalar?], negated: Bool, ignoringCase: Bool) -> Kernel {
        let hit: UInt8 = negated ? 0 : 1
        if arity == 2, case .string(let text)? = constants[1], let pattern = try? pattern(text, ignoringCase) {
            return { columns, _, _ in
                if ignoringCase {
                    var lowered: [UInt8] = []
                    return Loops.unary(columns[0], .boolean) { (a: StringView) -> UInt8 in
                        lowered.removeAll(keepingCapacity: true)
                        a.withBytes { UTF8Text.appendLowered($0, to: &lowered) }
                        return lowered.withUnsafeBufferPointer { pattern.matches($0) } ? hit : hit ^ 1
                    }
                }
                return Loops.unary(columns[0], .boolean) { (a: StringView) -> UInt8 in a.withBytes { pattern.matches($0) } ? hit : hit ^ 1 }
            }
        }
        return { columns, count, frame in
            Loops.rows(columns, count, .boolean, frame) { row throws(SQLError) -> UInt8? in
                let escape = columns.count > 2 ? Array(String(StringKernels.view(columns, 2, row)).utf8) : nil
                let pattern = try compile(StringKernels.view(columns, 1, row), escape, ignoringCase)
                var text: [UInt8] = []
                StringKernels.view(columns, 0, row).withBytes { if ignoringCase { UTF8Text.appendLowered($0, to: &text) } else { text += $0 } }
                return text.withUnsafeBufferPointer { pattern.matches($0) } ? hit : hit ^ 1
            }
        }
    }

    private static func pattern(_ text: String, _ ignoringCase: Bool) throws(SQLError) -> LikePattern {
        var text = text
        var bytes: [UInt8] = []
        text.withUTF8 { if ignoringCase { UTF8Text.appendLowered($0, to: &bytes) } else { bytes += $0 } }
        return try bytes.withUnsafeBufferPointer { (buffer) throws(SQLError) in try LikePattern(buffer) }
    }

    private static func compile(_ view: StringView, _ escape: [UInt8]?, _ ignoringCase: Bool) throws(SQLError) -> LikePattern {
        var bytes: [UInt8] = []
        view.withBytes { if ignoringCase { UTF8Text.appendLowered($0, to: &bytes) } else { bytes += $0 } }
        return try bytes.withUnsafeBufferPointer { (buffer) throws(SQLError) -> LikePattern in
            guard let escape else { return try LikePattern(buffer) }
            return try escape.withUnsafeBufferPointer { (escape) throws(SQLError) in try LikePattern(buffer, escape: escape) }
        }
    }

    // MARK: Regular expressions

    /// The last pattern's compiled form: the next row nearly always has the same. Owned by one kernel, and so one thread.
    private final class RegexCache {
        private var last: (pattern: String, flags: String)?
        private var regex: RegularExpression?
        let ignoringCase: Bool

        init(ignoringCase: Bool) { self.ignoringCase = ignoringCase }

        func regex(_ view: StringView, flags: String = "") throws(SQLError) -> RegularExpression {
            let pattern = String(view)
            if let regex, let last, last == (pattern, flags) { return regex }
            if let bad = flags.first(where: { !"gicns".contains($0) }) {
                throw SQLError(.invalidParameterValue, "invalid regular expression option: \"\(bad)\"")
            }
            let compiled = try RegularExpression(pattern, ignoringCase: ignoringCase || flags.contains("i"))
            last = (pattern, flags)
            regex = compiled
            return compiled
        }
    }

    private static func regex(negated: Bool, ignoringCase: Bool) -> Kernel {
        let cache = RegexCache(ignoringCase: ignoringCase)
        let hit: UInt8 = negated ? 0 : 1
        return { columns, count, frame in
            Loops.rows(columns, count, .boolean, frame) { row throws(SQLError) -> UInt8? in
                let flags = columns.count > 2 ? String(StringKernels.view(columns, 2, row)) : ""
                let regex = try cache.regex(StringKernels.view(columns, 1, row), flags: flags)
                return StringKernels.view(columns, 0, row).withBytes { regex.firstMatch(in: $0) != nil } ? hit : hit ^ 1
            }
        }
    }

    private static func replace() -> Kernel {
        let cache = RegexCache(ignoringCase: false)
        return { columns, count, frame in
            Loops.text(columns, count, .varchar, frame) { row, out throws(SQLError) in
                let flags = columns.count > 3 ? String(StringKernels.view(columns, 3, row)) : ""
                let regex = try cache.regex(StringKernels.view(columns, 1, row), flags: flags)
                StringKernels.view(columns, 0, row).withBytes { text in
                    StringKernels.view(columns, 2, row).withBytes { regex.appendReplacing(text, with: $0, all: flags.contains("g"), to: &out) }
                }
                try StringKernels.checkLength(out.count)
                return true
            }
        }
    }

    private static func count() -> Kernel {
        let cache = RegexCache(ignoringCase: false)
        return { columns, count, frame in
            Loops.rows(columns, count, .int32, frame) { row throws(SQLError) -> Int32? in
                let regex = try cache.regex(StringKernels.view(columns, 1, row))
                return StringKernels.view(columns, 0, row).withBytes { text in
                    var found: Int32 = 0
                    var at = 0
                    while at <= text.count, let match = regex.firstMatch(in: text, from: at), let whole = match[0] {
                        found += 1
                        at = whole.isEmpty ? (whole.upperBound < text.count ? UTF8Text.next(text, whole.upperBound) : text.count + 1) : whole.upperBound
                    }
                    return found
                }
            }
        }
    }

    private static func substring() -> Kernel {
        let cache = RegexCache(ignoringCase: false)
        return { columns, count, frame in
            Loops.text(columns, count, .varchar, frame) { row, out throws(SQLError) in
                let regex = try cache.regex(StringKernels.view(columns, 1, row))
                return StringKernels.view(columns, 0, row).withBytes { text in
                    guard let whole = regex.firstMatch(in: text)?[0] else { return false }
                    out.append(contentsOf: text[whole])
                    return true
                }
            }
        }
    }
}
