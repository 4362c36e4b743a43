"""Time of a start over much state: restart_time.py [--rows N] [--runs N] [--workers N] [--view] [--directory DIR]

Makes a table of so many rows (with --view also a view of as many groups over it), ends the server, and starts it again and again,
ended by SIGTERM and by kill -9 in turns. One JSON object a line for each start:

    answers_ms     until a connection is made and SELECT 1 answered
    kafka_ms       until a Kafka client has metadata
    recovered_ms   until a count over the table (and the view) is answered
    rows, bytes    what was read, from the server's log
    rss_mib        afterwards

A directory that is given is kept, and filled only when it is empty.
"""
import argparse
import json
import os
import re
import shutil
import signal
import tempfile
import time

import psycopg
from harness import Server, free_port

SIDE = 1000


def fill(arguments, directory):
    with Server(data_dir=directory, workers=arguments.workers) as server, server.connect() as connection:
        connection.execute("CREATE TABLE side (i BIGINT PRIMARY KEY, one INT)")
        connection.execute("INSERT INTO side VALUES " + ",".join(f"({i},1)" for i in range(SIDE)))
        connection.execute("CREATE TABLE facts (id BIGINT PRIMARY KEY, k BIGINT, name VARCHAR)")
        if arguments.view:
            connection.execute("CREATE MATERIALIZED VIEW sums AS SELECT id, count(*) AS n, sum(k) AS s FROM facts GROUP BY id")
        for start in range(0, arguments.rows, SIDE * SIDE):
            limit = min(arguments.rows - start, SIDE * SIDE)
            connection.execute(
                f"INSERT INTO facts SELECT {start} + a.i * {SIDE} + b.i, b.i, 'the name of row ' || (a.i * {SIDE} + b.i) "
                f"FROM side a JOIN side b ON a.one = b.one WHERE a.i * {SIDE} + b.i < {limit}")


def connected(address, deadline):
    """Seconds until SELECT 1 is answered, from now."""
    host, port = address.rsplit(":", 1)
    start = time.monotonic()
    while True:
        try:
            with psycopg.connect(host=host, port=port, user="root", dbname="dev", autocommit=True, connect_timeout=5) as connection:
                connection.execute("SELECT 1")
                return time.monotonic() - start
        except psycopg.OperationalError:
            if time.monotonic() - start > deadline:
                raise
            time.sleep(0.002)


def metadata(address):
    from confluent_kafka.admin import AdminClient

    start = time.monotonic()
    AdminClient({"bootstrap.servers": address}).list_topics(timeout=30)
    return time.monotonic() - start


def measure(arguments, directory, end):
    address, kafka = f"127.0.0.1:{free_port()}", f"127.0.0.1:{free_port()}"
    server = Server(pg=address, kafka=kafka, data_dir=directory, workers=arguments.workers)
    start = time.monotonic()
    server.start()
    answers = connected(address, 120)
    seen = metadata(kafka)
    server.wait_ready(1)
    with server.connect() as connection:
        counts = [connection.execute("SELECT count(*) FROM facts").fetchone()[0]]
        if arguments.view:
            counts.append(connection.execute("SELECT count(*) FROM sums").fetchone()[0])
    recovered = time.monotonic() - start
    rss = server.rss_mib()
    server.process.send_signal(end)
    began = time.monotonic()
    status = server.process.wait(120)
    line = next((line for line in server.lines if "] recovered" in line or " recovered" in line), "")
    found = {key: int(value) for key, value in re.findall(r"\b(rows|bytes|milliseconds)=(\d+)", line)}
    return {
        "rows": found.get("rows"), "bytes": found.get("bytes"), "workers": arguments.workers, "answers_ms": round(answers * 1000),
        "kafka_ms": round((answers + seen) * 1000), "recovered_ms": round(recovered * 1000), "restore_ms": found.get("milliseconds"), "counts": counts,
        "rss_mib": rss, "ended_by": end.name, "end_ms": round((time.monotonic() - began) * 1000), "status": status,
    }


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--view", action="store_true")
    parser.add_argument("--directory")
    arguments = parser.parse_args()
    directory = arguments.directory or tempfile.mkdtemp(prefix="millrace-restart-time-")
    try:
        if not os.path.exists(f"{directory}/meta.db"):
            fill(arguments, directory)
        for number in range(arguments.runs):
            print(json.dumps(measure(arguments, directory, [signal.SIGTERM, signal.SIGKILL][number % 2])), flush=True)
    finally:
        if not arguments.directory:
            shutil.rmtree(directory, ignore_errors=True)


main()
