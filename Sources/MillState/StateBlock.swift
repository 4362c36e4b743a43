/// One block of a checkpoint: a page of a table or some of its rows. Bytes as `docs/internals/state.md` gives them, little-endian.
package struct StateBlock {
    package enum Kind: UInt8, Sendable {
        /// All rows of a page.
        case page = 1
        /// Some rows of a page, by slot.
        case rows = 2
        /// A page of an ordered table.
        case orderedPage = 3
    }

    /// ```
    /// 0   u32  bytes of the whole block, a multiple of 8
    /// 4   u32  CRC32C of the body
    /// 8   u32  table
    /// 12  u32  page
    /// 16  u8   kind
    /// 17  u8   zero
    /// 18  u16  rows; 0 in an ordered page
    /// 20  u32  bytes of the heap part, not padded
    /// 24  u32  zero
    /// 28  u32  CRC32C of the header up to here
    /// ```
    package static let headerBytes = 32

    package let bytes: UnsafeRawBufferPointer

    /// - Parameter bytes: a whole block whose length and checksums have been verified.
    package init?(_ bytes: UnsafeRawBufferPointer) {
        guard bytes.count >= Self.headerBytes, Kind(rawValue: bytes[16]) != nil else { return nil }
        self.bytes = bytes
    }

    package var table: UInt32 { bytes.loadUnaligned(fromByteOffset: 8, as: UInt32.self) }
    package var page: UInt32 { bytes.loadUnaligned(fromByteOffset: 12, as: UInt32.self) }
    package var kind: Kind { Kind(rawValue: bytes[16]).unsafelyUnwrapped }
    package var rowCount: Int { Int(bytes.loadUnaligned(fromByteOffset: 18, as: UInt16.self)) }
    package var heapBytes: Int { Int(bytes.loadUnaligned(fromByteOffset: 20, as: UInt32.self)) }
    package var body: UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: bytes[Self.headerBytes...]) }

    /// The part for long strings and keys, at the end.
    func heap() throws(StateCorruption) -> UnsafeRawBufferPointer {
        let padded = (heapBytes + 7) & ~7
        guard padded <= body.count else { throw StateCorruption("a block's heap part is longer than the block") }
        return UnsafeRawBufferPointer(rebasing: body[(body.count - padded)..<(body.count - padded + heapBytes)])
    }

    // MARK: Writing

    /// Appends a header; `finish` completes it.
    /// - Returns: where the block begins.
    static func begin(_ kind: Kind, table: UInt32, page: UInt32, rows: Int, in bytes: inout [UInt8]) -> Int {
        let start = bytes.count
        bytes.append(contentsOf: repeatElement(0, count: headerBytes))
        bytes.withUnsafeMutableBytes { all in
            all.storeBytes(of: table, toByteOffset: start + 8, as: UInt32.self)
            all.storeBytes(of: page, toByteOffset: start + 12, as: UInt32.self)
            all.storeBytes(of: kind.rawValue, toByteOffset: start + 16, as: UInt8.self)
            all.storeBytes(of: UInt16(truncatingIfNeeded: rows), toByteOffset: start + 18, as: UInt16.self)
        }
        return start
    }

    /// Appends the heap part and notes the lengths. The checksums are left to who writes the block to a file.
    static func finish(_ start: Int, heap: [UInt8], in bytes: inout [UInt8]) {
        pad(&bytes, from: start)
        bytes += heap
        pad(&bytes, from: start)
        let count = bytes.count - start
        bytes.withUnsafeMutableBytes { all in
            all.storeBytes(of: UInt32(truncatingIfNeeded: count), toByteOffset: start, as: UInt32.self)
            all.storeBytes(of: UInt32(truncatingIfNeeded: heap.count), toByteOffset: start + 20, as: UInt32.self)
        }
    }

    private static func pad(_ bytes: inout [UInt8], from start: Int) {
        while (bytes.count - start) & 7 != 0 { bytes.append(0) }
    }
}
