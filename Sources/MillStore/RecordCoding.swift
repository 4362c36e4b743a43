import CChecksum

/// Little-endian numbers, texts and lists, as `docs/internals/state.md` uses them.
package struct RecordWriter {
    package private(set) var bytes: [UInt8] = []

    package init() {}

    package mutating func put<T: FixedWidthInteger>(_ value: T) { withUnsafeBytes(of: value.littleEndian) { bytes += $0 } }

    package mutating func put(bytes part: some Collection<UInt8>) {
        put(UInt32(part.count))
        bytes += part
    }

    package mutating func put(_ text: String) { put(bytes: Array(text.utf8)) }

    /// A time that may be missing.
    package mutating func put(time: Int64?) {
        put(UInt8(time == nil ? 0 : 1))
        put(time ?? 0)
    }

    package mutating func putList<C: Collection>(_ list: C, _ body: (inout RecordWriter, C.Element) -> Void) {
        put(UInt32(list.count))
        for element in list { body(&self, element) }
    }
}

/// Bytes that end early or say something impossible.
package struct RecordDamage: Error {
    package init() {}
}

package struct RecordReader {
    private var rest: ArraySlice<UInt8>

    package init(_ bytes: ArraySlice<UInt8>) { rest = bytes }

    package var isAtEnd: Bool { rest.isEmpty }

    package mutating func take(_ count: Int) throws(RecordDamage) -> ArraySlice<UInt8> {
        guard count >= 0, count <= rest.count else { throw RecordDamage() }
        defer { rest = rest.dropFirst(count) }
        return rest.prefix(count)
    }

    package mutating func get<T: FixedWidthInteger>(_: T.Type) throws(RecordDamage) -> T {
        let part = try take(MemoryLayout<T>.size)
        return part.withUnsafeBytes { T(littleEndian: $0.loadUnaligned(as: T.self)) }
    }

    /// A number that is counted on from, or summed up with others: one above `max` would overflow there.
    package mutating func getNumber(max: UInt64 = 1 << 62) throws(RecordDamage) -> UInt64 {
        let number = try get(UInt64.self)
        guard number <= max else { throw RecordDamage() }
        return number
    }

    package mutating func getBytes() throws(RecordDamage) -> [UInt8] { Array(try take(Int(try get(UInt32.self)))) }

    package mutating func getText() throws(RecordDamage) -> String {
        guard let text = String(validating: try getBytes(), as: UTF8.self) else { throw RecordDamage() }
        return text
    }

    package mutating func getTime() throws(RecordDamage) -> Int64? {
        let isThere = try get(UInt8.self) == 1
        let time = try get(Int64.self)
        return isThere ? time : nil
    }

    package mutating func getList<T>(_ body: (inout RecordReader) throws(RecordDamage) -> T) throws(RecordDamage) -> [T] {
        let count = Int(try get(UInt32.self))
        // An entry takes a byte at least.
        guard count <= rest.count else { throw RecordDamage() }
        var list: [T] = []
        for _ in 0..<count { list.append(try body(&self)) }
        return list
    }
}

func checksum(_ bytes: some Collection<UInt8>) -> UInt32 {
    bytes.withContiguousStorageIfAvailable { mill_crc32c(0, $0.baseAddress, $0.count) }
        ?? Array(bytes).withUnsafeBytes { mill_crc32c(0, $0.baseAddress, $0.count) }
}
