/// The Nexmark queries in Postgres spelling, and which streams each reads: its events are their rows.
///
/// Definitions: the Nexmark paper and its public benchmark, with windows of 10 seconds sliding by 2.
package struct NexmarkQuery: Sendable {
    package let name: String
    package let streams: [NexmarkGenerator.Kind]
    package let sql: String

    init(name: String, streams: [NexmarkGenerator.Kind], sql: String) {
        self.name = name
        self.streams = streams
        self.sql = sql
    }

    /// A query that is not of the benchmark; it reads the streams whose names are among its words.
    package init(sql: String) {
        let words = Set(sql.lowercased().split { !$0.isLetter && $0 != "_" }.map(String.init))
        self.init(name: "sql", streams: NexmarkGenerator.Kind.allCases.filter { words.contains($0.name) }, sql: sql)
    }

    package static let all: [NexmarkQuery] = [
        NexmarkQuery(name: "q0", streams: [.bid], sql: "SELECT auction, bidder, price, date_time, extra FROM bid"),
        NexmarkQuery(name: "q1", streams: [.bid], sql: "SELECT auction, bidder, 0.908 * price AS price, date_time, extra FROM bid"),
        NexmarkQuery(name: "q2", streams: [.bid], sql: "SELECT auction, price FROM bid WHERE mod(auction, 123) = 0"),
        NexmarkQuery(
            name: "q3", streams: [.person, .auction],
            sql: """
                SELECT p.name, p.city, p.state, a.id FROM auction a JOIN person p ON a.seller = p.id
                WHERE a.category = 10 AND p.state IN ('OR', 'ID', 'CA')
                """),
        NexmarkQuery(
            name: "q5", streams: [.bid],
            sql: """
                WITH counts AS (
                  SELECT auction, count(*) AS num, window_start FROM HOP(bid, date_time, INTERVAL '2' SECOND, INTERVAL '10' SECOND)
                  GROUP BY auction, window_start)
                SELECT x.auction, x.num FROM counts x
                JOIN (SELECT max(num) AS maxn, window_start FROM counts GROUP BY window_start) y
                  ON x.window_start = y.window_start AND x.num >= y.maxn
                """),
        NexmarkQuery(
            name: "q7", streams: [.bid],
            sql: """
                SELECT b.auction, b.price, b.bidder, b.date_time, b.extra FROM bid b
                JOIN (SELECT max(price) AS maxprice, window_end FROM TUMBLE(bid, date_time, INTERVAL '10' SECOND) GROUP BY window_end) m
                  ON b.price = m.maxprice
                WHERE b.date_time BETWEEN m.window_end - INTERVAL '10' SECOND AND m.window_end
                """),
        NexmarkQuery(
            name: "q8", streams: [.person, .auction],
            sql: """
                SELECT p.id, p.name, p.window_start FROM
                  (SELECT id, name, window_start FROM TUMBLE(person, date_time, INTERVAL '10' SECOND) GROUP BY id, name, window_start) p
                JOIN (SELECT seller, window_start FROM TUMBLE(auction, date_time, INTERVAL '10' SECOND) GROUP BY seller, window_start) a
                  ON p.id = a.seller AND p.window_start = a.window_start
                """),
    ]

    /// The declared columns of a stream.
    package static func columns(of kind: NexmarkGenerator.Kind) -> String {
        switch kind {
        case .person:
            "id BIGINT, name VARCHAR, email_address VARCHAR, credit_card VARCHAR, city VARCHAR, state VARCHAR, date_time TIMESTAMP, extra VARCHAR"
        case .auction:
            """
            id BIGINT, item_name VARCHAR, description VARCHAR, initial_bid BIGINT, reserve BIGINT, date_time TIMESTAMP, expires TIMESTAMP, \
            seller BIGINT, category BIGINT, extra VARCHAR
            """
        case .bid: "auction BIGINT, bidder BIGINT, price BIGINT, channel VARCHAR, url VARCHAR, date_time TIMESTAMP, extra VARCHAR"
        }
    }
}
