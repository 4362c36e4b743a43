package import MillIO

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

/// When something that failed is tried again: a decision about facts, without clock or socket.
package struct RetryPolicy: Sendable {
    /// The first try counts.
    package var triesMax: Int
    /// Waits between tries: half of a bound to all of it, the bound doubling from `first` to `last`.
    package var first: Duration
    package var last: Duration
    /// No try begins later than this after the first one.
    package var total: Duration

    package init(triesMax: Int = 6, first: Duration = .milliseconds(100), last: Duration = .seconds(10), total: Duration = .seconds(60)) {
        self.triesMax = triesMax
        self.first = first
        self.last = last
        self.total = total
    }

    package static let once = RetryPolicy(triesMax: 1)

    /// Statuses by which a server says "not now".
    package static func isPassing(status: Int) -> Bool { [408, 429, 500, 502, 503, 504].contains(status) }

    /// Failures without an answer that may pass by themselves.
    package static func isPassing(_ failure: IOFailure) -> Bool {
        [EHOSTUNREACH, ECONNREFUSED, ECONNABORTED, ECONNRESET, ETIMEDOUT].contains(failure.errorNumber)
    }

    /// Whether the request of such a failure cannot have had an effect.
    package static func isUnsent(_ failure: IOFailure) -> Bool { [EHOSTUNREACH, ECONNREFUSED, ECONNABORTED].contains(failure.errorNumber) }

    /// How long to wait before the next try; nil to leave it at the last.
    ///
    /// - Parameters:
    ///   - tries: that were made.
    ///   - elapsed: since the first began.
    ///   - wait: what the backoff says.
    ///   - asked: what the server asked for by `Retry-After`.
    package func wait(tries: Int, elapsed: Duration, wait: Duration, asked: Duration?) -> Duration? {
        guard tries < triesMax else { return nil }
        let wait = max(wait, asked ?? .zero)
        return elapsed + wait > total ? nil : wait
    }

    /// The wait that an answer asks for, in seconds or as a date.
    package static func asked(_ response: HTTPResponse, nowMicros: Int64) -> Duration? {
        guard let text = response.headers["Retry-After"] else { return nil }
        if let seconds = Int64(text) { return seconds < 0 ? nil : .seconds(min(seconds, 86_400)) }
        return HTTPDate.micros(text).map { .microseconds(max(0, $0 - nowMicros)) }
    }
}

/// Sends a request until it is answered by more than "not now", within a policy.
///
/// Threading: any thread; blocks it, waits included.
package struct RetryingSender: Sendable {
    package var transport: any HTTPTransport
    package var policy: RetryPolicy
    private let clock: any Clock
    private let random: any RandomSource

    package init(_ transport: any HTTPTransport, policy: RetryPolicy = RetryPolicy(), clock: any Clock, random: any RandomSource) {
        self.transport = transport
        self.policy = policy
        self.clock = clock
        self.random = random
    }

    /// An answer, and what came before it.
    package struct Outcome: Sendable {
        package var response: HTTPResponse
        /// A try before this one may have had its effect although it failed: what this answer refuses may be what that one did.
        package var isRepeated: Bool
    }

    /// - Parameters:
    ///   - isRepeatable: false for a request that must not have its effect twice: of failures only those before it was sent are tried
    ///     again.
    ///   - isPassing: whether an answer means "not now"; by its status unless told otherwise.
    ///   - make: makes the request of each try: what is signed has its time in it.
    /// - Returns: the first answer that is not "not now", or the last one.
    /// - Throws: the last failure, when the last try had no answer.
    package func send(
        receiving buffer: UnsafeMutableRawBufferPointer? = nil, isRepeatable: Bool = true,
        isPassing: (HTTPResponse) -> Bool = { RetryPolicy.isPassing(status: $0.status) },
        _ make: () throws(IOFailure) -> HTTPRequest
    ) throws(IOFailure) -> Outcome {
        let started = clock.monotonicNanos
        var backoff = Backoff(first: policy.first, last: policy.last)
        var isRepeated = false
        var tries = 0
        while true {
            let request = try make()
            tries += 1
            let result: Result<HTTPResponse, IOFailure>
            do throws(IOFailure) { result = .success(try transport.send(request, receiving: buffer)) } catch { result = .failure(error) }
            let asked: Duration?
            switch result {
            case .success(let response):
                guard isPassing(response) else { return Outcome(response: response, isRepeated: isRepeated) }
                asked = RetryPolicy.asked(response, nowMicros: clock.nowMicros)
            case .failure(let failure):
                guard RetryPolicy.isPassing(failure), isRepeatable || RetryPolicy.isUnsent(failure) else { throw failure }
                asked = nil
            }
            let elapsed = Duration.nanoseconds(Int64(clamping: clock.monotonicNanos &- started))
            guard let wait = policy.wait(tries: tries, elapsed: elapsed, wait: backoff.next(random), asked: asked) else {
                return Outcome(response: try result.get(), isRepeated: isRepeated)
            }
            if case .failure(let failure) = result { isRepeated = isRepeated || !RetryPolicy.isUnsent(failure) } else { isRepeated = true }
            try pause(wait, request)
        }
    }

    /// In slices, so that a cancelled one ends soon.
    private func pause(_ wait: Duration, _ request: HTTPRequest) throws(IOFailure) {
        var left = wait
        while left > .zero {
            guard request.cancellation?.isCancelled != true else {
                throw IOFailure(request.method, path: request.place, errorNumber: ECANCELED)
            }
            let slice = min(left, .milliseconds(250))
            clock.pause(for: slice)
            left -= slice
        }
    }
}
