extension StateTable {
    /// Verifies the invariants of the type's documentation; returns what is broken. For tests and simulation.
    package func checkInvariants() -> [String] {
        var broken: [String] = []
        var indexed = 0
        let slots = directory.slots
        for slot in 0..<directory.count where slots[slot] != 0 {
            indexed += 1
            let number = Directory.row(slots[slot])
            let hash = storedHash(number)
            if hash == 0 { broken.append("slot \(slot) points at the free row \(number)") }
            if Directory.tag(hash) != Directory.tag(slots[slot]) { broken.append("slot \(slot) has another hash than row \(number)") }
            var probe = directory.home(hash)
            while probe != slot {
                if slots[probe] == 0 {
                    broken.append("an empty slot between slot \(slot) and its home")
                    break
                }
                probe = (probe + 1) % directory.count
            }
        }
        var live = 0
        forEachRow { _ in live += 1 }
        if live != count { broken.append("\(live) live rows, but a count of \(count)") }
        if indexed != 0, indexed != count { broken.append("\(indexed) directory slots for \(count) rows") }
        return broken
    }
}
