"""A disk that fills up under a running server, and gets room again.

The data directory lies on a tmpfs of 64 MiB in a mount namespace of its own, kept by a process that sleeps; a file beside it takes
what room is left. Writers must be told (53100, a Kafka error that may be retried), readers be answered, everything go on by itself, and
what was acknowledged be there, also after kill -9.
"""
import os
import shutil
import subprocess
import tempfile
import time

import psycopg
from confluent_kafka import KafkaError, Producer
from harness import Checks, Server, free_port, read_topic, wait_until

SIZE_MIB = 64


class SmallDisk:
    """A mount point that only processes in its namespace see; a context manager."""

    def __enter__(self):
        self.path = tempfile.mkdtemp(prefix="millrace-disk-")
        command = f'mount -t tmpfs -o size={SIZE_MIB}m tmpfs "$0" && echo mounted && exec sleep 1000000'
        self.holder = subprocess.Popen(["unshare", "-rm", "sh", "-c", command, self.path], stdout=subprocess.PIPE, text=True)
        if self.holder.stdout.readline() != "mounted\n":
            raise RuntimeError("could not mount a tmpfs")
        self.wrapper = ["nsenter", "-t", str(self.holder.pid), "-U", "-m", "--preserve-credentials"]
        self.ballast = f"/proc/{self.holder.pid}/root{self.path}/ballast"
        return self

    def __exit__(self, *_):
        self.holder.kill()
        self.holder.wait()
        shutil.rmtree(self.path, ignore_errors=True)

    def fill(self):
        """Takes all room that is left, to the last page."""
        with open(self.ballast, "ab", buffering=0) as file:
            for size in [1 << 20, 4096, 1]:
                while True:
                    try:
                        if file.write(bytes(size)) < size:
                            break
                    except OSError:
                        break

    def empty(self):
        os.truncate(self.ballast, 0)


class Writers:
    """What was acknowledged to those who insert and to those who produce."""

    def __init__(self, server):
        self.server, self.inserted, self.produced = server, 0, []
        self.connection = server.connect()

    def insert(self):
        """None, or why a row of 100 kB was refused."""
        try:
            self.connection.execute("INSERT INTO notes VALUES (%s, %s)", (self.inserted, "x" * 100_000))
            self.inserted += 1
            return None
        except psycopg.Error as error:
            return error

    def produce(self):
        """None, or the error of a record of 100 kB that is sent once."""
        errors = []
        producer = Producer({"bootstrap.servers": self.server.kafka, "retries": 0, "message.timeout.ms": 10_000})
        value = b'{"k": %d, "pad": "%s"}' % (len(self.produced), b"y" * 100_000)
        producer.produce("facts", value, on_delivery=lambda error, _: errors.append(error))
        producer.flush(15)
        if errors and errors[0] is None:
            self.produced.append(value)
            return None
        return errors[0] if errors else "nothing was heard"


def until_refused(write, limit=400):
    for _ in range(limit):
        error = write()
        if error is not None:
            return error
    return None


def is_right(checks, server, writers, what):
    with server.connect() as connection:
        connection.execute("FLUSH")
        notes = connection.execute("SELECT count(*), count(DISTINCT id) FROM notes").fetchone()
        view = connection.execute("SELECT n FROM counted").fetchone()[0]
    checks.check(notes == (writers.inserted, writers.inserted), f"{what}: the table has the rows that were acknowledged", (notes, writers.inserted))
    found = [value for _, _, value in read_topic(server.kafka, "facts")]
    # A record whose answer was lost may be there.
    checks.check(set(found) >= set(writers.produced), f"{what}: the topic has the records that were acknowledged", (len(found), len(writers.produced)))
    checks.check(view == len(found), f"{what}: the view counts the topic", (view, len(found)))


def main():
    checks = Checks("disk-full")
    with SmallDisk() as disk:
        kafka, directory = f"127.0.0.1:{free_port()}", f"{disk.path}/data"
        with Server(kafka=kafka, data_dir=directory, wrapper=disk.wrapper) as server:
            writers = Writers(server)
            for statement in [
                "CREATE TABLE notes (id INT PRIMARY KEY, text VARCHAR)",
                f"CREATE SOURCE facts (k INT) WITH (connector = 'kafka', topic = 'facts', properties.bootstrap.server = '{kafka}', "
                "scan.startup.mode = 'earliest') FORMAT PLAIN ENCODE JSON",
                "CREATE MATERIALIZED VIEW counted AS SELECT count(*) AS n FROM facts",
            ]:
                writers.connection.execute(statement)
            checks.check(all(write() is None for write in [writers.insert, writers.produce] * 2), "rows and records are taken while there is room")
            for round in ["first", "second"]:
                disk.fill()
                refused = until_refused(writers.insert)
                checks.check(isinstance(refused, psycopg.Error) and refused.sqlstate == "53100", f"{round} time: INSERT is refused with 53100", refused)
                refused = until_refused(writers.produce)
                checks.check(
                    isinstance(refused, KafkaError) and refused.code() == KafkaError.KAFKA_STORAGE_ERROR, f"{round} time: a producer is told of the storage", refused)
                with server.connect() as connection:
                    connection.execute("SET statement_timeout = '10s'")
                    count = connection.execute("SELECT count(*) FROM notes").fetchone()[0]
                    jobs = connection.execute("SHOW JOBS").fetchall()
                checks.check(count == writers.inserted and len(jobs) == 1, f"{round} time: reads are answered meanwhile", (count, writers.inserted))
                try:
                    writers.connection.execute("CREATE TABLE another (id INT)")
                    writers.connection.execute("DROP TABLE another")
                    checks.check(True, f"{round} time: a definition is stored, in room that was left")
                except psycopg.Error as error:
                    checks.check(error.sqlstate == "53100", f"{round} time: a definition is refused with 53100", error)
                time.sleep(1.5)  # Checkpoints fail meanwhile.
                disk.empty()
                checks.check(wait_until(lambda: writers.insert() is None, 20, 0.1), f"{round} time: INSERT goes on by itself when there is room")
                checks.check(wait_until(lambda: writers.produce() is None, 20, 0.1), f"{round} time: so does a producer")
                is_right(checks, server, writers, f"{round} time")
            disk.fill()
            until_refused(writers.insert)
            server.kill()
        disk.empty()
        with Server(kafka=kafka, data_dir=directory, wrapper=disk.wrapper) as server:
            is_right(checks, server, writers, "after kill -9 on the full disk")
    checks.finish()


main()
