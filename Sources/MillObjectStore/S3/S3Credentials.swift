package import MillIO

/// Keys that sign requests.
package struct S3Credentials: Hashable, Sendable {
    package var accessKeyID: String
    package var secretAccessKey: String
    /// Of keys that were lent for some time.
    package var sessionToken: String?

    package init(accessKeyID: String, secretAccessKey: String, sessionToken: String? = nil) {
        self.accessKeyID = accessKeyID
        self.secretAccessKey = secretAccessKey
        self.sessionToken = sessionToken
    }

    /// `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY` and `AWS_SESSION_TOKEN`; nil without the first two.
    package init?(environment: Environment) {
        guard let id = environment.variable("AWS_ACCESS_KEY_ID"), let secret = environment.variable("AWS_SECRET_ACCESS_KEY"), !id.isEmpty
        else { return nil }
        self.init(accessKeyID: id, secretAccessKey: secret, sessionToken: environment.variable("AWS_SESSION_TOKEN"))
    }
}

/// Where keys come from: a user's options, or a catalog that lends them for a table and some time.
///
/// Threading: any thread; may block to ask a catalog.
package protocol S3CredentialSource: Sendable {
    /// The keys to sign with now; nil to send requests unsigned.
    func credentials() throws(IOFailure) -> S3Credentials?
    /// The store says that these have expired. The next question should be answered with others.
    func refused(_ credentials: S3Credentials)
}

/// Keys that never change.
package struct FixedCredentials: S3CredentialSource {
    private let fixed: S3Credentials?

    /// - Parameter credentials: nil for public buckets, whose requests are not signed.
    package init(_ credentials: S3Credentials?) { fixed = credentials }

    package func credentials() -> S3Credentials? { fixed }
    package func refused(_ credentials: S3Credentials) {}
}
