import MillHTTPClient
import MillIceberg

/// An answer by which a catalog refuses: the REST specification's error object, or OAuth2's, or whatever stands there.
struct CatalogRefusal {
    let status: Int
    /// As `NoSuchTableException`; empty when it has none.
    let type: String
    let words: String

    /// Whether a commit that is refused so is surely not made.
    var saysNothingWasDone: Bool {
        switch status {
        case 400..<500, 501: true
        case 503, 507: !type.isEmpty && type != "CommitStateUnknownException"
        default: false
        }
    }

    init(_ response: HTTPResponse) {
        status = response.status
        let json = (try? JSONValue(response.body)) ?? .null  // What is no JSON is quoted as it stands.
        let error = json["error"]
        type = error["type"].string ?? error.string ?? ""
        let message = error["message"].string ?? json["error_description"].string ?? (type.isEmpty ? response.words : "")
        let named = [type, message].filter { !$0.isEmpty }.joined(separator: ": ")
        words = named.isEmpty ? "the catalog answered \(status)" : named
    }
}
