import Foundation

/// A Puffin file in memory: blobs, and a footer that says what they are.
///
/// ```
/// PFA1 | blobs | PFA1 | footer as JSON | its length (4) | flags (4) | PFA1
/// ```
///
/// Written for deletion vectors, each of which manifests also know by offset and length. Source: Puffin specification.
package struct PuffinFile: Sendable {
    package struct Blob: Hashable, Sendable {
        package var type: String
        package var fields: [Int]
        package var properties: [String: String]
        /// From the file's beginning.
        package var offset: Int
        package var byteCount: Int
    }

    package private(set) var blobs: [Blob] = []
    private var bytes: [UInt8] = magic

    static let magic: [UInt8] = Array("PFA1".utf8)
    package static let deletionVectorType = "deletion-vector-v1"
    /// The identifier of `_pos`, which a deletion vector is said to be of.
    private static let positionFieldID = 2_147_483_545

    package init() {}

    /// Appends the deleted rows of a data file and says where they lie.
    package mutating func append(_ positions: DeletedPositions, of dataFile: String) -> (offset: Int, byteCount: Int) {
        let content = DeletionVector.encode(positions)
        let blob = Blob(
            type: Self.deletionVectorType, fields: [Self.positionFieldID],
            properties: ["referenced-data-file": dataFile, "cardinality": "\(positions.count)"], offset: bytes.count,
            byteCount: content.count)
        blobs.append(blob)
        bytes += content
        return (blob.offset, blob.byteCount)
    }

    /// The whole file.
    package func finished() throws(BadBytes) -> [UInt8] {
        // Neither snapshot nor sequence number is known before the commit; -1 says so.
        let entries: [[String: Any]] = blobs.map { blob in
            [
                "type": blob.type, "fields": blob.fields, "snapshot-id": -1, "sequence-number": -1, "offset": blob.offset,
                "length": blob.byteCount, "properties": blob.properties,
            ]
        }
        let footer: [String: Any] = ["blobs": entries, "properties": ["created-by": "millrace"]]
        guard let json = try? JSONSerialization.data(withJSONObject: footer, options: [.sortedKeys, .withoutEscapingSlashes]) else {
            throw BadBytes("the footer of a Puffin file has a text that JSON cannot hold")
        }
        var result = bytes + Self.magic
        result += json
        result.append(littleEndian: UInt32(json.count))
        result.append(littleEndian: UInt32(0))
        return result + Self.magic
    }
}
