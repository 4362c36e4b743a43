extension Dialect {
    /// PostgreSQL's and RisingWave's: the default.
    package static let postgres = Dialect(name: "postgres", folding: .lower, quotesWithBackticks: false)
}
