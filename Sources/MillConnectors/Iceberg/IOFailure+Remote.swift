import MillBase
import MillHTTPClient
import MillIO

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

extension IOFailure {
    /// What went wrong with a catalog or a store elsewhere, as users see it: what may pass by itself is of a class that is tried again.
    /// - Parameter what: what was asked for.
    func remoteError(of what: String) -> SQLError {
        let words = "\(what): \(description)"
        switch errorNumber {
        case EACCES:
            return SQLError(.invalidAuthorization, words, hint: "Look at the options that name credentials: catalog.credential, s3.access.key.")
        case EINVAL: return SQLError(.invalidParameterValue, words)
        case _ where RetryPolicy.isPassing(self) || errorNumber == ENETUNREACH || errorNumber == EPIPE:
            return SQLError(.connectionFailure, words, hint: "Look at catalog.uri and s3.endpoint, and whether the servers there run.")
        default:
            var error = sqlError
            error.message = words
            return error
        }
    }
}
