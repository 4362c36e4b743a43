/// Pops of a balloon game: who popped which colour for how many points, and whether it was the player's favourite.
///
/// Each player has a favourite colour and pops it more often than others; a colour has its own points, doubled for the favourite.
/// Records are JSON objects with `player`, `balloon_color`, `score`, `favorite_color_bonus` and `event_ts` (ISO 8601, microseconds,
/// Z). The clock is virtual: it starts at a given instant and advances by the rate with some jitter, so that the same seed gives the
/// same bytes; times never go back.
package final class BalloonGenerator {
    /// A record's time, microseconds since 1970, and what it says.
    package struct Pop: Sendable, Hashable {
        package var micros: Int64
        package var player: String
        package var color: String
        package var score: Int
        package var isFavorite: Bool
    }

    private struct Color {
        var name: String
        var points: Int
        /// How often it comes up, relative to the others.
        var weight: Int
    }

    private static let colors = [
        Color(name: "red", points: 50, weight: 3), Color(name: "blue", points: 60, weight: 3), Color(name: "green", points: 75, weight: 3),
        Color(name: "yellow", points: 80, weight: 2), Color(name: "purple", points: 100, weight: 2), Color(name: "orange", points: 120, weight: 2),
        Color(name: "pink", points: 150, weight: 1), Color(name: "gold", points: 250, weight: 1),
    ]

    private static let names = [
        "Jumping Kangaroo", "Sleepy Panda", "Clever Fox", "Dancing Otter", "Brave Badger", "Gentle Giraffe", "Happy Heron", "Jolly Jackal",
        "Keen Kestrel", "Lucky Lemur", "Merry Mole", "Noble Newt", "Proud Puffin", "Quick Quokka", "Rapid Raccoon", "Silent Seal",
    ]

    private var random: SeededRandom
    private let players: [(name: String, favorite: Int)]
    private let spacingMicros: Int64
    private var nextMicros: Int64
    private let totalWeight: Int
    private let writer = RecordWriter(capacity: 1024)

    /// - Parameters:
    ///   - rate: pops a second.
    ///   - startMicros: the virtual clock's start; 2026-01-01 unless told otherwise.
    package init(seed: UInt64 = 42, players: Int = 8, rate: Double = 100, startMicros: Int64 = 1_767_225_600_000_000) {
        var random = SeededRandom(seed: SeededRandom.mix(seed ^ 0x6261_6C6C_6F6F_6E))
        self.players = (0..<max(players, 1)).map { index in
            let name = Self.names[index % Self.names.count]
            return (index < Self.names.count ? name : "\(name) \(index / Self.names.count + 1)", random.below(Self.colors.count))
        }
        self.random = random
        spacingMicros = Int64(max(1_000_000 / max(rate, 0.001), 1).rounded())
        nextMicros = startMicros
        totalWeight = Self.colors.reduce(0) { $0 + $1.weight }
    }

    /// The next pop.
    package func next() -> Pop {
        let player = players[random.below(players.count)]
        let color = random.chance(1, in: 4) ? player.favorite : someColor()
        let isFavorite = color == player.favorite
        let micros = nextMicros + Int64(random.below(Int(clamping: min(spacingMicros, 1 << 31))))
        nextMicros += spacingMicros
        let points = Self.colors[color].points
        return Pop(micros: micros, player: player.name, color: Self.colors[color].name, score: isFavorite ? points * 2 : points, isFavorite: isFavorite)
    }

    private func someColor() -> Int {
        var left = random.below(totalWeight)
        for (index, color) in Self.colors.enumerated() {
            if left < color.weight { return index }
            left -= color.weight
        }
        return Self.colors.count - 1
    }

    /// The next pop's record, without a newline; the bytes are valid until the next call. Also gives its time, so that a sender can
    /// wait for it.
    package func nextRecord() -> (micros: Int64, record: UnsafeRawBufferPointer) {
        let pop = next()
        writer.removeAll()
        writer.put("{\"player\":\"")
        writer.put(Array(pop.player.utf8))
        writer.put("\",\"balloon_color\":\"")
        writer.put(Array(pop.color.utf8))
        writer.put("\",\"score\":")
        writer.put(pop.score)
        if pop.isFavorite { writer.put(",\"favorite_color_bonus\":true") } else { writer.put(",\"favorite_color_bonus\":false") }
        writer.put(",\"event_ts\":\"")
        writer.putTime(pop.micros, fractionDigits: 6)
        writer.put("Z\"}")
        return (pop.micros, writer.bytes)
    }
}
