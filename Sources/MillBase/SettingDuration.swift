/// A time as PostgreSQL's settings take it: milliseconds, or a number with a unit.
package struct SettingDuration: Hashable, Sendable, CustomStringConvertible {
    package let milliseconds: Int

    private static let units: [(name: String, milliseconds: Double)] = [
        ("d", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("s", 1000), ("ms", 1), ("us", 0.001),
    ]
    package static let unitsHint = "Valid units are \"us\", \"ms\", \"s\", \"min\", \"h\", and \"d\"; 0 is no limit."

    /// Nil for what is no time, a negative one, or one over 2^31 - 1 milliseconds.
    package init?(_ text: String) {
        if let milliseconds = Self.wholeMilliseconds(text.utf8) {
            self.milliseconds = milliseconds
            return
        }
        let text = text.filter { $0 != " " }
        let number = text.prefix { $0.isNumber || ".+-".contains($0) }
        let unit = text.dropFirst(number.count)
        guard let value = Double(number), let scale = unit.isEmpty ? 1 : Self.units.first(where: { $0.name == unit })?.milliseconds else {
            return nil
        }
        let total = (value * scale).rounded()
        guard total >= 0, total <= Double(Int32.max) else { return nil }
        milliseconds = Int(total)
    }

    /// Of at most nine digits and a unit or none, as settings are kept and read for every statement; nil for any other text, which may be a time all the same.
    private static func wholeMilliseconds(_ text: String.UTF8View) -> Int? {
        let digits = text.prefix { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
        guard !digits.isEmpty, digits.count <= 9 else { return nil }
        let value = digits.reduce(0) { $0 * 10 + Int($1 - UInt8(ascii: "0")) }
        let unit = text[digits.endIndex...]
        let scale = unit.isEmpty ? 1 : units.first { $0.milliseconds >= 1 && $0.name.utf8.elementsEqual(unit) }.map { Int($0.milliseconds) }
        guard let scale, value * scale <= Int(Int32.max) else { return nil }
        return value * scale
    }

    /// In the largest unit that leaves a whole number.
    package var description: String {
        guard milliseconds > 0 else { return "0" }
        for (name, size) in Self.units where size >= 1 && milliseconds % Int(size) == 0 { return "\(milliseconds / Int(size))\(name)" }
        return "\(milliseconds)ms"
    }
}
