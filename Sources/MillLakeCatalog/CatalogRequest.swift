import MillIceberg

/// A request of the catalog's interface, apart from sockets.
package struct CatalogRequest: Sendable {
    /// GET, HEAD, POST, PUT, DELETE.
    package let method: String
    /// The parts of the path, decoded. One may have `%1F` in it, which separates the levels of a namespace.
    package let segments: [String]
    /// As it came, for messages.
    package let path: String
    package let query: [String: String]
    /// Names in lower case; the first of several.
    package let headers: [String: String]
    package let body: [UInt8]

    /// - Parameter target: of the request line: path and query.
    /// - Throws: what is wrong with the encoding of the target.
    package init(method: String, target: String, headers: [(name: String, value: String)] = [], body: [UInt8] = []) throws(CatalogFailure) {
        self.method = method
        let parts = target.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
        path = String(parts[0].prefix { $0 != "#" })
        var segments: [String] = []
        for part in path.split(separator: "/") { segments.append(try FormText.decoded(part, plusIsSpace: false)) }
        self.segments = segments
        query = parts.count > 1 ? try FormText.fields(parts[1]) : [:]
        self.headers = Dictionary(headers.map { ($0.name.lowercased(), $0.value) }) { first, _ in first }
        self.body = body
    }

    /// The body as JSON; an empty one is an empty object.
    func json() throws -> JSONValue {
        guard !body.isEmpty else { return .object([:]) }
        let value = try JSONValue(body)
        guard value.object != nil else { throw CatalogFailure.badRequest("the body is no JSON object") }
        return value
    }
}

/// An answer, whole.
package struct CatalogAnswer: Sendable, Hashable {
    package var status: Int
    package var contentType = "application/json"
    package var body: [UInt8]

    init(_ status: Int, _ json: JSONValue) {
        self.status = status
        body = Array(json.text.utf8)
    }

    private init(status: Int) {
        self.status = status
        body = []
    }

    /// 204 without a body.
    static let done = CatalogAnswer(status: 204)
}
