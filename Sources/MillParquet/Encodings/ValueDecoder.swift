import MillColumnar

/// Reads the values of one page in order; NULLs are not among them.
///
/// Values come as their stored type lies in memory here: a byte for a boolean, native numbers, and a `StringView` for all that is bytes
/// (12 bytes of an INT96 among them), which points into the page when it is long. 64 bytes past a page may be read.
protocol ValueDecoder: AnyObject {
    /// Writes `count` values side by side.
    func decode(_ count: Int, into target: UnsafeMutableRawPointer) throws(Malformed)
    func skip(_ count: Int) throws(Malformed)
}

extension StringView {
    /// A view of bytes after which 12 more may be read.
    @inline(__always) init(padded bytes: UnsafeRawPointer, count: Int) {
        guard count <= Self.inlineBytesMax else {
            self.init(bytes.assumingMemoryBound(to: UInt8.self), count: count)
            return
        }
        let first = UInt64(UInt32(littleEndian: bytes.loadUnaligned(as: UInt32.self)))
        let second = UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: 4, as: UInt64.self))
        if count <= 4 {
            let kept = first & ~(UInt64.max << UInt64(8 * count))
            self.init(low: UInt64(count) | kept << 32, high: 0)
        } else {
            let kept = second & (UInt64.max >> UInt64(8 * (12 - count)))
            self.init(low: UInt64(count) | first << 32, high: kept)
        }
    }
}

/// PLAIN numbers: as they lie in memory.
final class PlainNumberDecoder: ValueDecoder {
    private var input: InputBytes
    private let stride: Int

    init(_ bytes: UnsafeRawBufferPointer, stride: Int) {
        input = InputBytes(bytes)
        self.stride = stride
    }

    func decode(_ count: Int, into target: UnsafeMutableRawPointer) throws(Malformed) {
        guard count > 0 else { return }
        target.copyMemory(from: try input.take(count * stride).baseAddress.unsafelyUnwrapped, byteCount: count * stride)
    }

    func skip(_ count: Int) throws(Malformed) { _ = try input.take(count * stride) }
}

/// PLAIN booleans: a bit each, lowest first.
final class PlainBooleanDecoder: ValueDecoder {
    private let input: InputBytes
    private var next = 0

    init(_ bytes: UnsafeRawBufferPointer) { input = InputBytes(bytes) }

    func decode(_ count: Int, into target: UnsafeMutableRawPointer) throws(Malformed) {
        let start = next
        try skip(count)
        let target = target.assumingMemoryBound(to: UInt8.self)
        for index in 0..<count {
            let bit = start &+ index
            target[index] = input.base.load(fromByteOffset: bit &>> 3, as: UInt8.self) &>> UInt8(bit & 7) & 1
        }
    }

    func skip(_ count: Int) throws(Malformed) {
        guard next + count <= input.count * 8 else { throw .cutShort }
        next += count
    }
}

/// Booleans as runs, behind the length of them.
final class RunBooleanDecoder: ValueDecoder {
    private var runs: HybridDecoder

    init(_ bytes: UnsafeRawBufferPointer) throws(Malformed) {
        var input = InputBytes(bytes)
        let length = Int(try input.littleEndian(UInt32.self))
        runs = try HybridDecoder(try input.take(length), width: 1)
    }

    func decode(_ count: Int, into target: UnsafeMutableRawPointer) throws(Malformed) {
        let numbers = UnsafeMutablePointer<UInt32>.allocate(capacity: max(count, 1))
        defer { numbers.deallocate() }
        try runs.decode(count, into: numbers)
        let target = target.assumingMemoryBound(to: UInt8.self)
        for index in 0..<count { target[index] = UInt8(truncatingIfNeeded: numbers[index]) }
    }

    func skip(_ count: Int) throws(Malformed) { try runs.skip(count) }
}

/// PLAIN bytes: a length of four bytes before each.
final class PlainBytesDecoder: ValueDecoder {
    private var input: InputBytes

    init(_ bytes: UnsafeRawBufferPointer) { input = InputBytes(bytes) }

    func decode(_ count: Int, into target: UnsafeMutableRawPointer) throws(Malformed) {
        let target = target.assumingMemoryBound(to: StringView.self)
        var cursor = input
        for index in 0..<count {
            let length = Int(try cursor.littleEndian(UInt32.self))
            target[index] = StringView(padded: try cursor.take(length).baseAddress.unsafelyUnwrapped, count: length)
        }
        input = cursor
    }

    func skip(_ count: Int) throws(Malformed) {
        for _ in 0..<count { _ = try input.take(Int(try input.littleEndian(UInt32.self))) }
    }
}

/// PLAIN bytes of one length.
final class PlainFixedBytesDecoder: ValueDecoder {
    private var input: InputBytes
    private let length: Int

    init(_ bytes: UnsafeRawBufferPointer, length: Int) {
        input = InputBytes(bytes)
        self.length = length
    }

    func decode(_ count: Int, into target: UnsafeMutableRawPointer) throws(Malformed) {
        let source = try input.take(count * length).baseAddress.unsafelyUnwrapped
        let target = target.assumingMemoryBound(to: StringView.self)
        for index in 0..<count { target[index] = StringView(padded: source + index * length, count: length) }
    }

    func skip(_ count: Int) throws(Malformed) { _ = try input.take(count * length) }
}

/// Integers by their differences. Not generic over them: a generic class behind a protocol would stay so, and slow.
final class DeltaNumberDecoder: ValueDecoder {
    private var deltas: DeltaDecoder
    private let isNarrow: Bool

    /// - Parameter isNarrow: 32 bits each, not 64.
    init(_ bytes: UnsafeRawBufferPointer, isNarrow: Bool) throws(Malformed) {
        deltas = try DeltaDecoder(bytes)
        self.isNarrow = isNarrow
    }

    func decode(_ count: Int, into target: UnsafeMutableRawPointer) throws(Malformed) {
        if isNarrow {
            try deltas.decode(count, into: target.assumingMemoryBound(to: Int32.self))
        } else {
            try deltas.decode(count, into: target.assumingMemoryBound(to: Int64.self))
        }
    }

    func skip(_ count: Int) throws(Malformed) { try deltas.skip(count) }
}

/// Values out of a dictionary by their numbers: a byte of width, then runs.
final class DictionaryDecoder: ValueDecoder {
    /// Nil in a chunk without one, whose pages may hold NULLs all the same.
    private let dictionary: PageDictionary?
    private var runs: HybridDecoder
    private let numbers: UnsafeMutablePointer<UInt32>

    private static let atOnce = 1024

    init(_ bytes: UnsafeRawBufferPointer, _ dictionary: PageDictionary?) throws(Malformed) {
        var input = InputBytes(bytes)
        let width = Int(try input.byte())
        runs = try HybridDecoder(input.rest, width: width)
        self.dictionary = dictionary
        numbers = .allocate(capacity: Self.atOnce)
    }

    deinit { numbers.deallocate() }

    func decode(_ count: Int, into target: UnsafeMutableRawPointer) throws(Malformed) {
        guard let dictionary else { throw .badPage("its values are numbers of a dictionary that is not there") }
        var done = 0
        while done < count {
            let part = min(Self.atOnce, count - done)
            try runs.decode(part, into: numbers)
            var largest: UInt32 = 0
            for index in 0..<part { largest = max(largest, numbers[index]) }
            guard largest < dictionary.count else { throw .badPage("a value has a number that the dictionary does not have") }
            switch dictionary.stride {
            case 1: gather(UInt8.self, dictionary, part, target + done)
            case 2: gather(UInt16.self, dictionary, part, target + done * 2)
            case 4: gather(UInt32.self, dictionary, part, target + done * 4)
            case 8: gather(UInt64.self, dictionary, part, target + done * 8)
            case 16: gather(StringView.self, dictionary, part, target + done * 16)
            default: gather(Decimal.self, dictionary, part, target + done * MemoryLayout<Decimal>.stride)
            }
            done += part
        }
    }

    @inline(__always)
    private func gather<T: BitwiseCopyable>(_: T.Type, _ dictionary: PageDictionary, _ count: Int, _ target: UnsafeMutableRawPointer) {
        let (source, numbers) = (dictionary.values.assumingMemoryBound(to: T.self), numbers)
        let target = target.assumingMemoryBound(to: T.self)
        for index in 0..<count { target[index] = source[Int(numbers[index])] }
    }

    func skip(_ count: Int) throws(Malformed) { try runs.skip(count) }
}

/// The values of a dictionary as their column has them.
final class PageDictionary {
    let values: UnsafeMutableRawPointer
    let count: Int
    let stride: Int

    init(count: Int, stride: Int) {
        values = .allocate(byteCount: max(count * stride, 1), alignment: 16)
        (self.count, self.stride) = (count, stride)
    }

    deinit { values.deallocate() }
}
