"""Tables that others make and change in the embedded catalog, read by us at every snapshot, for Scripts/test-lake-readers."""
import datetime
import decimal
import uuid

import polars
import pyarrow as pa
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import BucketTransform, MonthTransform, TruncateTransform
from pyiceberg.types import (
    BinaryType, BooleanType, DateType, DecimalType, DoubleType, FixedType, FloatType, IntegerType, ListType, LongType, MapType, NestedField,
    StringType, StructType, TimestampType, TimestamptzType, TimeType, UUIDType)

from lake_sinks import NO_TIME

TYPES = Schema(
    NestedField(1, "id", LongType(), required=True), NestedField(2, "flag", BooleanType()), NestedField(3, "whole", IntegerType()),
    NestedField(4, "ratio", FloatType()), NestedField(5, "amount", DoubleType()), NestedField(6, "price", DecimalType(9, 2)),
    NestedField(7, "wide", DecimalType(38, 10)), NestedField(8, "word", StringType()), NestedField(9, "raw", BinaryType()),
    NestedField(10, "day", DateType()), NestedField(11, "clock", TimeType()), NestedField(12, "at", TimestampType()),
    NestedField(13, "instant", TimestamptzType()), NestedField(14, "key", UUIDType()), NestedField(15, "four", FixedType(4)),
    NestedField(16, "tags", ListType(17, StringType(), element_required=False)),
    NestedField(18, "place", StructType(NestedField(19, "x", IntegerType()), NestedField(20, "name", StringType()))),
    NestedField(21, "counts", MapType(22, StringType(), 23, LongType(), value_required=False)),
    NestedField(
        24, "items", ListType(25, StructType(NestedField(26, "n", IntegerType()), NestedField(27, "gone", ListType(28, StringType()))))),
    NestedField(29, "named", MapType(30, StringType(), 31, StructType(NestedField(32, "v", LongType())))))


def row(n):
    if n % 6 == 5:
        return {"id": n}
    moment = datetime.datetime(1969, 12, 20) + datetime.timedelta(hours=n * 7, microseconds=n)
    return {
        "id": n, "flag": n % 2 == 0, "whole": n - 20, "ratio": n / 8, "amount": float("nan") if n % 9 == 0 else n / 3,
        "price": decimal.Decimal(n * 7 - 100) / 100, "wide": decimal.Decimal(n) ** 9 / 1000,
        "word": ["", "näme", "a/b", "日本 🎈"][n % 4] + str(n % 3), "raw": bytes([n, 0, 255]), "day": moment.date(), "clock": moment.time(),
        "at": moment, "instant": moment.replace(tzinfo=datetime.timezone.utc), "key": uuid.UUID(int=n << 64 | n).bytes,
        "four": bytes([n, 1, 2, 3]), "tags": ["t", None, str(n)][:n % 4], "place": {"x": n, "name": None}, "counts": {"a": n, "b": None},
        "items": [{"n": n, "gone": ["x"] * (n % 3)}, {"n": None, "gone": []}][:n % 3], "named": {"k": {"v": n}}}


def arrow(table, numbers):
    return pa.Table.from_pylist([row(n) for n in numbers], schema=table.schema().as_arrow())


def by_pyiceberg(lake):
    spec = PartitionSpec(
        PartitionField(10, 1000, MonthTransform(), "day_month"), PartitionField(8, 1001, TruncateTransform(2), "word_start"))
    table = lake.catalog.create_table("theirs.py_types", TYPES, partition_spec=spec)
    for start in range(0, 60, 20):
        table.append(arrow(table, range(start, start + 20)))
    table.delete("id < 7 or word = 'a/b1'")
    table.overwrite(arrow(table, range(100, 110)), overwrite_filter="id >= 50")
    with table.update_schema() as update:
        update.update_column("whole", LongType())
        update.rename_column("whole", "entire")
        update.update_column("ratio", DoubleType())
        update.update_column("price", DecimalType(12, 2))
        update.delete_column("four")
        update.add_column(("place", "y"), LongType())
        update.rename_column(("place", "x"), "across")
        update.delete_column(("items", "element", "gone"))
        update.add_column(("items", "element", "late"), StringType())
        update.rename_column(("named", "value", "v"), "value")
        update.add_column("late", StringType())
    newer = {"id": 200, "entire": 2**40, "late": "ü", "place": {"across": 1, "name": "p", "y": 2}}
    table.append(pa.Table.from_pylist([newer], schema=table.schema().as_arrow()))
    with table.update_spec() as update:
        update.remove_field("word_start")
        update.add_field("id", BucketTransform(3), "id_bucket")
    table.append(pa.Table.from_pylist([{"id": 201 + n, "late": str(n)} for n in range(6)], schema=table.schema().as_arrow()))
    with table.manage_snapshots() as change:
        change.create_branch(table.current_snapshot().snapshot_id, "side").create_tag(table.snapshots()[0].snapshot_id, "start")
    table.append(pa.Table.from_pylist([{"id": 300}], schema=table.schema().as_arrow()), branch="side")
    keyed = lake.catalog.create_table(
        "theirs.py_keys",
        Schema(NestedField(1, "id", LongType(), required=True), NestedField(2, "v", StringType()), identifier_field_ids=[1]))
    kind = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("v", pa.string())])
    keyed.append(pa.table({"id": list(range(20)), "v": ["a"] * 20}, schema=kind))
    keyed.upsert(pa.table({"id": list(range(15, 25)), "v": ["b"] * 10}, schema=kind))
    return ["py_types", "py_keys"]


def by_polars(lake):
    frame = polars.DataFrame({
        "id": [1, 2, 3], "word": ["a", None, "ü"], "price": [decimal.Decimal("1.25"), None, decimal.Decimal("-3.50")],
        "day": [datetime.date(1969, 12, 31), None, datetime.date(2026, 1, 1)], 
        "at": [datetime.datetime(1960, 1, 1, 1, 2, 3, 4), None, None], "tags": [["x"], [], None]
    }, schema_overrides={"price": polars.Decimal(12, 2)})
    table = lake.catalog.create_table("theirs.polars", frame.to_arrow().schema)
    frame.write_iceberg(table, mode="append")
    frame.with_columns(polars.col("id") + 10).write_iceberg(table, mode="append")
    lazy = lake.catalog.create_table("theirs.polars_lazy", frame.to_arrow().schema)
    frame.lazy().sink_iceberg(lazy, mode="append")
    frame.lazy().with_columns(polars.col("id") + 20).sink_iceberg(lazy, mode="overwrite")
    return ["polars", "polars_lazy"]


DUCK_TYPES = {
    "flag": "BOOLEAN", "whole": "INTEGER", "ratio": "FLOAT", "amount": "DOUBLE", "price": "DECIMAL(9,2)", "wide": "DECIMAL(38,10)",
    "word": "VARCHAR", "raw": "BLOB", "day": "DATE", "clock": "TIME", "moment": "TIMESTAMP", "instant": "TIMESTAMPTZ", "key": "UUID",
    "tags": "VARCHAR[]", "place": "STRUCT(x INTEGER, name VARCHAR)"}
DUCK_ROWS = """
    SELECT n AS id, n % 2 = 0, (n - 20)::INTEGER, n / 8, n / 3, (n * 7 - 100) / 100, n ** 5, CASE WHEN n % 5 <> 0 THEN 'wörd ' || n END,
        'raw'::BLOB, DATE '1969-12-20' + n::INTEGER, TIME '00:00:01' + INTERVAL (n) MINUTE,
        TIMESTAMP '1969-12-31 00:00:00.000001' + INTERVAL (n) HOUR, TIMESTAMPTZ '1969-12-31 00:00:00+00' + INTERVAL (n) HOUR, '00000000-0000-0000-0000-00000000000a'::UUID, ['a', NULL, 'n' || n],
        {'x': n::INTEGER, 'name': NULL} FROM range(0, 40) t(n)"""


def by_duckdb(lake):
    duck = lake.duck
    columns = ", ".join(f"{name} {kind}" for name, kind in DUCK_TYPES.items())
    for name, version in [("duck_two", 2), ("duck_three", 3)]:
        duck.sql(f"CREATE TABLE lake.theirs.{name} (id BIGINT, {columns}) WITH ('format-version' = '{version}')")
        duck.sql(f"INSERT INTO lake.theirs.{name} {DUCK_ROWS}")
        duck.sql(f"INSERT INTO lake.theirs.{name} (id, word) VALUES (100, NULL), (101, 'x')")
        duck.sql(f"DELETE FROM lake.theirs.{name} WHERE id % 7 = 3")
        duck.sql(f"UPDATE lake.theirs.{name} SET word = 'changed', day = NULL WHERE id % 5 = 1")
        duck.sql(f"DELETE FROM lake.theirs.{name} WHERE id < 5")
        duck.sql(
            f"MERGE INTO lake.theirs.{name} t USING (SELECT n::BIGINT AS id FROM range(35, 45) r(n)) s ON t.id = s.id "
            "WHEN MATCHED THEN UPDATE SET word = 'merged' WHEN NOT MATCHED THEN INSERT (id, word) VALUES (s.id, 'new')")
    return ["duck_two", "duck_three"]


def by_spark(spark):
    columns = (
        "id bigint NOT NULL, flag boolean, whole int, ratio float, amount double, price decimal(9,2), wide decimal(38,10), word string, "
        "raw binary, day date, at timestamp_ntz, instant timestamp, tags array<string>, place struct<x: int, name: string>, "
        "counts map<string, bigint>")
    rows = (
        "SELECT id, id % 2 = 0, CAST(id - 20 AS int), CAST(id / 8 AS float), id / 3, CAST(id * 7 - 100 AS decimal(9,2)), "
        "CAST(id AS decimal(38,10)), IF(id % 5 = 0, NULL, concat('wörd ', id)), CAST('raw' AS binary), "
        "date_add(DATE '1969-12-20', CAST(id AS int)), TIMESTAMP_NTZ '1969-12-31 00:00:00.000001' + make_interval(0, 0, 0, 0, CAST(id AS int)), "
        "TIMESTAMP '1969-12-31 00:00:00+00:00' + make_interval(0, 0, 0, 0, CAST(id AS int)), array('a', NULL, string(id)), "
        "named_struct('x', CAST(id AS int), 'name', CAST(NULL AS string)), map('a', id) FROM range(0, 60)")
    modes = ", ".join(f"'write.{what}.mode' = 'merge-on-read'" for what in ("delete", "update", "merge"))
    tables = {
        "spark_two": ("", f"'format-version' = '2', {modes}"), "spark_three": ("", f"'format-version' = '3', {modes}"),
        "spark_wide_deletes": (
            "PARTITIONED BY (bucket(2, id))", f"'format-version' = '2', 'write.delete.granularity' = 'partition', {modes}"),
        "spark_parts": ("PARTITIONED BY (days(instant), bucket(3, id), truncate(4, word))", f"'format-version' = '3', {modes}"),
        "spark_copied": ("PARTITIONED BY (months(at), flag)", "'format-version' = '2', 'write.parquet.compression-codec' = 'gzip'")}
    for name, (partitions, properties) in tables.items():
        table = f"lake.theirs.{name}"
        spark.sql(f"CREATE TABLE {table} ({columns}) USING iceberg {partitions} TBLPROPERTIES ({properties})")
        spark.sql(f"INSERT INTO {table} {rows}")
        spark.sql(f"DELETE FROM {table} WHERE id % 7 = 3")
        spark.sql(f"UPDATE {table} SET word = 'changed', day = NULL WHERE id % 11 = 1")
        spark.sql(f"MERGE INTO {table} t USING (SELECT id FROM range(55, 65)) s ON t.id = s.id WHEN MATCHED AND s.id < 57 THEN DELETE "
                  "WHEN MATCHED THEN UPDATE SET word = 'merged' WHEN NOT MATCHED THEN INSERT (id, word) VALUES (s.id, 'new')")
    evolve(spark)
    return [*tables, "spark_made"]


def evolve(spark):
    table = "lake.theirs.spark_two"

    def add(rows, table=table):
        """Some columns only; INSERT would have all of them."""
        spark.sql(f"MERGE INTO {table} t USING ({rows}) s ON t.id = s.id WHEN NOT MATCHED THEN INSERT (id, late) VALUES (s.id, s.late)")

    for change in [
            "ADD COLUMN late string AFTER id", "RENAME COLUMN whole TO entire", "ALTER COLUMN entire TYPE bigint",
            "ALTER COLUMN price TYPE decimal(14,2)", "DROP COLUMN raw", "ADD COLUMN place.y double", "RENAME COLUMN place.x TO across",
            "ADD PARTITION FIELD bucket(2, id)"]:
        spark.sql(f"ALTER TABLE {table} {change}")
    add("SELECT 200L AS id, 'ü' AS late UNION ALL SELECT 201L, NULL")
    spark.sql(f"UPDATE {table} SET entire = 1099511627776, place = named_struct('across', 1, 'name', 'n', 'y', 0.5D) WHERE id = 200")
    spark.sql(f"ALTER TABLE {table} DROP PARTITION FIELD bucket(2, id)")
    spark.sql(f"ALTER TABLE {table} ADD PARTITION FIELD truncate(3, late)")
    add("SELECT id, concat('late', id) AS late FROM range(300, 306)")
    spark.sql(f"ALTER TABLE {table} CREATE BRANCH side")
    add("SELECT 400L AS id, 'aside' AS late", f"{table}.branch_side")
    spark.sql(f"DELETE FROM {table}.branch_side WHERE id < 20")
    spark.sql(f"ALTER TABLE {table} CREATE TAG start")
    spark.sql(f"DELETE FROM {table} WHERE id IN (8, 300)")
    spark.sql("CREATE TABLE lake.theirs.spark_made USING iceberg PARTITIONED BY (late) AS SELECT id, late FROM lake.theirs.spark_two")
    spark.sql("CALL lake.system.rewrite_data_files(table => 'theirs.spark_wide_deletes', options => map('rewrite-all', 'true'))")
    spark.sql("CALL lake.system.rewrite_manifests('theirs.spark_copied')")


def play_writers(checks, compare, lake, spark):
    lake.catalog.create_namespace("theirs")
    tables = by_pyiceberg(lake) + by_polars(lake) + by_duckdb(lake) + (by_spark(spark) if spark else [])
    for name in tables:
        fields = {str(field.field_type) for field in lake.table(f"theirs.{name}").schema().fields}
        compare.theirs(f"theirs.{name}", NO_TIME if "time" in fields else {})
        compare_snapshots(checks, compare, lake, f"theirs.{name}")
        compare_parts(checks, compare.connection, lake.table(f"theirs.{name}"), f"theirs.{name}")
    if spark:
        compare_branch(compare, spark)


def compare_snapshots(checks, compare, lake, name):
    """Time travel: every snapshot of every branch has the rows that PyIceberg finds there."""
    table, wrong = lake.table(name), []
    for snapshot in table.snapshots():
        number = snapshot.snapshot_id
        theirs = table.scan(snapshot_id=number).to_arrow()
        difference = compare.difference(f"SELECT * FROM dev.{name} FOR SYSTEM_VERSION AS OF {number}", theirs)
        if difference:
            wrong.append((number, difference))
    for ref in table.refs():
        difference = compare.difference(f"SELECT * FROM dev.{name} FOR VERSION AS OF '{ref}'", table.scan().use_ref(ref).to_arrow())
        if difference:
            wrong.append((ref, difference))
    what = f"{name}: {len(table.snapshots())} snapshots, {len(table.refs())} branches and tags as they were"
    checks.check(not wrong, what, str(wrong[:1])[:500])


def compare_parts(checks, connection, table, name):
    """Each metadata table has as many lines as PyIceberg's."""
    inspect, wrong = table.inspect, []
    # Its own table of files cannot hold bounds of UUIDs.
    files = [entry for manifest in table.current_snapshot().manifests(table.io) for entry in manifest.fetch_manifest_entry(table.io)]
    theirs = {part: getattr(inspect, part)().num_rows for part in ("snapshots", "history", "refs", "manifests", "partitions")}
    theirs["files"] = len(files)
    for part, lines in theirs.items():
        found = connection.execute(f"SELECT count(*) FROM dev.{name}.{part}").fetchone()[0]
        if found != lines:
            wrong.append((part, found, lines))
    checks.check(not wrong, f"{name}: metadata tables have the lines of PyIceberg's", wrong)


def compare_branch(compare, spark):
    name = "theirs.spark_two"
    theirs = spark.query(f"SELECT * FROM lake.{name} VERSION AS OF 'side'")
    difference = compare.difference(f"SELECT * FROM dev.{name} FOR VERSION AS OF 'side'", theirs)
    compare.checks.check(not difference, f"{name}: a branch as Spark has it", difference)
