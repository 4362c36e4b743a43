/// Hashing of rows by some of their columns: the same for equal values of a type, on every machine and in every run,
/// because state is routed by stored hashes. wyhash's multiply-and-fold on 64-bit words.
package enum RowHash {
    static let seed: UInt64 = 0x9E37_79B9_7F4A_7C15
    static let multiplier: UInt64 = 0xA076_1D64_78BD_642F
    static let nullWord: UInt64 = 0xE703_7ED1_A0B4_28DB

    @inline(__always) static func fold(_ a: UInt64, _ b: UInt64) -> UInt64 {
        let product = a.multipliedFullWidth(by: b)
        return product.high ^ product.low
    }

    @inline(__always) package static func combine(_ hash: UInt64, _ word: UInt64) -> UInt64 {
        fold(hash ^ word, multiplier)
    }

    @inline(__always) static func combine(_ hash: UInt64, _ view: StringView) -> UInt64 {
        if view.isInline { return fold(combine(hash, view.low), view.high ^ nullWord) }
        return combineLong(hash, view)
    }

    static func combineLong(_ hash: UInt64, _ view: StringView) -> UInt64 {
        var hash = combine(hash, UInt64(view.count))
        let bytes = UnsafeRawPointer(view.pointer)
        var offset = 0
        // Over 12 bytes: the last, overlapping load covers the tail.
        while offset + 16 <= view.count {
            hash = fold(
                hash ^ bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self),
                multiplier ^ bytes.loadUnaligned(fromByteOffset: offset + 8, as: UInt64.self))
            offset += 16
        }
        if offset < view.count {
            hash = combine(hash, bytes.loadUnaligned(fromByteOffset: view.count - 8, as: UInt64.self))
            if offset + 8 < view.count { hash = combine(hash, bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self)) }
        }
        return hash
    }

    @inline(__always) static func combine(_ hash: UInt64, _ value: Double) -> UInt64 {
        // -0 equals 0 and every NaN equals every other.
        combine(hash, value == 0 ? 0 : value.isNaN ? 0x7FF8_0000_0000_0000 : value.bitPattern)
    }

    static func combine(_ hash: UInt64, _ value: Decimal) -> UInt64 {
        let value = value.normalized
        // The scale goes into the other factor: mixed into the same word, 0.1 would collide with 257.
        let shape = UInt64(UInt32(bitPattern: value.scale)) << 8 | UInt64(UInt32(bitPattern: value.kind.rawValue))
        return combine(fold(hash ^ value.low, multiplier ^ shape), UInt64(bitPattern: value.high))
    }

    static func combine(_ hash: UInt64, _ value: Interval) -> UInt64 {
        let word = value.comparable
        return combine(combine(hash, UInt64(truncatingIfNeeded: word)), UInt64(truncatingIfNeeded: word >> 64))
    }

    /// Writes a hash for each of `count` rows over `columns`. No columns: the same hash for all.
    package static func hash(_ columns: [Column], count: Int, into hashes: UnsafeMutablePointer<UInt64>) {
        hashes.update(repeating: seed, count: count)
        for column in columns { mix(column, count: count, into: hashes) }
        // The directory takes high bits and the tag low ones: a last fold makes all of them depend on every input bit.
        for row in 0..<count { hashes[row] = fold(hashes[row] ^ nullWord, multiplier) }
    }

    private static func mix(_ column: Column, count: Int, into hashes: UnsafeMutablePointer<UInt64>) {
        switch column.type.physical {
        case .bool8: mixEach(column, count, hashes, UInt8.self) { combine($0, UInt64($1)) }
        case .int16: mixEach(column, count, hashes, Int16.self) { combine($0, UInt64(truncatingIfNeeded: $1)) }
        case .int32: mixEach(column, count, hashes, Int32.self) { combine($0, UInt64(truncatingIfNeeded: $1)) }
        case .int64: mixEach(column, count, hashes, Int64.self) { combine($0, UInt64(truncatingIfNeeded: $1)) }
        case .float32: mixEach(column, count, hashes, Float.self) { combine($0, Double($1)) }
        case .float64: mixEach(column, count, hashes, Double.self) { combine($0, $1) }
        case .decimal: mixEach(column, count, hashes, Decimal.self) { combine($0, $1) }
        case .string: mixEach(column, count, hashes, StringView.self) { combine($0, $1) }
        case .interval: mixEach(column, count, hashes, Interval.self) { combine($0, $1) }
        }
    }

    @inline(__always)
    private static func mixEach<T>(
        _ column: Column, _ count: Int, _ hashes: UnsafeMutablePointer<UInt64>, _: T.Type, _ combineOne: (UInt64, T) -> UInt64
    ) {
        let values = UnsafePointer(column.values(T.self))
        if let validity = column.validity {
            for row in 0..<count {
                let present = validity[row >> 6] &>> UInt64(row & 63) & 1 != 0
                hashes[row] = present ? combineOne(hashes[row], values[row]) : combine(hashes[row], nullWord)
            }
        } else {
            for row in 0..<count { hashes[row] = combineOne(hashes[row], values[row]) }
        }
    }
}
