import CChecksum
import Foundation
package import MillBase
package import MillCatalog
import MillPlan

/// A plan as it is stored: JSON, the version of its form, and a CRC-32C of its bytes, so that a damaged or hand-made plan never
/// reaches an operator.
package struct PlanText: Hashable, Sendable {
    package var text: String
    package var version: Int
    package var checksum: UInt32

    init(text: String, version: Int, checksum: UInt32) {
        self.text = text
        self.version = version
        self.checksum = checksum
    }

    package init(encoding plan: some Encodable) throws {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        encoder.nonConformingFloatEncodingStrategy = .convertToString(
            positiveInfinity: "Infinity", negativeInfinity: "-Infinity", nan: "NaN")
        text = String(decoding: try encoder.encode(plan), as: UTF8.self)
        version = StreamPlan.formatVersion
        checksum = Self.checksum(text)
    }

    /// - Throws: 0A000 for a newer version, 42883 for a function that this program does not have, XX001 for what no program wrote.
    package func decoded<Plan: Decodable>(_ type: Plan.Type, of object: CatalogObject) throws(SQLError) -> Plan {
        let owner = "the stored plan of \(object.kind.rawValue) \"\(object.name)\""
        let hint = object.kind == .materializedView ? "REBUILD MATERIALIZED VIEW makes its plan anew." : "Drop it and create it again."
        guard version <= StreamPlan.formatVersion else {
            throw SQLError(
                .featureNotSupported, "\(owner) has version \(version), and this program knows up to \(StreamPlan.formatVersion)",
                hint: "Start the version that wrote it, or a later one. " + hint)
        }
        guard checksum == Self.checksum(text) else {
            throw SQLError(.dataCorrupted, "\(owner) is damaged: its checksum is wrong", hint: hint)
        }
        let decoder = JSONDecoder()
        decoder.nonConformingFloatDecodingStrategy = .convertFromString(
            positiveInfinity: "Infinity", negativeInfinity: "-Infinity", nan: "NaN")
        do { return try decoder.decode(Plan.self, from: Data(text.utf8)) } catch let error as SQLError {
            throw SQLError(error.sqlState, "\(owner) cannot be used: \(error.message)", hint: hint)
        } catch {
            throw SQLError(.dataCorrupted, "\(owner) cannot be read", detail: "\(error)", hint: hint)
        }
    }

    static func checksum(_ text: String) -> UInt32 {
        var text = text
        return text.withUTF8 { mill_crc32c(0, $0.baseAddress, $0.count) }
    }
}
