import CRE2
import MillBase
import MillColumnar

/// A regular expression in PostgreSQL's syntax, matched by RE2 in time linear in the text.
///
/// `RegexTranslation` writes the pattern in RE2's syntax. A match is the longest of the leftmost ones, as in PostgreSQL, unless the
/// pattern has a lazy quantifier: then it is the one that the pattern names first. Within a match RE2 lets the branch of an
/// alternation that is named first decide what a group holds, where PostgreSQL takes the longest. Back references and look-around, which no linear
/// engine has, are refused; see `docs/decisions/010-re2-for-regular-expressions.md`.
///
/// Owned by one kernel, and so one thread.
final class RegularExpression {
    private let compiled: OpaquePointer
    let groupCount: Int
    /// Where the last match and its groups begin and end.
    private let bounds: UnsafeMutablePointer<Int64>

    /// The whole match and the groups that `\1` to `\9` name, or the one that is asked for.
    private static let pairsMax = 17
    /// As many groups as an array of PostgreSQL's regexp_match is looked into.
    static let groupMax = pairsMax - 1

    /// - Throws: 2201B for what is not a regular expression, 0A000 for what is one but cannot be matched here.
    init(_ pattern: UnsafeBufferPointer<UInt8>, _ options: RegexOptions) throws(SQLError) {
        let translation = try RegexTranslation(pattern, options)
        var flags: UInt32 = translation.options.ignoresCase ? MILL_REGEX_IGNORE_CASE.rawValue : 0
        if translation.options.isLiteral { flags |= MILL_REGEX_LITERAL.rawValue }
        if !translation.isLazy { flags |= MILL_REGEX_LONGEST.rawValue }
        var message = [CChar](repeating: 0, count: 128)
        guard let compiled = mill_regex_compile(translation.text, translation.text.count, flags, &message, message.count) else {
            let reason = String(decoding: message.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
            throw SQLError(.invalidRegularExpression, "invalid regular expression: \(reason)")
        }
        self.compiled = compiled
        groupCount = Int(mill_regex_group_count(compiled))
        bounds = .allocate(capacity: 2 * Self.pairsMax)
    }

    deinit {
        mill_regex_free(compiled)
        bounds.deallocate()
    }

    /// Whether there is a match from `start` on; `range` then tells of it, as far as the first `groups` groups.
    func match(_ text: UnsafeBufferPointer<UInt8>, from start: Int = 0, groups: Int) -> Bool {
        mill_regex_match(compiled, text.baseAddress, text.count, start, bounds, Int32(min(groups, Self.groupMax) + 1))
    }

    func matches(_ text: UnsafeBufferPointer<UInt8>) -> Bool { mill_regex_match(compiled, text.baseAddress, text.count, 0, bounds, 0) }

    /// Bytes of the last match (0) or of one of its groups; nil for a group that took no part, or that there is none of.
    func range(_ group: Int) -> Range<Int>? {
        guard group <= min(groupCount, Self.groupMax), bounds[2 * group] >= 0 else { return nil }
        return Int(bounds[2 * group])..<Int(bounds[2 * group + 1])
    }

    /// Calls `body` with every match from `start` on, none of which overlaps another, until it returns false.
    func forEachMatch(_ text: UnsafeBufferPointer<UInt8>, from start: Int = 0, groups: Int, _ body: (Range<Int>) -> Bool) {
        var at = start
        while at <= text.count, match(text, from: at, groups: groups), let whole = range(0) {
            guard body(whole) else { return }
            // An empty match moves on by a character.
            at = !whole.isEmpty ? whole.upperBound : whole.upperBound < text.count ? UTF8Text.next(text, whole.upperBound) : text.count + 1
        }
    }

    /// Appends `text` with the first match, or all, replaced; `\1` and `\&` in the replacement stand for what matched.
    func appendReplacing(_ text: UnsafeBufferPointer<UInt8>, with replacement: UnsafeBufferPointer<UInt8>, all: Bool, to out: inout [UInt8])
    {
        var copied = 0
        forEachMatch(text, groups: 9) { whole in
            out.append(contentsOf: text[copied..<whole.lowerBound])
            append(replacement, text, &out)
            copied = whole.upperBound
            return all
        }
        out.append(contentsOf: text[copied...])
    }

    private func append(_ replacement: UnsafeBufferPointer<UInt8>, _ text: UnsafeBufferPointer<UInt8>, _ out: inout [UInt8]) {
        var index = 0
        while index < replacement.count {
            let byte = replacement[index]
            index += 1
            guard byte == UInt8(ascii: "\\"), index < replacement.count else {
                out.append(byte)
                continue
            }
            let code = replacement[index]
            index += 1
            switch code {
            case UInt8(ascii: "&"): if let range = range(0) { out.append(contentsOf: text[range]) }
            case UInt8(ascii: "1")...UInt8(ascii: "9"):
                if let range = range(Int(code - UInt8(ascii: "0"))) { out.append(contentsOf: text[range]) }
            case UInt8(ascii: "\\"): out.append(code)
            default: out += [byte, code]
            }
        }
    }
}

/// The options of a regular expression as PostgreSQL's letters give them.
struct RegexOptions: Equatable {
    var ignoresCase = false
    /// `.` and negated brackets stop at a newline, `^` and `$` stand at every line.
    var isByLine = false
    /// The pattern is plain text.
    var isLiteral = false
    /// All matches are meant, not the first one.
    var isGlobal = false

    /// - Throws: 22023 for a letter that is no option, or that `function` does not take.
    mutating func take(_ letters: UnsafeBufferPointer<UInt8>, global function: String? = nil) throws(SQLError) {
        for letter in letters {
            switch letter {
            case UInt8(ascii: "i"): ignoresCase = true
            case UInt8(ascii: "c"): ignoresCase = false
            case UInt8(ascii: "n"), UInt8(ascii: "m"): isByLine = true
            case UInt8(ascii: "s"): isByLine = false
            case UInt8(ascii: "q"): isLiteral = true
            case UInt8(ascii: "e"), UInt8(ascii: "t"): break
            case UInt8(ascii: "g"):
                if let function { throw SQLError(.invalidParameterValue, "\(function)() does not support the \"global\" option") }
                isGlobal = true
            default:
                let shown = String(decoding: [letter], as: UTF8.self)
                throw SQLError(.invalidParameterValue, "invalid regular expression option: \"\(shown)\"")
            }
        }
    }
}
