import CChecksum
import MillState

/// The two checksums of a block: of its header, which says whose it is, and of the rest.
enum BlockChecksums {
    private static let bodyOffset = 4
    private static let headerOffset = 28

    /// Completes the block that begins at `start` and ends with the bytes.
    static func write(_ bytes: inout [UInt8], from start: Int) {
        bytes.withUnsafeMutableBytes { all in
            let block = all.baseAddress.unsafelyUnwrapped + start
            let body = mill_crc32c(0, block + StateBlock.headerBytes, all.count - start - StateBlock.headerBytes)
            block.storeBytes(of: body, toByteOffset: bodyOffset, as: UInt32.self)
            block.storeBytes(of: mill_crc32c(0, block, headerOffset), toByteOffset: headerOffset, as: UInt32.self)
        }
    }

    static func isHeaderWhole(_ bytes: UnsafeRawBufferPointer) -> Bool {
        guard let base = bytes.baseAddress, bytes.count >= StateBlock.headerBytes else { return false }
        return mill_crc32c(0, base, headerOffset) == base.loadUnaligned(fromByteOffset: headerOffset, as: UInt32.self)
    }

    static func isBodyWhole(_ bytes: UnsafeRawBufferPointer) -> Bool {
        guard isHeaderWhole(bytes), let base = bytes.baseAddress else { return false }
        return mill_crc32c(0, base + StateBlock.headerBytes, bytes.count - StateBlock.headerBytes)
            == base.loadUnaligned(fromByteOffset: bodyOffset, as: UInt32.self)
    }
}
