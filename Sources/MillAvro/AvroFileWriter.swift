package import MillIO

/// Writes an object container file into memory: manifests and their lists, which are put into a store whole.
///
/// ```
/// Obj 1 | metadata: schema, codec, the caller's | mark | block: objects, bytes, content | mark | block ...
/// ```
///
/// Source: Avro specification, object container files.
package struct AvroFileWriter {
    private let schema: AvroSchema
    private let codec: AvroCodec
    /// Sixteen random bytes behind the header and each block.
    private let mark: [UInt8]
    private var finished: AvroEncoder
    private var block = AvroEncoder()
    private var blockObjects: Int64 = 0
    package private(set) var objectCount = 0

    /// Bytes of objects after which a block ends.
    private static let blockBytes = 64 << 10

    /// - Parameter metadata: entries beside the schema and the codec, in the order given.
    package init(_ schema: AvroSchema, metadata: [(key: String, value: String)] = [], codec: AvroCodec, random: any RandomSource) {
        self.schema = schema
        self.codec = codec
        mark = (0..<2).flatMap { _ in withUnsafeBytes(of: random.next()) { Array($0) } }
        var out = AvroEncoder()
        out.append(raw: AvroFileReader.magic)
        let all = [("avro.schema", schema.json), ("avro.codec", codec.name)] + metadata.map { ($0.key, $0.value) }
        out.append(Int64(all.count))
        for (key, value) in all {
            out.append(key)
            out.append(value)
        }
        out.append(0)
        out.append(raw: mark)
        finished = out
    }

    /// Bytes so far; of the open block before compression.
    package var byteCount: Int { finished.bytes.count + block.bytes.count }

    /// - Throws: `valueDoesNotFit`, and the file is as it was.
    package mutating func append(_ value: AvroValue) throws(AvroError) {
        try block.append(value, schema)
        blockObjects += 1
        objectCount += 1
        if block.bytes.count >= Self.blockBytes { endBlock() }
    }

    private mutating func endBlock() {
        guard blockObjects > 0 else { return }
        let content = codec.compress(block.bytes)
        finished.append(blockObjects)
        finished.append(Int64(content.count))
        finished.append(raw: content)
        finished.append(raw: mark)
        block.removeAll()
        blockObjects = 0
    }

    /// The file. Nothing may be appended afterwards.
    package mutating func finish() -> [UInt8] {
        endBlock()
        return finished.bytes
    }
}
