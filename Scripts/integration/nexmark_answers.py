"""Nexmark queries as materialized views over files, against DuckDB over the same files, compared as multisets of rows."""
import argparse
import collections
import decimal
import subprocess
import tempfile

import duckdb
import psycopg

from harness import BINARY, Checks, Server
from nexmark import COLUMNS

TEN = "time_bucket(INTERVAL 10 SECOND, {})"
COUNTS = (
    "(SELECT auction, w, count(*) AS num FROM (SELECT auction, time_bucket(INTERVAL 2 SECOND, date_time) - to_seconds(k) AS w "
    "FROM bid, (VALUES (0), (2), (4), (6), (8)) v(k)) GROUP BY auction, w)"
)
DAY = "strftime(date_time, '%Y-%m-%d')"
PRICES = ("", " FILTER (WHERE price < 10000)", " FILTER (WHERE price >= 10000 AND price < 1000000)", " FILTER (WHERE price >= 1000000)")
BIDS = ", ".join(f"count(*){condition}" for condition in PRICES)
DISTINCT = ", ".join(f"count(DISTINCT {column}){condition}" for column in ("bidder", "auction") for condition in PRICES)
ALL = "auction, bidder, price, channel, url, date_time, extra"
SALES = (
    "(SELECT a.*, b.auction, b.bidder, b.price, b.date_time AS bid_time, b.extra AS bid_extra FROM auction a JOIN bid b ON a.id = b.auction "
    "WHERE b.date_time BETWEEN a.date_time AND a.expires)"
)
# Which of several equal rows is kept is up to the engine: each stands after its order key by all other columns, as in Millrace.
QUERIES = {
    "q0": "SELECT auction, bidder, price, date_time, extra FROM bid",
    "q1": "SELECT auction, bidder, CAST(price AS DECIMAL(20, 0)) * 0.908, date_time, extra FROM bid",
    "q2": "SELECT auction, price FROM bid WHERE auction % 123 = 0",
    "q3": "SELECT p.name, p.city, p.state, a.id FROM auction a JOIN person p ON a.seller = p.id "
    "WHERE a.category = 10 AND p.state IN ('OR', 'ID', 'CA')",
    "q5": f"SELECT x.auction, x.num FROM {COUNTS} x JOIN (SELECT w, max(num) AS most FROM {COUNTS} GROUP BY w) y ON x.w = y.w AND x.num >= y.most",
    "q7": f"SELECT b.auction, b.price, b.bidder, b.date_time, b.extra FROM bid b JOIN "
    f"(SELECT {TEN.format('date_time')} AS w, max(price) AS most FROM bid GROUP BY w) m ON b.price = m.most "
    "WHERE b.date_time BETWEEN m.w AND m.w + INTERVAL 10 SECOND",
    "q8": f"SELECT p.id, p.name, p.s FROM (SELECT DISTINCT id, name, {TEN.format('date_time')} AS s FROM person) p JOIN "
    f"(SELECT DISTINCT seller, {TEN.format('date_time')} AS s FROM auction) a ON p.id = a.seller AND p.s = a.s",
    "q11": "SELECT bidder, count(*), min(date_time), max(date_time) + INTERVAL 10 SECOND FROM (SELECT bidder, date_time, "
    "sum(opens) OVER (PARTITION BY bidder ORDER BY date_time ROWS UNBOUNDED PRECEDING) AS session FROM (SELECT bidder, date_time, "
    "CASE WHEN date_time - lag(date_time) OVER (PARTITION BY bidder ORDER BY date_time) <= INTERVAL 10 SECOND THEN 0 ELSE 1 END AS opens "
    "FROM bid)) "
    "GROUP BY bidder, session",
    "q4": f"SELECT category, avg(final) FROM (SELECT max(price) AS final, category FROM {SALES} GROUP BY id, category) GROUP BY category",
    "q9": f"SELECT * FROM {SALES} QUALIFY row_number() OVER (PARTITION BY id ORDER BY price DESC, bid_time, bidder, bid_extra) = 1",
    "q15": f"SELECT {DAY}, {BIDS}, {DISTINCT} FROM bid GROUP BY ALL",
    "q16": f"SELECT channel, {DAY}, max(strftime(date_time, '%H:%M')), {BIDS}, {DISTINCT} FROM bid GROUP BY ALL",
    "q17": f"SELECT auction, {DAY}, {BIDS}, min(price), max(price), avg(price), sum(price) FROM bid GROUP BY ALL",
    "q18": f"SELECT {ALL} FROM bid QUALIFY row_number() OVER (PARTITION BY bidder, auction ORDER BY date_time DESC, price, channel, url, extra) = 1",
    "q19": f"SELECT {ALL}, row_number() OVER (PARTITION BY auction ORDER BY price DESC, bidder, channel, url, date_time, extra) AS n FROM bid QUALIFY n <= 10",
    "q20": "SELECT b.auction, b.bidder, b.price, b.channel, b.url, b.date_time, b.extra, a.item_name, a.description, a.initial_bid, a.reserve, "
    "a.date_time, a.expires, a.seller, a.category, a.extra FROM bid b JOIN auction a ON b.auction = a.id WHERE a.category = 10",
    "q22": "SELECT auction, bidder, price, channel, split_part(url, '/', 4), split_part(url, '/', 5), split_part(url, '/', 6) FROM bid",
}


def text(value):
    """Averages are numeric here and double there: twelve digits are the same in both."""
    return f"{float(value):.12g}" if isinstance(value, (float, decimal.Decimal)) else str(value)


def bag(rows):
    return collections.Counter(tuple(text(value) for value in row) for row in rows)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--events", type=int, default=100_000)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    checks = Checks("test-nexmark-answers")
    with tempfile.TemporaryDirectory() as directory, Server(workers=options.workers) as server:
        statements = subprocess.run(
            [BINARY, "bench", "nexmark", "--statements", "--events", str(options.events), "--input", directory, "--query", ",".join(QUERIES)],
            check=True, capture_output=True, text=True).stdout
        host, port = server.pg.rsplit(":", 1)
        reference = duckdb.connect()
        for table, columns in COLUMNS.items():
            types = ", ".join(f"{name}: '{kind}'" for name, kind in (column.split() for column in columns.split(", ")))
            reference.execute(f"CREATE TABLE {table} AS SELECT * FROM read_json('{directory}/{table}/*.jsonl', columns={{{types}}})")
        with psycopg.connect(host=host, port=port, user="root", dbname="dev", autocommit=True) as connection:
            connection.execute(statements)
            connection.execute("FLUSH")
            for name, query in QUERIES.items():
                wanted = bag(reference.execute(query).fetchall())
                found = bag(connection.execute(f"SELECT * FROM {name}").fetchall())
                checks.check(found == wanted and len(wanted) > 0, f"{name}: {sum(wanted.values())} rows",
                             f"{sum(found.values())} found, {sum((wanted - found).values())} missing, {sum((found - wanted).values())} too many")
    checks.finish()


main()
