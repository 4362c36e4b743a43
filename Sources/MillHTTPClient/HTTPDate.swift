import MillColumnar

/// Times as protocols over HTTP write them, as microseconds since 1970-01-01T00:00:00Z.
package enum HTTPDate {
    private static let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]

    /// `Sun, 06 Nov 1994 08:49:37 GMT`, the one form that servers of today send; nil for anything else.
    package static func micros(_ text: some StringProtocol) -> Int64? {
        let parts = text.split(separator: " ")
        guard parts.count == 6, parts[5] == "GMT", let month = months.firstIndex(of: String(parts[2])) else { return nil }
        return micros(year: parts[3], month: month + 1, day: parts[1], time: parts[4])
    }

    /// `2013-05-24T00:00:00.000Z`, with or without a fraction; nil for anything else.
    package static func microsOfISO8601(_ text: some StringProtocol) -> Int64? {
        guard text.hasSuffix("Z"), let middle = text.firstIndex(of: "T") else { return nil }
        let date = text[..<middle].split(separator: "-", omittingEmptySubsequences: false)
        guard date.count == 3, let month = Int(date[1]) else { return nil }
        return micros(year: date[0], month: month, day: date[2], time: text[text.index(after: middle)...].dropLast())
    }

    private static func micros(year: some StringProtocol, month: Int, day: some StringProtocol, time: some StringProtocol) -> Int64? {
        let clock = time.split(separator: ":", omittingEmptySubsequences: false)
        guard clock.count == 3, let year = Int(year), (1600...9999).contains(year), (1...12).contains(month), let day = Int(day),
            (1...CivilDate.daysIn(month: month, of: year)).contains(day), let hour = Int(clock[0]), (0..<24).contains(hour),
            let minute = Int(clock[1]), (0..<60).contains(minute)
        else { return nil }
        let seconds = clock[2].split(separator: ".", maxSplits: 1)
        guard let second = seconds.first.flatMap({ Int($0) }), (0...60).contains(second) else { return nil }
        var fraction = 0
        if seconds.count == 2 {
            guard seconds[1].utf8.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
            fraction = Int((seconds[1] + "000000").prefix(6)) ?? 0
        }
        let days = CivilDate(year: year, month: month, day: day).days
        return (Int64(days) * 86_400 + Int64(hour * 3600 + minute * 60 + second)) * 1_000_000 + Int64(fraction)
    }
}
