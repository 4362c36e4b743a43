"""Money moves between accounts and the total never changes: not in the table, not in a view over it, not after kill -9.

Writers transfer in blocks of two UPDATEs and an INSERT into a ledger, and run a block again on 40001; others add to a counter in single
statements. Readers poll the total in the table and in the view. Then the server is killed while all still write, and what comes back
must hold every transfer that was answered, whole.
"""
import argparse
import collections
import random
import tempfile
import threading

import psycopg

from harness import Checks, Server

ACCOUNTS, BALANCE = 100, 1000


class Clients:
    """Threads with a connection each, until they are told to stop or the server is gone."""

    def __init__(self, server, seed):
        self.server, self.seed, self.stop = server, seed, threading.Event()
        self.threads, self.lock = [], threading.Lock()
        self.acknowledged, self.counted, self.retries, self.problems = {}, 0, 0, []
        self.reads, self.wrong = collections.Counter(), []

    def start(self, body, number):
        def run():
            try:
                with self.server.connect() as connection:
                    while not self.stop.is_set():
                        body(connection, number)
            except psycopg.OperationalError:
                if not self.stop.is_set():
                    self.problems.append("the connection was lost")
            except Exception as error:  # noqa: BLE001: told at the end
                self.problems.append(repr(error))

        thread = threading.Thread(target=run)
        self.threads.append(thread)
        thread.start()

    def transfer(self, connection, number):
        generator = self.__dict__.setdefault(f"random{number}", random.Random(self.seed * 1000 + number))
        serial = self.__dict__.setdefault(f"serial{number}", 0)
        self.__dict__[f"serial{number}"] += 1
        identifier = number * 10_000_000 + serial
        # Few accounts are hot, so that blocks meet.
        source, target = (generator.randrange(5 if generator.random() < 0.2 else ACCOUNTS) for _ in range(2))
        amount = generator.randrange(1, 50)
        while not self.stop.is_set():
            try:
                with connection.transaction():
                    connection.execute("UPDATE accounts SET balance = balance - %s WHERE id = %s", (amount, source))
                    connection.execute("UPDATE accounts SET balance = balance + %s WHERE id = %s", (amount, target))
                    connection.execute("INSERT INTO ledger VALUES (%s, %s, %s, %s)", (identifier, source, target, amount))
            except psycopg.errors.SerializationFailure:
                with self.lock:
                    self.retries += 1
                continue
            with self.lock:
                self.acknowledged[identifier] = (source, target, amount)
            return

    def count(self, connection, _):
        connection.execute("UPDATE counter SET n = n + 1")
        with self.lock:
            self.counted += 1

    def read(self, connection, number):
        kind, query = [("view", "SELECT total FROM totals"), ("table", "SELECT sum(balance) FROM accounts")][number % 2]
        total = connection.execute(query).fetchone()[0]
        with self.lock:
            self.reads[kind] += 1
            if total != ACCOUNTS * BALANCE:
                self.wrong.append((kind, total))

    def join(self):
        self.stop.set()
        for thread in self.threads:
            thread.join()


def begin(connection):
    connection.execute("CREATE TABLE accounts (id int PRIMARY KEY, balance bigint NOT NULL)")
    connection.execute("CREATE TABLE ledger (id bigint PRIMARY KEY, source int, target int, amount int)")
    connection.execute("CREATE TABLE counter (n bigint)")
    connection.execute("INSERT INTO counter VALUES (0)")
    rows = ", ".join(f"({number}, {BALANCE})" for number in range(ACCOUNTS))
    connection.execute(f"INSERT INTO accounts VALUES {rows}")
    connection.execute("CREATE MATERIALIZED VIEW totals AS SELECT sum(balance) AS total FROM accounts")


def verify(checks, connection, clients, moment):
    ledger = {row[0]: row[1:] for row in connection.execute("SELECT id, source, target, amount FROM ledger").fetchall()}
    missing = [key for key, value in clients.acknowledged.items() if ledger.get(key) != value]
    checks.check(not missing, f"{moment}: all {len(clients.acknowledged)} answered transfers are there", f"{missing[:5]} are not")
    expected = dict.fromkeys(range(ACCOUNTS), BALANCE)
    for source, target, amount in ledger.values():
        expected[source] -= amount
        expected[target] += amount
    found = dict(connection.execute("SELECT id, balance FROM accounts").fetchall())
    checks.check(found == expected, f"{moment}: balances are what the {len(ledger)} transfers in the ledger make")
    totals = [connection.execute(query).fetchone()[0] for query in ("SELECT total FROM totals", "SELECT sum(balance) FROM accounts")]
    checks.check(totals == [ACCOUNTS * BALANCE] * 2, f"{moment}: the total", totals)
    counter = connection.execute("SELECT n FROM counter").fetchone()[0]
    return counter


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--reads", type=int, default=4000)
    parser.add_argument("--writers", type=int, default=4)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    checks = Checks("transfers")
    with tempfile.TemporaryDirectory(prefix="millrace-transfers-") as directory:
        with Server(data_dir=directory, workers=options.workers) as server:
            with server.connect() as connection:
                begin(connection)
            clients = Clients(server, options.seed)
            for number in range(options.writers):
                clients.start(clients.transfer, number)
            for number in range(8):
                clients.start(clients.count, number)
            for number in range(2):
                clients.start(clients.read, number)
            while sum(clients.reads.values()) < options.reads and not clients.problems:
                clients.stop.wait(0.05)
            clients.join()
            checks.check(not clients.problems, "no client failed", clients.problems[:3])
            checks.check(
                not clients.wrong, f"{dict(clients.reads)} reads, {len(clients.acknowledged)} transfers, {clients.retries} run again: one total",
                clients.wrong[:5])
            with server.connect() as connection:
                counter = verify(checks, connection, clients, "at the end")
                checks.check(counter == clients.counted, f"{clients.counted} additions from 8 clients, none lost", counter)

            # Killed while all write.
            clients.stop = threading.Event()
            clients.threads = []
            for number in range(options.writers):
                clients.start(clients.transfer, number)
            for number in range(8):
                clients.start(clients.count, number)
            clients.stop.wait(1)
            before = len(clients.acknowledged)
            clients.stop.set()
            server.process.kill()
            server.process.wait()
            clients.join()
        with Server(data_dir=directory, workers=options.workers) as server, server.connect() as connection:
            counter = verify(checks, connection, clients, f"after kill -9 at {before} transfers")
            # One statement of each client may have been stored and not answered.
            checks.check(clients.counted <= counter <= clients.counted + 8, "after kill -9: the counter", f"{counter}, answered {clients.counted}")
            connection.execute("UPDATE accounts SET balance = balance + 1 WHERE id = 0")
            checks.check(connection.execute("SELECT total FROM totals").fetchone()[0] == ACCOUNTS * BALANCE + 1, "views go on after the restart")
    checks.finish()


main()
