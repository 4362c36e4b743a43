import MillBase

/// Goes through the records of one segment in order.
///
/// What does not fit is one of two things. Every flush begins with a mark that says what was durable before it. If none after the damage says
/// so of the transaction that is missing, its flush never came to its end: a torn tail, which nobody was told of. Else it was acknowledged:
/// the damage is passed over, to the next record that is whole, and said so.
struct DMLSegmentReader {
    enum Step: Equatable {
        case transaction(DMLRecord.Header, payload: ArraySlice<UInt8>)
        /// Acknowledged transactions that cannot be read: from this one on, up to `expected`.
        case damage(from: DMLPosition, offset: Int)
        /// Nothing whole follows.
        case end
    }

    private let bytes: [UInt8]
    /// Bytes that have been read.
    private(set) var offset: Int
    /// The number of the next transaction.
    private(set) var expected: DMLPosition
    /// The first row number that has not been given out.
    private(set) var nextRowID: Int64

    /// - Parameter bytes: of the whole segment, whose header is `header`.
    init(_ bytes: [UInt8], _ header: DMLRecord.Header) {
        self.bytes = bytes
        offset = DMLRecord.headerBytes
        expected = header.first
        nextRowID = header.nextRowID
    }

    var isAtEnd: Bool { offset == bytes.count }

    mutating func next() -> Step {
        while let frame = DMLRecord.frame(bytes[offset...]) {
            guard let payload = take(frame) else { break }
            if !payload.isEmpty { return .transaction(DMLRecord.Header(first: expected.previous, nextRowID: nextRowID), payload: payload) }
        }
        let (lost, start) = (expected, offset)
        guard !isAtEnd, let after = nextWhole(), isVouchedFor(lost, from: after) else { return .end }
        offset = after
        if case .transaction(let header, _)? = DMLRecord.frame(bytes[after...]) {
            expected = header.first
        } else if case .mark(let header)? = DMLRecord.frame(bytes[after...]) {
            expected = max(expected, header.first.next)
        }
        return .damage(from: lost, offset: start)
    }

    /// Goes behind a frame: its payload, empty for a mark; nil when it is not the next one.
    private mutating func take(_ frame: DMLRecord.Frame) -> ArraySlice<UInt8>? {
        switch frame {
        case .mark(let header):
            guard header.first < expected else { return nil }
            offset += DMLRecord.markBytes
            nextRowID = max(nextRowID, header.nextRowID)
            return []
        case .transaction(let header, let payload):
            guard header.first == expected else { return nil }
            offset += DMLRecord.frameBytes + payload.count
            expected = expected.next
            nextRowID = max(nextRowID, header.nextRowID)
            return payload
        }
    }

    // MARK: Behind damage

    /// Where the next frame begins that is whole and may follow; nil when there is none.
    private func nextWhole() -> Int? {
        var place = offset + 1
        while bytes.count - place >= DMLRecord.markBytes {
            if DMLRecord.mayBegin(bytes[place...], from: expected) {
                switch DMLRecord.frame(bytes[place...]) {
                case .transaction(let header, _)? where header.first >= expected: return place
                case .mark(let header)? where header.first.next >= expected: return place
                default: break
                }
            }
            place += 1
        }
        return nil
    }

    /// Whether a mark from a place on says that a transaction was durable.
    private func isVouchedFor(_ lost: DMLPosition, from place: Int) -> Bool {
        for place in place...max(bytes.count - DMLRecord.markBytes, place) where DMLRecord.mayBegin(bytes[place...], from: lost) {
            if case .mark(let header)? = DMLRecord.frame(bytes[place...]), header.first >= lost { return true }
        }
        return false
    }
}
