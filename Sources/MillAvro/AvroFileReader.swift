/// Reads an object container file, an object at a time, by the schema that it was written with.
///
/// Nothing in it is believed: lengths are held against what is there, blocks and objects have bounds (`AvroLimits`), and what is wrong is
/// said with the file's name and the offset.
package struct AvroFileReader {
    package let file: String
    package let schema: AvroSchema
    /// The header's entries, those of the format among them.
    package let metadata: [String: [UInt8]]
    private let codec: AvroCodec
    private let mark: ArraySlice<UInt8>
    private let bytes: [UInt8]
    private var position: Int
    /// The open block, and how many of its objects are still to come.
    private var block = AvroDecoder([])
    private var objectsLeft = 0

    static let magic: [UInt8] = Array("Obj".utf8) + [1]

    /// - Parameter file: what errors call it.
    package init(_ bytes: [UInt8], file: String) throws(AvroError) {
        self.file = file
        self.bytes = bytes
        var input = AvroDecoder(bytes)
        do throws(AvroFlaw) {
            guard bytes.starts(with: Self.magic) else { throw .noMagicNumber }
            _ = try input.take(Self.magic.count)
            guard case .map(let entries) = try input.object(.map(.bytes, keyID: nil, valueID: nil)) else { throw .cutShort }
            metadata = Dictionary(entries.map { ($0.key, $0.value.bytes ?? []) }) { $1 }
            mark = try input.take(16)
            guard let json = metadata["avro.schema"] else { throw .badSchema("it is missing") }
            schema = try AvroSchema(json: json)
        } catch { throw .malformed(file: file, offset: input.position, error) }
        let name = String(decoding: metadata["avro.codec"] ?? [], as: UTF8.self)
        guard let codec = AvroCodec(name: name) else { throw .unsupported(file: file, feature: "its blocks are compressed by \(name)") }
        self.codec = codec
        position = input.position
    }

    /// An entry of the header as text.
    package func text(_ key: String) -> String? { metadata[key].flatMap { String(validating: $0, as: UTF8.self) } }

    /// The next object; nil after the last one.
    package mutating func next() throws(AvroError) -> AvroValue? {
        let start = position
        do throws(AvroFlaw) {
            while objectsLeft == 0 {
                if block.remaining > 0 { throw .leftover(block.remaining) }
                guard position < bytes.count else { return nil }
                try openBlock()
            }
            objectsLeft -= 1
            return try block.object(schema)
        } catch { throw .malformed(file: file, offset: start, error) }
    }

    private mutating func openBlock() throws(AvroFlaw) {
        var input = AvroDecoder(bytes, from: position)
        let count = try input.long()
        let content = try input.take(try input.length())
        guard count >= 0 else { throw .badLength(count) }
        guard try input.take(mark.count) == mark else { throw .badSyncMarker }
        let decoded = try codec.decompress(content)
        guard count <= max(decoded.count, AvroLimits.emptyObjectsMax) else { throw .badLength(count) }
        block = AvroDecoder(decoded)
        objectsLeft = Int(count)
        position = input.position
    }
}
