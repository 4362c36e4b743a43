import CCurl
package import MillIO
import Synchronization

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

/// HTTP/1.1 and TLS by libcurl, connections kept for the next request.
///
/// TLS trusts the system's roots, or those of a file alone. Variables of the environment that name proxies count for nothing: a proxy is
/// used when an option names it. Redirects are not followed.
///
/// Threading: any thread; handles are lent under a lock, the one that last spoke to the same server first. Idle ones are kept up to
/// `Options.idleHandlesMax`.
package final class CurlTransport: HTTPTransport {
    package struct Options: Sendable {
        /// A PEM file of the roots to trust, instead of the system's.
        package var rootsFile: String?
        package var proxy: String?
        package var userAgent = "millrace"
        /// Handles, and with each its connections, that are kept for later.
        package var idleHandlesMax = 16

        package init(rootsFile: String? = nil, proxy: String? = nil) {
            self.rootsFile = rootsFile
            self.proxy = proxy
        }
    }

    private let options: Options
    private let idle = Mutex<[CurlHandle]>([])

    package init(_ options: Options = Options()) { self.options = options }

    package func send(_ request: HTTPRequest, receiving buffer: UnsafeMutableRawBufferPointer?) throws(IOFailure) -> HTTPResponse {
        try Self.check(request)
        guard request.cancellation?.isCancelled != true else {
            throw IOFailure(request.method, path: request.place, errorNumber: ECANCELED)
        }
        let handle = try lend(for: Self.origin(of: request.url))
        let transfer = CurlTransfer(request, buffer)
        var message = [CChar](repeating: 0, count: Int(CURL_ERROR_SIZE))
        let (code, sent) = perform(request, handle, transfer, &message)
        take(back: handle)
        if code == CURLE_OK || transfer.isCut {
            return HTTPResponse(status: transfer.status, headers: transfer.headers, body: transfer.body, byteCount: transfer.byteCount)
        }
        let words = message.withUnsafeBytes { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
        throw Self.failure(request, code, transfer, isSent: sent, words.isEmpty ? String(cString: curl_easy_strerror(code)) : words)
    }

    // MARK: Handles

    private func lend(for origin: String) throws(IOFailure) -> CurlHandle {
        let found = idle.withLock { idle in idle.lastIndex { $0.origin == origin }.map { idle.remove(at: $0) } }
        if let found { return found }
        let handle = try CurlHandle()
        handle.origin = origin
        return handle
    }

    private func take(back handle: CurlHandle) {
        // What is dropped is closed after the lock: closing says goodbye to a server.
        let dropped = idle.withLock { idle -> CurlHandle? in
            idle.append(handle)
            return idle.count > options.idleHandlesMax ? idle.removeFirst() : nil
        }
        _ = dropped
    }

    /// Scheme, host and port.
    private static func origin(of url: String) -> String {
        guard let scheme = url.firstRange(of: "://") else { return url }
        return String(url[..<(url[scheme.upperBound...].firstIndex { $0 == "/" || $0 == "?" } ?? url.endIndex)])
    }

    // MARK: One request

    /// Whoever makes headers of what users give cannot smuggle in others.
    private static func check(_ request: HTTPRequest) throws(IOFailure) {
        let isPlain = { (text: String) in text.utf8.allSatisfy { $0 != 0x0A && $0 != 0x0D && $0 != 0 } }
        let isName = { (text: String) in !text.isEmpty && text.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: ":") } }
        guard isName(request.method), request.url.utf8.allSatisfy({ $0 > 0x20 && $0 != 0x7F }) else {
            throw IOFailure(
                request.method, path: request.place, errorNumber: EINVAL, detail: "the method or the URL has characters that cannot be sent"
            )
        }
        for field in request.headers.fields where !isName(field.name) || !isPlain(field.value) {
            throw IOFailure(
                request.method, path: request.place, errorNumber: EINVAL,
                detail: "the header \"\(field.name)\" has characters that cannot be sent")
        }
    }

    /// - Returns: how it ended, and whether any of the request may have reached the server.
    private func perform(
        _ request: HTTPRequest, _ handle: CurlHandle, _ transfer: CurlTransfer, _ message: inout [CChar]
    ) -> (code: CURLcode, isSent: Bool) {
        let raw = handle.raw
        // Options go, connections stay.
        curl_easy_reset(raw)
        var lines: UnsafeMutablePointer<curl_slist>?
        defer { curl_slist_free_all(lines) }
        for line in Self.headerLines(request) { lines = curl_slist_append(lines, line) }
        // Bytes are lent to libcurl, not copied; even no bytes have an address.
        let body = request.body.isEmpty ? [0] : request.body
        let context = Unmanaged.passUnretained(transfer).toOpaque()
        return body.withUnsafeBytes { bytes in
            message.withUnsafeMutableBufferPointer { message in
                mill_curl_set_pointer(raw, CURLOPT_ERRORBUFFER, message.baseAddress)
                mill_curl_set_pointer(raw, CURLOPT_HTTPHEADER, lines)
                setConnection(raw, request)
                setMethod(raw, request, bytes)
                Self.setCallbacks(raw, context)
                let code = withExtendedLifetime(transfer) { curl_easy_perform(raw) }
                let isSent = mill_curl_micros_to_sending(raw) > 0
                // Nothing of this call's may be left in a handle that waits.
                curl_easy_reset(raw)
                return (code, isSent)
            }
        }
    }

    private static func headerLines(_ request: HTTPRequest) -> [String] {
        // libcurl adds these by itself to some requests; a signature would not cover them.
        var lines = ["Expect:"]
        if request.headers["Content-Type"] == nil { lines.append("Content-Type:") }
        // "Name;" is how libcurl is told of an empty value, "Name:" would remove it.
        return lines + request.headers.fields.map { $0.value.isEmpty ? "\($0.name);" : "\($0.name): \($0.value)" }
    }

    private func setConnection(_ raw: UnsafeMutableRawPointer, _ request: HTTPRequest) {
        mill_curl_set_text(raw, CURLOPT_URL, request.url)
        mill_curl_set_text(raw, CURLOPT_PROTOCOLS_STR, "http,https")
        mill_curl_set_text(raw, CURLOPT_USERAGENT, options.userAgent)
        // An empty name is what keeps libcurl from the environment's.
        mill_curl_set_text(raw, CURLOPT_PROXY, options.proxy ?? "")
        if let roots = options.rootsFile {
            mill_curl_set_text(raw, CURLOPT_CAINFO, roots)
            mill_curl_set_pointer(raw, CURLOPT_CAPATH, nil)
        }
        mill_curl_set_number(raw, CURLOPT_HTTP_VERSION, Int(CURL_HTTP_VERSION_1_1))
        mill_curl_set_number(raw, CURLOPT_PATH_AS_IS, 1)
        mill_curl_set_number(raw, CURLOPT_FOLLOWLOCATION, 0)
        mill_curl_set_number(raw, CURLOPT_NOSIGNAL, 1)
        mill_curl_set_number(raw, CURLOPT_TCP_KEEPALIVE, 1)
        mill_curl_set_number(raw, CURLOPT_BUFFERSIZE, 256 << 10)
        mill_curl_set_number(raw, CURLOPT_CONNECTTIMEOUT_MS, Self.milliseconds(request.timeouts.connect))
        mill_curl_set_number(raw, CURLOPT_TIMEOUT_MS, Self.milliseconds(request.timeouts.total))
        mill_curl_set_number(raw, CURLOPT_LOW_SPEED_LIMIT, 1)
        mill_curl_set_number(raw, CURLOPT_LOW_SPEED_TIME, max(1, Self.milliseconds(request.timeouts.idle) / 1000))
    }

    private func setMethod(_ raw: UnsafeMutableRawPointer, _ request: HTTPRequest, _ bytes: UnsafeRawBufferPointer) {
        let hasBody = !request.body.isEmpty || ["PUT", "POST", "PATCH"].contains(request.method)
        if request.method == "HEAD" {
            mill_curl_set_number(raw, CURLOPT_NOBODY, 1)
        } else if hasBody {
            mill_curl_set_number(raw, CURLOPT_POST, 1)
            mill_curl_set_offset(raw, CURLOPT_POSTFIELDSIZE_LARGE, curl_off_t(request.body.count))
            mill_curl_set_pointer(raw, CURLOPT_POSTFIELDS, bytes.baseAddress)
            mill_curl_set_text(raw, CURLOPT_CUSTOMREQUEST, request.method)
        } else {
            mill_curl_set_number(raw, CURLOPT_HTTPGET, 1)
            mill_curl_set_text(raw, CURLOPT_CUSTOMREQUEST, request.method)
        }
    }

    private static func setCallbacks(_ raw: UnsafeMutableRawPointer, _ context: UnsafeMutableRawPointer) {
        mill_curl_set_pointer(raw, CURLOPT_HEADERDATA, context)
        mill_curl_set_receiver(raw, CURLOPT_HEADERFUNCTION) { bytes, size, count, context in
            guard let context else { return 0 }
            let transfer = Unmanaged<CurlTransfer>.fromOpaque(context).takeUnretainedValue()
            return transfer.receive(header: UnsafeRawBufferPointer(start: bytes, count: size * count)) ? size * count : 0
        }
        mill_curl_set_pointer(raw, CURLOPT_WRITEDATA, context)
        mill_curl_set_receiver(raw, CURLOPT_WRITEFUNCTION) { bytes, size, count, context in
            guard let context else { return 0 }
            let transfer = Unmanaged<CurlTransfer>.fromOpaque(context).takeUnretainedValue()
            return transfer.receive(UnsafeRawBufferPointer(start: bytes, count: size * count)) ? size * count : 0
        }
        mill_curl_set_number(raw, CURLOPT_NOPROGRESS, 0)
        mill_curl_set_pointer(raw, CURLOPT_XFERINFODATA, context)
        mill_curl_set_watcher(raw) { context, _, _, _, _ in
            guard let context else { return 1 }
            return Unmanaged<CurlTransfer>.fromOpaque(context).takeUnretainedValue().isCancelled ? 1 : 0
        }
    }

    /// At least one: zero would mean no limit.
    private static func milliseconds(_ duration: Duration) -> Int { max(1, Int(min(duration, .seconds(1 << 20)) / .milliseconds(1))) }

    // MARK: Failures

    private static func failure(_ request: HTTPRequest, _ code: CURLcode, _ transfer: CurlTransfer, isSent: Bool, _ words: String)
        -> IOFailure
    {
        if transfer.isTooLong {
            return IOFailure(
                request.method, path: request.place, errorNumber: EFBIG,
                detail: "the answer is longer than the \(request.responseBytesMax) bytes allowed")
        }
        let errorNumber: Int32 =
            switch code {
            case CURLE_URL_MALFORMAT, CURLE_UNSUPPORTED_PROTOCOL: EINVAL
            case CURLE_COULDNT_RESOLVE_HOST, CURLE_COULDNT_RESOLVE_PROXY: EHOSTUNREACH
            case CURLE_COULDNT_CONNECT: ECONNREFUSED
            case CURLE_OPERATION_TIMEDOUT: isSent ? ETIMEDOUT : EHOSTUNREACH
            case CURLE_SSL_CONNECT_ERROR: ECONNABORTED
            case CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_CACERT_BADFILE, CURLE_SSL_CERTPROBLEM, CURLE_SSL_CIPHER, CURLE_SSL_ISSUER_ERROR,
                CURLE_SSL_ENGINE_NOTFOUND, CURLE_WEIRD_SERVER_REPLY, CURLE_BAD_CONTENT_ENCODING:
                EPROTO
            case CURLE_ABORTED_BY_CALLBACK: ECANCELED
            case CURLE_OUT_OF_MEMORY: ENOMEM
            default: isSent ? ECONNRESET : ECONNABORTED
            }
        return IOFailure(request.method, path: request.place, errorNumber: errorNumber, detail: words)
    }
}
