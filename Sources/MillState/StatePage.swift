/// The unit of storage of a `StateTable`, and of copying while a reader holds a snapshot.
///
/// One worker writes a page; once a snapshot shares it, the writer copies it before its next change, so a reader on any
/// thread sees bytes that no longer change.
final class StatePage: @unchecked Sendable {
    /// Bytes of a page, unless one row is larger.
    static let bytes = 16 << 10

    let memory: UnsafeMutableRawPointer
    let byteCount: Int

    init(byteCount: Int) {
        self.byteCount = byteCount
        memory = .allocate(byteCount: byteCount, alignment: 64)
        memory.initializeMemory(as: UInt8.self, repeating: 0, count: byteCount)
    }

    init(copying other: StatePage) {
        byteCount = other.byteCount
        memory = .allocate(byteCount: byteCount, alignment: 64)
        memory.copyMemory(from: other.memory, byteCount: byteCount)
    }

    deinit { memory.deallocate() }
}
