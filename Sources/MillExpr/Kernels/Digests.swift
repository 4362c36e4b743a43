import MillBase
import MillColumnar

/// RFC 1321: for `md5(text)`, which dashboards and keys rely on; not for security.
enum MD5 {
    private static let shifts: [UInt32] = [7, 12, 17, 22, 5, 9, 14, 20, 4, 11, 16, 23, 6, 10, 15, 21]
    private static let table: [UInt32] = [
        0xd76a_a478, 0xe8c7_b756, 0x2420_70db, 0xc1bd_ceee, 0xf57c_0faf, 0x4787_c62a, 0xa830_4613, 0xfd46_9501, 0x6980_98d8, 0x8b44_f7af, 0xffff_5bb1,
        0x895c_d7be, 0x6b90_1122, 0xfd98_7193, 0xa679_438e, 0x49b4_0821, 0xf61e_2562, 0xc040_b340, 0x265e_5a51, 0xe9b6_c7aa, 0xd62f_105d, 0x0244_1453,
        0xd8a1_e681, 0xe7d3_fbc8, 0x21e1_cde6, 0xc337_07d6, 0xf4d5_0d87, 0x455a_14ed, 0xa9e3_e905, 0xfcef_a3f8, 0x676f_02d9, 0x8d2a_4c8a, 0xfffa_3942,
        0x8771_f681, 0x6d9d_6122, 0xfde5_380c, 0xa4be_ea44, 0x4bde_cfa9, 0xf6bb_4b60, 0xbebf_bc70, 0x289b_7ec6, 0xeaa1_27fa, 0xd4ef_3085, 0x0488_1d05,
        0xd9d4_d039, 0xe6db_99e5, 0x1fa2_7cf8, 0xc4ac_5665, 0xf429_2244, 0x432a_ff97, 0xab94_23a7, 0xfc93_a039, 0x655b_59c3, 0x8f0c_cc92, 0xffef_f47d,
        0x8584_5dd1, 0x6fa8_7e4f, 0xfe2c_e6e0, 0xa301_4314, 0x4e08_11a1, 0xf753_7e82, 0xbd3a_f235, 0x2ad7_d2bb, 0xeb86_d391,
    ]

    static func digest(_ text: UnsafeBufferPointer<UInt8>) -> [UInt8] {
        var message = Array(text)
        message.append(0x80)
        message.append(contentsOf: repeatElement(0, count: (120 - message.count % 64) % 64))
        withUnsafeBytes(of: (UInt64(text.count) &* 8).littleEndian) { message.append(contentsOf: $0) }
        var state: (UInt32, UInt32, UInt32, UInt32) = (0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476)
        message.withUnsafeBytes { bytes in
            for start in stride(from: 0, to: bytes.count, by: 64) { mix(&state, bytes, start) }
        }
        return [state.0, state.1, state.2, state.3].flatMap { word in withUnsafeBytes(of: word.littleEndian) { Array($0) } }
    }

    private static func mix(_ state: inout (UInt32, UInt32, UInt32, UInt32), _ bytes: UnsafeRawBufferPointer, _ start: Int) {
        var (a, b, c, d) = state
        for step in 0..<64 {
            let f: UInt32
            let word: Int
            switch step / 16 {
            case 0: (f, word) = ((b & c) | (~b & d), step)
            case 1: (f, word) = ((d & b) | (~d & c), (5 * step + 1) % 16)
            case 2: (f, word) = (b ^ c ^ d, (3 * step + 5) % 16)
            default: (f, word) = (c ^ (b | ~d), 7 * step % 16)
            }
            let value = UInt32(littleEndian: bytes.loadUnaligned(fromByteOffset: start + word * 4, as: UInt32.self))
            let sum = a &+ f &+ table[step] &+ value
            let shift = shifts[step / 16 * 4 + step % 4]
            (a, d, c) = (d, c, b)
            b = b &+ (sum &<< shift | sum &>> (32 - shift))
        }
        state = (state.0 &+ a, state.1 &+ b, state.2 &+ c, state.3 &+ d)
    }
}

/// RFC 2045 as PostgreSQL writes it: a line break after 76 characters.
enum Base64 {
    private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)

    static func append(_ bytes: UnsafeBufferPointer<UInt8>, to out: inout [UInt8]) {
        var index = 0
        var inLine = 0
        while index < bytes.count {
            let left = min(bytes.count - index, 3)
            var group = UInt32(bytes[index]) << 16
            if left > 1 { group |= UInt32(bytes[index + 1]) << 8 }
            if left > 2 { group |= UInt32(bytes[index + 2]) }
            for position in 0..<4 {
                out.append(position <= left ? alphabet[Int(group >> UInt32(18 - 6 * position) & 63)] : UInt8(ascii: "="))
            }
            index += left
            inLine += 4
            if inLine == 76, index < bytes.count {
                out.append(10)
                inLine = 0
            }
        }
    }

    static func decode(_ text: UnsafeBufferPointer<UInt8>, to out: inout [UInt8]) throws(SQLError) {
        var group: UInt32 = 0
        var count = 0
        var padding = 0
        for byte in text where !(byte == 32 || (byte >= 9 && byte <= 13)) {
            let value: UInt8
            switch byte {
            case 65...90: value = byte - 65
            case 97...122: value = byte - 71
            case 48...57: value = byte + 4
            case UInt8(ascii: "+"): value = 62
            case UInt8(ascii: "/"): value = 63
            case UInt8(ascii: "="):
                padding += 1
                value = 0
            default: throw SQLError(.invalidParameterValue, "invalid symbol \"\(String(decoding: [byte], as: UTF8.self))\" found while decoding base64 sequence")
            }
            guard padding == 0 || byte == UInt8(ascii: "="), padding <= 2 else { throw SQLError(.invalidParameterValue, "unexpected \"=\" while decoding base64 sequence") }
            group = group << 6 | UInt32(value)
            count += 1
            guard count == 4 else { continue }
            for position in 0..<(3 - padding) { out.append(UInt8(truncatingIfNeeded: group >> UInt32(16 - 8 * position))) }
            (group, count) = (0, 0)
        }
        guard count == 0 else { throw SQLError(.invalidParameterValue, "invalid base64 end sequence", hint: "Input data is missing padding, is truncated, or is otherwise corrupted.") }
    }
}
