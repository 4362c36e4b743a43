import CChecksum

/// CRC-32C, the checksum of record batches and of our own files; uses the processor's instruction where there is one.
package enum CRC32C {
    package static func checksum(_ bytes: UnsafeRawBufferPointer, continuing crc: UInt32 = 0) -> UInt32 {
        guard let base = bytes.baseAddress else { return crc }
        return mill_crc32c(crc, base, bytes.count)
    }

    /// The same without the instruction, for the test that compares them.
    static func portableChecksum(_ bytes: UnsafeRawBufferPointer) -> UInt32 {
        guard let base = bytes.baseAddress else { return 0 }
        return mill_crc32c_portable(0, base, bytes.count)
    }
}
