import MillColumnar

/// The least and the greatest of some values, as they are stored.
///
/// NaN has no place in an order and is left out; values that are all NaN have no bounds. A bound of zero is written as -0 below and +0
/// above, since readers may take the two for different. Source: parquet.thrift, `ColumnOrder`.
struct ValueBounds {
    private enum Bounds {
        case none
        case integers(Int64, Int64)
        case floats(Double, Double)
        case bytes([UInt8], [UInt8])
    }

    private let form: ColumnStorage.Form
    private let order: ColumnStorage.Order?
    private var bounds = Bounds.none

    init(_ storage: ColumnStorage) {
        form = storage.form
        order = storage.order
    }

    var isEmpty: Bool {
        if case .none = bounds { true } else { false }
    }

    /// Takes in `count` stored values.
    mutating func add(_ values: UnsafeRawPointer, _ count: Int) {
        guard count > 0, order != nil else { return }
        switch form {
        case .boolean: addIntegers(values.assumingMemoryBound(to: UInt8.self), count)
        case .int32: addIntegers(values.assumingMemoryBound(to: Int32.self), count)
        case .int64: addIntegers(values.assumingMemoryBound(to: Int64.self), count)
        case .float: addFloats(values.assumingMemoryBound(to: Float.self), count)
        case .double: addFloats(values.assumingMemoryBound(to: Double.self), count)
        case .bytes, .fixed:
            if case .decimalBytes = order { addBytes(values, count, flip: 0x80) } else { addBytes(values, count, flip: 0) }
        }
    }

    @inline(__always)
    private mutating func addIntegers<T: FixedWidthInteger>(_ values: UnsafePointer<T>, _ count: Int) {
        var (least, greatest) = (values[0], values[0])
        for index in 1..<max(count, 1) {
            let value = values[index]
            least = value < least ? value : least
            greatest = value > greatest ? value : greatest
        }
        add(.integers(Int64(least), Int64(greatest)))
    }

    @inline(__always)
    private mutating func addFloats<T: BinaryFloatingPoint>(_ values: UnsafePointer<T>, _ count: Int) {
        // Comparisons with NaN are false: it moves neither bound.
        var (least, greatest) = (T.infinity, -T.infinity)
        for index in 0..<count {
            let value = values[index]
            least = value < least ? value : least
            greatest = value > greatest ? value : greatest
        }
        guard least <= greatest else { return }
        add(.floats(Double(least), Double(greatest)))
    }

    /// `flip` of the first byte turns two's complement into an order of plain bytes.
    @inline(__always)
    private mutating func addBytes(_ values: UnsafeRawPointer, _ count: Int, flip: UInt8) {
        let views = values.assumingMemoryBound(to: StringView.self)
        var (least, greatest) = (0, 0)
        var (leastPrefix, greatestPrefix) = (Self.prefix(views[0], flip), Self.prefix(views[0], flip))
        for index in 1..<max(count, 1) {
            let prefix = Self.prefix(views[index], flip)
            // Most values are decided by their first four bytes.
            if prefix <= leastPrefix, prefix < leastPrefix || StringView.compare(views[index], views[least]) < 0 {
                (least, leastPrefix) = (index, prefix)
            }
            if prefix >= greatestPrefix, prefix > greatestPrefix || StringView.compare(views[index], views[greatest]) > 0 {
                (greatest, greatestPrefix) = (index, prefix)
            }
        }
        add(.bytes(views[least].withBytes { Array($0) }, views[greatest].withBytes { Array($0) }))
    }

    /// The first four bytes as a number; missing ones are 0, which does not tell "a" from "a\0".
    @inline(__always) private static func prefix(_ view: StringView, _ flip: UInt8) -> UInt32 {
        UInt32(truncatingIfNeeded: view.low >> 32).byteSwapped ^ UInt32(flip) << 24
    }

    mutating func add(_ other: ValueBounds) { add(other.bounds) }

    private mutating func add(_ other: Bounds) {
        switch (bounds, other) {
        case (_, .none): break
        case (.integers(let a, let b), .integers(let c, let d)): bounds = .integers(min(a, c), max(b, d))
        case (.floats(let a, let b), .floats(let c, let d)): bounds = .floats(min(a, c), max(b, d))
        case (.bytes(let a, let b), .bytes(let c, let d)): bounds = .bytes(isBelow(c, a) ? c : a, isBelow(b, d) ? d : b)
        default: bounds = other
        }
    }

    private func isBelow(_ a: [UInt8], _ b: [UInt8]) -> Bool {
        if case .decimalBytes = order, let first = a.first, let second = b.first, first != second {
            return Int8(bitPattern: first) < Int8(bitPattern: second)
        }
        return a.lexicographicallyPrecedes(b)
    }

    /// Whether this one's bounds are both at or below `next`'s.
    func isAtOrBelow(_ next: ValueBounds) -> Bool {
        switch (bounds, next.bounds) {
        case (.integers(let a, let b), .integers(let c, let d)): a <= c && b <= d
        case (.floats(let a, let b), .floats(let c, let d)): a <= c && b <= d
        case (.bytes(let a, let b), .bytes(let c, let d)): !isBelow(c, a) && !isBelow(d, b)
        default: true
        }
    }

    /// What is written: plain bytes, and whether they are the very values; nil without bounds, or when none can be given.
    func written(bytesMax: Int) -> (min: [UInt8], max: [UInt8], isMinExact: Bool, isMaxExact: Bool)? {
        switch bounds {
        case .none: return nil
        case .integers(let least, let greatest):
            switch form {
            case .boolean: return ([UInt8(least)], [UInt8(greatest)], true, true)
            case .int32: return (bytes(Int32(truncatingIfNeeded: least)), bytes(Int32(truncatingIfNeeded: greatest)), true, true)
            default: return (bytes(least), bytes(greatest), true, true)
            }
        case .floats(let least, let greatest):
            let (least, greatest) = (least == 0 ? -0.0 : least, greatest == 0 ? 0.0 : greatest)
            if form == .float { return (bytes(Float(least).bitPattern), bytes(Float(greatest).bitPattern), true, true) }
            return (bytes(least.bitPattern), bytes(greatest.bitPattern), true, true)
        case .bytes(let least, let greatest):
            guard case .bytes(let isText) = order else { return (least, greatest, true, true) }
            let shortLeast = BoundCut.below(least, bytesMax, isText: isText)
            guard let shortGreatest = BoundCut.above(greatest, bytesMax, isText: isText) else { return nil }
            return (shortLeast, shortGreatest, shortLeast.count == least.count, shortGreatest == greatest)
        }
    }

    /// As they are written: texts may be in order, and their beginnings, cut between characters, not.
    func cut(to bytesMax: Int) -> ValueBounds {
        guard case .bytes = bounds, let written = written(bytesMax: bytesMax) else { return self }
        var result = self
        result.bounds = .bytes(written.min, written.max)
        return result
    }

    private func bytes<T: FixedWidthInteger>(_ value: T) -> [UInt8] { withUnsafeBytes(of: value.littleEndian) { Array($0) } }
}

/// Shorter bounds for long values.
enum BoundCut {
    /// The longest beginning of `value` within `bytesMax`, ending between two characters of a text.
    static func below(_ value: [UInt8], _ bytesMax: Int, isText: Bool) -> [UInt8] {
        guard value.count > bytesMax else { return value }
        var end = bytesMax
        if isText {
            while end > 0 && value[end] & 0xC0 == 0x80 { end -= 1 }
        }
        return Array(value[..<end])
    }

    /// A value of at most `bytesMax` bytes at or above `value`: its beginning with the last byte or character that can grow grown by one;
    /// nil when there is none.
    static func above(_ value: [UInt8], _ bytesMax: Int, isText: Bool) -> [UInt8]? {
        guard value.count > bytesMax else { return value }
        var result = below(value, bytesMax, isText: isText)
        guard isText else {
            while let last = result.popLast() {
                if last < 0xFF { return result + [last + 1] }
            }
            return nil
        }
        while !result.isEmpty {
            var start = result.count - 1
            while start > 0 && result[start] & 0xC0 == 0x80 { start -= 1 }
            let character = String(decoding: result[start...], as: UTF8.self).unicodeScalars
            result.removeLast(result.count - start)
            guard let scalar = character.first, character.count == 1 else { return nil }
            // Between the last scalar below the surrogates and the first above them lies nothing.
            let next = scalar.value == 0xD7FF ? 0xE000 : scalar.value + 1
            if let grown = Unicode.Scalar(next) { return result + Array(String(grown).utf8) }
        }
        return nil
    }
}
