import MillHTTPClient

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

/// An answer by which S3 refuses, read: a code in XML, or the status alone where there is no body (HEAD).
struct S3Refusal {
    let status: Int
    /// Of the XML it is in; nil where there is none.
    let rootName: String?
    /// S3's name for it, as `NoSuchKey`; empty when the answer has none.
    let code: String
    private let message: String
    private let response: HTTPResponse
    private let document: XMLElement?

    init(_ response: HTTPResponse) {
        self.response = response
        status = response.status
        // Spaces keep a connection open while the store is at work.
        let first = response.body.first { $0 > 0x20 }
        let root = first == UInt8(ascii: "<") ? XMLElement(document: response.body) : nil
        rootName = root?.name
        document = root?.name == "Error" ? root : root?["Error"]
        code = document?["Code"]?.text ?? ""
        message = document?["Message"]?.text ?? (root == nil ? response.words : "")
    }

    /// The store says "not now".
    var isPassing: Bool {
        [
            "RequestTimeout", "SlowDown", "InternalError", "ServiceUnavailable", "ConditionalRequestConflict", "OperationAborted",
            "ThrottlingException",
        ]
        .contains(code)
    }

    var isOfExpiredKeys: Bool { code == "ExpiredToken" || code == "TokenRefreshRequired" }

    var isMissing: Bool { status == 404 }
    /// A condition did not hold.
    var isUnmet: Bool { status == 412 || code == "ConditionalRequestConflict" }
    /// The store does not know this kind of request.
    var isUnknown: Bool { status == 501 || status == 405 || code == "NotImplemented" }

    var errorNumber: Int32 {
        switch (status, code) {
        case (_, "ExpiredToken"), (_, "InvalidToken"), (_, "TokenRefreshRequired"), (_, "RequestTimeTooSkewed"): EACCES
        case (_, "EntityTooLarge"): EFBIG
        case (507, _), (_, "XMinioStorageFull"), (_, "QuotaExceeded"): ENOSPC
        case (404, _): ENOENT
        case (412, _), (409, "ConditionalRequestConflict"): EEXIST
        case (401, _), (403, _): EACCES
        case (408, _), (504, _): ETIMEDOUT
        case (501, _), (405, _): ENOTSUP
        case (300..<500, _): EINVAL
        default: EIO
        }
    }

    /// What the store said, and what to do about it where that is known.
    func words(region: String, nowMicros: Int64) -> String {
        let said =
            code.isEmpty
            ? "the store answered \(status)\(message.isEmpty ? "" : ": \(message)")" : "\(code)\(message.isEmpty ? "" : ": \(message)")"
        guard let hint = hint(region: region, nowMicros: nowMicros) else { return said }
        return "\(said) (\(hint))"
    }

    private func hint(region: String, nowMicros: Int64) -> String? {
        switch code {
        case "RequestTimeTooSkewed":
            guard let theirs = response.headers["Date"].flatMap({ HTTPDate.micros($0) }) else {
                return "this machine's clock is not the store's"
            }
            let seconds = (nowMicros - theirs) / 1_000_000
            return "this machine's clock is \(abs(seconds)) seconds \(seconds < 0 ? "behind" : "ahead of") the store's"
        case "SignatureDoesNotMatch": return "the secret key, or the region \"\(region)\", is not the right one"
        case "InvalidAccessKeyId": return "the store does not know this access key"
        case "ExpiredToken": return "the session token has run out"
        case "NoSuchBucket": return "the bucket has to be made first"
        case "PermanentRedirect", "AuthorizationHeaderMalformed", "TemporaryRedirect", "IllegalLocationConstraintException":
            return (response.headers["x-amz-bucket-region"] ?? document?["Region"]?.text).map {
                "the bucket is in region \"\($0)\", not \"\(region)\""
            }
        default:
            guard status == 301 || status == 307, let theirs = response.headers["x-amz-bucket-region"] else { return nil }
            return "the bucket is in region \"\(theirs)\", not \"\(region)\""
        }
    }
}
