#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

/// JSON records written as bytes, many in one buffer, without a String each.
///
/// Owned by one generator. The caller makes sure of room: `reserve` before each record.
final class RecordWriter {
    private(set) var start: UnsafeMutablePointer<UInt8>
    private(set) var count = 0
    private var capacity: Int
    /// The second whose text `secondText` is.
    private var second = Int64.min
    /// `YYYY-MM-DDThh:mm:ss.`
    private let secondText: UnsafeMutablePointer<UInt8>

    static let stampBytes = 20

    init(capacity: Int = 64 << 10) {
        self.capacity = capacity
        start = .allocate(capacity: capacity + 64)
        secondText = .allocate(capacity: 32)
    }

    deinit {
        start.deallocate()
        secondText.deallocate()
    }

    var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: start, count: count) }

    func removeAll() { count = 0 }

    /// Makes room for `more` bytes.
    func reserve(_ more: Int) {
        guard capacity - count < more else { return }
        capacity = max(capacity * 2, count + more)
        let larger = UnsafeMutablePointer<UInt8>.allocate(capacity: capacity + 64)
        larger.update(from: start, count: count)
        start.deallocate()
        start = larger
    }

    @inline(__always) func put(_ text: StaticString) {
        (start + count).update(from: text.utf8Start, count: text.utf8CodeUnitCount)
        count += text.utf8CodeUnitCount
    }

    @inline(__always) func put(_ text: [UInt8]) {
        text.withUnsafeBufferPointer { put($0.baseAddress, $0.count) }
    }

    @inline(__always) func put(_ bytes: UnsafePointer<UInt8>?, _ length: Int) {
        if let bytes { (start + count).update(from: bytes, count: length) }
        count += length
    }

    @inline(__always) func put(byte: UInt8) {
        start[count] = byte
        count += 1
    }

    /// A number that is not negative.
    func put(_ number: Int) {
        var digits = 1
        var bound = 10
        while digits < 19, number >= bound {
            digits += 1
            bound = bound.multipliedReportingOverflow(by: 10).partialValue
        }
        putDigits(number, digits)
    }

    /// The last `digits` digits, with zeros before.
    @inline(__always) func putDigits(_ number: Int, _ digits: Int) {
        var left = UInt64(truncatingIfNeeded: number)
        var at = count + digits
        while at > count {
            at -= 1
            start[at] = 48 + UInt8(truncatingIfNeeded: left % 10)
            left /= 10
        }
        count += digits
    }

    /// `YYYY-MM-DDThh:mm:ss.` and `digits` (3 or 6) of the fraction.
    func putTime(_ micros: Int64, fractionDigits digits: Int) {
        let floor = micros >= 0 ? micros / 1_000_000 : (micros - 999_999) / 1_000_000
        if floor != second { setSecond(floor) }
        put(secondText, Self.stampBytes)
        let fraction = Int(micros - floor * 1_000_000)
        putDigits(digits == 3 ? fraction / 1000 : fraction, digits)
    }

    private func setSecond(_ value: Int64) {
        second = value
        var seconds = time_t(value)
        var parts = tm()
        gmtime_r(&seconds, &parts)
        let kept = count
        // Written at the end of the buffer's used part, then moved: the same digits routine serves.
        reserve(64)
        putDigits(Int(parts.tm_year) + 1900, 4)
        put(byte: UInt8(ascii: "-"))
        putDigits(Int(parts.tm_mon) + 1, 2)
        put(byte: UInt8(ascii: "-"))
        putDigits(Int(parts.tm_mday), 2)
        put(byte: UInt8(ascii: "T"))
        putDigits(Int(parts.tm_hour), 2)
        put(byte: UInt8(ascii: ":"))
        putDigits(Int(parts.tm_min), 2)
        put(byte: UInt8(ascii: ":"))
        putDigits(Int(parts.tm_sec), 2)
        put(byte: UInt8(ascii: "."))
        secondText.update(from: start + kept, count: Self.stampBytes)
        count = kept
    }
}
