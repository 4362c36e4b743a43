import CCurl
import MillIO

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

/// One of libcurl's easy handles with its connections, used by one thread at a time.
final class CurlHandle: @unchecked Sendable {
    // Safe to share: `CurlTransport` gives it to one thread at a time, under its lock.
    let raw: UnsafeMutableRawPointer
    /// Scheme, host and port it last spoke to: where it has a connection.
    var origin = ""

    /// libcurl wants this once, before anything else. A server that goes away while something is written to it is an error of that write:
    /// who has not said otherwise would be ended by a signal, since TLS below libcurl does not keep it away everywhere.
    private static let isStarted: Bool = {
        // The handler of a program that has one stays.
        if let previous = signal(SIGPIPE, SIG_IGN) { signal(SIGPIPE, previous) }
        return mill_curl_start() == CURLE_OK
    }()

    init() throws(IOFailure) {
        guard Self.isStarted, let raw = curl_easy_init() else { throw IOFailure("start", path: "libcurl", errorNumber: ENOMEM) }
        self.raw = raw
    }

    deinit { curl_easy_cleanup(raw) }
}

/// Where an answer goes while it arrives. libcurl's callbacks have its address while `curl_easy_perform` runs.
final class CurlTransfer {
    /// The largest headers of an answer that are taken.
    private static let headerBytesMax = 256 << 10
    /// The most of a refusal's body that is kept: it is for people.
    private static let refusalBytesMax = 1 << 20

    var status = 0
    var headers = HTTPHeaders()
    var body: [UInt8] = []
    var byteCount = 0
    /// Why the answer was not taken to its end.
    private(set) var isTooLong = false
    private(set) var isCut = false

    private let buffer: UnsafeMutableRawBufferPointer?
    private let bytesMax: Int
    private let cancellation: Cancellation?
    private var headerBytes = 0

    init(_ request: HTTPRequest, _ buffer: UnsafeMutableRawBufferPointer?) {
        self.buffer = buffer
        bytesMax = request.responseBytesMax
        cancellation = request.cancellation
    }

    var isCancelled: Bool { cancellation?.isCancelled ?? false }
    private var isSuccess: Bool { (200..<300).contains(status) }

    /// Takes one line of headers; false ends the transfer.
    func receive(header line: UnsafeRawBufferPointer) -> Bool {
        headerBytes += line.count
        guard headerBytes <= Self.headerBytesMax else {
            isTooLong = true
            return false
        }
        let text = String(decoding: line, as: UTF8.self).trimmingSpaces
        if text.hasPrefix("HTTP/") {
            // A status of its own begins each answer; 100 comes before the real one.
            let parts = text.split(separator: " ", maxSplits: 2)
            status = parts.count > 1 ? Int(parts[1]) ?? 0 : 0
            headers = HTTPHeaders()
        } else if let colon = text.firstIndex(of: ":") {
            headers.append(text[..<colon].trimmingSpaces, text[text.index(after: colon)...].trimmingSpaces)
        } else if text.isEmpty, buffer == nil || !isSuccess, let length = headers["Content-Length"].flatMap({ Int($0) }), length > 0 {
            body.reserveCapacity(min(length, bytesMax, 64 << 20))
        }
        return true
    }

    /// Takes bytes of the body; false ends the transfer.
    func receive(_ bytes: UnsafeRawBufferPointer) -> Bool {
        if isSuccess, let buffer {
            guard bytes.count <= buffer.count - byteCount else {
                isTooLong = true
                return false
            }
            UnsafeMutableRawBufferPointer(rebasing: buffer[byteCount...]).copyMemory(from: bytes)
        } else if !isSuccess, byteCount + bytes.count > Self.refusalBytesMax {
            isCut = true
            return false
        } else if byteCount + bytes.count > bytesMax {
            isTooLong = true
            return false
        } else {
            body.append(contentsOf: bytes)
        }
        byteCount += bytes.count
        return true
    }
}

extension StringProtocol {
    var trimmingSpaces: String {
        let isSpace = { (character: Character) in
            character == " " || character == "\t" || character == "\r\n" || character == "\n" || character == "\r"
        }
        guard let first = firstIndex(where: { !isSpace($0) }), let last = lastIndex(where: { !isSpace($0) }) else { return "" }
        return String(self[first...last])
    }
}
