package import MillBase
import MillIO

/// Why a source or a view does not get on at present.
package struct Trouble: Sendable {
    package var reason: SQLError
    /// Microseconds since 1970.
    package var sinceMicros: Int64
    /// When it is tried again, in microseconds since 1970; nil when a client does so by itself, or nothing will before somebody acts.
    package var nextTryMicros: Int64?
    /// It may pass without anybody's help.
    package var mayPass = true
    private var backoff = Backoff(first: Trouble.firstRetry, last: Trouble.lastRetry)

    static let firstRetry = Duration.seconds(1)
    static let lastRetry = Duration.seconds(15)

    init(_ reason: SQLError, since: Int64) {
        self.reason = reason
        sinceMicros = since
    }

    /// Says when it is tried next.
    mutating func plan(after now: Int64, _ random: any RandomSource) { nextTryMicros = now + backoff.next(random).microseconds }
}
