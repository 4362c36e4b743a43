"""The other half of Scripts/test-parquet: parquet_files.py write|compare DIRECTORY SEED

`write` has pyarrow, DuckDB and polars write random files into theirs/; `compare` has them read ours/, and holds what we read in theirs/
against what pyarrow reads there.
"""
import datetime
import decimal
import json
import pathlib
import random
import struct
import sys

import duckdb
import polars
import pyarrow as pa
import pyarrow.parquet as pq

from arrow_json import as_json

EPOCH = datetime.datetime(1970, 1, 1)
MICROS = datetime.timedelta(microseconds=1)


class Checks:
    """Counts what held and what did not; says only the latter, and a line for each kind."""

    def __init__(self, what):
        self.what, self.passed, self.failed = what, 0, 0

    def check(self, holds, what, detail=""):
        if holds:
            self.passed += 1
        else:
            self.failed += 1
            print(f"  FAIL  {what}: {str(detail)[:400]}", flush=True)

    def finish(self):
        print(f"{self.what}: {self.passed} passed, {self.failed} failed", flush=True)
        sys.exit(1 if self.failed or not self.passed else 0)


# What is in a file, as the other half writes it: times as numbers, floats as their bits, decimals and bytes as texts.

def bits(number):
    return "nan" if number != number else struct.unpack("<Q", struct.pack("<d", number))[0]


def micros(column, unit):
    factor = {"s": 1_000_000, "ms": 1000, "us": 1}.get(unit)
    numbers = column.cast(pa.int64()).to_pylist()
    return [None if n is None else n * factor if factor else n // 1000 for n in numbers]


def plain(column):
    """A column of pyarrow's as comparable values."""
    kind = column.type
    if isinstance(kind, pa.BaseExtensionType):
        return [None if v is None else str(v) for v in column.to_pylist()]
    if pa.types.is_dictionary(kind):
        return plain(column.cast(kind.value_type))
    if pa.types.is_date32(kind):
        return column.cast(pa.int32()).to_pylist()
    if pa.types.is_time32(kind):
        return micros(column.cast(pa.int32()), kind.unit)
    if pa.types.is_time64(kind) or pa.types.is_timestamp(kind):
        return micros(column, kind.unit)
    if pa.types.is_floating(kind):
        return [None if v is None else bits(float(v)) for v in column.to_pylist()]
    if pa.types.is_decimal(kind):
        return [None if v is None else decimal.Decimal(v) for v in column.to_pylist()]
    if pa.types.is_large_binary(kind) or pa.types.is_binary(kind) or pa.types.is_fixed_size_binary(kind) or pa.types.is_binary_view(kind):
        return [None if v is None else v.hex() for v in column.to_pylist()]
    return column.to_pylist()


def expected(rows, index, kind):
    values = [row[index] for row in rows]
    if kind.startswith("numeric"):
        return [None if v is None else decimal.Decimal(v) for v in values]
    if kind == "jsonb":
        return [None if v is None else json.loads(v) for v in values]
    return values


def actual(column, kind):
    if pa.types.is_nested(column.type):
        return [as_json(value, column.type) for value in column.to_pylist()]
    if kind == "jsonb" and pa.types.is_large_binary(column.type) | pa.types.is_binary(column.type) | pa.types.is_binary_view(column.type):
        column = column.cast(pa.large_string())
    values = plain(column)
    if kind == "jsonb":
        return [None if v is None else json.loads(v) for v in values]
    if kind.startswith("numeric"):
        return [None if v is None else decimal.Decimal(v) for v in values]
    return values


def described(path):
    lines = path.read_text(encoding="utf8").split("\n")
    return json.loads(lines[0]), [json.loads(line) for line in lines[1:] if line]


def difference(left, right):
    if len(left) != len(right):
        return f"{len(left)} rows for {len(right)}"
    for row, (a, b) in enumerate(zip(left, right)):
        if a != b:
            return f"row {row}: {a!r} for {b!r}"
    return None


# Ours, read by others.

def by_pyarrow(path):
    return pq.read_table(path, page_checksum_verification=True, coerce_int96_timestamp_unit="us")


def by_duckdb(path):
    con = duckdb.connect()
    con.execute("set timezone='UTC'")
    return con.sql("select * from read_parquet(?)", params=[str(path)]).to_arrow_table()


def by_polars(path):
    return polars.read_parquet(path).to_arrow()


def compare_ours(directory, checks):
    count = 0
    for path in sorted((directory / "ours").glob("*.parquet")):
        columns, rows = described(pathlib.Path(f"{path}.jsonl"))
        readers = [by_pyarrow]
        if path.name.startswith("ordinary"):
            readers += [by_duckdb, by_polars]
        for reader in readers:
            what = f"{path.name} by {reader.__name__[3:]}"
            try:
                table = reader(path)
            except Exception as error:  # whatever a reader raises is a finding
                checks.check(False, what, f"{type(error).__name__}: {error}; columns {columns}")
                continue
            checks.check(table.column_names == [name for name, _ in columns], f"{what}, columns", table.column_names)
            for index, (name, kind) in enumerate(columns):
                if reader is by_polars and table.column(index).type == pa.timestamp("ns"):
                    continue  # INT96, which polars reads as nanoseconds: they hold no year 1
                wrong = difference(actual(table.column(index), kind), expected(rows, index, kind))
                checks.check(wrong is None, f"{what}, {name} {kind} as {table.column(index).type}", wrong)
        compare_filters(path, columns, rows, checks)
        count += 1
    print(f"  ours: {count} files")


def compare_filters(path, columns, rows, checks):
    """Bounds that are wrong make readers pass over rows."""
    con = duckdb.connect()
    for index, (name, kind) in enumerate(columns):
        values = [v for v in expected(rows, index, kind) if v is not None]
        if not values or kind not in ("integer", "bigint", "character varying", "smallint") and not kind.startswith("numeric("):
            continue
        for value in {values[0], values[-1], values[len(values) // 2]}:
            for operator, test in (("=", lambda v: v == value), (">=", lambda v: v >= value), ("<", lambda v: v < value)):
                if kind == "character varying":
                    test = {"=": lambda v: v == value, ">=": lambda v: v.encode() >= value.encode(), "<": lambda v: v.encode() < value.encode()}[operator]
                wanted = sum(map(test, values))
                found = con.execute(f'select count(*) from read_parquet(?) where "{name}" {operator} ?', [str(path), value]).fetchone()[0]
                checks.check(found == wanted, f"{path.name} by duckdb where {name} {kind} {operator} {value!r}", f"{found} rows for {wanted}")


# Theirs, read by us.

TEXTS = ["", "a", "twelve bytes", "thirteen bytes", "žluťoučký kůň", "🦀🦀🦀🦀", "long " * 200, "\0", "a\0", 'quote " and \\']
TYPES = [
    pa.bool_(), pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64(), pa.float16(), pa.float32(), pa.float64(),
    pa.decimal128(7, 2), pa.decimal128(18, 0), pa.decimal128(38, 10), pa.decimal256(38, 3), pa.string(), pa.large_string(), pa.binary(), pa.binary(7),
    pa.date32(), pa.time32("ms"), pa.time64("us"), pa.time64("ns"), pa.timestamp("ms"), pa.timestamp("us"), pa.timestamp("us", "UTC"), pa.timestamp("ns"),
    pa.timestamp("ms", "Europe/Prague"), pa.null(), pa.dictionary(pa.int32(), pa.string()),
]


NESTED = [
    pa.list_(pa.int64()), pa.list_(pa.list_(pa.string())), pa.struct([("a", pa.int32()), ("b", pa.string())]), pa.map_(pa.string(), pa.int64()),
    pa.list_(pa.struct([("x", pa.bool_()), ("y", pa.list_(pa.int16()))])), pa.struct([("m", pa.map_(pa.int32(), pa.list_(pa.string()))), ("z", pa.int64())]),
    pa.map_(pa.string(), pa.struct([("l", pa.list_(pa.int64()))])),
]


def nested_value(kind, rng):
    if rng.random() < 0.15:
        return None
    if pa.types.is_map(kind):
        keys = range(rng.randrange(4)) if pa.types.is_integer(kind.key_type) else [f"key {n}" for n in range(rng.randrange(4))]
        return [(key, nested_value(kind.item_type, rng)) for key in keys]
    if pa.types.is_struct(kind):
        return {field.name: nested_value(field.type, rng) for field in kind}
    if pa.types.is_list(kind):
        return [nested_value(kind.value_type, rng) for _ in range(rng.choice([0, 1, 2, 5]))]
    # jsonb has no zero bytes.
    return rng.choice([v for v in values_of(kind, rng) if not isinstance(v, str) or "\0" not in v])


def values_of(kind, rng):
    if pa.types.is_nested(kind):
        return [nested_value(kind, rng) for _ in range(50)]
    integer = lambda width, signed: [0, 1, 7, *((-1, -(1 << (width - 1))) if signed else ()), (1 << (width - (1 if signed else 0))) - 1]
    if pa.types.is_boolean(kind):
        return [True, False]
    if pa.types.is_integer(kind):
        return integer(kind.bit_width, pa.types.is_signed_integer(kind)) + [rng.randrange(100) for _ in range(20)]
    if pa.types.is_float16(kind):
        return [0.0, -0.0, 1.5, -2.25, float("inf"), 6e-8, 65504.0]
    if pa.types.is_float32(kind):
        return [0.0, -0.0, 1.5, float("nan"), float("-inf"), 3.4e38, 1e-45] + [struct.unpack("<f", struct.pack("<f", rng.random()))[0] for _ in range(30)]
    if pa.types.is_float64(kind):
        return [0.0, -0.0, 0.1, float("nan"), float("inf"), 1e308, 5e-324] + [rng.random() for _ in range(30)]
    if pa.types.is_decimal(kind):
        largest = 10**kind.precision - 1
        return [decimal.Decimal(n).scaleb(-kind.scale, decimal.Context(prec=60)) for n in (0, 1, -1, 255, -256, largest, -largest)]
    if pa.types.is_date32(kind):
        return [datetime.date(1, 1, 1), datetime.date(1970, 1, 1), datetime.date(1969, 12, 31), datetime.date(9999, 12, 31)]
    if pa.types.is_time32(kind):
        return [0, 1, 86_399_999]
    if pa.types.is_time64(kind):
        return [0, 1, 86_399_999_999 * (1000 if kind.unit == "ns" else 1)]
    if pa.types.is_timestamp(kind):
        scale = {"ms": 1000, "us": 10**6, "ns": 10**9}[kind.unit]
        return [0, -1, 1, 1_700_000_000 * scale + 123, -9_000_000_000 * scale, 9_000_000_000 * scale]
    if pa.types.is_null(kind):
        return [None]
    if pa.types.is_fixed_size_binary(kind):
        return [rng.randbytes(kind.byte_width) for _ in range(10)]
    if pa.types.is_binary(kind):
        return [text.encode() for text in TEXTS] + [b"\xff\0\xfe"]
    return TEXTS + [f"text {rng.randrange(1000)}" for _ in range(50)]


def random_table(rng):
    rows = rng.choice([0, 1, 700, 9000])
    columns = {}
    for index in range(rng.randint(1, 8)):
        kind = rng.choice(NESTED if rng.random() < 0.1 else TYPES)
        pool = values_of(kind, rng)
        null = 1 if pa.types.is_null(kind) else rng.choice([0, 0, 0.1, 0.9, 1])
        run = rng.choice([1, 1, 50])
        values = []
        while len(values) < rows:
            values += [None if rng.random() < null else rng.choice(pool)] * rng.randint(1, run)
        columns[f"c{index}"] = pa.array(values[:rows], kind)
    if rng.random() < 0.3:
        columns["sorted"] = pa.array([f"http://example.com/some/path/{n:06}" for n in range(rows)])
        columns["serial"] = pa.array(list(range(rows)), pa.int64())
    return pa.table(columns)


def encodings(table, rng):
    """Encodings for some columns; None for a dictionary and PLAIN."""
    result = {}
    for field in table.schema:
        kind = field.type
        if pa.types.is_int32(kind) or pa.types.is_int64(kind):
            choice = rng.choice(["PLAIN", "DELTA_BINARY_PACKED", "BYTE_STREAM_SPLIT"])
        elif pa.types.is_string(kind) or pa.types.is_binary(kind):
            choice = rng.choice(["PLAIN", "DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY"])
        elif pa.types.is_float32(kind) or pa.types.is_float64(kind):
            choice = rng.choice(["PLAIN", "BYTE_STREAM_SPLIT"])
        elif pa.types.is_boolean(kind):
            choice = rng.choice(["PLAIN", "RLE"])
        elif pa.types.is_fixed_size_binary(kind) or pa.types.is_decimal128(kind) and kind.precision > 18:
            choice = rng.choice(["PLAIN", "BYTE_STREAM_SPLIT", "DELTA_BYTE_ARRAY"])
        else:
            choice = "PLAIN"
        if not pa.types.is_nested(kind):
            result[field.name] = choice
    return result


def write_theirs(directory, rng):
    target = directory / "theirs"
    target.mkdir(parents=True)
    for number in range(80):
        table = random_table(rng)
        options = dict(
            compression=rng.choice(["none", "snappy", "gzip", "zstd", "lz4"]), data_page_version=rng.choice(["1.0", "2.0"]),
            version=rng.choice(["1.0", "2.4", "2.6"]), data_page_size=rng.choice([100, 10_000, 1 << 20]), row_group_size=rng.choice([100, 5000, 1 << 20]),
            write_page_index=rng.random() < 0.5, write_page_checksum=rng.random() < 0.5, write_statistics=rng.random() < 0.8,
            use_deprecated_int96_timestamps=rng.random() < 0.2, store_decimal_as_integer=rng.random() < 0.5)
        if rng.random() < 0.5:
            options.update(use_dictionary=False, column_encoding=encodings(table, rng))
        if options["version"] != "2.6" or options["use_deprecated_int96_timestamps"]:
            options.update(allow_truncated_timestamps=True)
        path = target / f"pyarrow-{number}.parquet"
        try:
            pq.write_table(table, path, **options)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError) as error:
            path.unlink(missing_ok=True)  # what pyarrow itself cannot write that way
            print(f"  pyarrow did not write {number}: {str(error)[:100]}")
    for number in range(30):
        table = random_table(rng)
        plain_types = [f.name for f in table.schema if not pa.types.is_null(f.type) and not pa.types.is_float16(f.type) and not pa.types.is_decimal256(f.type)]
        table = table.select(plain_types)
        if not plain_types:
            continue
        con = duckdb.connect()
        con.execute("set timezone='UTC'")
        con.register("t", table)
        codec, version = rng.choice(["uncompressed", "snappy", "gzip", "zstd", "lz4_raw"]), rng.choice(["V1", "V2"])
        extra = ", uuid() as u, (range % 100)::utinyint as small, hash(range)::ubigint as big" if rng.random() < 0.5 else ""
        source = f"(select *{extra.replace('range', 'rowid') if extra else ''} from (select *, row_number() over () as rowid from t))"
        con.execute(
            f"copy {source} to '{target}/duckdb-{number}.parquet' (format parquet, compression {codec}, parquet_version {version},"
            f" row_group_size {rng.choice([2048, 122880])})")
    for number in range(20):
        table = random_table(rng)
        names = [f.name for f in table.schema if not pa.types.is_decimal256(f.type) and not pa.types.is_float16(f.type)]
        if names:
            polars.from_arrow(table.select(names)).write_parquet(
                target / f"polars-{number}.parquet", compression=rng.choice(["uncompressed", "snappy", "gzip", "zstd", "lz4"]),
                data_page_size=rng.choice([500, 1 << 20]), row_group_size=rng.choice([100, 1 << 20]))


def compare_theirs(directory, checks):
    count = 0
    for path in sorted((directory / "theirs").glob("*.parquet")):
        error = pathlib.Path(f"{path}.error")
        if error.exists():
            checks.check(False, f"{path.name} by us", error.read_text())
            continue
        read = pathlib.Path(f"{path}.read")
        if not read.exists():
            checks.check(False, f"{path.name} by us", "not read")
            continue
        columns, rows = described(read)
        table = pq.read_table(path, coerce_int96_timestamp_unit="us")
        checks.check([name for name, _ in columns] == table.column_names, f"{path.name} by us, columns", f"{columns} for {table.schema}")
        for index, (name, kind) in enumerate(columns):
            column = table.column(name)
            wrong = difference(expected(rows, index, kind), [decimal.Decimal(v) if kind.startswith("numeric") and v is not None else v for v in actual(column, kind)])
            checks.check(wrong is None, f"{path.name} by us, {name} {column.type} as {kind}", wrong)
        count += 1
    print(f"  theirs: {count} files")


def main():
    verb, directory, seed = sys.argv[1], pathlib.Path(sys.argv[2]), int(sys.argv[3])
    if verb == "write":
        write_theirs(directory, random.Random(seed))
        return
    checks = Checks("parquet")
    compare_ours(directory, checks)
    compare_theirs(directory, checks)
    checks.finish()


if __name__ == "__main__":
    main()
