"""kill -9 under load, again and again: crash.py [--kills N] [--seed S] [--sinks | --plant lost|doubled|older]

Producers write records with known numbers (acks=all, idempotent), writers insert rows with known numbers into a table, a reader polls
views that are chained over both, and the server is killed at random moments: while it serves, while it recovers, while a checkpoint is
being written. Once all is over, the topic is read back by another client, and every view is compared with a recomputation from what was read:
no row is missing, none is there twice. What was acknowledged is there, and no answer is from an older epoch than one before it.

With `--sinks` views also go into tables and files, which have to hold the same rows (crash_sinks.py).

Without either the directory's `state` is now and then replaced by an older copy with the newer journals: the way back is then long enough
to be killed on, and leads to the same place. `--plant` damages the data directory in the way its name says before the last start: the offsets
in the checkpoint are moved ahead of the state, or behind it, or all of the directory is an older copy. The run then has to fail.
"""
import argparse
import collections
import datetime
import json
import os
import random
import shutil
import tempfile
import threading
import time

import psycopg
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from crash_record import move_offsets
from harness import Checks, Server, free_port, read_topic, wait_until

PRODUCERS, KEYS, BASE = 3, 2000, datetime.datetime(2026, 1, 1)
VIEWS = {
    "events": "SELECT producer, seq, k, v, at FROM facts",
    "progress": "SELECT producer, count(*) AS n, max(seq) AS latest FROM facts GROUP BY producer",
    "joined": "SELECT f.producer, f.seq, f.v, f.at, n.id, n.weight FROM facts f JOIN notes n ON f.k = n.k",
    "windows": "SELECT window_start, producer, count(*) AS n, sum(v * weight) AS total FROM TUMBLE(joined, at, INTERVAL '1 second') "
    "GROUP BY window_start, producer",
    "best": "SELECT producer, window_start, total, place FROM (SELECT *, row_number() OVER (PARTITION BY producer ORDER BY total DESC, window_start) "
    "AS place FROM windows) q WHERE place <= 3",
}
# All at one epoch, because it is one statement. Every column only grows, by the nature of what is written.
POLL = (
    "SELECT (SELECT sum(n) FROM progress), (SELECT n FROM progress WHERE producer = 0), (SELECT latest + 1 FROM progress WHERE producer = 0), "
    "(SELECT count(*) FROM joined), (SELECT sum(n) FROM windows), (SELECT sum(total) FROM best WHERE place = 1), (SELECT count(*) FROM notes)")
POLLED = ["progress", "progress of 0", "progress of 0 by its numbers", "joined", "windows", "best", "notes"]


class Load:
    """Everything that goes on beside the kills, and what it saw."""

    def __init__(self, kafka, pg, seed):
        self.kafka, self.pg, self.seed = kafka, pg, seed
        self.over = threading.Event()
        self.produced = [set() for _ in range(PRODUCERS)]  # acknowledged numbers
        self.inserted, self.unsure = {}, {}
        self.newest, self.polls, self.lives, self.wrong = [0] * len(POLLED), 0, 0, []
        self.threads = [threading.Thread(target=self.produce, args=(number,), daemon=True) for number in range(PRODUCERS)]
        self.threads += [threading.Thread(target=self.insert, daemon=True), threading.Thread(target=self.read, daemon=True)]

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        for thread in self.threads:
            thread.join()

    def connect(self):
        host, port = self.pg.rsplit(":", 1)
        return psycopg.connect(host=host, port=port, user="root", dbname="dev", autocommit=True, connect_timeout=5)

    def produce(self, number):
        """Producer 0 lasts, so that every kill makes it send again what it got no answer for. The others begin anew, which is sooner: of what
        was under way then nobody knows whether it arrived."""
        choice = random.Random(f"{self.seed} producer {number}")
        acknowledged, seq = self.produced[number], 0

        def delivered(error, record):
            if not error:
                acknowledged.add(json.loads(record.value())["seq"])
            elif number == 0:
                self.wrong.append(f"producer 0 was refused: {error}")

        while not self.over.is_set():
            down = threading.Event()
            producer = Producer({
                "bootstrap.servers": self.kafka, "acks": "all", "enable.idempotence": True, "linger.ms": 2, "message.timeout.ms": 120_000,
                "reconnect.backoff.ms": 10, "reconnect.backoff.max.ms": 50, "retry.backoff.ms": 10, "retry.backoff.max.ms": 20, "log_level": 0,
                "error_cb": lambda _, down=down: down.set()})
            while not self.over.is_set() and not (number and down.is_set()):
                if len(producer) < 1000:
                    for _ in range(10):
                        at = BASE + datetime.timedelta(milliseconds=seq)
                        row = {"producer": number, "seq": seq, "k": choice.randrange(KEYS), "v": choice.randrange(100), "at": f"{at:%Y-%m-%d %H:%M:%S.%f}"}
                        producer.produce("facts", json.dumps(row), partition=number, on_delivery=delivered)
                        seq += 1
                producer.poll(0.01)
            if not self.over.is_set():
                producer.purge()
            if left := producer.flush(60):
                self.wrong.append(f"producer {number} got no answer for {left} records")

    def insert(self):
        choice = random.Random(f"{self.seed} inserts")
        row = 0
        while not self.over.is_set():
            try:
                with self.connect() as connection:
                    while not self.over.is_set():
                        row += 1
                        values = (row, choice.randrange(KEYS), choice.randrange(1, 10))
                        self.unsure[row] = values
                        connection.execute("INSERT INTO notes VALUES (%s, %s, %s)", values)
                        self.inserted[row] = self.unsure.pop(row)
                        time.sleep(0.005)
            except psycopg.Error as error:
                self.note(error)

    def read(self):
        while not self.over.is_set():
            try:
                with self.connect() as connection:
                    self.lives += 1
                    while not self.over.is_set():
                        self.compare([int(value or 0) for value in connection.execute(POLL).fetchone()])
            except psycopg.Error as error:
                self.note(error)

    def note(self, error):
        """The server was killed, or a view is not there again; anything else is wrong."""
        if error.sqlstate not in (None, "55000", "57P01", "57P03"):
            self.wrong.append(f"{error.sqlstate}: {error}")
        time.sleep(0.01)

    def compare(self, now):
        self.polls += 1
        for what, before, value in zip(POLLED, self.newest, now):
            if value < before:
                self.wrong.append(f"a reader went back: {what} was {before} and is {value}")
        if now[1] != now[2]:
            self.wrong.append(f"{now[1]} records of producer 0 are counted, and {now[2]} by their numbers")
        if now[3] != now[4]:
            self.wrong.append(f"in one statement joined has {now[3]} rows, and windows count {now[4]}")
        self.newest = [max(pair) for pair in zip(self.newest, now)]


def recompute(facts, notes):
    """What the views have to hold, by name."""
    progress = {}
    by_key = collections.defaultdict(list)
    for note in notes:
        by_key[note[1]].append(note)
    joined, windows = [], {}
    for fact in facts:
        producer, seq = fact["producer"], fact["seq"]
        n, latest = progress.get(producer, (0, -1))
        progress[producer] = (n + 1, max(latest, seq))
        at = BASE + datetime.timedelta(milliseconds=seq)
        for number, _, weight in by_key[fact["k"]]:
            joined.append((producer, seq, fact["v"], at, number, weight))
            key = (at.replace(microsecond=0), producer)
            n, total = windows.get(key, (0, 0))
            windows[key] = (n + 1, total + fact["v"] * weight)
    best = []
    for producer in range(PRODUCERS):
        order = sorted((-total, start) for (start, its), (_, total) in windows.items() if its == producer)
        best += [(producer, start, -total, place + 1) for place, (total, start) in enumerate(order[:3])]
    return {
        "events": [(fact["producer"], fact["seq"], fact["k"], fact["v"], BASE + datetime.timedelta(milliseconds=fact["seq"])) for fact in facts],
        "progress": [(producer, *values) for producer, values in progress.items()], "joined": joined,
        "windows": [(*key, *values) for key, values in windows.items()], "best": best}


def difference(found, expected):
    found, expected = collections.Counter(found), collections.Counter(expected)
    missing, surplus = expected - found, found - expected
    return f"{missing.total()} rows missing, {surplus.total()} too many: {list(missing)[:2]} {list(surplus)[:2]}" if missing or surplus else ""


def define(server):
    admin = AdminClient({"bootstrap.servers": server.kafka})
    admin.create_topics([NewTopic("facts", PRODUCERS, 1)])["facts"].result(10)
    with server.connect() as connection:
        connection.execute(
            "CREATE SOURCE facts (producer INT, seq BIGINT, k INT, v BIGINT, at TIMESTAMP) WITH (connector = 'kafka', topic = 'facts', "
            f"properties.bootstrap.server = '{server.kafka}', scan.startup.mode = 'earliest') FORMAT PLAIN ENCODE JSON")
        connection.execute("CREATE TABLE notes (id BIGINT PRIMARY KEY, k INT, weight BIGINT)")
        for name, query in VIEWS.items():
            connection.execute(f"CREATE MATERIALIZED VIEW {name} AS {query}")


def kill_somewhere(server, choice, state):
    """Kills a server that was started a moment ago; says when."""
    moment = choice.choice(["starting", "serving", "checkpoint"])
    if moment == "starting":
        time.sleep(choice.uniform(0, 0.4))
    elif server.wait_ready():
        time.sleep(choice.uniform(0.05, 0.7))
        if moment == "checkpoint":
            wait_until(lambda: any(name.endswith(".new") for name in os.listdir(state)), 1, pause=0)
    ended = server.process.poll()
    server.kill()
    if ended is not None:
        raise RuntimeError(f"the server ended by itself with {ended}:\n" + "".join(server.lines[-30:]))
    return moment


def go_back(state, older):
    """An older copy of `state`, with the journals of the newer: recovery has a longer way, and gets to the same place."""
    journals = [name for name in os.listdir(state) if name.startswith("journal-") and not name.endswith(".new")]
    shutil.move(state, f"{state}.newer")
    shutil.copytree(older, state)
    for name in journals:
        shutil.copy(f"{state}.newer/{name}", f"{state}/{name}")
    shutil.rmtree(f"{state}.newer")


def plant(how, data_dir, older_dir):
    """Puts a fault in place; false when there is too little yet for it to show."""
    if how == "older":
        shutil.rmtree(data_dir)
        shutil.move(older_dir, data_dir)
        return True
    return move_offsets(f"{data_dir}/state", 40 if how == "lost" else -40)


def check_all(checks, load, server, sinks):
    with server.connect() as connection:
        connection.execute("FLUSH")
        facts = [json.loads(value) for _, _, value in read_topic(server.kafka, "facts")]
        notes = connection.execute("SELECT * FROM notes").fetchall()
        views = {name: connection.execute(f"SELECT * FROM {name}").fetchall() for name in VIEWS}
        jobs = connection.execute("SHOW JOBS").fetchall()
    numbers = collections.Counter((fact["producer"], fact["seq"]) for fact in facts)
    acknowledged = {(producer, seq) for producer, numbers in enumerate(load.produced) for seq in numbers}
    missing = acknowledged - set(numbers)
    checks.check(not missing, f"{len(acknowledged)} acknowledged records are in the topic", f"{len(missing)} are not: {sorted(missing)[:3]}")
    checks.check(len(numbers) == len(facts), "no record is there twice", f"{len(facts) - len(numbers)} are")
    stored = {row[0]: row for row in notes}
    lost = [row for row in load.inserted if row not in stored]
    checks.check(not lost, f"{len(load.inserted)} acknowledged INSERTs are in the table", f"{len(lost)} are not: {lost[:3]}")
    foreign = [row for row in notes if row not in (load.inserted.get(row[0]), load.unsure.get(row[0]))]
    checks.check(not foreign and len(stored) == len(notes), "the table has nothing else", foreign[:3])
    computed = recompute(facts, notes)
    for name, expected in computed.items():
        wrong = difference(views[name], expected)
        checks.check(not wrong, f"{name} is the recomputation, {len(expected)} rows", wrong)
    checks.check(all(job[2] == "running" for job in jobs), "all jobs run", jobs)
    if sinks:
        import crash_sinks

        expected = {"events_lake": computed["events"], "events_folder": computed["events"], "windows_lake": computed["windows"]}
        crash_sinks.check(checks, *sinks, expected, difference)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--interval", type=int, default=20, help="milliseconds from checkpoint to checkpoint")
    parser.add_argument("--sinks", action="store_true")
    parser.add_argument("--plant", choices=["lost", "doubled", "older"])
    arguments = parser.parse_args()
    checks = Checks("crash")
    print(f"seed {arguments.seed}, {arguments.kills} kills")
    choice = random.Random(arguments.seed)
    root = tempfile.mkdtemp(prefix="millrace-crash-")
    data_dir = f"{root}/data"
    state, older = f"{data_dir}/state", f"{root}/older"
    pg, kafka, catalog = (f"127.0.0.1:{free_port()}" for _ in range(3))
    sinks = (catalog, f"{root}/folder") if arguments.sinks else None
    moments = collections.Counter()

    def server():
        # State moves to another number of workers now and then, and may be killed while it does.
        workers = choice.choice([1, 1, 2, 3])
        return Server(
            pg=pg, kafka=kafka, catalog=catalog if sinks else "off", data_dir=data_dir, workers=workers,
            options=["--checkpoint-interval", str(arguments.interval)])

    try:
        with server() as first:
            define(first)
            if sinks:
                import crash_sinks

                with first.connect() as connection:
                    crash_sinks.define(connection, *sinks)
        with Load(kafka, pg, arguments.seed) as load:
            for number in range(arguments.kills):
                next_server = server()
                next_server.start()
                moments[kill_somewhere(next_server, choice, state)] += 1
                if number == arguments.kills // 3:
                    shutil.copytree(data_dir if arguments.plant == "older" else state, older)
                if arguments.plant and number == arguments.kills - 1:
                    while not plant(arguments.plant, data_dir, older):
                        longer = server()
                        longer.start()
                        if longer.wait_ready():
                            time.sleep(0.5)
                        longer.kill()
                # What a target was told stays true: with sinks no older state is put in the place of the newer.
                if not arguments.plant and not sinks and number > arguments.kills // 3 and choice.random() < 0.2:
                    go_back(state, older)
            last = server()
            last.start()
            before = load.polls
            wait_until(lambda: load.polls > before + 20, 30)
        with last:
            try:
                check_all(checks, load, last, sinks)
            except psycopg.Error as error:
                checks.check(False, "every view answers", str(error))
        print(f"  killed while {dict(moments)}; {load.lives} connections read {load.polls} times")
        checks.check(load.polls > arguments.kills, "readers were answered between the kills", load.polls)
        checks.check(not load.wrong, "no reader saw an older epoch, half an epoch or an error", f"{len(load.wrong)} times: {load.wrong[:3]}")
    finally:
        shutil.rmtree(root, ignore_errors=True)
    checks.finish()


main()
