import Foundation

/// Which identifiers columns of files have that were written without any: the table property `schema.name-mapping.default`. Top-level
/// columns only, which is what reading goes by.
struct NameMapping {
    private(set) var identifiers: [String: Int] = [:]

    /// - Parameter json: what is not valid maps nothing.
    init(_ json: String?) {
        guard let json, let value = try? JSONSerialization.jsonObject(with: Data(json.utf8)), let fields = value as? [[String: Any]] else {
            return
        }
        for field in fields {
            guard let id = field["field-id"] as? Int, let names = field["names"] as? [String] else { continue }
            for name in names { identifiers[name] = id }
        }
    }
}
