"""kill -9 and start over one data directory: restart.py [--rounds N] [--seed S]

Sources, views and tables are made by psql over a topic, the server is killed at random moments, also in the middle of definitions, and
after each start the catalog is compared with what was acknowledged and every view with a recount of the topic.
"""
import argparse
import json
import os
import random
import shutil
import sqlite3
import stat
import subprocess
import tempfile
import threading

import psycopg
from confluent_kafka import Producer
from harness import BINARY, Checks, Server, free_port, wait_until

NAMES = ["plain", "Größe", "事件 🐟", 'with "quotes"', "it's", "select"]


def quoted(name):
    return '"' + name.replace('"', '""') + '"'


def produce(server, topic, rows):
    failures = []
    producer = Producer({"bootstrap.servers": server.kafka})
    for row in rows:
        producer.produce(topic, json.dumps(row), on_delivery=lambda error, _: failures.append(error) if error else None)
    producer.flush(20)
    if failures:
        raise RuntimeError(f"{len(failures)} records were not acknowledged: {failures[0]}")


def recount(rows):
    sums = {}
    for row in rows:
        count, total = sums.get(row["k"], (0, 0))
        sums[row["k"]] = (count + 1, total + row["v"])
    return sorted((k, count, total) for k, (count, total) in sums.items())


def views_are_right(checks, server, rows, what):
    expected = recount(rows)
    with server.connect() as connection:
        answers = [connection.execute(f"SELECT * FROM {quoted(name)}").fetchall() for name in NAMES]
        above = connection.execute("SELECT most FROM above").fetchone()[0]
    wrong = [name for name, answer in zip(NAMES, answers) if sorted(answer) != expected]
    checks.check(not wrong, f"{what}: {len(NAMES)} views are the topic's recount at the first SELECT", f"{wrong} of {expected}")
    checks.check(above == max(total for _, _, total in expected), f"{what}: so is a view over a view", above)


def first_life(checks, directory, kafka, rows):
    with Server(kafka=kafka, data_dir=directory) as server:
        produce(server, "facts", rows)
        statements = [
            "CREATE SCHEMA other",
            f"CREATE SOURCE facts (k INT, v BIGINT) WITH (connector = 'kafka', topic = 'facts', properties.bootstrap.server = '{kafka}', "
            "scan.startup.mode = 'earliest') FORMAT PLAIN ENCODE JSON",
            "CREATE TABLE notes (id INT PRIMARY KEY, text VARCHAR DEFAULT 'none')",
            "CREATE VIEW doubled AS SELECT k, v * 2 AS twice FROM facts",
        ]
        statements += [f"CREATE MATERIALIZED VIEW {quoted(n)} AS SELECT k, count(*) AS n, sum(twice) / 2 AS s FROM doubled GROUP BY k" for n in NAMES]
        statements += [
            "CREATE MATERIALIZED VIEW above AS SELECT max(s) AS most FROM plain",
            "CREATE MATERIALIZED VIEW other.noted AS SELECT id, text FROM notes",
            "CREATE MATERIALIZED VIEW gone AS SELECT k FROM facts",
            "DROP MATERIALIZED VIEW gone",
        ]
        done = server.psql("-v", "ON_ERROR_STOP=1", *[part for statement in statements for part in ("-c", statement)])
        checks.check(done.returncode == 0, "psql makes a source, a table and views", done.stderr)
        server.kill()
    mode = stat.S_IMODE(os.stat(f"{directory}/meta.db").st_mode)
    checks.check(mode == 0o600, "meta.db is readable by its owner alone", oct(mode))


def second_life(checks, directory, kafka, rows):
    with Server(kafka=kafka, data_dir=directory) as server:
        views_are_right(checks, server, rows, "after kill -9")
        listed = server.psql("-At", "-c", "SELECT relname FROM pg_class WHERE relkind = 'm' ORDER BY oid").stdout.split("\n")[:-1]
        checks.check(listed == NAMES + ["above", "noted"], "pg_class lists the views in their order, and not the dropped one", listed)
        described = server.psql("-c", r"\d notes").stdout
        checks.check("text" in described and "id" in described, r"psql's \d shows the table", described)
        created = server.psql("-At", "-c", "SHOW CREATE SOURCE facts").stdout
        checks.check("scan.startup.mode" in created, "SHOW CREATE SOURCE prints the statement", created)
        more = [{"k": n % 5, "v": n} for n in range(300)]
        produce(server, "facts", more)
        rows += more
        done = server.psql("-v", "ON_ERROR_STOP=1", "-c", "INSERT INTO notes (id) VALUES (1)", "-c", "FLUSH", "-c", "SELECT text FROM other.noted", "-At")
        checks.check(done.stdout.endswith("none\n"), "a restored table takes rows, and its view shows them", done.stdout + done.stderr)
        views_are_right(checks, server, rows, "after more records")
        second = subprocess.run(
            [BINARY, "serve", "--data-dir", directory, "--pg", "127.0.0.1:0", "--kafka", "127.0.0.1:0", "--http", "off"], text=True, capture_output=True, timeout=30)
        checks.check(second.returncode != 0 and "is in use by another process" in second.stderr, "a second process is refused", second.stderr)
        server.kill()


def broker_away(checks, directory, rows):
    """The same directory with the Kafka listener elsewhere: the source's broker is gone."""
    with Server(data_dir=directory) as server:
        with server.connect() as connection:
            connection.execute("INSERT INTO notes (id) VALUES (2)")
            notes = sorted(connection.execute("SELECT * FROM other.noted").fetchall())
            checks.check(notes == [(1, "none"), (2, "none")], "what does not read the lost broker works, and has what was inserted before the kill", notes)
            find = "SHOW JOBS"
            line = wait_until(lambda: next((r for r in connection.execute(find).fetchall() if r[1] == "plain" and r[9]), None), 20)
            checks.check(line and line[2] == "recovering", "SHOW JOBS says why the others wait", line)
            try:
                connection.execute("SELECT * FROM plain")
                checks.check(False, "a view that waits for its broker is refused")
            except psycopg.Error as error:
                checks.check(error.sqlstate == "55000", "a view that waits for its broker is refused with the reason", str(error))
        server.kill()


def definitions_under_fire(checks, directory, kafka, rows, seed, rounds):
    """Definitions one after the other until the server is killed; then what was answered holds."""
    random.seed(seed)
    known, open_statement = set(), None
    for number in range(rounds):
        with Server(kafka=kafka, data_dir=directory) as server:
            with server.connect() as connection:
                listed = {row[0] for row in connection.execute("SELECT relname FROM pg_class WHERE relkind = 'm' AND relname LIKE 'fire%'").fetchall()}
            unsure = {open_statement} if open_statement else set()
            checks.check(listed - unsure == known - unsure, f"round {number}: what was acknowledged is there, and no more", f"{listed ^ known}, open: {unsure}")
            known = listed
            views_are_right(checks, server, rows, f"round {number}")
            timer = threading.Timer(random.uniform(0.05, 0.8), server.process.kill)
            timer.start()
            open_statement = None
            try:
                with server.connect() as connection:
                    while True:
                        name = f"fire{random.randrange(20)}"
                        open_statement = name
                        if name in known:
                            connection.execute(f"DROP MATERIALIZED VIEW {name}")
                            known.discard(name)
                        else:
                            connection.execute(f"CREATE MATERIALIZED VIEW {name} AS SELECT k, max(v) AS m FROM facts GROUP BY k")
                            known.add(name)
                        open_statement = None
            except psycopg.OperationalError:
                pass
            timer.join()
            server.process.wait()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    checks = Checks("restart")
    print(f"seed {arguments.seed}")
    directory = tempfile.mkdtemp(prefix="millrace-restart-")
    try:
        kafka = f"127.0.0.1:{free_port()}"
        rows = [{"k": n % 7, "v": n} for n in range(500)]
        first_life(checks, directory, kafka, rows)
        second_life(checks, directory, kafka, rows)
        broker_away(checks, directory, rows)
        definitions_under_fire(checks, directory, kafka, rows, arguments.seed, arguments.rounds)
        with sqlite3.connect(f"{directory}/meta.db") as database:
            checks.check(database.execute("PRAGMA integrity_check").fetchone()[0] == "ok", "meta.db is whole after all that")
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    checks.finish()


main()
