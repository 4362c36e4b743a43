"""Other people's readers of our tables, each as an arrow table, for Scripts/test-lake-readers."""
import glob
import importlib
import json
import os
import pathlib
import subprocess

import duckdb
import polars
import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.catalog.rest import RestCatalog


class Lake:
    """The embedded catalog by the clients that read and write in this process."""

    def __init__(self, address):
        self.uri = f"http://{address}/api/catalog"
        self.catalog = self.client()
        self.duck = self.connect()

    def client(self, **more):
        return RestCatalog(
            "lake", uri=self.uri, credential="root:secret", warehouse="dev", scope="PRINCIPAL_ROLE:ALL",
            **{"oauth2-server-uri": self.uri + "/v1/oauth/tokens"} | more)

    def connect(self):
        connection = duckdb.connect()
        for name in ("httpfs", "avro", "iceberg"):
            folder = os.path.dirname(importlib.import_module("duckdb_extension_" + name).__file__)
            connection.sql(f"LOAD '{glob.glob(folder + '/extensions/*/*.duckdb_extension')[0]}'")
        connection.sql("SET timezone = 'UTC'")
        connection.sql(
            f"CREATE SECRET ice (TYPE iceberg, CLIENT_ID 'root', CLIENT_SECRET 'secret', OAUTH2_SERVER_URI '{self.uri}/v1/oauth/tokens')")
        connection.sql(f"ATTACH 'dev' AS lake (TYPE iceberg, ENDPOINT '{self.uri}', SECRET ice, ACCESS_DELEGATION_MODE 'none')")
        return connection

    def table(self, name):
        return self.catalog.load_table(name)

    # Readers: a table's name to an arrow table.

    def by_pyiceberg(self, name):
        return self.table(name).scan().to_arrow()

    def by_duckdb(self, name):
        return self.duck.sql(f"SELECT * FROM lake.{name}").to_arrow_table()

    def by_iceberg_scan(self, name):
        path = self.table(name).metadata_location.removeprefix("file://")
        return self.duck.sql(f"SELECT * FROM iceberg_scan('{path}')").to_arrow_table()

    def by_polars(self, name):
        return polars.scan_iceberg(self.table(name)).collect().to_arrow()

    def by_pyarrow(self, name):
        """The data files themselves: what is in the table as long as nothing was deleted."""
        paths = [task.file.file_path.removeprefix("file://") for task in self.table(name).scan().plan_files()]
        return pa.concat_tables([pq.read_table(path, partitioning=None) for path in paths])


class Spark:
    """PySpark in a process of its own, with the lake as catalog `lake`. A context manager."""

    def __init__(self, uri, directory):
        self.directory, self.count = pathlib.Path(directory), 0
        environment = dict(os.environ, MILLRACE_CATALOG_URI=uri, SPARK_LOCAL_IP="127.0.0.1", PYTHONUNBUFFERED="1")
        self.log = open(self.directory / "spark.log", "w")
        self.process = subprocess.Popen(
            [os.environ["MILLRACE_SPARK_PYTHON"], pathlib.Path(__file__).parent / "lake_spark.py"], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=self.log, text=True, env=environment, cwd=directory)

    def __enter__(self):
        self.answer()
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.log.close()

    def answer(self):
        for line in self.process.stdout:
            if line.startswith("{"):
                found = json.loads(line)
                if "error" in found:
                    raise RuntimeError(found["error"])
                return found["rows"]
        raise RuntimeError("Spark has ended: " + (self.directory / "spark.log").read_text()[-2000:])

    def ask(self, request):
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        return self.answer()

    def sql(self, statement):
        return self.ask({"sql": statement})

    def query(self, statement):
        """An answer as an arrow table, by way of Parquet files."""
        self.count += 1
        folder = self.directory / f"answer-{self.count}"
        self.ask({"sql": statement, "to": str(folder)})
        return pq.read_table(folder)

    def by_spark(self, name):
        return self.query(f"SELECT * FROM lake.{name}")
