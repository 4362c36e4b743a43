"""Several clients and a sink that commit to one table at once, for Scripts/test-lake-readers."""
import collections
import threading

import duckdb
import pyarrow as pa
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField, StringType

SCHEMA = Schema(NestedField(1, "id", LongType()), NestedField(2, "who", StringType()))
PATIENT = {"commit.retry.num-retries": "100", "commit.retry.min-wait-ms": "10", "commit.retry.max-wait-ms": "200"}


def line(number, who):
    return pa.table({"id": pa.array([number], pa.int64()), "who": [who]})


def play_conflicts(checks, compare, sinks, spark):
    lake = sinks.lake
    lake.catalog.create_namespace("busy")
    play_late_ones(checks, sinks)
    play_crowd(checks, compare, sinks, spark)
    play_other_keys(checks, compare, sinks, spark)


def sink_into(sinks, relation, table, kind="append-only"):
    force = ", force_append_only = 'true'" if kind == "append-only" else ""
    sinks.connection.execute(
        f"CREATE SINK to_{table} FROM {relation} WITH (connector = 'iceberg', type = '{kind}'{force}, catalog.uri = '{sinks.lake.uri}', "
        "warehouse.path = 'dev', catalog.credential = 'root:secret', catalog.scope = 'PRINCIPAL_ROLE:ALL', "
        f"database.name = 'busy', table.name = '{table}')")


def play_late_ones(checks, sinks):
    """A client that prepared its commit before the sink's is told so, and gets through when it tries again."""
    lake, connection = sinks.lake, sinks.connection
    connection.execute("CREATE TABLE late_lines (id bigint PRIMARY KEY, who varchar)")
    lake.catalog.create_table("busy.late", SCHEMA, properties={"commit.retry.num-retries": "0"})
    sink_into(sinks, "late_lines", "late")

    def theirs_is_late(number):
        connection.execute(f"INSERT INTO late_lines VALUES ({number}, 'sink')")
        checks.check(not sinks.settle(), "the sink commits first")

    theirs_is_late(1)
    table = lake.table("busy.late")
    theirs_is_late(2)
    try:
        table.append(line(100, "PyIceberg"))
        checks.check(False, "PyIceberg is told of the conflict")
    except CommitFailedException:
        checks.check(True, "PyIceberg is told of the conflict")
    table.refresh().append(line(101, "PyIceberg"))
    duck = lake.connect()
    duck.sql("BEGIN")
    duck.sql("INSERT INTO lake.busy.late VALUES (200, 'DuckDB')")
    theirs_is_late(3)
    try:
        duck.sql("COMMIT")
        checks.check(False, "DuckDB is told of the conflict")
    except duckdb.Error as error:
        checks.check("409" in str(error) or "Conflict" in str(error), "DuckDB is told of the conflict", str(error)[:300])
    duck.sql("INSERT INTO lake.busy.late VALUES (201, 'DuckDB')")
    found = sorted(lake.by_pyiceberg("busy.late")["id"].to_pylist())
    checks.check(found == [1, 2, 3, 101, 201], "of those that were refused nothing is there", found)


def play_crowd(checks, compare, sinks, spark, each=8):
    """Everybody appends at once, by his own retries; each row is there once."""
    lake, connection = sinks.lake, sinks.connection
    connection.execute("CREATE TABLE lines (id bigint PRIMARY KEY, who varchar)")
    lake.catalog.create_table("busy.crowd", SCHEMA, properties=PATIENT)
    sink_into(sinks, "lines", "crowd")
    failures, refused, expected = [], collections.Counter(), []

    def by_sink(number):
        connection.execute(f"INSERT INTO lines VALUES ({number}, 'sink')")

    def by_pyiceberg(number):
        lake.client().load_table("busy.crowd").append(line(number, "PyIceberg"))

    duck = lake.connect()

    def by_duckdb(number):
        """DuckDB leaves trying again to who uses it."""
        for _ in range(100):
            try:
                return duck.sql(f"INSERT INTO lake.busy.crowd VALUES ({number}, 'DuckDB')")
            except duckdb.Error as error:
                if "409" not in str(error) and "Conflict" not in str(error):
                    raise
                refused["DuckDB"] += 1
        raise RuntimeError("100 conflicts")

    def by_spark(number):
        spark.sql(f"INSERT INTO lake.busy.crowd VALUES ({number}, 'Spark')")

    writers = [by_sink, by_pyiceberg, by_pyiceberg, by_duckdb] + ([by_spark] if spark else [])

    def run(place, write):
        try:
            for step in range(each):
                write(place * 1000 + step)
        except Exception as error:
            failures.append(f"{write.__name__}: {error!r}"[:300])

    threads = [threading.Thread(target=run, args=pair) for pair in enumerate(writers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    expected = sorted(place * 1000 + step for place in range(len(writers)) for step in range(each))
    what = f"{len(writers)} writers append {each} times each, DuckDB was refused {refused['DuckDB']} times"
    checks.check(not sinks.settle() and not failures, what, failures)
    found = sorted(lake.by_pyiceberg("busy.crowd")["id"].to_pylist())
    checks.check(found == expected, "each row is there once", str(sorted(set(found) ^ set(expected)))[:200])
    compare.theirs("busy.crowd", {})


def play_other_keys(checks, compare, sinks, spark):
    """Others delete and add rows of a table whose keys a sink keeps; what changes in its relation afterwards counts."""
    lake, connection = sinks.lake, sinks.connection
    connection.execute("CREATE TABLE kept (id bigint PRIMARY KEY, who varchar)")
    connection.execute("INSERT INTO kept VALUES " + ", ".join(f"({n}, 'sink')" for n in range(20)))
    schema = Schema(NestedField(1, "id", LongType(), required=True), NestedField(2, "who", StringType()), identifier_field_ids=[1])
    for name, version in [("kept_two", 2), ("kept_three", 3)]:
        modes = {f"write.{what}.mode": "merge-on-read" for what in ("delete", "update", "merge")}
        lake.catalog.create_table(f"busy.{name}", schema, properties={"format-version": str(version)} | PATIENT | modes)
        sink_into(sinks, "kept", name, "upsert")
    checks.check(not sinks.settle(), "upserts are through")
    expected = {n: "sink" for n in range(20)}
    for name in ("kept_two", "kept_three"):
        lake.duck.sql(f"INSERT INTO lake.busy.{name} VALUES (100, 'DuckDB'), (101, 'DuckDB')")
        lake.duck.sql(f"DELETE FROM lake.busy.{name} WHERE id IN (3, 4)")
        if spark:
            spark.sql(f"UPDATE lake.busy.{name} SET who = 'Spark' WHERE id IN (5, 6)")
    expected |= {100: "DuckDB", 101: "DuckDB"} | ({5: "Spark", 6: "Spark"} if spark else {})
    del expected[3], expected[4]
    connection.execute("UPDATE kept SET who = 'again' WHERE id IN (3, 5, 7)")
    connection.execute("INSERT INTO kept VALUES (100, 'ours')")
    connection.execute("DELETE FROM kept WHERE id IN (6, 8)")
    checks.check(not sinks.settle(), "the upserts go on", str(sinks.settle())[:300])
    expected |= {3: "again", 5: "again", 7: "again", 100: "ours"}
    del expected[6], expected[8]
    for name in ("kept_two", "kept_three"):
        found = dict(connection.execute(f"SELECT id, who FROM dev.busy.{name}").fetchall())
        checks.check(found == expected, f"busy.{name}: rows of all writers by key", sorted(set(found.items()) ^ set(expected.items()))[:6])
        compare.theirs(f"busy.{name}", {})
