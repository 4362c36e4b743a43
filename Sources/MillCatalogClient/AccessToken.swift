import MillHTTPClient
import MillIceberg
import MillIO
import Synchronization

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

/// The token that requests to a catalog carry: given once, or asked for by OAuth2's client credentials, and asked for anew before it runs
/// out or when the catalog no longer takes it.
///
/// Source: RFC 6749, section 4.4; the token endpoint of Iceberg's REST specification.
///
/// Threading: any thread. Several may ask at once; the last answer stays.
final class AccessToken: Sendable {
    private struct Held {
        var text: String
        /// Of the machine's monotonic clock; nil for one that does not say.
        var renewAtNanos: UInt64?
    }

    private let options: RESTCatalogOptions
    private let sender: RetryingSender
    private let clock: any Clock
    private let held = Mutex<Held?>(nil)

    init(_ options: RESTCatalogOptions, _ sender: RetryingSender, clock: any Clock) {
        self.options = options
        self.sender = sender
        self.clock = clock
    }

    /// The token to send now; nil where none is wanted.
    func current() throws(IOFailure) -> String? {
        if let token = options.token { return token }
        guard options.credential != nil else { return nil }
        if let held = held.withLock({ $0 }), held.renewAtNanos.map({ clock.monotonicNanos < $0 }) ?? true { return held.text }
        let fresh = try ask()
        held.withLock { $0 = fresh }
        return fresh.text
    }

    /// The catalog no longer takes it. False when another is not to be had.
    func refuse(_ token: String?) -> Bool {
        guard options.token == nil, options.credential != nil else { return false }
        held.withLock { held in
            if held?.text == token { held = nil }
        }
        return true
    }

    private func ask() throws(IOFailure) -> Held {
        let base = options.uri.hasSuffix("/") ? String(options.uri.dropLast()) : options.uri
        let url = options.oauth2ServerURI ?? base + "/v1/oauth/tokens"
        var form = [("grant_type", "client_credentials")]
        let credential = options.credential ?? ""
        if let colon = credential.firstIndex(of: ":") {
            form += [("client_id", String(credential[..<colon])), ("client_secret", String(credential[credential.index(after: colon)...]))]
        } else {
            form.append(("client_secret", credential))
        }
        if !options.scope.isEmpty { form.append(("scope", options.scope)) }
        let body = form.map { "\($0.0)=\(PercentEncoding.encode($0.1))" }.joined(separator: "&")
        var headers = options.headers
        headers["Content-Type"] = "application/x-www-form-urlencoded"
        headers["Accept"] = "application/json"
        let request = HTTPRequest(
            "POST", url, headers: headers, body: Array(body.utf8), responseBytesMax: 1 << 20, timeouts: options.timeouts)
        let response = try sender.send { () throws(IOFailure) in request }.response
        guard response.isSuccess else {
            let words = CatalogRefusal(response).words
            throw IOFailure("get a token from", path: url, errorNumber: EACCES, detail: "\(words) (the credential is written id:secret)")
        }
        guard let json = try? JSONValue(response.body), let token = json["access_token"].string, !token.isEmpty else {
            throw IOFailure("get a token from", path: url, errorNumber: EIO, detail: "the answer has no access_token")
        }
        // A minute before its end, or at three quarters of a shorter life.
        let renewAt = json["expires_in"].int64.map { seconds in
            let life = UInt64(clamping: min(max(seconds, 0), 10_000_000))
            return clock.monotonicNanos + 1_000_000_000 * max(life * 3 / 4, life > 240 ? life - 60 : 0)
        }
        return Held(text: token, renewAtNanos: renewAt)
    }
}
