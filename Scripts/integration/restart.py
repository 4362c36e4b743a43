"""kill -9 and start over one data directory: restart.py [--rounds N] [--seed S]

Sources, views and tables are made by psql over a topic, the server is killed at random moments, also in the middle of definitions, and
after each start the catalog is compared with what was acknowledged and every view with a recount of the topic.
"""
import argparse
import json
import os
import random
import shutil
import signal
import sqlite3
import stat
import subprocess
import tempfile
import threading
import time

import psycopg
from confluent_kafka import OFFSET_END, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
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
            [BINARY, "serve", "--data-dir", directory, "--pg", "127.0.0.1:0", "--kafka", "127.0.0.1:0", "--http", "off", "--catalog", "off"], text=True, capture_output=True, timeout=30)
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


def ended_while_recovering(checks):
    """SIGTERM at moments of a start: it ends by itself, and the directory is what it was."""
    directory = tempfile.mkdtemp(prefix="millrace-recovering-")
    try:
        with Server(data_dir=directory) as server, server.connect() as connection:
            connection.execute("CREATE TABLE side (i INT PRIMARY KEY, one INT)")
            connection.execute("INSERT INTO side VALUES " + ",".join(f"({n},1)" for n in range(450)))
            connection.execute("CREATE TABLE facts (id INT PRIMARY KEY, name VARCHAR)")
            connection.execute("CREATE MATERIALIZED VIEW sums AS SELECT id % 100 AS k, count(*) AS n FROM facts GROUP BY id % 100")
            connection.execute("INSERT INTO facts SELECT a.i * 450 + b.i, 'a name that is not short ' || b.i FROM side a JOIN side b ON a.one = b.one")
        ends = []
        for delay in [0, 0.02, 0.05, 0.1, 0.2]:
            server = Server(data_dir=directory)
            server.start()
            wait_until(lambda: "pg" in server.addresses or not server.alive, 20, 0.001)
            time.sleep(delay)
            began = time.monotonic()
            server.process.send_signal(signal.SIGTERM)
            ends.append((server.process.wait(30), time.monotonic() - began))
        checks.check(all(status == 0 and seconds < 10 for status, seconds in ends), "SIGTERM ends a start within ten seconds, with status 0", ends)
        with Server(data_dir=directory) as server, server.connect() as connection:
            counts = connection.execute("SELECT (SELECT count(*) FROM facts), (SELECT sum(n) FROM sums)").fetchone()
            checks.check([int(count) for count in counts] == [202_500, 202_500], "and takes nothing away", counts)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def ended_under_load(checks, directory, kafka, rows):
    """SIGTERM while records and rows come in: what was acknowledged is there, and it ends in time."""
    inserted, stop = [], threading.Event()

    def insert(server):
        try:
            with server.connect() as connection:
                number = 1000
                while not stop.is_set():
                    connection.execute(f"INSERT INTO notes VALUES ({number}, 'load')")
                    inserted.append(number)
                    number += 1
        except psycopg.Error:
            pass

    with Server(kafka=kafka, data_dir=directory) as server:
        writer = threading.Thread(target=insert, args=(server,))
        writer.start()
        before = len(rows)
        for _ in range(20):
            more = [{"k": n % 7, "v": n} for n in range(2000)]
            produce(server, "facts", more)
            rows += more
        began = time.monotonic()
        server.process.send_signal(signal.SIGTERM)
        status = server.process.wait(60)
        seconds = time.monotonic() - began
        stop.set()
        writer.join()
        checks.check(status == 0 and seconds < 20, f"SIGTERM under load ({len(rows) - before} records, {len(inserted)} rows) ends with status 0 within 20 s", (status, seconds))
    with Server(kafka=kafka, data_dir=directory) as server:
        views_are_right(checks, server, rows, "after SIGTERM under load")
        with server.connect() as connection:
            found = {row[0] for row in connection.execute("SELECT id FROM notes WHERE id >= 1000").fetchall()}
        checks.check(found >= set(inserted), "rows that were answered are there", sorted(set(inserted) - found)[:5])


WORKER_VIEWS = {
    "sums": "SELECT k, count(*) AS n, sum(v) AS s, min(name) AS least, count(DISTINCT v) AS kinds FROM facts GROUP BY k",
    "total": "SELECT count(*) AS n, sum(v) AS s FROM facts",
    "named": "SELECT f.id, n.name FROM facts f JOIN names n ON f.k = n.k",
    "unnamed": "SELECT f.id, n.name FROM facts f LEFT JOIN names n ON f.v = n.k",
    "best": "SELECT id, k, place FROM (SELECT id, k, row_number() OVER (PARTITION BY k ORDER BY v DESC, id) AS place FROM facts) r WHERE place <= 3",
    "ranked": "SELECT k, n, rank() OVER (ORDER BY n DESC) AS place FROM sums",
    "few": "SELECT k, n FROM sums ORDER BY n DESC, k LIMIT 2",
    "kinds": "SELECT DISTINCT v FROM facts",
}


def worker_answers(server):
    with server.connect() as connection:
        connection.execute("FLUSH")
        return {name: sorted(connection.execute(f"SELECT * FROM {name}").fetchall(), key=repr) for name in [*WORKER_VIEWS, "names"]}


def another_number_of_workers(checks, seed):
    """Another --workers after the records that views were made from are gone: they have what they had, and go on from there."""
    random.seed(seed)
    directory = tempfile.mkdtemp(prefix="millrace-workers-")
    kafka = f"127.0.0.1:{free_port()}"
    rows = []

    def more(server, count):
        fresh = [{"id": len(rows) + n, "k": random.randrange(9), "v": random.randrange(30), "name": "a name " * random.randrange(4)} for n in range(count)]
        for row in fresh:
            row["name"] += str(row["id"])
        produce(server, "facts", fresh)
        rows.extend(fresh)

    def is_recounted(answers):
        found = {row[0]: (row[1], int(row[2]), row[3], row[4]) for row in answers["sums"]}
        expected = {}
        for k in {row["k"] for row in rows}:
            mine = [row for row in rows if row["k"] == k]
            expected[k] = (len(mine), sum(r["v"] for r in mine), min(r["name"] for r in mine), len({r["v"] for r in mine}))
        whole = [(len(rows), sum(row["v"] for row in rows))]
        named = sorted(row["id"] for row in rows if row["k"] < 5)
        return (found == expected and [(n, int(s)) for n, s in answers["total"]] == whole
                and sorted(row[0] for row in answers["named"]) == named and sorted(row[0] for row in answers["unnamed"]) == list(range(len(rows))))

    try:
        with Server(kafka=kafka, data_dir=directory, workers=2) as server:
            admin = AdminClient({"bootstrap.servers": server.kafka})
            admin.create_topics([NewTopic("facts", num_partitions=3, replication_factor=1)])["facts"].result(20)
            more(server, 3000)
            with server.connect() as connection:
                connection.execute(
                    f"CREATE SOURCE facts (id INT, k INT, v INT, name VARCHAR) WITH (connector = 'kafka', topic = 'facts', properties.bootstrap.server = '{kafka}', "
                    "scan.startup.mode = 'earliest') FORMAT PLAIN ENCODE JSON")
                connection.execute("CREATE TABLE names (k INT PRIMARY KEY, name VARCHAR)")
                connection.execute("INSERT INTO names VALUES (0, 'none'), (1, 'one'), (2, 'two'), (3, 'three'), (4, 'four')")
                for name, query in WORKER_VIEWS.items():
                    connection.execute(f"CREATE MATERIALIZED VIEW {name} AS {query}")
            answers = worker_answers(server)
            checks.check(is_recounted(answers), "views of two workers are the topic's recount")
            server.process.send_signal(signal.SIGTERM)
            server.process.wait(20)
        for number, workers in enumerate([4, 1, 3, 2]):
            # Nobody reads the topic before this.
            with Server(kafka=kafka, data_dir=directory, workers=workers) as server:
                admin = AdminClient({"bootstrap.servers": server.kafka})
                ends = [TopicPartition("facts", partition, OFFSET_END) for partition in range(3)]
                for future in admin.delete_records(ends).values():
                    future.result(20)
                time.sleep(random.uniform(0, 0.3))
                server.kill()
            for _ in range(3):
                # Ends in the middle of the start.
                server = Server(kafka=kafka, data_dir=directory, workers=random.randint(1, 4))
                server.start()
                wait_until(lambda: "pg" in server.addresses or not server.alive, 20, 0.001)
                time.sleep(random.uniform(0, 0.1))
                server.kill()
            with Server(kafka=kafka, data_dir=directory, workers=workers) as server:
                found = worker_answers(server)
                wrong = [name for name in answers if answers[name] != found[name]]
                checks.check(not wrong, f"with {workers} workers, and the topic's records deleted, every view has what it had", wrong)
                more(server, 500)
                answers = worker_answers(server)
                checks.check(is_recounted(answers), f"and goes on from there ({workers} workers)")
                with server.connect() as connection:
                    states = connection.execute("SHOW JOBS").fetchall()
                    checks.check(all(row[2] == "running" for row in states), "all of them run", [row[1:3] for row in states if row[2] != "running"])
                server.process.send_signal(signal.SIGTERM)
                server.process.wait(20)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def inspected(checks, directory, kafka):
    """`millrace inspect` of the directory in use, stopped, damaged, and of one that is none."""

    def inspect(path, *options):
        return subprocess.run([BINARY, "inspect", path, *options], text=True, capture_output=True, timeout=60)

    with Server(kafka=kafka, data_dir=directory):
        running = inspect(directory, "--json")
        checks.check(running.returncode == 0 and json.loads(running.stdout)["is_running"], "inspect reads a directory in use, and says so", running.stderr)
    before = {path: os.stat(path).st_mtime_ns for path, _, _ in os.walk(directory)}
    done = inspect(directory, "--json", "--verify")
    found = json.loads(done.stdout)
    checks.check(done.returncode == 0 and not found["damage"] and not found["is_running"], "inspect --verify finds a stopped directory whole", done.stdout[-500:] + done.stderr)
    definitions = {d["name"]: d for d in found["definitions"]}
    checks.check(set(NAMES) <= set(definitions) and definitions["plain"]["plan_version"] >= 1, "it lists definitions with their plans' versions", definitions)
    tables = [t for t in found["checkpoint"]["tables"] if t["name"] == "plain"]
    checks.check(sum(t["rows"] for t in tables) >= 14 and all(t["bytes"] > 0 for t in tables), "and the checkpoint's tables with rows and bytes", tables)
    partitions = [p for p in found["partitions"] if p["topic"] == "facts"]
    read = [o["offset"] for o in found["checkpoint"]["offsets"] if o["topic"] == "facts"]
    checks.check([p["end_offset"] for p in partitions] == read, "and the log's ends, which are the sources' offsets after a stop", (partitions, read))
    text = inspect(directory)
    checks.check(text.returncode == 0 and "no damage found" in text.stdout and "facts" in text.stdout, "inspect prints the same for people", text.stdout + text.stderr)
    checks.check({path: os.stat(path).st_mtime_ns for path, _, _ in os.walk(directory)} == before, "it changes nothing in the directory")
    copy = directory + "-copy"
    shutil.copytree(directory, copy)
    try:
        pages = max((name for name in os.listdir(f"{copy}/state") if name.startswith("pages-")), key=lambda name: os.path.getsize(f"{copy}/state/{name}"))
        with open(f"{copy}/state/{pages}", "r+b") as file:
            file.seek(16 + 40)
            byte = file.read(1)
            file.seek(16 + 40)
            file.write(bytes([byte[0] ^ 1]))
        with open(f"{copy}/state/checkpoint-99999", "wb") as file:
            file.write(b"MILLCKPT torn")
        damaged = inspect(copy, "--verify")
        checks.check(damaged.returncode == 2 and "checkpoint-99999" in damaged.stdout, "it names damage, and its exit status says so", damaged.stdout[-800:])
    finally:
        shutil.rmtree(copy, ignore_errors=True)
    foreign = inspect(os.path.dirname(BINARY))
    missing = inspect(directory + "-none")
    checks.check(foreign.returncode == 1 and "is not a data directory" in foreign.stderr, "it refuses another program's directory", foreign.stderr)
    checks.check(missing.returncode == 1 and "No such file" in missing.stderr, "and one that is not there", missing.stderr)


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
        ended_under_load(checks, directory, kafka, rows)
        inspected(checks, directory, kafka)
        ended_while_recovering(checks)
        another_number_of_workers(checks, arguments.seed)
        with sqlite3.connect(f"{directory}/meta.db") as database:
            checks.check(database.execute("PRAGMA integrity_check").fetchone()[0] == "ok", "meta.db is whole after all that")
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    checks.finish()


main()
