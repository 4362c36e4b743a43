"""Nexmark queries as materialized views over files, against DuckDB over the same files, compared as multisets of rows."""
import argparse
import collections
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
}


def bag(rows):
    return collections.Counter(tuple(str(value) for value in row) for row in rows)


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
