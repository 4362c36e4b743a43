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
            name: "q4", streams: [.auction, .bid],
            sql: """
                SELECT category, avg(final) AS average FROM (
                  SELECT max(b.price) AS final, a.category FROM auction a JOIN bid b ON a.id = b.auction
                  WHERE b.date_time BETWEEN a.date_time AND a.expires GROUP BY a.id, a.category) q
                GROUP BY category
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
        NexmarkQuery(
            name: "q9", streams: [.auction, .bid],
            sql: """
                SELECT id, item_name, description, initial_bid, reserve, date_time, expires, seller, category, extra,
                  auction, bidder, price, bid_date_time, bid_extra FROM (
                  SELECT a.*, b.auction, b.bidder, b.price, b.date_time AS bid_date_time, b.extra AS bid_extra,
                    row_number() OVER (PARTITION BY a.id ORDER BY b.price DESC, b.date_time) AS number
                  FROM auction a JOIN bid b ON a.id = b.auction WHERE b.date_time BETWEEN a.date_time AND a.expires) q
                WHERE number <= 1
                """),
        NexmarkQuery(
            name: "q11", streams: [.bid],
            sql: """
                SELECT bidder, count(*) AS bid_count, window_start, window_end
                FROM SESSION(bid PARTITION BY bidder, date_time, INTERVAL '10' SECOND)
                GROUP BY bidder, window_start, window_end
                """),
        NexmarkQuery(
            name: "q15", streams: [.bid],
            sql: "SELECT to_char(date_time, 'YYYY-MM-DD') AS day, \(bidCounts), \(distinctCounts) FROM bid GROUP BY to_char(date_time, 'YYYY-MM-DD')"),
        NexmarkQuery(
            name: "q16", streams: [.bid],
            sql: """
                SELECT channel, to_char(date_time, 'YYYY-MM-DD') AS day, max(to_char(date_time, 'HH24:MI')) AS minute, \(bidCounts), \(distinctCounts)
                FROM bid GROUP BY channel, to_char(date_time, 'YYYY-MM-DD')
                """),
        NexmarkQuery(
            name: "q17", streams: [.bid],
            sql: """
                SELECT auction, to_char(date_time, 'YYYY-MM-DD') AS day, \(bidCounts),
                  min(price) AS min_price, max(price) AS max_price, avg(price) AS avg_price, sum(price) AS sum_price
                FROM bid GROUP BY auction, to_char(date_time, 'YYYY-MM-DD')
                """),
        NexmarkQuery(
            name: "q18", streams: [.bid],
            sql: """
                SELECT auction, bidder, price, channel, url, date_time, extra FROM (
                  SELECT *, row_number() OVER (PARTITION BY bidder, auction ORDER BY date_time DESC) AS number FROM bid) q
                WHERE number <= 1
                """),
        NexmarkQuery(
            name: "q19", streams: [.bid],
            sql: """
                SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY auction ORDER BY price DESC) AS number FROM bid) q WHERE number <= 10
                """),
        NexmarkQuery(
            name: "q20", streams: [.auction, .bid],
            sql: """
                SELECT b.auction, b.bidder, b.price, b.channel, b.url, b.date_time, b.extra, a.item_name, a.description, a.initial_bid, a.reserve,
                  a.date_time AS auction_date_time, a.expires, a.seller, a.category, a.extra AS auction_extra
                FROM bid b JOIN auction a ON b.auction = a.id WHERE a.category = 10
                """),
        NexmarkQuery(
            name: "q22", streams: [.bid],
            sql: """
                SELECT auction, bidder, price, channel, split_part(url, '/', 4) AS dir1, split_part(url, '/', 5) AS dir2, split_part(url, '/', 6) AS dir3
                FROM bid
                """),
    ]

    /// How many bids there are, and how many at low, middle and high prices.
    private static let bidCounts = """
        count(*) AS total_bids, count(*) FILTER (WHERE price < 10000) AS rank1_bids, \
        count(*) FILTER (WHERE price >= 10000 AND price < 1000000) AS rank2_bids, count(*) FILTER (WHERE price >= 1000000) AS rank3_bids
        """

    /// The same of the different bidders and auctions.
    private static let distinctCounts = ["bidder", "auction"].map { column in
        """
        count(DISTINCT \(column)) AS total_\(column)s, count(DISTINCT \(column)) FILTER (WHERE price < 10000) AS rank1_\(column)s, \
        count(DISTINCT \(column)) FILTER (WHERE price >= 10000 AND price < 1000000) AS rank2_\(column)s, \
        count(DISTINCT \(column)) FILTER (WHERE price >= 1000000) AS rank3_\(column)s
        """
    }.joined(separator: ", ")

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
