"""Millrace: measured by `millrace bench nexmark`, its answers those of views read over the Postgres wire: run_millrace.py WORKERS"""
import json
import os
import pathlib
import subprocess
import sys

from cost import Cost
from driver import Engine, serve

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "integration"))
from harness import BINARY, Server  # noqa: E402: beside the integration tests


class Millrace(Engine):
    def __init__(self, workers):
        self.workers = workers
        self.version = subprocess.run([BINARY, "--version"], check=True, capture_output=True, text=True).stdout.strip()

    def open(self, directory, events):
        self.input = ["--input", directory, "--events", str(events)]

    def bench(self, query, *arguments):
        done = subprocess.run([BINARY, "bench", "nexmark", "--query", query, *self.input, *arguments], capture_output=True, text=True)
        if done.returncode:
            said = done.stderr.strip().split("\n")
            raise RuntimeError(next((line for line in said if "rror: " in line), said[-1]) or f"exit status {done.returncode}")
        return done.stdout

    def measure(self, query):
        """The program says itself what the query cost it, here the second run of a process, since the peers run all of a query's in one and
        keep their memory, too; the load and the others are those of its whole life."""
        cost = Cost(os.getpid())
        said = json.loads(self.bench(query, "--workers", self.workers, "--runs", "2", "--json").strip().split("\n")[-1])
        around = cost.finish()
        return {
            "seconds": said["seconds"], "cpu_seconds": said["cpu_seconds"], "cpu_seconds_beside": 0, "peak_bytes": said["peak_rss_bytes"],
            "load": around["load"], "others": around["others"], "rows": said["rows"],
        }

    def rows(self, query):
        statements = self.bench(query, "--statements")
        with Server(workers=int(self.workers)) as server, server.connect() as connection:
            connection.execute(statements)
            connection.execute("FLUSH")
            for row in connection.cursor().stream(f"SELECT * FROM {query}"):
                yield 1, row


serve(Millrace(sys.argv[1]))
