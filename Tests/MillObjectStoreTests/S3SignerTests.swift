import MillHTTPClient
import MillIO
import MillTestKit
import Testing

@testable import MillObjectStore

/// Examples that AWS publishes: of the signing process (service "service") and of S3's reference.
@Suite struct S3SignerTests {
    private static let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    private let suite = S3Signer(
        credentials: S3Credentials(accessKeyID: "AKIDEXAMPLE", secretAccessKey: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"),
        region: "us-east-1",
        service: "service")
    private let s3 = S3Signer(
        credentials: S3Credentials(accessKeyID: "AKIAIOSFODNN7EXAMPLE", secretAccessKey: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"),
        region: "us-east-1")
    private let suiteTime = S3Time(micros: 1_440_938_160_000_000)
    private let s3Time = S3Time(micros: 1_369_353_600_000_000)

    private func ofSuite(_ method: String, _ query: [(name: String, value: String)] = [], _ headers: [(name: String, value: String)] = [])
        -> String
    {
        let message = S3Signer.Message(
            method: method, path: "/", query: query,
            headers: headers + [("Host", "example.amazonaws.com"), ("X-Amz-Date", suiteTime.stamp)],
            payloadHash: Self.empty)
        return suite.authorization(message, time: suiteTime)
    }

    private func ofS3(
        _ method: String, _ path: String, _ query: [(name: String, value: String)] = [], _ headers: [(name: String, value: String)] = [],
        _ body: String = ""
    ) -> String {
        let hash = Digest.hexadecimal(Digest.sha256(body))
        let fixed = [("host", "examplebucket.s3.amazonaws.com"), ("x-amz-content-sha256", hash), ("x-amz-date", s3Time.stamp)].map {
            (name: $0.0, value: $0.1)
        }
        return s3.authorization(.init(method: method, path: path, query: query, headers: headers + fixed, payloadHash: hash), time: s3Time)
    }

    @Test func times() {
        #expect(suiteTime.stamp == "20150830T123600Z" && suiteTime.day == "20150830")
        #expect(s3Time.stamp == "20130524T000000Z")
    }

    @Test func requestsOfTheSuite() {
        let prefix =
            "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, SignedHeaders=host;x-amz-date, Signature="
        #expect(ofSuite("GET") == prefix + "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31")
        #expect(
            ofSuite("GET", [("Param2", "value2"), ("Param1", "value1")]) == prefix
                + "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500")
        #expect(ofSuite("POST") == prefix + "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b")
    }

    @Test func anObjectsRange() {
        #expect(
            ofS3("GET", "/test.txt", [], [("Range", "bytes=0-9")])
                == "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request, "
                + "SignedHeaders=host;range;x-amz-content-sha256;x-amz-date, Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"
        )
    }

    @Test func aPutWithAKeyToEncode() {
        #expect(PercentEncoding.encode("test$file.text", keeping: "/") == "test%24file.text")
        let headers = [("Date", "Fri, 24 May 2013 00:00:00 GMT"), ("x-amz-storage-class", "REDUCED_REDUNDANCY")].map {
            (name: $0.0, value: $0.1)
        }
        #expect(
            ofS3("PUT", "/test%24file.text", [], headers, "Welcome to Amazon S3.")
                .hasSuffix("Signature=98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd"))
    }

    @Test func questionsToABucket() {
        #expect(
            ofS3("GET", "/", [("lifecycle", "")]).hasSuffix("Signature=fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"))
        #expect(
            ofS3("GET", "/", [("prefix", "J"), ("max-keys", "2")])
                .hasSuffix("Signature=34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"))
    }

    @Test func aPresignedURL() {
        let message = S3Signer.Message(
            method: "GET", path: "/test.txt", headers: [("host", "examplebucket.s3.amazonaws.com")], payloadHash: "UNSIGNED-PAYLOAD")
        let query = s3.presignedQuery(message, time: s3Time, seconds: 86_400)
        #expect(query.last?.value == "aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404")
        #expect(S3Signer.canonicalQuery(query).contains("X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F20130524%2Fus-east-1%2Fs3%2Faws4_request"))
    }

    @Test func digestsAsText() {
        #expect(Digest.base64(Digest.md5(Array("hello".utf8))) == "XUFAKrxLKna5cZ2REBfFkg==")
        for (text, wanted) in [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg==")] {
            #expect(Digest.base64(Array(text.utf8)) == wanted)
        }
        #expect(Digest.bytes(hexadecimal: "00fFa0") == [0, 255, 160])
        #expect(Digest.bytes(hexadecimal: "0g") == nil && Digest.bytes(hexadecimal: "0") == nil && Digest.bytes(hexadecimal: "+1") == nil)
    }
}
