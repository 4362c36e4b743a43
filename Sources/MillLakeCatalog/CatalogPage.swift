import GRDB
import MillIceberg

/// A part of a long list: `pageToken` and `pageSize`. Without both a list is whole.
///
/// A token is the last name of the page before, in hexadecimal digits, so that what comes and goes in between moves nothing else.
struct CatalogPage {
    private static let sizeMax = 1000
    private var isAsked: Bool
    private var after: String
    private var size: Int

    init(_ request: CatalogRequest) throws {
        let token = request.query["pageToken"]
        isAsked = token != nil || request.query["pageSize"] != nil
        guard let bytes = Self.bytes(token ?? ""), let after = String(validating: bytes, as: UTF8.self) else {
            throw CatalogFailure.badRequest("pageToken is not one that we gave")
        }
        self.after = after
        size = Self.sizeMax
        guard let text = request.query["pageSize"] else { return }
        guard let asked = Int(text), asked > 0 else { throw CatalogFailure.badRequest("pageSize is no number above zero") }
        size = min(asked, Self.sizeMax)
    }

    private static func bytes(_ text: String) -> [UInt8]? {
        let digits = Array(text.utf8)
        guard digits.count % 2 == 0 else { return nil }
        var result: [UInt8] = []
        for place in stride(from: 0, to: digits.count, by: 2) {
            guard let byte = UInt8(String(decoding: digits[place...place + 1], as: UTF8.self), radix: 16) else { return nil }
            result.append(byte)
        }
        return result
    }

    /// Runs a query with a column `name`, sorted by it.
    ///
    /// - Parameter sql: its WHERE part is complete but for the page.
    func names(_ sql: String, _ arguments: [any DatabaseValueConvertible], _ database: Database) throws -> (names: [String], next: String?)
    {
        let text = "SELECT name FROM (\(sql)) WHERE name > ? ORDER BY name LIMIT ?"
        let names = try String.fetchAll(
            database, sql: text,
            arguments: StatementArguments(arguments + [after, isAsked ? Int64(size + 1) : Int64.max] as [any DatabaseValueConvertible]))
        guard isAsked, names.count > size else { return (names, nil) }
        let page = Array(names.prefix(size))
        return (page, page.last.map { Secret.hexadecimal(Array($0.utf8)) })
    }
}
