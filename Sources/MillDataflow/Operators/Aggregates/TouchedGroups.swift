import MillBase
import MillState

/// The groups that rows of an epoch belong to, with their payloads as they were before it, and how far their output is given.
///
/// At a group's first touch in an epoch its payload is saved here, and the payload's first 4 bytes are set to a mark other than 0; from
/// the saved copy its old output row is taken back at the end. Used by operators that keep one state for a group of rows.
struct TouchedGroups: ~Copyable {
    private(set) var count = 0
    private let payloadBytes: Int
    private var numbers: UnsafeMutablePointer<RowNumber>
    private var saved: UnsafeMutableRawPointer
    private var capacity = 1024
    /// Where output goes on; nil between epochs.
    private var position: Int?

    init(payloadBytes: Int) {
        self.payloadBytes = payloadBytes
        numbers = .allocate(capacity: capacity)
        saved = .allocate(byteCount: capacity * payloadBytes, alignment: 8)
    }

    deinit {
        numbers.deallocate()
        saved.deallocate()
    }

    var byteCount: Int { capacity * (payloadBytes + MemoryLayout<RowNumber>.stride) }

    @inline(__always) func number(_ place: Int) -> RowNumber { numbers[place] }
    @inline(__always) func saved(_ place: Int) -> UnsafeMutableRawPointer { saved + place &* payloadBytes }

    // MARK: Input

    /// Makes room for so many more groups.
    mutating func reserve(_ more: Int) {
        guard count + more > capacity else { return }
        capacity = max(count + more, 2 * capacity)
        let moreNumbers = UnsafeMutablePointer<RowNumber>.allocate(capacity: capacity)
        moreNumbers.update(from: numbers, count: count)
        numbers.deallocate()
        numbers = moreNumbers
        let moreSaved = UnsafeMutableRawPointer.allocate(byteCount: capacity * payloadBytes, alignment: 8)
        moreSaved.copyMemory(from: saved, byteCount: count * payloadBytes)
        saved.deallocate()
        saved = moreSaved
    }

    /// Saves a group if it is touched for the first time in this epoch; there is room for it.
    @inline(__always) mutating func touch(_ number: RowNumber, _ payload: UnsafeMutableRawPointer, of table: StateTable) {
        guard payload.load(as: UInt32.self) == 0 else { return }
        table.prepareToWrite(number)
        saved(count).copyMemory(from: payload, byteCount: payloadBytes)
        numbers[count] = number
        count &+= 1
        payload.storeBytes(of: 1, as: UInt32.self)
    }

    // MARK: Output

    /// No more rows come in this epoch: brings the calls' states up to date and begins the output.
    mutating func close(_ calls: RunningCalls, of table: StateTable) {
        withUnsafeTemporaryAllocation(of: UnsafeMutableRawPointer.self, capacity: Limits.batchRowsMax) { payloads in
            for start in stride(from: 0, to: count, by: Limits.batchRowsMax) {
                let part = min(count - start, Limits.batchRowsMax)
                for index in 0..<part { payloads.initializeElement(at: index, to: table.preparedPayload(numbers[start + index])) }
                calls.refresh(GroupRows(payloads: payloads.baseAddress.unsafelyUnwrapped, numbers: numbers + start, count: part, offset: 0))
            }
        }
        position = 0
    }

    var isGivingOut: Bool { position != nil }

    /// The next groups to give out, so many that an old and a new row of each are a batch; nil after the last ones.
    mutating func nextPart() -> Range<Int>? {
        guard let start = position, start < count else { return nil }
        let end = min(count, start + Limits.batchRowsMax / 2)
        position = end
        return start..<end
    }

    /// All is given out; the owner has cleared the marks. Or all that was touched is replaced by what a checkpoint holds.
    mutating func clear() {
        count = 0
        position = nil
    }
}
