import MillIO
import MillState
import Synchronization

/// Reads the blocks of a table in order and verifies them, ahead of who applies them: on a thread of its own where there is much to
/// read, so that the disk and the checksums take no time from the table.
///
/// Blocks that lie together in a file are read at once, as a run.
final class BlockReader {
    /// Bytes that one run covers, unless a block is longer.
    private static let runBytesMax = 1 << 20
    /// Bytes between two blocks of a run that are read for nothing.
    private static let gapBytesMax = 32 << 10
    /// Runs that may be read ahead.
    private static let aheadMax = 4

    /// Blocks that lie together in a file.
    struct Run: Sendable {
        var places: ArraySlice<BlockPlace>

        var offset: Int { places.first?.offset ?? 0 }
        var byteCount: Int { (places.last?.end ?? 0) - offset }
        /// Of the blocks alone.
        var blockBytes: Int { places.reduce(0) { $0 + $1.bytes } }
    }

    private let runs: [Run]
    private let files: [UInt64: any File]

    private let aloneBytesMax: Int

    /// - Parameters:
    ///   - blocks: in the order in which they are to be applied.
    ///   - aloneBytesMax: fewer bytes are read by who applies them.
    init(_ blocks: [BlockPlace], _ files: [UInt64: any File], aloneBytesMax: Int = 4 << 20) {
        runs = Self.runs(of: blocks)
        self.files = files
        self.aloneBytesMax = aloneBytesMax
    }

    private static func runs(of blocks: [BlockPlace]) -> [Run] {
        var runs: [Run] = []
        var start = 0
        for index in blocks.indices {
            let isLast = index + 1 == blocks.count
            if !isLast {
                let (first, this, next) = (blocks[start], blocks[index], blocks[index + 1])
                if next.file == first.file, next.offset >= this.end, next.offset - this.end <= gapBytesMax,
                    next.end - first.offset <= runBytesMax
                {
                    continue
                }
            }
            runs.append(Run(places: blocks[start...index]))
            start = index + 1
        }
        return runs
    }

    /// Calls `body` with every run and its bytes, which begin with the first block.
    func forEachRun(_ body: (Run, UnsafeRawBufferPointer) throws(StateCorruption) -> Void) throws(StateCorruption) {
        // Without a thread it takes longer.
        guard runs.reduce(0, { $0 + $1.byteCount }) > aloneBytesMax, let ahead = try? ReadAhead(runs, files, slots: Self.aheadMax) else {
            var buffer: [UInt8] = []
            for run in runs {
                try Self.read(run, files, into: &buffer).get()
                try buffer.withRun(run, body)
            }
            return
        }
        defer { ahead.stop() }
        for (index, run) in runs.enumerated() {
            let buffer = try ahead.take(index)
            try buffer.withRun(run, body)
            ahead.giveBack(index, buffer)
        }
    }

    /// Reads a run and verifies its blocks.
    fileprivate static func read(_ run: Run, _ files: [UInt64: any File], into buffer: inout [UInt8]) -> Result<Void, StateCorruption> {
        guard let first = run.places.first else { return .success(()) }
        guard let file = files[first.file] else { return .failure(StateCorruption("page file \(first.file) is missing")) }
        if buffer.count < run.byteCount { buffer = [UInt8](repeating: 0, count: max(run.byteCount, 64 << 10)) }
        do throws(IOFailure) { _ = try file.read(at: run.offset, into: &buffer, count: run.byteCount) } catch {
            return .failure(StateCorruption("\(error)"))
        }
        let damaged = buffer.withUnsafeBytes { bytes in
            run.places.first { !BlockChecksums.isBodyWhole(UnsafeRawBufferPointer(rebasing: bytes[run.range(of: $0)])) }
        }
        guard let damaged else { return .success(()) }
        return .failure(StateCorruption("the block at \(damaged.offset) of page file \(damaged.file) has another checksum than it says"))
    }
}

extension BlockReader.Run {
    /// Where in the run's bytes a block of it lies.
    func range(of place: BlockPlace) -> Range<Int> { place.offset - offset..<place.end - offset }
}

extension [UInt8] {
    fileprivate func withRun(
        _ run: BlockReader.Run, _ body: (BlockReader.Run, UnsafeRawBufferPointer) throws(StateCorruption) -> Void
    ) throws(StateCorruption) {
        let result = withUnsafeBytes { bytes -> Result<Void, StateCorruption> in
            do throws(StateCorruption) {
                return .success(try body(run, UnsafeRawBufferPointer(rebasing: bytes[..<run.byteCount])))
            } catch { return .failure(error) }
        }
        try result.get()
    }
}

/// A thread that reads runs into a few buffers, each again once it was given back.
private final class ReadAhead: Sendable {
    private struct Slot {
        var buffer: [UInt8] = []
        var result = Result<Void, StateCorruption>.success(())
    }

    private struct State {
        var slots: [Slot]
        var isStopped = false
    }

    private let state: Mutex<State>
    private let free = Semaphore()
    private let filled = Semaphore()
    private let thread = Mutex<PinnedThread?>(nil)

    init(_ runs: [BlockReader.Run], _ files: [UInt64: any File], slots: Int) throws(ThreadFailure) {
        state = Mutex(State(slots: Array(repeating: Slot(), count: slots)))
        for _ in 0..<slots { free.signal() }
        let started = try PinnedThread(stackBytes: 1 << 20) { [self] in read(runs, files) }
        thread.withLock { $0 = started }
    }

    private func read(_ runs: [BlockReader.Run], _ files: [UInt64: any File]) {
        for (index, run) in runs.enumerated() {
            free.wait()
            var slot = Slot()
            let isStopped = state.withLock { state in
                swap(&slot, &state.slots[index % state.slots.count])
                return state.isStopped
            }
            if isStopped { return }
            slot.result = BlockReader.read(run, files, into: &slot.buffer)
            state.withLock { swap(&slot, &$0.slots[index % $0.slots.count]) }
            filled.signal()
        }
    }

    /// The bytes of the next run.
    func take(_ index: Int) throws(StateCorruption) -> [UInt8] {
        filled.wait()
        var slot = Slot()
        state.withLock { swap(&slot, &$0.slots[index % $0.slots.count]) }
        try slot.result.get()
        return slot.buffer
    }

    func giveBack(_ index: Int, _ buffer: [UInt8]) {
        state.withLock { $0.slots[index % $0.slots.count].buffer = buffer }
        free.signal()
    }

    /// Ends the thread.
    func stop() {
        state.withLock { $0.isStopped = true }
        free.signal()
        thread.withLock { $0.take() }?.join()
    }
}
