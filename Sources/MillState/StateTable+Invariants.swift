extension StateTable {
    /// Verifies the invariants of the type's documentation; returns what is broken. For tests and simulation.
    package func checkInvariants() -> [String] {
        var broken: [String] = []
        var indexed = 0
        let slots = 1 << directoryBits
        for slot in 0..<slots where directory[slot] != 0 {
            indexed += 1
            let number = UInt32(truncatingIfNeeded: directory[slot]) - 1
            let hash = storedHash(number)
            if hash == 0 { broken.append("slot \(slot) points at the free row \(number)") }
            if hash >> 32 != directory[slot] >> 32 { broken.append("slot \(slot) has another hash than row \(number)") }
            var probe = home(hash)
            while probe != slot {
                if directory[probe] == 0 {
                    broken.append("an empty slot between slot \(slot) and its home")
                    break
                }
                probe = (probe + 1) % slots
            }
        }
        var live = 0
        forEachRow { _ in live += 1 }
        if live != count { broken.append("\(live) live rows, but a count of \(count)") }
        if indexed != 0, indexed != count { broken.append("\(indexed) directory slots for \(count) rows") }
        return broken
    }
}
