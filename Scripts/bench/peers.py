"""The engines that are compared, and the processes that they run in."""
import dataclasses
import json
import os
import pathlib
import re
import select
import signal
import subprocess
import time

HERE = pathlib.Path(__file__).resolve().parent
PYTHON_ENV = HERE.parent / "python-env"


class Absent(Exception):
    """The engine cannot be had here; the text says why."""


class Broken(Exception):
    """The engine's process is of no more use; the text says why."""


def java_home():
    """Of a Java 17, which Flink 2 runs on."""
    homes = [os.environ.get("JAVA_HOME"), *sorted(map(str, pathlib.Path("/usr/lib/jvm").glob("*17*"))), None]
    for home in homes:
        program = f"{home}/bin/java" if home else "java"
        try:
            said = subprocess.run([program, "-XshowSettings:properties", "-version"], capture_output=True, text=True).stderr
        except OSError:
            continue
        if re.search(r'version "17[."]', said):
            return home or re.search(r"java\.home = (.+)", said)[1]
    raise Absent("no Java 17: set JAVA_HOME, or apt-get install openjdk-17-jre-headless")


@dataclasses.dataclass
class Peer:
    title: str
    requirements: list
    # A new process for each query, so that its memory is the query's own.
    fresh: bool
    arguments: list

    @property
    def script(self):
        return HERE / f"run_{self.title.lower()}.py"

    def start(self, options, scratch):
        """The engine's process, its environment made first if need be."""
        variables = {"TMPDIR": str(scratch), "PYTHONDONTWRITEBYTECODE": "1"}
        if self.title == "Flink":
            variables["JAVA_HOME"] = java_home()
        made = subprocess.run([PYTHON_ENV, f"bench-{self.title.lower()}", *self.requirements], stdout=subprocess.PIPE, text=True)
        if made.returncode:
            raise Absent("its Python packages cannot be installed: " + ", ".join(self.requirements))
        places = {**options, "scratch": scratch}
        arguments = [argument.format(**places) for argument in self.arguments]
        return Process([made.stdout.strip(), self.script, *arguments], scratch / "stderr", variables)


PEERS = {
    "millrace": Peer("Millrace", ["psycopg[binary]>=3.2,<4"], True, ["{workers}"]),
    "flink": Peer("Flink", ["apache-flink==2.3.0"], False, ["{threads}", "{scratch}", "{flink_memory}"]),
    "duckdb": Peer("DuckDB", ["duckdb==2.0.0"], True, ["{threads}", "{scratch}"]),
    "chdb": Peer("chDB", ["chdb==4.4.0"], True, ["{threads}", "{scratch}"]),
}


class Process:
    """A `driver.py` in a process group of its own, so that all it starts can be ended with it."""

    def __init__(self, command, log, variables):
        self.log, self.rest = log, b""
        with open(log, "w") as stderr:
            self.process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr, env={**os.environ, **variables},
                start_new_session=True)

    def ask(self, request, seconds):
        """The reply to a request; `None` asks for the greeting."""
        if request is not None:
            try:
                self.process.stdin.write(json.dumps(request).encode() + b"\n")
                self.process.stdin.flush()
            except BrokenPipeError:
                pass  # reading says more
        deadline = time.monotonic() + seconds
        while b"\n" not in self.rest:
            if not select.select([self.process.stdout], [], [], max(0, deadline - time.monotonic()))[0]:
                raise Broken(f"no answer within {seconds} s")
            read = os.read(self.process.stdout.fileno(), 1 << 16)
            if not read:
                status = self.process.wait()
                last = self.log.read_text(errors="replace").strip().split("\n")[-1]
                raise Broken(f"its process ended with status {status}: {last[:300]}")
            self.rest += read
        line, _, self.rest = self.rest.partition(b"\n")
        return json.loads(line)

    def close(self):
        """Lets it end by itself."""
        try:
            self.process.stdin.close()
            self.process.wait(60)
        except (BrokenPipeError, subprocess.TimeoutExpired):
            pass  # `stop` ends it
        self.stop()

    def stop(self):
        """Ends it and all it started."""
        for way in signal.SIGTERM, signal.SIGKILL:
            deadline = time.monotonic() + 10
            while self.signal(way) and time.monotonic() < deadline:
                way = 0  # only looks whether anything is left
                time.sleep(0.1)
        self.process.stdout.close()

    def signal(self, way):
        """False when nothing of the group is left."""
        self.process.poll()
        try:
            os.killpg(self.process.pid, way)
            return True
        except ProcessLookupError:
            return False
