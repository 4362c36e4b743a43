/// Waits between tries of something that fails: each about twice the one before, up to a bound, and none quite as long as another, so that
/// what failed together is not tried together.
package struct Backoff: Sendable {
    private var limit: Duration
    private let last: Duration

    /// - Parameters:
    ///   - first: the longest that the first wait can be.
    ///   - last: the longest that any can be.
    package init(first: Duration, last: Duration) {
        limit = first
        self.last = last
    }

    /// Between half of the bound and all of it.
    package mutating func next(_ random: any RandomSource) -> Duration {
        let bound = limit
        limit = min(limit * 2, last)
        return bound / 2 + bound / 2 * (Double(random.next() >> 11) / Double(1 << 53))
    }
}
