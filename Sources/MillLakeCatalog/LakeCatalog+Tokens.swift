import GRDB
import MillIceberg

/// OAuth 2 client credentials (RFC 6749, section 4.4) and, for clients that renew tokens that way, token exchange (RFC 8693).
///
/// Id and secret are taken from the form, from HTTP Basic, or, for scripts that write it so, from `Authorization: Bearer id:secret`. A token
/// is 256 random bits; stored is its digest. It outlives a restart.
extension LakeCatalog {
    func issueToken(_ request: CatalogRequest) throws -> CatalogAnswer {
        guard request.method == "POST" else { throw Self.wrongMethod(request, "POST") }
        let form: [String: String]
        do {
            // Some clients have "content-type: application/vnd.api+json" on every request, this one too: what counts is the body.
            form = try FormText.fields(String(decoding: request.body, as: UTF8.self))
        } catch { throw TokenRefusal(400, "invalid_request", error.message) }
        switch form["grant_type"] {
        case "client_credentials":
            guard let (id, secret) = Self.credentials(form, request) else {
                throw TokenRefusal(401, "invalid_client", "there are no client_id and client_secret, neither in the form nor as HTTP Basic")
            }
            return try token(for: try principal(id, secret), scope: form["scope"] ?? "")
        case "urn:ietf:params:oauth:grant-type:token-exchange":
            guard let subject = form["subject_token"] else { throw TokenRefusal(400, "invalid_request", "subject_token is missing") }
            return try exchange(subject, scope: form["scope"])
        case nil: throw TokenRefusal(400, "invalid_request", "grant_type is missing")
        case let other?: throw TokenRefusal(400, "unsupported_grant_type", "grant_type \(other.prefix(100)) is not client_credentials")
        }
    }

    private static func credentials(_ form: [String: String], _ request: CatalogRequest) -> (String, String)? {
        if let id = form["client_id"], let secret = form["client_secret"], !id.isEmpty { return (id, secret) }
        let parts = (request.headers["authorization"] ?? "").split(separator: " ", maxSplits: 1)
        guard parts.count == 2 else { return nil }
        let pair: String
        switch parts[0].lowercased() {
        case "basic":
            guard let bytes = Secret.base64Decoded(parts[1]), let text = String(validating: bytes, as: UTF8.self) else { return nil }
            pair = text
        case "bearer": pair = String(parts[1])
        default: return nil
        }
        guard let colon = pair.firstIndex(of: ":") else { return nil }
        return (String(pair[..<colon]), String(pair[pair.index(after: colon)...]))
    }

    private func principal(_ id: String, _ secret: String) throws -> String {
        let row = try database.read {
            try Row.fetchOne($0, sql: "SELECT name, salt, digest FROM principals WHERE client_id = ?", arguments: [id])
        }
        // An unknown id takes as long as a wrong secret.
        let hash = row.map { Secret.Hash(salt: $0["salt"], digest: $0["digest"]) } ?? Secret.Hash(salt: "", digest: "")
        guard Secret.matches(secret, hash), let row else {
            throw TokenRefusal(401, "invalid_client", "the client is unknown or its secret is another")
        }
        return row["name"]
    }

    private func token(for principal: String, scope: String) throws -> CatalogAnswer {
        let token = Secret.random(byteCount: 32)
        let now = nowMillis
        try database.write { database in
            let roles = try Self.roles(of: principal, scope: scope, database)
            let isNarrowed = scope.contains("PRINCIPAL_ROLE:") && !scope.split(separator: " ").contains("PRINCIPAL_ROLE:ALL")
            guard !isNarrowed || !roles.isEmpty else {
                throw TokenRefusal(400, "invalid_scope", "the client has none of the roles of the scope")
            }
            // A day later nobody asks whether it has expired.
            try database.execute(sql: "DELETE FROM tokens WHERE expires_millis < ?", arguments: [now - 86_400_000])
            try database.execute(
                sql: "INSERT INTO tokens VALUES (?, ?, ?, ?)",
                arguments: [Secret.digest(token), principal, scope, now + Int64(options.tokenLifetimeSeconds) * 1000])
        }
        let answer: JSONValue = [
            "access_token": .string(token), "token_type": "bearer", "issued_token_type": "urn:ietf:params:oauth:token-type:access_token",
            "expires_in": JSONValue(options.tokenLifetimeSeconds),
        ]
        return CatalogAnswer(200, answer.with("scope", scope.isEmpty ? nil : .string(scope)))
    }

    /// Another token for one that still holds.
    private func exchange(_ subject: String, scope: String?) throws -> CatalogAnswer {
        let now = nowMillis
        let row = try database.read { database in
            try Row.fetchOne(
                database, sql: "SELECT principal, scope FROM tokens WHERE digest = ? AND expires_millis > ?",
                arguments: [Secret.digest(subject), now])
        }
        guard let row else { throw TokenRefusal(401, "invalid_client", "the subject token is unknown or has expired") }
        let given: String = row["scope"]
        // An exchange does not widen what the first token was for.
        guard scope == nil || scope == given || !given.contains("PRINCIPAL_ROLE:") || given.contains("PRINCIPAL_ROLE:ALL") else {
            throw TokenRefusal(400, "invalid_scope", "the subject token is for \(given)")
        }
        return try token(for: row["principal"], scope: scope ?? given)
    }
}

/// A refusal in OAuth's form (RFC 6749, section 5.2).
struct TokenRefusal: Error {
    var status: Int
    var code: String
    var description: String

    init(_ status: Int, _ code: String, _ description: String) {
        self.status = status
        self.code = code
        self.description = description
    }

    var answer: CatalogAnswer { CatalogAnswer(status, ["error": .string(code), "error_description": .string(description)]) }
}
