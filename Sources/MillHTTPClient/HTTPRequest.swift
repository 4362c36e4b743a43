package import MillIO

/// A request that is sent whole and answered whole.
package struct HTTPRequest: Sendable {
    package var method: String
    /// Percent-encoded, with scheme and host; sent as it is.
    package var url: String
    package var headers: HTTPHeaders
    package var body: [UInt8]
    /// An answer with more than this in its body is refused while it arrives.
    package var responseBytesMax: Int
    package var timeouts: HTTPTimeouts
    /// Looked at about once a second.
    package var cancellation: Cancellation?

    package init(
        _ method: String, _ url: String, headers: HTTPHeaders = [:], body: [UInt8] = [], responseBytesMax: Int = 16 << 20,
        timeouts: HTTPTimeouts = HTTPTimeouts(), cancellation: Cancellation? = nil
    ) {
        self.method = method
        self.url = url
        self.headers = headers
        self.body = body
        self.responseBytesMax = responseBytesMax
        self.timeouts = timeouts
        self.cancellation = cancellation
    }

    /// The URL without what may be secret in it, for messages.
    package var place: String {
        let bare = url.prefix { $0 != "?" && $0 != "#" }
        guard let scheme = bare.firstRange(of: "://") else { return String(bare) }
        let rest = bare[scheme.upperBound...]
        let authority = rest.prefix { $0 != "/" }
        guard let at = authority.lastIndex(of: "@") else { return String(bare) }
        return String(bare[..<scheme.upperBound] + rest[rest.index(after: at)...])
    }
}

package struct HTTPTimeouts: Sendable, Hashable {
    /// Until the connection stands, TLS and all.
    package var connect: Duration
    /// While no byte goes either way: also what the server may think.
    package var idle: Duration
    /// From start to end.
    package var total: Duration

    package init(connect: Duration = .seconds(10), idle: Duration = .seconds(60), total: Duration = .seconds(600)) {
        self.connect = connect
        self.idle = idle
        self.total = total
    }
}

/// What came back, whatever its status.
package struct HTTPResponse: Sendable {
    package var status: Int
    package var headers: HTTPHeaders
    /// Empty when the body went to a buffer of the caller's.
    package var body: [UInt8]
    /// Of the body, wherever it went.
    package var byteCount: Int

    package init(status: Int, headers: HTTPHeaders = [:], body: [UInt8] = [], byteCount: Int? = nil) {
        self.status = status
        self.headers = headers
        self.body = body
        self.byteCount = byteCount ?? body.count
    }

    package var isSuccess: Bool { (200..<300).contains(status) }

    /// The body as one line of at most 500 characters, for messages.
    package var words: String {
        let text = String(decoding: body.prefix(2000), as: UTF8.self)
        let line = text.split(whereSeparator: \.isWhitespace).joined(separator: " ")
        return line.count > 500 ? line.prefix(500) + "..." : line
    }
}

/// Sends requests. One conformer speaks to servers (`CurlTransport`), one replays a script in tests (`ScriptedTransport`).
///
/// Threading: any thread, any number of them; each call blocks its own.
package protocol HTTPTransport: Sendable {
    /// Sends a request and waits for the whole answer. Redirects are answers like others: what is signed for one host, or carries its
    /// token, goes to no other.
    ///
    /// - Parameter buffer: takes the body of an answer of status 200 to 299, instead of `HTTPResponse.body`.
    /// - Throws: `IOFailure` when there is no answer, with what happened in `detail`. `EHOSTUNREACH`, `ECONNREFUSED` and `ECONNABORTED`:
    ///   the request was not sent. `ETIMEDOUT` and `ECONNRESET`: it may have had its effect. `EPROTO`: the far side is not who it says, or
    ///   does not speak HTTP. `EFBIG`: the answer is longer than allowed. `EINVAL`: no such request can be sent. `ECANCELED`.
    func send(_ request: HTTPRequest, receiving buffer: UnsafeMutableRawBufferPointer?) throws(IOFailure) -> HTTPResponse
}

extension HTTPTransport {
    package func send(_ request: HTTPRequest) throws(IOFailure) -> HTTPResponse { try send(request, receiving: nil) }
}
