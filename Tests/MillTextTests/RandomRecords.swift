/// Records of JSON as hostile producers write them: any value under any key, odd spacing, escapes, repeated keys, and damage.
struct RandomRecords {
    var random: TestRandom
    var keys: [String]

    mutating func record() -> [UInt8] {
        var bytes = Array(object(depth: 0).utf8)
        if random.chance(10) { bytes = Array(random.pick([" ", "\t", "\r"]).utf8) + bytes + Array(random.pick([" ", "\n\n", "\t"]).utf8) }
        if random.chance(40) { damage(&bytes) }
        return bytes
    }

    private mutating func damage(_ bytes: inout [UInt8]) {
        for _ in 0...random.below(2) where !bytes.isEmpty {
            let at = random.below(bytes.count)
            switch random.below(5) {
            case 0: bytes.remove(at: at)
            case 1: bytes[at] = UInt8(random.below(256))
            case 2: bytes.insert(random.pick(Array("{}[]:,\"\\ \n\r0-tfn\u{1}".utf8)), at: at)
            case 3: bytes.removeSubrange(at...)
            default: bytes.insert(contentsOf: bytes[at...].prefix(random.below(8)), at: at)
            }
        }
    }

    private mutating func space() -> String { random.chance(15) ? random.pick([" ", "  ", "\t", "\r", "\n", " \n "]) : "" }

    private mutating func object(depth: Int) -> String {
        var members: [String] = []
        // Mostly in the declared order, as real records come.
        var names = depth == 0 ? keys : ["x", "y"]
        if random.chance(20) { names.shuffle(using: &random) }
        for name in names where random.chance(85) {
            if random.chance(8) { members.append(member("unknown\(random.below(3))", depth)) }
            if random.chance(4) { members.append(member(name, depth)) }
            let cased = random.chance(5) ? name.uppercased() : name
            members.append(member(cased, depth))
        }
        return "{" + space() + members.joined(separator: space() + "," + space()) + space() + "}"
    }

    private mutating func member(_ name: String, _ depth: Int) -> String {
        var key = name
        if random.chance(3), let first = name.utf8.first { key = "\\u00" + String(first, radix: 16) + name.dropFirst() }
        return "\"" + key + "\"" + space() + ":" + space() + value(depth)
    }

    private mutating func value(_ depth: Int) -> String {
        switch random.below(depth > 3 ? 10 : 13) {
        case 0: return random.pick(["true", "false", "null"])
        case 1, 2: return String(Int64(bitPattern: random.next()) >> Int64(random.below(63)))
        case 3:
            return random.pick([
                "0", "-0", "1.0", "1.5e3", "12e-1", "1E400", "-1e-400", "9223372036854775807", "9223372036854775808", "-9223372036854775808", "1e19",
                "123456789012345678901234567890", "0.1", "1000000000000000000000e-3", "01", "1.", "+1", ".5", "1e", "- 1", "0x1",
            ])
        case 4:
            return random.pick([
                "\"2026-01-02T03:04:05.678\"", "\"2026-02-30\"", "\"12\"", "\"-7.0\"", "\"NaN\"", "\"true\"", "\"\"", "\"1767323045678\"", "1767323045678", "1767323045",
            ])
        case 5...9: return string()
        case 10: return object(depth: depth + 1)
        default:
            let items = (0..<random.below(4)).map { _ in value(depth + 1) }
            return "[" + space() + items.joined(separator: space() + "," + space()) + "]"
        }
    }

    private mutating func string() -> String {
        let pieces = ["a", "bc", "é", "日本", "😀", "\\n", "\\\"", "\\\\", "\\/", "\\u00e9", "\\ud83d\\ude00", "{", "}", ":", ",", "long text ", "\u{7f}"]
        let odd = ["\\ud83d", "\\ude00", "\\u0000", "\\x", "\\u12", "\\u12g4"]
        return "\"" + (0..<random.below(12)).map { _ in random.pick(random.chance(3) ? odd : pieces) }.joined() + "\""
    }
}
