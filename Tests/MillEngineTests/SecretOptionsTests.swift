import Testing

@testable import MillEngine

@Suite struct SecretOptionsTests {
    @Test func whatCarriesKeysOrTokensIsShownToNobody() {
        for name in ["catalog.header", "catalog.token", "catalog.credential", "s3.secret.key", "s3.access-key-id", "properties.sasl.password"] {
            #expect(SecretOptions.contains(name), "\(name)")
        }
        for name in ["connector", "catalog.uri", "without_header", "table.name", "primary_key", "s3.region"] {
            #expect(!SecretOptions.contains(name), "\(name)")
        }
    }
}
