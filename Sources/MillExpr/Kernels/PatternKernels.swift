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
        case "matches", "regexp_like": return regex(name)
        case "imatches": return regex(name, ignoringCase: true)
        case "not_matches": return regex(name, negated: true)
        case "not_imatches": return regex(name, negated: true, ignoringCase: true)
        case "regexp_replace": return replace()
        case "regexp_count": return count()
        case "regexp_substr", "regexp_match_group": return extract(name, types.count)
        case "substring" where types[1] == .varchar: return extract(name, types.count)
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

    /// The last pattern's compiled form, or why there is none: the next row nearly always has the same. Owned by one kernel, and so one
    /// thread.
    private final class RegexCache {
        private var pattern: [UInt8] = []
        private var flags: [UInt8] = []
        private var outcome: Result<RegularExpression, SQLError>?
        private let options: RegexOptions
        /// The function's name if it does not take the option of all matches.
        private let function: String?

        init(_ options: RegexOptions = RegexOptions(), function: String? = nil) {
            self.options = options
            self.function = function
        }

        /// The expression of a pattern, with further options by their letters.
        func regex(_ pattern: StringView, flags: StringView = .empty) throws(SQLError) -> RegularExpression {
            if let outcome, isSame(pattern, self.pattern), isSame(flags, self.flags) { return try outcome.get() }
            self.pattern = pattern.withBytes { Array($0) }
            self.flags = flags.withBytes { Array($0) }
            let compiled = Result { () throws(SQLError) in
                var options = options
                try flags.withBytes { (letters) throws(SQLError) in try options.take(letters, global: function) }
                return try pattern.withBytes { (bytes) throws(SQLError) in try RegularExpression(bytes, options) }
            }
            outcome = compiled
            return try compiled.get()
        }

        private func isSame(_ view: StringView, _ bytes: [UInt8]) -> Bool { view.withBytes { $0.count == bytes.count && $0.elementsEqual(bytes) } }
    }

    private static func regex(_ name: String, negated: Bool = false, ignoringCase: Bool = false) -> Kernel {
        let cache = RegexCache(RegexOptions(ignoresCase: ignoringCase), function: name)
        let hit: UInt8 = negated ? 0 : 1
        return { columns, count, frame in
            Loops.rows(columns, count, .boolean, frame) { row throws(SQLError) -> UInt8? in
                let flags = columns.count > 2 ? StringKernels.view(columns, 2, row) : .empty
                let regex = try cache.regex(StringKernels.view(columns, 1, row), flags: flags)
                return StringKernels.view(columns, 0, row).withBytes { regex.matches($0) } ? hit : hit ^ 1
            }
        }
    }

    private static func replace() -> Kernel {
        let cache = RegexCache()
        return { columns, count, frame in
            Loops.text(columns, count, .varchar, frame) { row, out throws(SQLError) in
                let flags = columns.count > 3 ? StringKernels.view(columns, 3, row) : .empty
                let regex = try cache.regex(StringKernels.view(columns, 1, row), flags: flags)
                let isGlobal = flags.withBytes { $0.contains(UInt8(ascii: "g")) }
                StringKernels.view(columns, 0, row).withBytes { text in
                    StringKernels.view(columns, 2, row).withBytes { regex.appendReplacing(text, with: $0, all: isGlobal, to: &out) }
                }
                try StringKernels.checkLength(out.count)
                return true
            }
        }
    }

    private static func count() -> Kernel {
        let cache = RegexCache()
        return { columns, count, frame in
            Loops.rows(columns, count, .int32, frame) { row throws(SQLError) -> Int32? in
                let regex = try cache.regex(StringKernels.view(columns, 1, row))
                var found: Int32 = 0
                StringKernels.view(columns, 0, row).withBytes { text in
                    regex.forEachMatch(text, groups: 0) { _ in
                        found += 1
                        return true
                    }
                }
                return found
            }
        }
    }

    /// The text of a match, of its first group or of the group that a further argument names; NULL where there is none. Results point
    /// into the text's heap.
    private static func extract(_ name: String, _ arity: Int) -> Kernel {
        let cache = RegexCache(function: name == "regexp_match_group" ? "regexp_match" : nil)
        return { columns, count, frame in
            let result = Loops.rows(columns, count, .varchar, frame) { row throws(SQLError) -> StringView? in
                let flags = name == "regexp_match_group" && arity == 4 ? StringKernels.view(columns, 2, row) : .empty
                let regex = try cache.regex(StringKernels.view(columns, 1, row), flags: flags)
                var group = 0
                switch name {
                case "substring": group = min(regex.groupCount, 1)
                // An array of the groups, or of the whole match where there are none.
                case "regexp_match_group":
                    group = StringKernels.int(columns, arity - 1, row)
                    guard group >= 1, group <= max(regex.groupCount, 1) else { return nil }
                    if regex.groupCount == 0 { group = 0 }
                default: break
                }
                return StringKernels.view(columns, 0, row).withBytes { text -> StringView? in
                    guard regex.match(text, groups: group), let range = regex.range(group) else { return nil }
                    guard let base = text.baseAddress, !range.isEmpty else { return .empty }
                    return StringView(base + range.lowerBound, count: range.count)
                }
            }
            result.keep(columns[0].heaps)
            return result
        }
    }
}
