"""What sinks write, for Scripts/test-lake-readers: values of all types, and partitions by every transform."""
import pyarrow.parquet as pq

from harness import wait_until
from lake_values import of_arrow

NO_TIME = {"Spark": "it has no type for time of day"}
LONG_TEXT = "0123456789" * 1000
TYPES = {
    "flag boolean": ["true", "false"],
    "small smallint": ["0", "-32768", "32767"],
    "whole integer": ["0", "-2147483648", "2147483647"],
    "large bigint": ["0", "-9223372036854775808", "9223372036854775807"],
    "ratio real": ["0", "-0", "0.1", "1e-45", "3.4028235e38", "-3.4028235e38", "NaN", "Infinity", "-Infinity"],
    "amount double precision": ["0", "-0", "0.1", "5e-324", "1.7976931348623157e308", "NaN", "Infinity", "-Infinity"],
    "plain numeric": ["0", "-0.0000000001", "123456789012345678.0123456789", "-999999999999999999.9999999999"],
    "nine numeric(9,4)": ["0", "-99999.9999", "99999.9999", "0.5"],
    "eighteen numeric(18,6)": ["0", "999999999999.999999", "-999999999999.999999"],
    "wide numeric(38,0)": ["0", "99999999999999999999999999999999999999", "-99999999999999999999999999999999999999", "-1"],
    "narrow numeric(38,38)": ["0", "0.99999999999999999999999999999999999999", "-0.00000000000000000000000000000000000001"],
    "word varchar": [
        "", "näme", "日本語 🎈", "e\u0301", "שלום", "it''s \"quoted\"\\", "a\tb\nc\r", "\ufeff\uffff\U0010ffff", LONG_TEXT],
    "raw bytea": ["", "\\x00", "\\x00ff80", "\\x" + bytes(range(256)).hex()],
    "day date": ["1970-01-01", "1969-12-31", "0001-01-01", "0001-12-31 BC", "1582-10-04", "1582-10-15", "9999-12-31", "2026-02-28"],
    "clock time": ["00:00:00", "23:59:59.999999", "12:34:56.000001"],
    "at timestamp": [
        "1970-01-01 00:00:00", "1969-12-31 23:59:59.999999", "1600-02-29 12:00:00", "0001-01-01 00:00:00", "9999-12-31 23:59:59.999999"],
    "instant timestamptz": [
        "1970-01-01 00:00:00+00", "1969-12-31 23:59:59.999999+00", "1582-10-04 12:00:00+02", "9999-12-31 23:59:59.999999+00"],
    "span interval": ["0", "1 year 2 months -3 days 04:05:06.000007", "-1 day"],
    "doc jsonb": ["null", "{}", "[]", '{"b": 1, "a": [1.0, null, "é"], "c": {"d": 12345678901234567890.5}}', '"text"', "-0.5", "true"],
}
PARTITIONS = {
    "buckets": "bucket(2,whole), bucket(2,large), bucket(2,price), bucket(2,word), bucket(2,raw)",
    "time_buckets": "bucket(3,day), bucket(3,at), bucket(3,instant), bucket(3,clock)",
    "truncated": "truncate(10,whole), truncate(100,large), truncate(50,price)",
    "cut": "truncate(3,word), truncate(2,raw)",
    "years": "year(day), month(at)", "months": "month(instant), year(at)", "days": "day(day), bucket(2,id)",
    "day_hours": "day(at), hour(instant)",
    "hours": "hour(at), year(instant)", "same": "whole, word, flag", "same_time": "day, at, instant", "same_rest": "price, raw, clock",
}


def type_rows():
    """VALUES lists: each value of each type at least once beside others', and a row of NULLs."""
    count = max(len(values) for values in TYPES.values()) * 2
    for number in range(count):
        values = []
        for place, (column, choices) in enumerate(TYPES.items()):
            kind = column.split(" ", 1)[1]
            choice = choices[(number + place * (number // len(choices))) % len(choices)]
            values.append(f"'{choice}'::{kind}")
        yield f"({number}, {', '.join(values)})"
    yield f"({count}, {', '.join('NULL' for _ in TYPES)})"


def partition_rows(count=28):
    words = ["", "a", "ab", "abcdef", "äöü€x", "日本語🎈", "a/b=c d%", "z" * 40]
    for n in range(count):
        value = lambda every, text: "NULL" if n % every == every - 1 else text
        hours = (n - 14) * 977
        yield (
            f"({n}, {value(7, n * 13 - 150)}, {value(8, (n - 9) * 1234567890123)}, {value(9, f'{(n - 11) * 12.34:.2f}')}, "
            + value(6, "'" + words[n % len(words)] + "'") + ", " + value(10, f"'\\x{bytes([n, 0, 255 - n]).hex()}'") + ", "
            + value(11, f"DATE '1970-01-01' + {(n - 14) * 41}") + ", "
            + value(12, f"TIMESTAMP '1970-01-01 00:00:00' + INTERVAL '{hours} hours 1 second'") + ", "
            + value(13, f"TIMESTAMPTZ '1970-01-01 00:00:00+00' + INTERVAL '{hours} hours -1 second'") + ", "
            + value(14, f"TIME '00:00:00' + INTERVAL '{n * 47} minutes'") + f", {value(5, str(n % 2 == 0).lower())})")


class Sinks:
    """Makes tables and the sinks that bring them into the lake's namespace `made`."""

    def __init__(self, connection, lake):
        self.connection, self.lake = connection, lake

    def sink(self, source, table, kind="append-only", more=""):
        force = ", force_append_only = 'true'" if kind == "append-only" else ""
        self.connection.execute(
            f"CREATE SINK to_{table} FROM {source} WITH (connector = 'iceberg', type = '{kind}'{force}, catalog.type = 'rest', "
            f"catalog.uri = '{self.lake.uri}', warehouse.path = 'dev', catalog.credential = 'root:secret', "
            "catalog.scope = 'PRINCIPAL_ROLE:ALL', "
            f"database.name = 'made', table.name = '{table}', create_table_if_not_exists = 'true'{more})")

    def settle(self):
        """Waits until the targets have everything; what does not get on, with its reason."""
        self.connection.execute("FLUSH")

        def behind():
            cursor = self.connection.execute("SHOW SINKS")
            names = [column.name for column in cursor.description]
            lines = [dict(zip(names, line)) for line in cursor.fetchall()]
            return [line for line in lines if line["State"] != "running" or int(line["Lag"]) or int(line["Lag Bytes"])]

        wait_until(lambda: not behind(), 30)
        return behind()


def play_types(checks, compare, sinks):
    connection = sinks.connection
    connection.execute(f"CREATE TABLE every_type (id bigint PRIMARY KEY, {', '.join(TYPES)})")
    for row in type_rows():
        connection.execute(f"INSERT INTO every_type VALUES {row}")
    names = [column.split(" ")[0] for column in TYPES]
    timeless = ", ".join(name for name in names if name != "clock")
    connection.execute(f"CREATE VIEW without_time AS SELECT id, {timeless} FROM every_type")
    sinks.sink("every_type", "every_type")
    sinks.sink("every_type", "every_type_upsert", "upsert")
    sinks.sink("without_time", "without_time")
    checks.check(not sinks.settle(), "sinks of every type are through", str(sinks.settle())[:300])
    # An interval is a text in the table.
    query = f"SELECT id, {', '.join(names)} FROM every_type".replace("span", "span::varchar AS span")
    compare.table("made.every_type", query, NO_TIME)
    compare.table("made.every_type_upsert", query, NO_TIME)
    compare.table("made.without_time", query.replace("clock, ", ""))


def play_partitions(checks, compare, sinks):
    connection = sinks.connection
    connection.execute(
        "CREATE TABLE parts (id bigint PRIMARY KEY, whole integer, large bigint, price numeric(12,2), word varchar, raw bytea, day date, "
        "at timestamp, instant timestamptz, clock time, flag boolean)")
    connection.execute(f"INSERT INTO parts VALUES {', '.join(partition_rows())}")
    connection.execute("CREATE VIEW parts_timeless AS SELECT id, whole, large, price, word, raw, day, at, instant, flag FROM parts")
    relations = {table: "parts" if "clock" in spec else "parts_timeless" for table, spec in PARTITIONS.items()}
    for table, spec in PARTITIONS.items():
        sinks.sink(relations[table], table, more=f", partition_by = '{spec}'")
    checks.check(not sinks.settle(), "sinks into partitions are through", str(sinks.settle())[:300])
    for table, relation in relations.items():
        compare.table(f"made.{table}", f"SELECT * FROM {relation}", NO_TIME if relation == "parts" else {})
        compare_partitions(checks, sinks.lake, table)


def compare_partitions(checks, lake, table):
    """Every file has the rows of its partition, by PyIceberg's transforms."""
    found = lake.table(f"made.{table}")
    schema, wrong, files = found.schema(), [], 0
    for task in found.scan().plan_files():
        files += 1
        rows = pq.read_table(task.file.file_path.removeprefix("file://"), partitioning=None)
        for place, field in enumerate(found.spec().fields):
            source = schema.find_field(field.source_id)
            expected = of_arrow(field.transform.pyarrow_transform(source.field_type)(rows[source.name].combine_chunks()))
            if set(expected) != {task.file.partition[place]}:
                wrong.append((field.name, set(expected), task.file.partition[place]))
    checks.check(files > 1 and not wrong, f"made.{table}: {files} files have the rows that their partitions say", wrong[:3])
