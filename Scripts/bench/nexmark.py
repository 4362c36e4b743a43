"""The Nexmark queries in the peers' SQL, what their columns are, and the tables they read.

Definitions: the Nexmark paper and its public benchmark, with tumbling windows of 10 seconds and hopping ones sliding by 2; q12 is
left out because it goes by the clock on the wall. Millrace's own spelling is asked of the program (`millrace bench nexmark --statements`).
"""

COLUMNS = {
    "person": "id BIGINT, name VARCHAR, email_address VARCHAR, credit_card VARCHAR, city VARCHAR, state VARCHAR, date_time TIMESTAMP, "
    "extra VARCHAR",
    "auction": "id BIGINT, item_name VARCHAR, description VARCHAR, initial_bid BIGINT, reserve BIGINT, date_time TIMESTAMP, "
    "expires TIMESTAMP, seller BIGINT, category BIGINT, extra VARCHAR",
    "bid": "auction BIGINT, bidder BIGINT, price BIGINT, channel VARCHAR, url VARCHAR, date_time TIMESTAMP, extra VARCHAR",
}

STREAMS = {
    "q0": ["bid"], "q1": ["bid"], "q2": ["bid"], "q3": ["person", "auction"], "q4": ["auction", "bid"], "q5": ["bid"], "q7": ["bid"],
    "q8": ["person", "auction"], "q9": ["auction", "bid"], "q11": ["bid"], "q15": ["bid"], "q16": ["bid"], "q17": ["bid"], "q18": ["bid"],
    "q19": ["bid"], "q20": ["auction", "bid"], "q22": ["bid"],
}

# Kinds of the result columns, for comparing: i integer, d decimal, t time, s text, a an average, compared by its whole part because
# Flink's is a BIGINT, and - where rows that tie may be told apart as an engine likes.
KINDS = {
    "q0": "iiits", "q1": "iidts", "q2": "ii", "q3": "sssi", "q4": "ia", "q5": "ii", "q7": "iiits", "q8": "ist",
    "q9": "issiittiisi-it-", "q11": "iitt", "q15": "s" + "i" * 12, "q16": "sss" + "i" * 12, "q17": "is" + "i" * 6 + "ai",
    "q18": "ii---t-", "q19": "i-i----i", "q20": "iiisstsssiittiis", "q22": "iiissss",
}

NOTES = {
    "q4": "averages by their whole part, as Flink has them",
    "q9": "without bidder and extra of the bid: equal prices at the same time tie",
    "q17": "averages by their whole part, as Flink has them",
    "q18": "bidder, auction and time only: bids at the same time tie",
    "q19": "auction, price and number only: equal prices tie",
}

_HIGH, _MIDDLE, _LOW = "price >= 1000000", "price >= 10000 AND price < 1000000", "price < 10000"


class Dialect:
    """What the engines spell differently; this is DuckDB's spelling, also the parent of the others."""

    def day(self):
        return "strftime(date_time, '%Y-%m-%d')"

    def minute(self):
        return "strftime(date_time, '%H:%M')"

    def part(self, number):
        return f"split_part(url, '/', {number})"

    def discounted(self):
        return "0.908 * CAST(price AS DECIMAL(20, 0))"

    def count(self, condition=None):
        return "count(*)" + (f" FILTER (WHERE {condition})" if condition else "")

    def distinct(self, column, condition=None):
        return f"count(DISTINCT {column})" + (f" FILTER (WHERE {condition})" if condition else "")

    def bucket(self, seconds):
        return f"time_bucket(INTERVAL {seconds} SECOND, date_time)"

    def hops(self):
        """Bids per auction and hopping window, which starts at w."""
        return (
            f"(SELECT auction, w, count(*) AS num FROM (SELECT auction, {self.bucket(2)} - to_seconds(k) AS w "
            "FROM bid, (VALUES (0), (2), (4), (6), (8)) v(k)) GROUP BY auction, w)"
        )

    def windows(self):
        ten = self.bucket(10)
        return {
            "q5": f"SELECT x.auction, x.num FROM {self.hops()} x JOIN (SELECT w, max(num) AS most FROM {self.hops()} GROUP BY w) y "
            "ON x.w = y.w WHERE x.num >= y.most",
            "q7": f"SELECT b.auction, b.price, b.bidder, b.date_time, b.extra FROM bid b JOIN (SELECT {ten} AS w, max(price) AS most "
            "FROM bid GROUP BY w) m ON b.price = m.most WHERE b.date_time BETWEEN m.w AND m.w + INTERVAL 10 SECOND",
            "q8": f"SELECT p.id, p.name, p.w FROM (SELECT id, name, {ten} AS w FROM person GROUP BY id, name, w) p JOIN "
            f"(SELECT seller, {ten} AS w FROM auction GROUP BY seller, w) a ON p.id = a.seller AND p.w = a.w",
            "q11": "SELECT bidder, count(*), min(date_time), max(date_time) + INTERVAL 10 SECOND FROM (SELECT bidder, date_time, "
            f"sum(opens) OVER (PARTITION BY bidder ORDER BY date_time) AS session FROM (SELECT bidder, date_time, {self.opens()} AS opens "
            "FROM bid)) GROUP BY bidder, session",
        }

    def opens(self):
        """1 for a bid that no other of the bidder's precedes by at most 10 seconds."""
        before = "lag(date_time) OVER (PARTITION BY bidder ORDER BY date_time)"
        return f"CASE WHEN date_time - {before} <= INTERVAL 10 SECOND THEN 0 ELSE 1 END"

    def queries(self):
        bids = ", ".join(self.count(condition) for condition in (None, _LOW, _MIDDLE, _HIGH))
        distinct = ", ".join(
            self.distinct(column, condition) for column in ("bidder", "auction") for condition in (None, _LOW, _MIDDLE, _HIGH))
        day = self.day()
        sold = "auction a JOIN bid b ON a.id = b.auction WHERE b.date_time BETWEEN a.date_time AND a.expires"
        columns = "auction, bidder, price, channel, url, date_time, extra"
        return {
            "q0": "SELECT auction, bidder, price, date_time, extra FROM bid",
            "q1": f"SELECT auction, bidder, {self.discounted()}, date_time, extra FROM bid",
            "q2": "SELECT auction, price FROM bid WHERE mod(auction, 123) = 0",
            "q3": "SELECT p.name, p.city, p.state, a.id FROM auction a JOIN person p ON a.seller = p.id "
            "WHERE a.category = 10 AND p.state IN ('OR', 'ID', 'CA')",
            "q4": f"SELECT category, avg(highest) FROM (SELECT max(b.price) AS highest, a.category AS category FROM {sold} "
            "GROUP BY a.id, a.category) GROUP BY category",
            "q9": "SELECT id, item_name, description, initial_bid, reserve, opened, expires, seller, category, about, auction, bidder, "
            "price, bid_at, bid_about FROM (SELECT a.id AS id, a.item_name AS item_name, a.description AS description, "
            "a.initial_bid AS initial_bid, a.reserve AS reserve, a.date_time AS opened, a.expires AS expires, a.seller AS seller, "
            "a.category AS category, a.extra AS about, b.auction AS auction, b.bidder AS bidder, b.price AS price, "
            "b.date_time AS bid_at, b.extra AS bid_about, "
            f"row_number() OVER (PARTITION BY a.id ORDER BY b.price DESC, b.date_time ASC) AS n FROM {sold}) WHERE n <= 1",
            "q15": f"SELECT {day}, {bids}, {distinct} FROM bid GROUP BY {day}",
            "q16": f"SELECT channel, {day}, max({self.minute()}), {bids}, {distinct} FROM bid GROUP BY channel, {day}",
            "q17": f"SELECT auction, {day}, {bids}, min(price), max(price), avg(price), sum(price) FROM bid GROUP BY auction, {day}",
            "q18": f"SELECT {columns} FROM (SELECT {columns}, "
            "row_number() OVER (PARTITION BY bidder, auction ORDER BY date_time DESC) AS n FROM bid) WHERE n <= 1",
            "q19": f"SELECT {columns}, n FROM (SELECT {columns}, row_number() OVER (PARTITION BY auction ORDER BY price DESC) AS n "
            "FROM bid) WHERE n <= 10",
            "q20": "SELECT b.auction, b.bidder, b.price, b.channel, b.url, b.date_time, b.extra, a.item_name, a.description, "
            "a.initial_bid, a.reserve, a.date_time AS opened, a.expires, a.seller, a.category, a.extra AS about FROM bid b JOIN auction a "
            "ON b.auction = a.id WHERE a.category = 10",
            "q22": f"SELECT auction, bidder, price, channel, {self.part(4)}, {self.part(5)}, {self.part(6)} FROM bid",
            **self.windows(),
        }


class ClickHouse(Dialect):
    def day(self):
        return "formatDateTime(date_time, '%Y-%m-%d')"

    def minute(self):
        return "formatDateTime(date_time, '%H:%i')"

    def part(self, number):
        return f"splitByChar('/', url)[{number}]"

    def discounted(self):
        return "toDecimal64('0.908', 3) * toDecimal64(price, 0)"

    def count(self, condition=None):
        return f"countIf({condition})" if condition else "count(*)"

    def distinct(self, column, condition=None):
        return f"uniqExactIf({column}, {condition})" if condition else f"uniqExact({column})"

    def bucket(self, seconds):
        return f"toStartOfInterval(date_time, INTERVAL {seconds} SECOND)"

    def hops(self):
        return (
            f"(SELECT auction, w, count(*) AS num FROM (SELECT auction, {self.bucket(2)} - "
            "toIntervalSecond(arrayJoin([0, 2, 4, 6, 8])) AS w FROM bid) GROUP BY auction, w)"
        )

    def opens(self):
        before = (
            "lagInFrame(date_time, 1, toDateTime64('1970-01-01 00:00:00', 3)) OVER "
            "(PARTITION BY bidder ORDER BY date_time ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)"
        )
        return f"if(toUnixTimestamp64Milli(date_time) - toUnixTimestamp64Milli({before}) <= 10000, 0, 1)"


class Flink(Dialect):
    def day(self):
        return "DATE_FORMAT(date_time, 'yyyy-MM-dd')"

    def minute(self):
        return "DATE_FORMAT(date_time, 'HH:mm')"

    def part(self, number):
        return f"SPLIT_INDEX(url, '/', {number - 1})"

    def discounted(self):
        return "0.908 * price"

    def windows(self):
        tumble = "TABLE(TUMBLE(TABLE {}, DESCRIPTOR(date_time), INTERVAL '10' SECOND))"
        counts = (
            "SELECT auction, count(*) AS num, window_start AS s, window_end AS e FROM TABLE(HOP(TABLE bid, DESCRIPTOR(date_time), "
            "INTERVAL '2' SECOND, INTERVAL '10' SECOND)) GROUP BY auction, window_start, window_end"
        )
        return {
            "q5": f"SELECT x.auction, x.num FROM ({counts}) x JOIN (SELECT max(num) AS most, s, e FROM ({counts}) GROUP BY s, e) y "
            "ON x.s = y.s AND x.e = y.e AND x.num >= y.most",
            "q7": "SELECT b.auction, b.price, b.bidder, b.date_time, b.extra FROM bid b JOIN (SELECT max(price) AS most, window_end AS e "
            f"FROM {tumble.format('bid')} GROUP BY window_start, window_end) m ON b.price = m.most "
            "WHERE b.date_time BETWEEN m.e - INTERVAL '10' SECOND AND m.e",
            "q8": "SELECT p.id, p.name, p.s FROM (SELECT id, name, window_start AS s, window_end AS e "
            f"FROM {tumble.format('person')} GROUP BY id, name, window_start, window_end) p JOIN (SELECT seller, window_start AS s, "
            f"window_end AS e FROM {tumble.format('auction')} GROUP BY seller, window_start, window_end) a "
            "ON p.id = a.seller AND p.s = a.s AND p.e = a.e",
            "q11": "SELECT bidder, count(*), window_start, window_end FROM TABLE(SESSION(TABLE bid PARTITION BY bidder, "
            "DESCRIPTOR(date_time), INTERVAL '10' SECOND)) GROUP BY bidder, window_start, window_end",
        }
