import MillColumnar

/// DELTA_LENGTH_BYTE_ARRAY: the lengths as differences, then all bytes.
final class DeltaLengthDecoder: ValueDecoder {
    private var lengths: DeltaDecoder
    private var input: InputBytes
    private let scratch = UnsafeMutablePointer<Int32>.allocate(capacity: DeltaLengthDecoder.atOnce)

    private static let atOnce = 1024

    init(_ bytes: UnsafeRawBufferPointer) throws(Malformed) {
        lengths = try DeltaDecoder(bytes)
        input = InputBytes(try lengths.rest())
    }

    deinit { scratch.deallocate() }

    func decode(_ count: Int, into target: UnsafeMutableRawPointer) throws(Malformed) {
        let target = target.assumingMemoryBound(to: StringView.self)
        var done = 0
        var cursor = input
        while done < count {
            let part = min(Self.atOnce, count - done)
            try lengths.decode(part, into: scratch)
            for index in 0..<part {
                let length = Int(scratch[index])
                target[done + index] = StringView(padded: try cursor.take(length).baseAddress.unsafelyUnwrapped, count: length)
            }
            done += part
        }
        input = cursor
    }

    func skip(_ count: Int) throws(Malformed) {
        var left = count
        while left > 0 {
            let part = min(Self.atOnce, left)
            try lengths.decode(part, into: scratch)
            for index in 0..<part { _ = try input.take(Int(scratch[index])) }
            left -= part
        }
    }
}

/// DELTA_BYTE_ARRAY: how many bytes a value shares with the one before, then the others as DELTA_LENGTH_BYTE_ARRAY.
///
/// Values are put together in a heap of the caller's, since their bytes are nowhere side by side.
final class DeltaBytesDecoder: ValueDecoder {
    private var prefixes: DeltaDecoder
    private let suffixes: DeltaLengthDecoder
    private let heap: StringHeap
    /// That all values have to have; nil for any.
    private let length: Int?
    /// The value before; long ones point into the heap, or the page.
    private var last = StringView.empty
    private var madeByteCount = 0
    private let prefixLength = UnsafeMutablePointer<Int32>.allocate(capacity: 1)
    private let suffix = UnsafeMutablePointer<StringView>.allocate(capacity: 1)

    /// Of all values of a page together: a few bytes can announce any number of long values.
    private static let madeByteCountMax = 1 << 28

    init(_ bytes: UnsafeRawBufferPointer, _ heap: StringHeap, length: Int? = nil) throws(Malformed) {
        prefixes = try DeltaDecoder(bytes)
        suffixes = try DeltaLengthDecoder(try prefixes.rest())
        (self.heap, self.length) = (heap, length)
    }

    deinit {
        prefixLength.deallocate()
        suffix.deallocate()
    }

    func decode(_ count: Int, into target: UnsafeMutableRawPointer) throws(Malformed) {
        let target = target.assumingMemoryBound(to: StringView.self)
        for index in 0..<count { target[index] = try next() }
    }

    func skip(_ count: Int) throws(Malformed) {
        for _ in 0..<count { _ = try next() }
    }

    private func next() throws(Malformed) -> StringView {
        try prefixes.decode(1, into: prefixLength)
        try suffixes.decode(1, into: suffix)
        let (shared, rest) = (Int(prefixLength.pointee), suffix.pointee)
        guard shared >= 0 && shared <= last.count else { throw .badPage("a value shares \(shared) bytes with one of \(last.count)") }
        let count = shared + rest.count
        if let length, count != length { throw .badPage("a value has \(count) bytes where all have \(length)") }
        guard shared > 0 else {
            last = rest
            return rest
        }
        madeByteCount += count
        guard madeByteCount <= Self.madeByteCountMax else { throw .badPage("its values take more than \(Self.madeByteCountMax) bytes") }
        let room = heap.allocate(count)
        last.withBytes { room.copyMemory(from: $0.baseAddress.unsafelyUnwrapped, byteCount: shared) }
        rest.withBytes { (room + shared).copyMemory(from: $0.baseAddress.unsafelyUnwrapped, byteCount: rest.count) }
        last = StringView(padded: room, count: count)
        return last
    }
}

/// BYTE_STREAM_SPLIT: the first bytes of all values, then the second ones, and so on.
final class SplitStreamDecoder: ValueDecoder {
    private let base: UnsafeRawPointer
    private let stride: Int
    private let total: Int
    private var nextValue = 0
    /// Set for values that are bytes and not numbers: they are put together here.
    private let heap: StringHeap?

    init(_ bytes: UnsafeRawBufferPointer, stride: Int, heap: StringHeap?) throws(Malformed) {
        guard stride > 0, bytes.count % stride == 0 else { throw .badPage("its bytes do not divide into values") }
        base = InputBytes(bytes).base
        self.stride = stride
        total = bytes.count / stride
        self.heap = heap
    }

    func decode(_ count: Int, into target: UnsafeMutableRawPointer) throws(Malformed) {
        let first = nextValue
        try skip(count)
        let room = heap.map { $0.allocate(count * stride + 16) } ?? target
        for byte in 0..<stride {
            let source = base + byte * total + first
            for index in 0..<count {
                room.storeBytes(
                    of: source.load(fromByteOffset: index, as: UInt8.self), toByteOffset: index &* stride &+ byte, as: UInt8.self)
            }
        }
        guard heap != nil else { return }
        let views = target.assumingMemoryBound(to: StringView.self)
        for index in 0..<count { views[index] = StringView(padded: room + index * stride, count: stride) }
    }

    func skip(_ count: Int) throws(Malformed) {
        guard count <= total - nextValue else { throw .cutShort }
        nextValue += count
    }
}
