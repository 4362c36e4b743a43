"""Tables that PyIceberg writes into the embedded catalog, read by SQL: as they are, as they were, and what is known of them."""
import datetime
import decimal

import psycopg
import pyarrow as pa
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import BucketTransform, DayTransform
from pyiceberg.types import (
    BinaryType, BooleanType, DateType, DecimalType, DoubleType, FloatType, IntegerType, ListType, LongType, NestedField, StringType, TimestampType,
    TimestamptzType, TimeType)

from harness import Checks, Server, free_port

UTC = datetime.timezone.utc
TYPES = Schema(
    NestedField(1, "id", LongType(), required=True), NestedField(2, "flag", BooleanType()), NestedField(3, "small", IntegerType()),
    NestedField(4, "ratio", FloatType()), NestedField(5, "amount", DoubleType()), NestedField(6, "price", DecimalType(18, 4)),
    NestedField(7, "name", StringType()), NestedField(8, "raw", BinaryType()), NestedField(9, "day", DateType()),
    NestedField(10, "clock", TimeType()), NestedField(11, "at", TimestampType()), NestedField(12, "instant", TimestamptzType()),
    NestedField(13, "tags", ListType(14, StringType(), element_required=False)))


def row(number):
    if number % 7 == 0:
        return {"id": number}
    moment = datetime.datetime(2026, 1, 1) + datetime.timedelta(hours=number, microseconds=number)
    return {
        "id": number, "flag": number % 2 == 0, "small": number - 50, "ratio": number / 4, "amount": number / 3, "price": decimal.Decimal(number) / 8,
        "name": f"näme {number}", "raw": bytes([number % 256, 0, 255]), "day": moment.date(), "clock": moment.time(), "at": moment,
        "instant": moment.replace(tzinfo=UTC), "tags": [f"t{number}", None]}


def client(catalog):
    return RestCatalog(
        "sql", uri=f"http://{catalog}/api/catalog", credential="root:secret", warehouse="dev", scope="PRINCIPAL_ROLE:ALL",
        **{"oauth2-server-uri": f"http://{catalog}/api/catalog/v1/oauth/tokens"})


def rows_of(table, **how):
    found = table.scan(**how).to_arrow()
    return sorted(zip(*(column.to_pylist() for column in found.columns)), key=lambda row: row[0])


def error_of(connection, statement):
    try:
        connection.execute(statement).fetchall()
    except psycopg.Error as error:
        return error.sqlstate, str(error)
    return None, "no error"


def types(checks, connection, lake):
    spec = PartitionSpec(PartitionField(12, 1000, DayTransform(), "day_of"), PartitionField(1, 1001, BucketTransform(4), "bucket"))
    table = lake.create_table("shop.types", TYPES, partition_spec=spec)
    for start in range(0, 120, 40):
        table.append(pa.Table.from_pylist([row(n) for n in range(start, start + 40)], schema=table.schema().as_arrow()))
    found = connection.execute("SELECT * FROM dev.shop.types ORDER BY id").fetchall()
    expected = [tuple(list(values[:-1]) + [values[-1]]) for values in rows_of(table)]
    checks.check(found == expected, f"{len(expected)} rows of all types are PyIceberg's", f"{found[1:2]} {expected[1:2]}")
    for condition in ["id = 17", "id IN (3, 99, 4000)", "instant >= TIMESTAMPTZ '2026-01-03 00:00:00+00' AND small < 20", "name IS NULL", "price > 5.5"]:
        found = connection.execute(f"SELECT id FROM dev.shop.types WHERE {condition} ORDER BY id").fetchall()
        plain = connection.execute(f"SELECT id FROM (SELECT * FROM dev.shop.types OFFSET 0) t WHERE {condition} ORDER BY id").fetchall()
        checks.check(found == plain and (found or "4000" in condition), f"WHERE {condition}: {len(found)} rows, with bounds and without", (found, plain))
    return table


def history(checks, connection, lake, table):
    first = table.snapshots()[0]
    checks.check(
        connection.execute(f"SELECT count(*) FROM dev.shop.types FOR SYSTEM_VERSION AS OF {first.snapshot_id}").fetchone() == (40,), "as of a snapshot")
    second = table.snapshots()[1]
    moment = datetime.datetime.fromtimestamp(second.timestamp_ms / 1000, UTC)
    for clause in [f"FOR SYSTEM_TIME AS OF TIMESTAMPTZ '{moment.isoformat()}'", f"FOR TIMESTAMP AS OF '{moment.isoformat()}'"]:
        checks.check(connection.execute(f"SELECT count(*) FROM dev.shop.types {clause} AS t").fetchone() == (80,), clause)
    table.manage_snapshots().create_tag(first.snapshot_id, "first").commit()
    checks.check(connection.execute("SELECT count(*) FROM dev.shop.types FOR VERSION AS OF 'first'").fetchone() == (40,), "as of a tag")
    for clause, state in [("FOR SYSTEM_TIME AS OF '2020-01-01'", "42704"), ("FOR SYSTEM_VERSION AS OF 5", "42704"), ("FOR VERSION AS OF 'none'", "42704"),
                          ("FOR SYSTEM_VERSION AS OF id", "42703")]:
        found, text = error_of(connection, f"SELECT * FROM dev.shop.types {clause}")
        checks.check(found == state, f"{clause} is {state}", text)
    with table.update_schema() as update:
        update.add_column("added", StringType())
        update.rename_column("small", "tiny")
        update.delete_column("ratio")
    table = lake.load_table("shop.types")
    table.append(pa.Table.from_pylist([{"id": 1000, "added": "new", "tiny": 1}], schema=table.schema().as_arrow()))
    found = connection.execute("SELECT id, tiny, added FROM dev.shop.types WHERE id IN (1, 1000) ORDER BY id").fetchall()
    checks.check(found == [(1, -49, None), (1000, 1, "new")], "columns added, renamed and dropped", found)
    found = connection.execute("SELECT small, ratio FROM dev.shop.types FOR VERSION AS OF 'first' WHERE id = 1").fetchall()
    checks.check(found == [(-49, 0.25)], "an older state has its own columns", found)
    table.delete("id < 10")
    found = connection.execute("SELECT count(*), min(id) FROM dev.shop.types").fetchone()
    checks.check(found == (111, 10), "rows that were deleted are gone", found)
    return lake.load_table("shop.types")


def parts(checks, connection, table):
    inspect = table.inspect
    found = connection.execute('SELECT snapshot_id, parent_id, operation FROM dev.shop."types$snapshots" ORDER BY committed_at, snapshot_id').fetchall()
    theirs = inspect.snapshots().to_pylist()
    expected = [(line["snapshot_id"], line["parent_id"], line["operation"]) for line in theirs]
    checks.check(sorted(found, key=str) == sorted(expected, key=str), f"snapshots: {len(found)} lines", (found, expected))
    found = connection.execute("SELECT file_path, record_count, file_size_in_bytes FROM dev.shop.types.files WHERE content = 0 ORDER BY 1").fetchall()
    expected = sorted((line["file_path"], line["record_count"], line["file_size_in_bytes"]) for line in inspect.files().to_pylist() if line["content"] == 0)
    checks.check(found == expected, f"files: {len(found)} lines", (found[:2], expected[:2]))
    found = connection.execute("SELECT path, length, added_snapshot_id FROM dev.shop.types.manifests ORDER BY 1").fetchall()
    expected = sorted((line["path"], line["length"], line["added_snapshot_id"]) for line in inspect.manifests().to_pylist())
    checks.check(found == expected, f"manifests: {len(found)} lines", (found[:2], expected[:2]))
    found = connection.execute("SELECT sum(record_count), sum(file_count) FROM dev.shop.types.partitions").fetchone()
    theirs = inspect.partitions().to_pylist()
    expected = (sum(line["record_count"] for line in theirs), sum(line["file_count"] for line in theirs))
    checks.check(tuple(map(int, found)) == expected, "partitions", (found, expected))
    found = connection.execute("SELECT name, type FROM dev.shop.types.refs ORDER BY name").fetchall()
    checks.check(found == [("first", "TAG"), ("main", "BRANCH")], "refs", found)
    found = connection.execute("SELECT count(*) FROM dev.shop.types.history WHERE is_current_ancestor").fetchone()
    checks.check(found == (len(inspect.history().to_pylist()),), "history", found)


def together(checks, connection, lake):
    connection.execute("CREATE TABLE names (id BIGINT PRIMARY KEY, label VARCHAR)")
    connection.execute("INSERT INTO names VALUES (11, 'eleven'), (12, 'twelve')")
    found = connection.execute("SELECT n.label, t.tiny FROM names n JOIN dev.shop.types t ON n.id = t.id ORDER BY 1").fetchall()
    checks.check(found == [("eleven", -39), ("twelve", -38)], "joined with a table of this server", found)
    found = connection.execute("SELECT types.id FROM dev.shop.types WHERE shop.types.id = 20").fetchall()
    checks.check(found == [(20,)], "columns by the table's name", found)
    described = [line[:2] for line in connection.execute("DESCRIBE dev.shop.types").fetchall()]
    shown = [line[:2] for line in connection.execute("SHOW COLUMNS FROM dev.shop.types LIKE 'tin%'").fetchall()]
    checks.check(("id", "bigint") in described and shown == [("tiny", "integer")], "DESCRIBE and SHOW COLUMNS", (described, shown))
    lake.create_namespace("empty")
    lake.create_table("empty.nothing", TYPES)
    checks.check(connection.execute("SELECT count(*) FROM dev.empty.nothing").fetchone() == (0,), "a table without a snapshot is empty")
    for statement, state in [
            ("SELECT * FROM dev.shop.missing", "42P01"), ("SELECT * FROM dev.nowhere.types", "42P01"), ("SELECT * FROM shopp.shop.types", "42P01"),
            ("CREATE SINK s AS SELECT * FROM dev.shop.types FOR SYSTEM_VERSION AS OF 1 WITH (connector = 'fs', type = 'append-only', path = '/nowhere')", "0A000"), ("SELECT * FROM names FOR SYSTEM_TIME AS OF now()", "0A000"),
            ("INSERT INTO dev.shop.types VALUES (1)", "0A000"),
            ("DELETE FROM dev.shop.types", "0A000"), ("DROP TABLE IF EXISTS dev.shop.types", "0A000"), ("CREATE TABLE dev.shop.made (a INT)", "0A000"),
            ("DESCRIBE dev.shop.nothing", "42P01"), ("DESCRIBE nowhere.shop.types", "3D000"), ("DROP CATALOG dev", "0A000"),
            ("SHOW TABLES FROM dev.nowhere", "3F000"), ("SHOW SCHEMAS FROM nowhere", "3D000")]:
        found, text = error_of(connection, statement)
        checks.check(found == state, f"{statement} is {state}", text)


def attached(checks, server, catalog):
    with server.connect() as connection:
        connection.execute(
            f"CREATE CATALOG lake WITH ('type' = 'iceberg', 'catalog-type' = 'rest', 'uri' = 'http://{catalog}/api/catalog/', 'warehouse' = 'dev', "
            "'credential' = 'root:secret', 'scope' = 'PRINCIPAL_ROLE:ALL')")
        connection.execute("CREATE CATALOG IF NOT EXISTS lake WITH ('uri' = 'http://localhost:1')")
        found = connection.execute("SHOW CATALOGS").fetchall()
        checks.check(found == [("dev",), ("lake",)], "SHOW CATALOGS", found)
        found = [connection.execute(f"SHOW {what}").fetchall() for what in ["SCHEMAS FROM lake", "TABLES FROM lake.shop"]]
        checks.check(found == [[("empty",), ("shop",)], [("types",)]], "SHOW SCHEMAS and TABLES of it", found)
        same = [connection.execute(f"SELECT * FROM {name}.shop.types ORDER BY id").fetchall() for name in ["dev", "lake"]]
        checks.check(same[0] == same[1] and len(same[0]) == 111, "over REST it has the same rows")
        for statement, states in [
                ("CREATE CATALOG lake WITH ('uri' = 'http://localhost:1')", {"42P04"}), ("CREATE CATALOG x WITH ('type' = 'hive')", {"22023"}),
                (f"CREATE CATALOG x WITH ('uri' = 'http://{catalog}/api/catalog', 'warehose' = 'dev')", {"22023"}),
                (f"CREATE CATALOG dev WITH ('uri' = 'http://{catalog}/api/catalog', 'warehouse' = 'dev', 'credential' = 'root:secret')", {"42P04"}),
                ("CREATE CATALOG x WITH ('warehouse' = 'dev')", {"22023"}), ("DROP CATALOG x", {"3D000"}),
                (f"CREATE CATALOG x WITH ('uri' = 'http://127.0.0.1:{free_port()}')", {"08006"}),
                (f"CREATE CATALOG x WITH ('uri' = 'http://{catalog}/api/catalog', 'warehouse' = 'dev', 'credential' = 'root:wrong')", {"28000"})]:
            found, text = error_of(connection, statement)
            checks.check(found in states, f"{statement[:60]} is {found}", text)


def main():
    checks = Checks("test-catalog-sql")
    catalog = f"127.0.0.1:{free_port()}"
    with Server(catalog=catalog) as server:
        lake = client(catalog)
        lake.create_namespace("shop")
        with server.connect() as connection:
            table = types(checks, connection, lake)
            table = history(checks, connection, lake, table)
            parts(checks, connection, table)
            together(checks, connection, lake)
        attached(checks, server, catalog)
        server.kill()
        server.start()
        checks.check(server.wait_ready(), "the server starts again")
        with server.connect() as connection:
            found = connection.execute("SELECT count(*) FROM lake.shop.types").fetchone()
            checks.check(found == (111,), "the catalog is attached after kill -9", found)
            connection.execute("DROP CATALOG lake")
            found, text = error_of(connection, "SELECT count(*) FROM lake.shop.types")
            checks.check(found == "42P01", "and not once it is dropped", text)
    checks.finish()


if __name__ == "__main__":
    main()
