import CText
import MillColumnar

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

/// Text as bytes: counting, cutting and changing the case of UTF-8 without making a String.
enum UTF8Text {
    typealias Bytes = UnsafeBufferPointer<UInt8>

    /// Code points.
    static func count(_ text: Bytes) -> Int {
        var count = 0
        for byte in text { count &+= byte & 0xC0 != 0x80 ? 1 : 0 }
        return count
    }

    /// Where the code point after the one at `index` begins.
    @inline(__always) static func next(_ text: Bytes, _ index: Int) -> Int {
        var next = index + 1
        while next < text.count, text[next] & 0xC0 == 0x80 { next += 1 }
        return next
    }

    static func characters(_ text: Bytes) -> [Slice<Bytes>] {
        var result: [Slice<Bytes>] = []
        var index = 0
        while index < text.count {
            let after = next(text, index)
            result.append(text[index..<after])
            index = after
        }
        return result
    }

    /// The bytes of code points `from` up to `to`, both from 0, either may be outside.
    static func range(_ text: Bytes, from: Int, to: Int) -> Range<Int> {
        guard to > from, to > 0 else { return 0..<0 }
        var index = 0
        var position = 0
        while index < text.count, position < from {
            index = next(text, index)
            position += 1
        }
        let start = index
        if to == .max { return start..<text.count }
        while index < text.count, position < to {
            index = next(text, index)
            position += 1
        }
        return start..<index
    }

    static func find(_ part: Bytes, in text: Bytes, from: Int) -> Int? {
        guard let needle = part.baseAddress, !part.isEmpty else { return from }
        guard let base = text.baseAddress, text.count - from >= part.count else { return nil }
        var at = from
        let last = text.count - part.count
        while at <= last {
            guard let hit = memchr(base + at, Int32(needle[0]), last - at + 1) else { return nil }
            at = UnsafeRawPointer(hit) - UnsafeRawPointer(base)
            if part.count == 1 || memcmp(base + at, needle, part.count) == 0 { return at }
            at += 1
        }
        return nil
    }

    /// Field `number` of `text` split by `separator`, counted from 1, or from the end when negative; empty when there is none.
    static func field(_ number: Int, of text: Bytes, by separator: Bytes) -> Range<Int> {
        if separator.isEmpty { return number == 1 || number == -1 ? 0..<text.count : 0..<0 }
        if separator.count == 1, number > 0, let base = text.baseAddress {
            let field = mill_text_field(base, text.count, separator[0], number)
            return field.start..<field.end
        }
        var left = number
        if number < 0 {
            // From the end it is known which one is meant when all are counted.
            left += 2
            var at = 0
            while let hit = find(separator, in: text, from: at) { (at, left) = (hit + separator.count, left + 1) }
            guard left > 0 else { return 0..<0 }
        }
        var start = 0
        while let hit = find(separator, in: text, from: start) {
            if left == 1 { return start..<hit }
            (start, left) = (hit + separator.count, left - 1)
        }
        return left == 1 ? start..<text.count : 0..<0
    }

    static func appendReplacing(_ text: Bytes, _ from: Bytes, _ to: Bytes, _ out: inout [UInt8]) {
        if from.isEmpty { return out.append(contentsOf: text) }
        var at = 0
        while let hit = find(from, in: text, from: at) {
            out.append(contentsOf: text[at..<hit])
            out.append(contentsOf: to)
            at = hit + from.count
        }
        out.append(contentsOf: text[at...])
    }

    /// Cut or padded to `width` code points.
    static func appendPadded(_ text: Bytes, to width: Int, with pad: Bytes, onLeft: Bool, _ out: inout [UInt8]) {
        let count = count(text)
        if count >= width || pad.isEmpty { return out.append(contentsOf: text[range(text, from: 0, to: width)]) }
        if !onLeft { out.append(contentsOf: text) }
        var index = 0
        for _ in count..<width {
            let after = next(pad, index)
            out.append(contentsOf: pad[index..<after])
            index = after < pad.count ? after : 0
        }
        if onLeft { out.append(contentsOf: text) }
    }

    // MARK: Case

    static func appendLowered(_ text: Bytes, to out: inout [UInt8]) {
        if text.allSatisfy({ $0 < 128 }) { return out.append(contentsOf: text.lazy.map { $0 &- 65 < 26 ? $0 | 32 : $0 }) }
        for scalar in String(decoding: text, as: UTF8.self).unicodeScalars { append(simple(scalar, scalar.properties.lowercaseMapping), to: &out) }
    }

    static func appendUppered(_ text: Bytes, to out: inout [UInt8]) {
        if text.allSatisfy({ $0 < 128 }) { return out.append(contentsOf: text.lazy.map { $0 &- 97 < 26 ? $0 & 0xDF : $0 }) }
        for scalar in String(decoding: text, as: UTF8.self).unicodeScalars { append(simple(scalar, scalar.properties.uppercaseMapping), to: &out) }
    }

    /// The first letter of each word in upper case, the others in lower; words are runs of letters and digits.
    static func appendCapitalized(_ text: Bytes, to out: inout [UInt8]) {
        var inWord = false
        for scalar in String(decoding: text, as: UTF8.self).unicodeScalars {
            append(simple(scalar, inWord ? scalar.properties.lowercaseMapping : scalar.properties.uppercaseMapping), to: &out)
            inWord = scalar.properties.isAlphabetic || scalar.properties.numericType != nil
        }
    }

    /// PostgreSQL maps one code point to one: what would become several stays.
    private static func simple(_ scalar: Unicode.Scalar, _ mapped: String) -> Unicode.Scalar {
        let scalars = mapped.unicodeScalars
        guard let first = scalars.first, scalars.count == 1 else { return scalar }
        return first
    }

    private static func append(_ scalar: Unicode.Scalar, to out: inout [UInt8]) {
        if let bytes = UTF8.encode(scalar) { out.append(contentsOf: bytes) }
    }
}
