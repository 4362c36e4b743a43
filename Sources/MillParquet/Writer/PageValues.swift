import MillColumnar

/// The values of the page that is being filled, and how they are written at its end.
///
/// Numbers lie side by side; bytes lie one after the other, their lengths apart, so that every encoding can be made of them.
final class PageValues {
    private let storage: ColumnStorage
    private let bytes = OutputBytes(capacity: 64 << 10)
    /// Of values that are bytes of any length.
    private let lengths = OutputBytes()
    private(set) var count = 0

    /// Of a page's values, so that the page is one that its header can describe and readers take: encoded and compressed, with levels, it
    /// may be a little larger.
    static let byteCountMax = PageHeader.byteCountMax - (16 << 20)

    init(_ storage: ColumnStorage) { self.storage = storage }

    /// What the values take without any encoding.
    var byteCount: Int { bytes.count + lengths.count }

    func removeAll() {
        bytes.truncate(to: 0)
        lengths.truncate(to: 0)
        count = 0
    }

    /// Takes in `added` stored values, of `byteCount` bytes together when they are bytes.
    func append(_ values: UnsafeRawPointer, _ added: Int, byteCount: Int) {
        count += added
        guard storage.isBytes else { return bytes.append(UnsafeRawBufferPointer(start: values, count: added * storage.stride)) }
        let views = values.assumingMemoryBound(to: StringView.self)
        var target = bytes.room(byteCount)
        for index in 0..<added {
            let view = views[index]
            let length = view.count
            if view.isInline {
                // All twelve bytes; what is too much is written over by the next value, or lies in the slack.
                target.storeBytes(of: UInt32(truncatingIfNeeded: view.low &>> 32), as: UInt32.self)
                target.storeBytes(of: view.high, toByteOffset: 4, as: UInt64.self)
            } else {
                target.copyMemory(from: view.pointer, byteCount: length)
            }
            target += length
        }
        bytes.advance(byteCount)
        guard storage.form == .bytes else { return }
        let lengths = lengths.room(added * 4).assumingMemoryBound(to: Int32.self)
        for index in 0..<added { lengths[index] = Int32(truncatingIfNeeded: views[index].count) }
        self.lengths.advance(added * 4)
    }

    /// Takes in values of a dictionary by their numbers.
    func append(_ numbers: UnsafePointer<UInt32>, _ added: Int, of dictionary: DictionaryBuilder) {
        let scratch = OutputBytes(capacity: added * storage.stride)
        switch storage.stride {
        case 4: gather(UInt32.self, numbers, added, dictionary, scratch.base)
        case 8: gather(UInt64.self, numbers, added, dictionary, scratch.base)
        default: gather(StringView.self, numbers, added, dictionary, scratch.base)
        }
        var byteCount = 0
        if storage.isBytes {
            let views = scratch.base.assumingMemoryBound(to: StringView.self)
            for index in 0..<added { byteCount += views[index].count }
        }
        append(scratch.base, added, byteCount: byteCount)
    }

    private func gather<T: BitwiseCopyable>(
        _: T.Type, _ numbers: UnsafePointer<UInt32>, _ count: Int, _ dictionary: DictionaryBuilder, _ target: UnsafeMutableRawPointer
    ) {
        let source = dictionary.values.base.assumingMemoryBound(to: T.self)
        let target = target.assumingMemoryBound(to: T.self)
        for index in 0..<count { target[index] = source[Int(numbers[index])] }
    }

    func encode(_ encoding: Encoding, to out: OutputBytes) {
        switch encoding {
        case .deltaBinaryPacked:
            if storage.form == .int32 {
                DeltaEncoder.encode(UnsafePointer(bytes.base.assumingMemoryBound(to: Int32.self)), count, to: out)
            } else {
                DeltaEncoder.encode(UnsafePointer(bytes.base.assumingMemoryBound(to: Int64.self)), count, to: out)
            }
        case .deltaLengthByteArray:
            DeltaEncoder.encode(UnsafePointer(lengths.base.assumingMemoryBound(to: Int32.self)), count, to: out)
            out.append(bytes.bytes)
        case .deltaByteArray: encodeSharedBeginnings(to: out)
        default: encodePlain(to: out)
        }
    }

    private func encodePlain(to out: OutputBytes) {
        switch storage.form {
        case .boolean: encodeBits(to: out)
        case .bytes:
            let lengths = lengths.base.assumingMemoryBound(to: Int32.self)
            var source = UnsafeRawPointer(bytes.base)
            var target = out.room(byteCount)
            for index in 0..<count {
                let length = Int(lengths[index])
                target.storeBytes(of: UInt32(truncatingIfNeeded: length).littleEndian, as: UInt32.self)
                (target + 4).copyMemory(from: source, byteCount: length)
                source += length
                target += 4 + length
            }
            out.advance(byteCount)
        default: out.append(bytes.bytes)
        }
    }

    private func encodeBits(to out: OutputBytes) {
        let byteCount = (count + 7) / 8
        let target = out.room(byteCount)
        target.initializeMemory(as: UInt8.self, repeating: 0, count: byteCount)
        let bits = target.assumingMemoryBound(to: UInt8.self)
        let values = bytes.base.assumingMemoryBound(to: UInt8.self)
        for index in 0..<count { bits[index &>> 3] |= (values[index] & 1) &<< UInt8(index & 7) }
        out.advance(byteCount)
    }

    /// DELTA_BYTE_ARRAY: the lengths of what each value shares with the one before, the lengths of the rests, the rests.
    private func encodeSharedBeginnings(to out: OutputBytes) {
        let shared = OutputBytes(capacity: count * 4)
        let restLengths = OutputBytes(capacity: count * 4)
        let rests = OutputBytes(capacity: bytes.count)
        var start = bytes.base
        var before = UnsafeRawBufferPointer(start: start, count: 0)
        for index in 0..<count {
            let length = fixedLength ?? Int(lengths.base.assumingMemoryBound(to: Int32.self)[index])
            let value = UnsafeRawBufferPointer(start: start, count: length)
            let limit = min(length, before.count)
            var same = 0
            while same < limit && value[same] == before[same] { same += 1 }
            shared.appendLittleEndian(Int32(truncatingIfNeeded: same))
            restLengths.appendLittleEndian(Int32(truncatingIfNeeded: length - same))
            rests.append(UnsafeRawBufferPointer(rebasing: value[same...]))
            before = value
            start += length
        }
        DeltaEncoder.encode(UnsafePointer(shared.base.assumingMemoryBound(to: Int32.self)), count, to: out)
        DeltaEncoder.encode(UnsafePointer(restLengths.base.assumingMemoryBound(to: Int32.self)), count, to: out)
        out.append(rests.bytes)
    }

    private var fixedLength: Int? {
        if case .fixed(let length) = storage.form { length } else { nil }
    }
}
