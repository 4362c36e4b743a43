"""Flink in STREAMING mode over the JSON files: a JobManager and one TaskManager for all queries: run_flink.py PARALLELISM SCRATCH MEMORY

The settings are the ones that serve it best here: mini-batches, object reuse, hash map state, no checkpoints, a blackhole sink. The
job's time is what the JobManager says between RUNNING and FINISHED; CPU and memory are the TaskManager's, which runs the query. What the
client, which plans, and the JobManager use is counted beside. Answers are compared at the end of the changelog that a file sink is given.
"""
import decimal
import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import time
import urllib.request

import pyflink
from pyflink.common import Configuration
from pyflink.table import EnvironmentSettings, TableDescriptor, TableEnvironment
from pyflink.version import __version__

import nexmark
from cost import Cost
from driver import Engine, serve

HOME = pathlib.Path(pyflink.__file__).parent
TYPES = {"BIGINT": "BIGINT", "VARCHAR": "STRING", "TIMESTAMP": "TIMESTAMP(3)"}
SETTINGS = {
    "pipeline.object-reuse": "true",
    "table.exec.mini-batch.enabled": "true",
    "table.exec.mini-batch.allow-latency": "2 s",
    "table.exec.mini-batch.size": "50000",
    "table.optimizer.distinct-agg.split.enabled": "true",
    "table.local-time-zone": "UTC",
}


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Flink(Engine):
    version = __version__
    queries = nexmark.Flink().queries()

    def __init__(self, parallelism, scratch, memory):
        self.parallelism, self.scratch, self.memory = int(parallelism), pathlib.Path(scratch), memory
        self.port, self.processes = free_port(), []
        try:
            self.start()
        except BaseException:
            self.close()
            raise

    def start(self):
        self.configure()
        for role in "jobmanager", "taskmanager":
            log = open(self.scratch / f"{role}.out", "w")
            self.processes.append(subprocess.Popen(
                ["bash", HOME / f"bin/{role}.sh", "start-foreground"], stdin=subprocess.DEVNULL, stdout=log, stderr=log))
        self.wait_for_slots()
        self.measured = self.environment()
        self.answering = self.environment({"execution.checkpointing.interval": "500 ms"})  # files are published by checkpoints
        self.warm = False

    def environment(self, more={}):
        settings = Configuration()
        for key, value in {**SETTINGS, **more, "execution.target": "remote", "rest.address": "127.0.0.1", "rest.port": str(self.port),
                           "parallelism.default": str(self.parallelism)}.items():
            settings.set_string(key, value)
        return TableEnvironment.create(EnvironmentSettings.new_instance().in_streaming_mode().with_configuration(settings).build())

    def configure(self):
        """A configuration of our own: everything on loopback and ports that are free, files in the scratch directory."""
        conf = self.scratch / "conf"
        shutil.copytree(HOME / "conf", conf, dirs_exist_ok=True)
        options = next(line for line in (conf / "config.yaml").read_text().split("\n") if line.strip().startswith("all:"))
        (self.scratch / "tmp").mkdir(exist_ok=True)
        (conf / "config.yaml").write_text(f"""
env.java.opts.all: {options.split("all:", 1)[1].strip()}
env.log.dir: {self.scratch}/log
env.pid.dir: {self.scratch}
jobmanager.rpc.address: 127.0.0.1
jobmanager.bind-host: 127.0.0.1
jobmanager.rpc.port: {free_port()}
jobmanager.memory.process.size: 1g
taskmanager.bind-host: 127.0.0.1
taskmanager.host: 127.0.0.1
taskmanager.memory.process.size: {self.memory}
taskmanager.memory.managed.fraction: 0.05
taskmanager.numberOfTaskSlots: {self.parallelism}
parallelism.default: {self.parallelism}
rest.address: 127.0.0.1
rest.bind-address: 127.0.0.1
rest.port: {self.port}
state.backend.type: hashmap
execution.checkpointing.dir: file://{self.scratch}/checkpoints
restart-strategy.type: none
slot.request.timeout: 30 s
io.tmp.dirs: {self.scratch}/tmp
""")
        os.environ.update(FLINK_CONF_DIR=str(conf), FLINK_HOME=str(HOME))

    def wait_for_slots(self):
        for _ in range(240):
            if any(process.poll() is not None for process in self.processes):
                break
            try:
                if self.ask("/overview")["slots-total"] >= self.parallelism:
                    return
            except OSError:
                pass  # not listening yet
            time.sleep(0.5)
        logs = "".join((self.scratch / f"{role}.out").read_text()[-2000:] for role in ("jobmanager", "taskmanager"))
        raise RuntimeError("the cluster did not get ready: " + logs)

    def ask(self, path):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=30) as answer:
            return json.load(answer)

    def close(self):
        for process in reversed(self.processes):
            process.terminate()
        for process in self.processes:
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def open(self, directory, events):
        for table, columns in nexmark.COLUMNS.items():
            types = ", ".join(f"{name} {TYPES[kind]}" for name, kind in (column.split() for column in columns.split(", ")))
            for tables in self.measured, self.answering:
                tables.execute_sql(f"DROP TEMPORARY TABLE IF EXISTS {table}")
                tables.execute_sql(
                    f"CREATE TEMPORARY TABLE {table} ({types}, WATERMARK FOR date_time AS date_time - INTERVAL '4' SECOND) WITH ("
                    f"'connector' = 'filesystem', 'path' = 'file://{directory}/{table}', "
                    "'format' = 'json', 'json.timestamp-format.standard' = 'ISO-8601')")

    def measure(self, query):
        if not self.warm:
            for _ in range(2):
                self.run("q0")
            self.warm = True
        return self.run(query)

    def run(self, query):
        sink = TableDescriptor.for_connector("blackhole").build()
        cost = Cost(self.processes[1].pid)
        result = self.measured.sql_query(self.queries[query]).execute_insert(sink)
        result.wait()
        found = cost.finish()
        job = self.ask(f"/jobs/{result.get_job_client().get_job_id()}")
        if job["state"] != "FINISHED":
            raise RuntimeError(f"the job is {job['state']}")
        found["seconds"] = (job["timestamps"]["FINISHED"] - job["timestamps"]["RUNNING"]) / 1000
        return found

    def rows(self, query):
        """The changelog of the result, by way of files: rows that are inserted, and rows that are taken back."""
        directory = self.scratch / "result"
        sink = TableDescriptor.for_connector("filesystem").option("path", f"file://{directory}").format("debezium-json").build()
        try:
            self.answering.sql_query(self.queries[query]).execute_insert(sink).wait()
            for part in directory.glob("part-*"):
                with open(part) as lines:
                    for line in lines:
                        change = json.loads(line, parse_float=decimal.Decimal)
                        yield (-1, change["before"].values()) if change["op"] == "d" else (1, change["after"].values())
        finally:
            shutil.rmtree(directory, ignore_errors=True)


serve(Flink(*sys.argv[1:4]))
