import MillBase
import MillColumnar

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

/// A POSIX extended regular expression of the C library, which matches without backtracking as long as the pattern has no back
/// references: those are refused, because nothing bounds their time.
///
/// PostgreSQL's class shorthands (`\d \w \s` and their negations), word edges and non-capturing groups are translated;
/// lazy quantifiers and look-around do not exist here and are refused. Compiled and used by one thread, in a UTF-8 locale
/// that is set for the calls only.
final class RegularExpression {
    private var compiled = regex_t()
    /// Groups that `\1` to `\9` may name, by their number after translation.
    private let groups: [Int]

    /// - Throws: 2201B for what is not a regular expression.
    init(_ pattern: String, ignoringCase: Bool) throws(SQLError) {
        var ignoringCase = ignoringCase
        var source = Substring(pattern)
        if source.hasPrefix("(?i)") {
            ignoringCase = true
            source = source.dropFirst(4)
        }
        let (text, groups) = try Self.translated(source)
        self.groups = groups
        try PatternSize.check(text)
        let code = Self.inUTF8 { regcomp(&compiled, text, REG_EXTENDED | (ignoringCase ? REG_ICASE : 0)) }
        guard code == 0 else {
            var message = [CChar](repeating: 0, count: 128)
            regerror(code, &compiled, &message, message.count)
            let reason = String(decoding: message.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
            throw SQLError(.invalidRegularExpression, "invalid regular expression: \(reason.lowercased())")
        }
    }

    deinit { regfree(&compiled) }

    /// Byte ranges of the whole match and of the groups, from `start` on; nil when nothing matches.
    func firstMatch(in text: UnsafeBufferPointer<UInt8>, from start: Int = 0) -> [Range<Int>?]? {
        var matches = [regmatch_t](repeating: regmatch_t(), count: 10)
        matches[0].rm_so = 0
        matches[0].rm_eo = regoff_t(truncatingIfNeeded: text.count - start)
        let code = Self.inUTF8 {
            text.withMemoryRebound(to: CChar.self) { characters in
                // An empty buffer has no address; REG_STARTEND never reads past its end, so any pointer will do.
                withUnsafeTemporaryAllocation(of: CChar.self, capacity: 1) { empty in
                    empty[0] = 0
                    let base = characters.baseAddress.map { UnsafePointer($0 + start) } ?? UnsafePointer(empty.baseAddress.unsafelyUnwrapped)
                    return regexec(&compiled, base, matches.count, &matches, REG_STARTEND | (start > 0 ? REG_NOTBOL : 0))
                }
            }
        }
        guard code == 0 else { return nil }
        return matches.map { $0.rm_so < 0 ? nil : (start + Int($0.rm_so))..<(start + Int($0.rm_eo)) }
    }

    /// Appends `text` with the first match, or all, replaced; `\1` and `\&` in the replacement stand for what matched.
    func appendReplacing(_ text: UnsafeBufferPointer<UInt8>, with replacement: UnsafeBufferPointer<UInt8>, all: Bool, to out: inout [UInt8]) {
        var at = 0
        while at <= text.count, let match = firstMatch(in: text, from: at), let whole = match[0] {
            out.append(contentsOf: text[at..<whole.lowerBound])
            append(replacement, match, text, &out)
            at = whole.upperBound
            if whole.isEmpty {
                let next = at < text.count ? UTF8Text.next(text, at) : text.count + 1
                out.append(contentsOf: text[at..<min(next, text.count)])
                at = next
            }
            if !all { break }
        }
        if at < text.count { out.append(contentsOf: text[at...]) }
    }

    private func append(_ replacement: UnsafeBufferPointer<UInt8>, _ match: [Range<Int>?], _ text: UnsafeBufferPointer<UInt8>, _ out: inout [UInt8]) {
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
            case UInt8(ascii: "&"): if let range = match[0] { out.append(contentsOf: text[range]) }
            case 49...57:
                let number = Int(code - 49)
                if number < groups.count, groups[number] < match.count, let range = match[groups[number]] { out.append(contentsOf: text[range]) }
            case UInt8(ascii: "\\"): out.append(code)
            default: out += [byte, code]
            }
        }
    }

    private static func translated(_ pattern: Substring) throws(SQLError) -> (String, groups: [Int]) {
        var out = ""
        var groups: [Int] = []
        var opened = 0
        var inBrackets = false
        var characters = Array(pattern)[...]
        while let character = characters.popFirst() {
            if character == "\\", let next = characters.popFirst() {
                switch next {
                case "d": out += inBrackets ? "[:digit:]" : "[[:digit:]]"
                case "D": out += "[^[:digit:]]"
                case "s": out += inBrackets ? "[:space:]" : "[[:space:]]"
                case "S": out += "[^[:space:]]"
                case "w": out += inBrackets ? "[:alnum:]_" : "[[:alnum:]_]"
                case "W": out += "[^[:alnum:]_]"
                case "m": out += "\\<"
                case "M": out += "\\>"
                case "y": out += "\\b"
                case "Y": out += "\\B"
                case "n": out += "\n"
                case "t": out += "\t"
                case "r": out += "\r"
                case "1"..."9" where !inBrackets:
                    throw SQLError(.featureNotSupported, "back references in regular expressions are not supported")
                // Inside brackets POSIX has no escapes.
                default: out += inBrackets ? String(next) : "\\\(next)"
                }
            } else if inBrackets {
                if character == "]" { inBrackets = false }
                if character == "[", characters.first == ":" {
                    // A named class, with its own closing bracket.
                    out += "["
                    while let inner = characters.popFirst() {
                        out.append(inner)
                        if inner == "]" { break }
                    }
                    continue
                }
                out.append(character)
            } else if character == "[" {
                inBrackets = true
                out.append(character)
                if characters.first == "^" { out.append(characters.removeFirst()) }
                if characters.first == "]" { out.append(characters.removeFirst()) }
            } else if character == "(" {
                opened += 1
                out.append(character)
                if characters.first == "?" {
                    characters = characters.dropFirst()
                    guard characters.first == ":" else {
                        throw SQLError(.featureNotSupported, "look-around in regular expressions is not supported")
                    }
                    characters = characters.dropFirst()
                } else {
                    groups.append(opened)
                }
            } else if character == "?", let last = out.last, "*+?}".contains(last), !out.hasSuffix("\\\(last)") {
                throw SQLError(.featureNotSupported, "lazy quantifiers in regular expressions are not supported")
            } else {
                out.append(character)
            }
        }
        return (out, groups)
    }

    /// Never freed: the one locale of the process for text.
    private nonisolated(unsafe) static let locale: locale_t? = newlocale(LC_CTYPE_MASK, "C.UTF-8", nil)

    private static func inUTF8<R>(_ body: () -> R) -> R {
        guard let locale else { return body() }
        let previous = uselocale(locale)
        defer { uselocale(previous) }
        return body()
    }
}
