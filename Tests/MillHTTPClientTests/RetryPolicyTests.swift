import MillHTTPClient
import MillIO
import MillTestKit
import Testing

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

@Suite struct RetryPolicyTests {
    private let clock = VirtualClock()

    private func sender(_ transport: ScriptedTransport, _ policy: RetryPolicy = RetryPolicy()) -> RetryingSender {
        RetryingSender(transport, policy: policy, clock: clock, random: SeededSource(1))
    }

    private func failure(_ errorNumber: Int32) -> ScriptedTransport.Answer {
        .failure(IOFailure("GET", path: "http://x", errorNumber: errorNumber))
    }
    private func answer(_ status: Int, _ headers: HTTPHeaders = [:]) -> ScriptedTransport.Answer {
        .success(HTTPResponse(status: status, headers: headers))
    }
    private let request = HTTPRequest("GET", "http://x/")

    @Test func whatMayPassIsTriedAgainUntilItHas() throws {
        let transport = ScriptedTransport([answer(503), failure(ECONNREFUSED), answer(500), answer(200)])
        let outcome = try sender(transport).send { request }
        #expect(outcome.response.status == 200)
        #expect(transport.requests.count == 4)
    }

    @Test func aRefusalIsAnAnswer() throws {
        let transport = ScriptedTransport([answer(403), answer(200)])
        #expect(try sender(transport).send { request }.response.status == 403)
        #expect(transport.requests.count == 1)
    }

    @Test func onlyATryThatMayHaveArrivedMakesTheNextARepetition() throws {
        #expect(
            try sender(ScriptedTransport([failure(ECONNREFUSED), failure(EHOSTUNREACH), answer(200)])).send { request }.isRepeated == false)
        #expect(try sender(ScriptedTransport([failure(ECONNRESET), answer(200)])).send { request }.isRepeated)
        #expect(try sender(ScriptedTransport([answer(500), answer(412)])).send { request }.isRepeated)
        #expect(try sender(ScriptedTransport([answer(412)])).send { request }.isRepeated == false)
    }

    @Test func whatMustNotHappenTwiceIsRepeatedOnlyWhenItWasNotSent() throws {
        let transport = ScriptedTransport([failure(ECONNREFUSED), failure(ECONNRESET), answer(200)])
        #expect(throws: IOFailure.self) { try sender(transport).send(isRepeatable: false) { request } }
        #expect(transport.requests.count == 2)
    }

    @Test func triesEndAndTheLastOneSpeaks() throws {
        let transport = ScriptedTransport { _ in .success(HTTPResponse(status: 503, body: Array("slow down".utf8))) }
        let outcome = try sender(transport, RetryPolicy(triesMax: 3)).send { request }
        #expect(outcome.response.status == 503 && outcome.response.words == "slow down")
        #expect(transport.requests.count == 3)
        let refusing = ScriptedTransport { _ in .failure(IOFailure("GET", path: "http://x", errorNumber: ECONNREFUSED)) }
        #expect(throws: IOFailure.self) { try sender(refusing, RetryPolicy(triesMax: 3)).send { request } }
        #expect(refusing.requests.count == 3)
    }

    @Test func noTryBeginsAfterTheTotal() throws {
        let transport = ScriptedTransport { _ in .success(HTTPResponse(status: 503)) }
        let started = clock.monotonicNanos
        _ = try sender(transport, RetryPolicy(triesMax: 1000, first: .seconds(1), last: .seconds(4), total: .seconds(30))).send { request }
        #expect(clock.monotonicNanos - started <= 30_000_000_000)
        #expect((8...20).contains(transport.requests.count))
    }

    @Test func theServerMayAskForALongerWait() throws {
        let started = clock.monotonicNanos
        let transport = ScriptedTransport([answer(503, ["retry-after": "7"]), answer(200)])
        _ = try sender(transport).send { request }
        #expect(clock.monotonicNanos - started >= 7_000_000_000)
        // One that is longer than all there is ends it at once.
        let impossible = ScriptedTransport([answer(429, ["Retry-After": "3600"]), answer(200)])
        #expect(try sender(impossible).send { request }.response.status == 429)
        #expect(impossible.requests.count == 1)
    }

    @Test func aDateAsksForAWait() {
        let now = HTTPDate.micros("Sun, 06 Nov 1994 08:49:37 GMT") ?? 0
        #expect(now == 784_111_777_000_000)
        let response = HTTPResponse(status: 503, headers: ["Retry-After": "Sun, 06 Nov 1994 08:49:40 GMT"])
        #expect(RetryPolicy.asked(response, nowMicros: now) == .seconds(3))
        #expect(RetryPolicy.asked(response, nowMicros: now + 60_000_000) == .zero)
        #expect(RetryPolicy.asked(HTTPResponse(status: 503, headers: ["Retry-After": "soon"]), nowMicros: now) == nil)
    }

    @Test func cancellingEndsTheWait() {
        let cancellation = Cancellation()
        let transport = ScriptedTransport { _ in
            cancellation.cancel()
            return .success(HTTPResponse(status: 503))
        }
        var request = request
        request.cancellation = cancellation
        let failure = #expect(throws: IOFailure.self) { try sender(transport).send { request } }
        #expect(failure?.errorNumber == ECANCELED)
        #expect(transport.requests.count == 1)
    }

    @Test func timesOfOtherFormsAreNone() {
        #expect(HTTPDate.microsOfISO8601("2013-05-24T00:00:01.250Z") == 1_369_353_601_250_000)
        #expect(HTTPDate.microsOfISO8601("2013-05-24T00:00:01Z") == 1_369_353_601_000_000)
        for text in ["", "2013-05-24", "2013-13-24T00:00:00Z", "2013-02-30T00:00:00Z", "2013-05-24T25:00:00Z", "2013-05-24T00:00:00.xZ"] {
            #expect(HTTPDate.microsOfISO8601(text) == nil, "\(text)")
        }
        for text in ["", "Sun, 31 Feb 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun, 06 Nov 1994 08:49 GMT"] {
            #expect(HTTPDate.micros(text) == nil, "\(text)")
        }
    }

    @Test func headersAreFoundWhateverTheirCase() {
        var headers: HTTPHeaders = ["ETag": "a", "X-Other": "b"]
        #expect(headers["etag"] == "a")
        headers["etag"] = "c"
        headers["x-other"] = nil
        headers["New"] = "d"
        #expect(headers.fields.map(\.name) == ["etag", "New"])
    }

    @Test func secretsOfAURLAreNotItsPlace() {
        #expect(HTTPRequest("GET", "https://me:secret@host:1/path?X-Amz-Signature=abc#x").place == "https://host:1/path")
        #expect(HTTPRequest("GET", "https://host").place == "https://host")
    }
}
