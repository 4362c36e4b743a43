"""Scripts/test-lake-readers: lake_readers.py SEED. What is compared with what is said there."""
import contextlib
import logging
import os
import random
import sys
import tempfile

from harness import Checks, Server, free_port
from lake_changes import play_deletes, play_evolution, play_folders
from lake_conflicts import play_conflicts
from lake_engines import Lake, Spark
from lake_sinks import Sinks, play_partitions, play_types
from lake_values import by_millrace
from lake_writers import play_writers


class Comparison:
    """Holds every reader against what this server says."""

    def __init__(self, checks, connection, lake, spark):
        self.checks, self.connection, self.spark = checks, connection, spark
        self.readers = {
            "PyIceberg": lake.by_pyiceberg, "DuckDB": lake.by_duckdb, "DuckDB's iceberg_scan": lake.by_iceberg_scan,
            "polars": lake.by_polars}
        # Files alone: what is in the table as long as nothing was deleted.
        self.file_readers = {"pyarrow": lake.by_pyarrow}
        if spark:
            self.readers["Spark"] = spark.by_spark

    def difference(self, query, theirs):
        """What an arrow table has otherwise than the query's answer, or None."""
        return by_millrace(self.connection, query).difference(theirs)

    def table(self, name, query, unable=None, files_alone=True):
        """The table of a sink is what `query` answers. `unable` has readers and why they cannot."""
        expected = by_millrace(self.connection, query)
        wrong = expected.difference(by_millrace(self.connection, f"SELECT * FROM dev.{name}"))
        self.checks.check(not wrong, f"{name}: {len(expected.rows)} rows by its three-part name", wrong)
        self.hold(name, expected, self.readers | (self.file_readers if files_alone else {}), unable or {})

    def theirs(self, name, unable):
        """A table that others made: what we read there is what all of them do."""
        self.hold(name, by_millrace(self.connection, f"SELECT * FROM dev.{name}"), self.readers, unable)

    def hold(self, name, expected, readers, unable):
        same = []
        for reader, read in readers.items():
            if reader in unable:
                print(f"  not read by {reader}: {name}, {unable[reader]}", flush=True)
                continue
            try:
                wrong = expected.difference(read(name))
            except Exception as error:
                wrong = f"{type(error).__name__}: {str(error)[:400]}"
            if wrong:
                self.checks.check(False, f"{name}: {reader} reads {len(expected.rows)} rows", wrong)
            else:
                same.append(reader)
        self.checks.check(bool(same), f"{name}: {len(expected.rows)} rows by {', '.join(same)}")


def main():
    seed = int(sys.argv[1])
    # What clients tell of conflicts is what is tested.
    logging.disable(logging.WARNING)
    print(f"test-lake-readers: seed {seed}", flush=True)
    checks = Checks("test-lake-readers")
    catalog = f"127.0.0.1:{free_port()}"
    with tempfile.TemporaryDirectory(prefix="millrace-lake-") as directory, contextlib.ExitStack() as stack:
        server = stack.enter_context(Server(catalog=catalog, data_dir=f"{directory}/data", options=["--checkpoint-interval", "100"]))
        connection = stack.enter_context(server.connect())
        lake = Lake(catalog)
        spark = None
        if "MILLRACE_SPARK_PYTHON" in os.environ:
            spark = stack.enter_context(Spark(lake.uri, directory))
        else:
            print("  SKIPPED Spark: MILLRACE_ICEBERG_SPARK_JAR names no jar", flush=True)
        compare, sinks = Comparison(checks, connection, lake, spark), Sinks(connection, lake)
        play_types(checks, compare, sinks)
        play_partitions(checks, compare, sinks)
        play_deletes(checks, compare, sinks, random.Random(seed))
        play_evolution(checks, compare, sinks)
        play_folders(compare, sinks, directory)
        play_writers(checks, compare, lake, spark)
        play_conflicts(checks, compare, sinks, spark)
        checks.check(server.alive, "the server is alive")
    checks.finish()


main()
