import Synchronization

/// Bytes that lie side by side in memory.
package protocol ByteRun {
    var count: Int { get }
    func withUnsafeBytes<R>(_ body: (UnsafeRawBufferPointer) throws -> R) rethrows -> R
}

extension [UInt8]: ByteRun {}

/// Writes at the ends of files: much at once in whole blocks past the page cache, little through it.
///
/// A log or a checkpoint that grows by hundreds of megabytes a second would otherwise need as many new pages, and its fsync would wait
/// until the system has written them; past the cache the data is with the disk when the write returns, and fsync is left with what describes the file. The block
/// that a write ends in goes through the cache, so that a file is as long as what is in it. The next write begins with that block,
/// all of it, and the bytes that are there already are the same: whatever a power cut leaves of it, they stay.
///
/// Threading: any thread; each write has a piece of memory of its own, and a few are kept.
package final class BlockWriter: Sendable {
    private struct Piece: @unchecked Sendable {
        // Belongs to one write, or to the list.
        let memory: UnsafeMutableRawBufferPointer
    }

    private let free = Mutex<[Piece]>([])

    private static let pieceBytes = 1 << 20
    /// Less than that costs more past the cache than through it.
    static let blocksBytesMin = 64 << 10

    package init() {}

    deinit {
        for piece in free.withLock({ $0 }) { piece.memory.deallocate() }
    }

    /// Writes `parts` one after the other from `offset` on, which is the end of the file.
    /// - Parameter usesBlocks: false: through the page cache whatever it is.
    package func write(_ parts: [some ByteRun], to file: any File, at offset: Int, usesBlocks: Bool = true) throws(IOFailure) {
        let byteCount = parts.reduce(0) { $0 + $1.count }
        if parts.count == 1, !usesBlocks || byteCount < Self.blocksBytesMin { return try Self.write(parts[0], to: file, at: offset) }
        let piece = free.withLock { $0.popLast() } ?? Piece(memory: .allocate(byteCount: Self.pieceBytes, alignment: fileBlockBytes))
        defer { free.withLock { $0.append(piece) } }
        guard usesBlocks, byteCount >= Self.blocksBytesMin else {
            return try write(parts, to: file, from: offset, filled: 0, piece.memory, inBlocks: false)
        }
        let filled = offset % fileBlockBytes
        let begun = UnsafeMutableRawBufferPointer(rebasing: piece.memory[..<filled])
        guard try file.read(at: offset - filled, into: begun) == filled else { throw IOFailure("read", path: file.path, errorNumber: 5) }
        try write(parts, to: file, from: offset - filled, filled: filled, piece.memory, inBlocks: true)
    }

    /// - Parameters:
    ///   - offset: where the first byte of `memory` goes.
    ///   - filled: bytes that are in `memory` already.
    private func write(
        _ parts: [some ByteRun], to file: any File, from offset: Int, filled: Int, _ memory: UnsafeMutableRawBufferPointer, inBlocks: Bool
    ) throws(IOFailure) {
        var (offset, filled) = (offset, filled)
        for part in parts {
            var taken = 0
            while taken < part.count {
                let count = min(part.count - taken, memory.count - filled)
                let room = UnsafeMutableRawBufferPointer(rebasing: memory[filled...])
                part.withUnsafeBytes { room.copyMemory(from: UnsafeRawBufferPointer(rebasing: $0[taken..<taken + count])) }
                taken += count
                filled += count
                guard filled == memory.count else { continue }
                let full = UnsafeRawBufferPointer(memory)
                if inBlocks { try file.writeBlocks(full, at: offset) } else { try file.write(full, at: offset) }
                offset += filled
                filled = 0
            }
        }
        let whole = inBlocks ? filled / fileBlockBytes * fileBlockBytes : 0
        if whole > 0 { try file.writeBlocks(UnsafeRawBufferPointer(rebasing: memory[..<whole]), at: offset) }
        if filled > whole { try file.write(UnsafeRawBufferPointer(rebasing: memory[whole..<filled]), at: offset + whole) }
    }

    private static func write(_ part: some ByteRun, to file: any File, at offset: Int) throws(IOFailure) {
        let result: Result<Void, IOFailure> = part.withUnsafeBytes { memory in
            do throws(IOFailure) { return .success(try file.write(memory, at: offset)) } catch { return .failure(error) }
        }
        try result.get()
    }
}
