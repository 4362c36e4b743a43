"""The other half of Scripts/test-iceberg: iceberg_tables.py write|compare DIRECTORY SEED

`write` has pyiceberg make random tables in theirs/; `compare` has pyiceberg and DuckDB read ours/, and holds what we read in theirs/ against
what pyiceberg reads there.
"""
import collections
import datetime
import decimal
import glob
import importlib
import json
import os
import pathlib
import random
import sys
import uuid

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import StaticTable
from pyiceberg.table.sorting import NullOrder, SortDirection
from pyiceberg.transforms import BucketTransform, DayTransform, HourTransform, IdentityTransform, MonthTransform, TruncateTransform, YearTransform
from pyiceberg.types import (
    BinaryType, BooleanType, DateType, DecimalType, DoubleType, FixedType, FloatType, IntegerType, ListType, LongType, MapType, NestedField,
    StringType, StructType, TimestampType, TimestamptzType, TimeType, UUIDType)

from parquet_files import Checks, expected, plain


def counted(columns):
    """Rows as a multiset, whatever their order."""
    return collections.Counter(repr(row) for row in zip(*columns))


def ours(path):
    lines = path.read_text().split("\n")
    columns = json.loads(lines[0])
    return columns, [json.loads(line) for line in lines[1:]]


def plain_table(table):
    return [plain(table.column(index).combine_chunks()) for index in range(table.num_columns)]


def same(checks, what, columns, rows, table):
    checks.check([name for name, _ in columns] == table.column_names, f"{what}: columns", table.column_names)
    want = counted([expected(rows, index, kind) for index, (_, kind) in enumerate(columns)]) if rows else collections.Counter()
    found = counted(plain_table(table))
    checks.check(want == found, f"{what}: {len(rows)} rows", f"{table.num_rows} found; missing {list((want - found))[:2]}; too many {list((found - want))[:2]}")


def duck():
    connection = duckdb.connect()
    connection.sql("SET TimeZone = 'UTC'")
    for name in ("avro", "iceberg"):
        module = importlib.import_module("duckdb_extension_" + name)
        connection.sql("LOAD '%s'" % glob.glob(os.path.dirname(module.__file__) + "/extensions/*/*.duckdb_extension")[0])
    return connection


def compare_ours(directory, checks):
    connection = duck()
    for pointer in sorted((directory / "ours").glob("*.metadata")):
        location = pointer.read_text()
        columns, rows = ours(pointer.with_suffix(".jsonl"))
        rows = [row for row in rows if row]
        readers = {
            "pyiceberg": lambda: StaticTable.from_metadata(location).scan().to_arrow(),
            "DuckDB": lambda: connection.sql(f"SELECT * FROM iceberg_scan('{location.removeprefix('file://')}')").to_arrow_table(),
        }
        for reader, read in readers.items():
            what = f"{reader} reads {pointer.stem}"
            if reader == "DuckDB" and not rows:
                continue  # it refuses tables without a snapshot
            try:
                table = read()
            except Exception as error:  # whatever it is, it is what the reader says of our table
                checks.check(False, what, f"{type(error).__name__}: {error}")
                continue
            if pointer.stem.startswith("nested"):
                same_nested(checks, what, columns, rows, table, reader)
                continue
            same(checks, what, columns, rows, table)
        if pointer.stem.startswith("sorted"):
            in_order(checks, pointer.stem, StaticTable.from_metadata(location), connection)
    # Bounds: what pyiceberg passes over by them has no row that matches.
    for name in ("plain-2", "partitioned-2", "partitioned-deletes-2", "partitioned-deletes-3"):
        pointer = directory / "ours" / f"{name}.metadata"
        columns, rows = ours(pointer.with_suffix(".jsonl"))
        table = StaticTable.from_metadata(pointer.read_text())
        for column, low in (("id", 0), ("small", 1_000_003)):
            index = [name for name, _ in columns].index(column)
            want = sum(1 for row in rows if row[index] is not None and row[index] >= low)
            found = table.scan(row_filter=f"{column} >= {low}").to_arrow().num_rows
            checks.check(want == found, f"pyiceberg filters {name} by {column}", f"{want} wanted, {found} found")


def sort_values(column, transform, source):
    """A column's values as a sort order compares them: pyiceberg's transforms take dates and times as numbers."""
    if pa.types.is_date(column.type):
        column = column.cast(pa.int32())
    elif pa.types.is_timestamp(column.type) or pa.types.is_time(column.type):
        column = column.cast(pa.int64())
    apply = transform.transform(source)
    return [None if value is None else apply(value) for value in column.to_pylist()]


def compare_values(left, right, field):
    if left is None or right is None:
        first = field.null_order == NullOrder.NULLS_FIRST
        return 0 if left is right else (-1 if (left is None) == first else 1)
    if isinstance(left, float):  # NaN is above all
        left, right = (left != left, left if left == left else 0), (right != right, right if right == right else 0)
    if isinstance(left, str):
        left, right = left.encode(), right.encode()
    result = (left > right) - (left < right)
    return result if field.direction == SortDirection.ASC else -result


def in_order(checks, name, table, connection):
    """Each file says that it is sorted by the table's order, and is: by pyiceberg's transforms, and by DuckDB where it needs none."""
    order, schema = table.sort_order(), table.schema()
    files = [task.file for task in table.scan().plan_files()]
    for file in files:
        path = file.file_path.removeprefix("file://")
        rows = pq.read_table(path)
        keys = []
        for field in order.fields:
            source = schema.find_field(field.source_id)
            keys.append(sort_values(rows.column(source.name).combine_chunks(), field.transform, source.field_type))

        def ordered(row):
            for values, field in zip(keys, order.fields):
                result = compare_values(values[row], values[row + 1], field)
                if result:
                    return result < 0
            return True

        what = f"{name}: {rows.num_rows} rows of a file are in order"
        wrong = next((row for row in range(rows.num_rows - 1) if not ordered(row)), None)
        checks.check(file.sort_order_id == order.order_id, f"{name}: a file says by what it is sorted", str(file.sort_order_id))
        checks.check(wrong is None, what, f"not so at row {wrong}")
        first = order.fields[0]
        if isinstance(first.transform, IdentityTransform):
            column = schema.find_field(first.source_id).name
            how = f"{'ASC' if first.direction == SortDirection.ASC else 'DESC'} NULLS {'FIRST' if first.null_order == NullOrder.NULLS_FIRST else 'LAST'}"
            same_list = connection.sql(
                f"SELECT list({column} ORDER BY file_row_number) IS NOT DISTINCT FROM list({column} ORDER BY {column} {how}) "
                f"FROM read_parquet('{path}', file_row_number = true)").fetchone()[0]
            checks.check(same_list, f"DuckDB: {what}", column)
    checks.check(bool(files), f"{name}: it has files")


# Their tables.

EPOCH = datetime.datetime(2020, 1, 1)
FLAT = [
    ("id", LongType(), True), ("name", StringType(), False), ("at", TimestamptzType(), False), ("local", TimestampType(), False),
    ("amount", DecimalType(12, 2), False), ("wide", DecimalType(38, 10), False), ("flag", BooleanType(), False), ("small", IntegerType(), False),
    ("ratio", DoubleType(), False), ("part", FloatType(), False), ("day", DateType(), False), ("time", TimeType(), False),
    ("bytes", BinaryType(), False), ("fixed", FixedType(5), False), ("uuid", UUIDType(), False),
]


def draw(rng, kind, required):
    if not required and rng.random() < 0.2:
        return None
    if isinstance(kind, LongType):
        return rng.randint(-10**12, 10**12)
    if isinstance(kind, IntegerType):
        return rng.randint(-50, 50)
    if isinstance(kind, StringType):
        return rng.choice(["", "a", "north", "nörd", "something longer than twelve", "🦀"])
    if isinstance(kind, TimestamptzType):
        return (EPOCH + datetime.timedelta(microseconds=rng.randint(-10**15, 10**14))).replace(tzinfo=datetime.timezone.utc)
    if isinstance(kind, TimestampType):
        return EPOCH + datetime.timedelta(microseconds=rng.randint(-10**15, 10**14))
    if isinstance(kind, DecimalType):
        return decimal.Decimal(rng.randint(-10**9, 10**9)).scaleb(-kind.scale)
    if isinstance(kind, BooleanType):
        return rng.random() < 0.5
    if isinstance(kind, (DoubleType, FloatType)):
        return rng.randint(-1000, 1000) / 8
    if isinstance(kind, DateType):
        return (EPOCH + datetime.timedelta(days=rng.randint(-40, 40))).date()
    if isinstance(kind, TimeType):
        return (EPOCH + datetime.timedelta(microseconds=rng.randint(0, 86_399_999_999))).time()
    if isinstance(kind, FixedType):
        return rng.randbytes(5)
    if isinstance(kind, UUIDType):
        return rng.randbytes(16)
    return rng.randbytes(rng.randint(0, 20))


def arrow(schema, rng, count):
    target = schema.as_arrow()
    columns = []
    for field, kind in zip(schema.fields, target):
        values = [draw(rng, field.field_type, field.required) for _ in range(count)]
        columns.append(pa.array(values, kind.type.storage_type if isinstance(kind.type, pa.BaseExtensionType) else kind.type).cast(kind.type))
    return pa.Table.from_arrays(columns, schema=target)


def write_theirs(directory, seed):
    rng = random.Random(seed)
    root = directory / "theirs"
    root.mkdir()
    catalog = SqlCatalog("theirs", uri=f"sqlite:///{root}/catalog.db", warehouse=f"file://{root}")
    catalog.create_namespace("t")
    schema = Schema(*[NestedField(index + 1, name, kind, required=required) for index, (name, kind, required) in enumerate(FLAT)])
    source = {name: index + 1 for index, (name, _, _) in enumerate(FLAT)}

    def spec(*fields):
        return PartitionSpec(*[
            PartitionField(source[column], 1000 + index, transform, f"{column}_{index}") for index, (column, transform) in enumerate(fields)])

    specs = {
        "plain": spec(),
        "by_name_bucket": spec(("name", IdentityTransform()), ("id", BucketTransform(4))),
        "by_times": spec(("at", DayTransform()), ("local", YearTransform())),
        "by_more": spec(("day", MonthTransform()), ("small", TruncateTransform(10)), ("amount", IdentityTransform()), ("flag", IdentityTransform())),
        "by_hour": spec(("at", HourTransform()), ("uuid", BucketTransform(3))),
    }
    made = []
    for name, partitioning in specs.items():
        for version in (1, 2):
            table = catalog.create_table(f"t.{name}_v{version}", schema, partition_spec=partitioning, properties={"format-version": str(version)})
            for _ in range(3):
                table.append(arrow(schema, rng, rng.choice([1, 20, 60])))
            made.append(table)
    table = catalog.create_table("t.evolved", schema)
    table.append(arrow(schema, rng, 30))
    with table.update_schema() as update:
        update.add_column("more", StringType())
        update.rename_column("name", "called")
        update.update_column("small", LongType())
        update.update_column("part", DoubleType())
        update.delete_column("flag")
        update.move_first("day")
    table.append(arrow(table.schema(), rng, 30))
    with table.update_spec() as update:
        update.add_field("called", TruncateTransform(1), "called_cut")
    table.append(arrow(table.schema(), rng, 30))
    table.overwrite(arrow(table.schema(), rng, 9), overwrite_filter="id > 0")
    table.delete("small > 10")
    made.append(table)
    nested = Schema(
        NestedField(1, "id", LongType(), required=True),
        NestedField(2, "list", ListType(3, StringType(), element_required=False), required=False),
        NestedField(4, "map", MapType(5, StringType(), 6, LongType(), value_required=False), required=False),
        NestedField(7, "struct", StructType(NestedField(8, "x", LongType(), required=False), NestedField(9, "y", StringType(), required=False)), required=False))
    table = catalog.create_table("t.nested", nested)
    table.append(pa.Table.from_pylist(
        [{"id": n, "list": [str(n), None], "map": [("k", n)], "struct": {"x": n, "y": None if n % 2 else "why"}} for n in range(20)],
        schema=table.schema().as_arrow()))
    made.append(table)
    made.append(catalog.create_table("t.empty", schema))
    for table in made:
        (root / f"{table.name()[-1]}.metadata").write_text(table.metadata_location)


def nested_value(value, kind=None):
    """Nested values as the JSON that they are for us."""
    if isinstance(value, list) and value and isinstance(value[0], tuple):
        return {key: nested_value(member) for key, member in value}
    if isinstance(value, list):
        return [nested_value(member) for member in value]
    if isinstance(value, dict):
        return {key: nested_value(member) for key, member in value.items()}
    if isinstance(value, bytes):
        return str(uuid.UUID(bytes=value)) if kind == "uid" else value.hex()
    if isinstance(value, datetime.time):
        micros = value.microsecond
        return value.isoformat(timespec="seconds" if micros == 0 else "milliseconds" if micros % 1000 == 0 else "microseconds")
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return int(value) if value.is_integer() else value if value == value else "NaN"
    return str(value)


def sorted_json(value):
    return json.dumps(value, sort_keys=True)


def same_nested(checks, what, columns, rows, table, reader):
    names = [name for name, _ in columns]
    if reader == "pyiceberg":
        # It has an empty list for a missing one within a struct; pyarrow and DuckDB read what is in the file.
        place = names.index("point")
        rows = [[value.replace('"path": null', '"path": []') if index == place and value else value for index, value in enumerate(row)] for row in rows]
    checks.check(names == table.column_names, f"{what}: columns", table.column_names)
    found = sorted(sorted_json([empty_map(name, nested_value(row[name], name)) for name in names]) for row in table.to_pylist())
    want = sorted(sorted_json([nested_value(json.loads(value)) if kind == "jsonb" and value is not None else value for (_, kind), value in zip(columns, row)]) for row in rows)
    missing = collections.Counter(want) - collections.Counter(found)
    checks.check(found == want, f"{what}: {len(rows)} rows", f"{table.num_rows} found; missing {list(missing)[:2]}; there is {found[:2]}")


def empty_map(name, value):
    """A map without entries is an empty list in Arrow."""
    return {} if name in ("counts", "days") and value == [] else value


def compare_theirs(directory, checks):
    for pointer in sorted((directory / "theirs").glob("*.metadata")):
        what = f"we read {pointer.stem}"
        error = pathlib.Path(f"{pointer}.error")
        if error.exists():
            checks.check(False, what, error.read_text())
            continue
        columns, rows = ours(pathlib.Path(f"{pointer}.read"))
        rows = [row for row in rows if row]
        table = StaticTable.from_metadata(pointer.read_text()).scan().to_arrow()
        if pointer.stem == "nested":
            want = sorted(repr([nested_value(value) for value in row.values()]) for row in table.to_pylist())
            found = sorted(repr([value if index == 0 else value and json.loads(value) for index, value in enumerate(row)]) for row in rows)
            checks.check(want == found, what, f"{want[:1]} {found[:1]}")
            continue
        same(checks, what, columns, rows, table)


def main():
    command, directory, seed = sys.argv[1], pathlib.Path(sys.argv[2]), int(sys.argv[3])
    if command == "write":
        return write_theirs(directory, seed)
    checks = Checks("iceberg")
    compare_ours(directory, checks)
    compare_theirs(directory, checks)
    checks.finish()


if __name__ == "__main__":
    main()
