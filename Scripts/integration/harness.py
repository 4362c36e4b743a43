"""What the integration tests share: a server of their own, psql, checks that are counted, waiting with a deadline."""
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

import psycopg

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARY = pathlib.Path(os.environ.get("MILLRACE", ROOT / ".build/release/millrace"))


class Checks:
    """Counts what held and what did not; `finish` ends the program."""

    def __init__(self, name):
        self.name, self.passed, self.failed = name, 0, 0

    def check(self, holds, what, detail=""):
        if holds:
            self.passed += 1
            print(f"  ok    {what}", flush=True)
        else:
            self.failed += 1
            print(f"  FAIL  {what}{': ' if detail else ''}{detail}", flush=True)
        return bool(holds)

    def finish(self):
        print(f"{self.name}: {self.passed} passed, {self.failed} failed", flush=True)
        sys.exit(1 if self.failed or not self.passed else 0)


def free_port():
    """A port of the loopback that nobody listens on now, for a server that keeps its address through restarts."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Server:
    """`millrace serve` in a directory of its own; port 0 lets the system choose. A context manager."""

    def __init__(self, *, pg="127.0.0.1:0", kafka="127.0.0.1:0", http="off", catalog="off", workers=1, data_dir=None, options=(), wrapper=()):
        self.owned = None if data_dir else tempfile.mkdtemp(prefix="millrace-test-")
        self.data_dir = data_dir or self.owned
        self.arguments = [
            "serve", "--data-dir", self.data_dir, "--pg", pg, "--kafka", kafka, "--http", http, "--catalog", catalog, "--workers", str(workers), *options]
        # What runs the program, such as in another namespace.
        self.wrapper = list(wrapper)
        self.process, self.lines, self.addresses, self.ready = None, [], {}, threading.Event()

    def __enter__(self):
        if not self.process:
            self.start()
        if not self.wait_ready():
            self.process.kill()
            sys.exit("the server did not get ready:\n" + "".join(self.lines[-20:]))
        return self

    def start(self):
        """Starts the process and returns at once; entering the context waits for it."""
        if not BINARY.exists():
            sys.exit(f"{BINARY} is missing: run make build")
        self.process = subprocess.Popen([*self.wrapper, BINARY, *self.arguments], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
        # Of this process alone: the reader of one that was killed sees its end when the next may be under way.
        self.addresses, self.ready = {}, threading.Event()
        threading.Thread(target=self._read, args=(self.process.stderr, self.addresses, self.ready), daemon=True).start()

    def wait_ready(self, seconds=30):
        """Whether the listeners answer; false when the process ended before or the time is over."""
        if not self.ready.wait(seconds) or len(self.addresses) < 2:
            return False
        self.pg, self.kafka = self.addresses["pg"], self.addresses["kafka"]
        return True

    def kill(self):
        """kill -9, and waits for the end."""
        self.process.kill()
        self.process.wait()

    def _read(self, output, addresses, ready):
        for line in output:
            self.lines.append(line)
            found = re.match(r"millrace: (pg|kafka|http) on (\S+)", line)
            if found:
                addresses[found[1]] = found[2]
            if line.startswith("millrace: ready"):
                ready.set()
        ready.set()

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                print("  (the server did not end within 20 s of SIGTERM and was killed)")
                self.process.kill()
                self.process.wait()
        if self.owned:
            shutil.rmtree(self.owned, ignore_errors=True)

    @property
    def alive(self):
        return self.process.poll() is None

    def rss_mib(self):
        with open(f"/proc/{self.process.pid}/status") as status:
            return next((int(line.split()[1]) // 1024 for line in status if line.startswith("VmRSS")), 0)

    def open_files(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def connect(self):
        host, port = self.pg.rsplit(":", 1)
        return psycopg.connect(host=host, port=port, user="root", dbname="dev", autocommit=True, connect_timeout=10)

    def psql(self, *arguments, **options):
        """Real psql against this server; the completed process with its output as text."""
        host, port = self.pg.rsplit(":", 1)
        command = ["psql", "-X", "-h", host, "-p", port, "-U", "root", "-d", "dev", *arguments]
        return subprocess.run(command, text=True, capture_output=True, timeout=60, **options)


def wait_until(holds, seconds=30, pause=0.02):
    """Calls until it answers true or the deadline passes; the last answer."""
    deadline = time.monotonic() + seconds
    while True:
        answer = holds()
        if answer or time.monotonic() > deadline:
            return answer
        time.sleep(pause)


def read_topic(bootstrap, topic, partitions=None):
    """Every record of a topic by an independent reader (kafka-python): (partition, offset, value bytes) in order."""
    from kafka import KafkaConsumer, TopicPartition

    consumer = KafkaConsumer(bootstrap_servers=bootstrap, enable_auto_commit=False, consumer_timeout_ms=10_000)
    try:
        found = wait_until(lambda: consumer.partitions_for_topic(topic) or set(), 10)
        assigned = [TopicPartition(topic, p) for p in sorted(found)]
        consumer.assign(assigned)
        ends = consumer.end_offsets(assigned)
        consumer.seek_to_beginning()
        records, left = [], sum(ends.values())
        while len(records) < left:
            batch = consumer.poll(timeout_ms=5000)
            if not batch:
                break
            records += [(r.partition, r.offset, r.value) for rs in batch.values() for r in rs]
        return sorted(records)
    finally:
        consumer.close()
