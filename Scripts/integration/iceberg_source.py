"""Tables that others write, as sources: iceberg_source.py KILLS SEED

PyIceberg makes tables in the embedded catalog (all types, partitions, deletes, changed columns); CREATE SOURCE and views over
`catalog.namespace.table` have the same rows. Then it appends and compaction rewrites its files, while the server is killed at random
moments: a view over the table counts each row once, and so does one that begins when snapshots have expired. What a source cannot
follow stops it with a reason.
"""
import datetime
import random
import sys
import threading
import time

import psycopg
import pyarrow as pa
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField, StringType

from catalog_sql import TYPES, client, error_of, row, rows_of
from harness import Checks, Server, free_port, wait_until
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.transforms import BucketTransform, DayTransform

FACTS = Schema(NestedField(1, "id", LongType(), required=True), NestedField(2, "name", StringType()))


def rest(catalog, warehouse="dev"):
    return (f"'catalog.type' = 'rest', 'catalog.uri' = 'http://{catalog}/api/catalog/', 'warehouse.path' = '{warehouse}', "
            "'catalog.credential' = 'root:secret', 'catalog.scope' = 'PRINCIPAL_ROLE:ALL'")


def facts(table, numbers):
    table.append(pa.Table.from_pylist([{"id": n, "name": f"row {n}"} for n in numbers], schema=table.schema().as_arrow()))


def expired(table, last):
    """Whether all snapshots but the newest could be expired that are no younger than `last`."""
    try:
        table.maintenance.expire_snapshots().older_than(datetime.datetime.fromtimestamp(last.timestamp_ms / 1000, datetime.timezone.utc)).commit()
        return True
    except CommitFailedException:  # the sink compacts at the same moment
        return False


def message(connection, source):
    """What SHOW SOURCES says of it."""
    return next((line[7] or "" for line in connection.execute("SHOW SOURCES").fetchall() if line[0] == source), "")


def types(checks, connection, lake, catalog):
    spec = PartitionSpec(PartitionField(12, 1000, DayTransform(), "day_of"), PartitionField(1, 1001, BucketTransform(4), "bucket"))
    table = lake.create_table("shop.types", TYPES, partition_spec=spec)
    for start in range(0, 120, 40):
        table.append(pa.Table.from_pylist([row(n) for n in range(start, start + 40)], schema=table.schema().as_arrow()))
    table.delete("id < 5")
    with table.update_schema() as update:
        update.rename_column("small", "tiny")
        update.add_column("added", StringType())
    connection.execute(f"CREATE SOURCE types WITH (connector = 'iceberg', {rest(catalog)}, 'database.name' = 'shop', 'table.name' = 'types')")
    connection.execute("CREATE MATERIALIZED VIEW kept AS SELECT * FROM types")
    connection.execute("CREATE MATERIALIZED VIEW named AS SELECT * FROM dev.shop.types")
    for relation in ["types", "kept", "named"]:
        found = connection.execute(f"SELECT * FROM {relation} ORDER BY id").fetchall()
        expected = rows_of(lake.load_table("shop.types"))
        checks.check(found == expected, f"{relation}: {len(expected)} rows of all types are PyIceberg's", f"{len(found)} {found[1:2]} {expected[1:2]}")
    table = lake.load_table("shop.types")
    table.append(pa.Table.from_pylist([{"id": 500, "tiny": 7, "added": "new"}], schema=table.schema().as_arrow()))
    connection.execute("FLUSH")
    found = connection.execute("SELECT tiny, added FROM kept WHERE id = 500 UNION ALL SELECT tiny, added FROM named WHERE id = 500").fetchall()
    checks.check(found == [(7, "new")] * 2, "what is appended comes to views", found)
    found = connection.execute("SELECT count(*) FROM types").fetchone()
    checks.check(found == (116,), "and to the source", found)
    names = [line[0] for line in connection.execute("SHOW SOURCES").fetchall()]
    checks.check(names == ["types", "dev.shop.types"], "a table that views name is a source", names)
    connection.execute("CREATE MATERIALIZED VIEW later AS SELECT t.id FROM dev.shop.types t WHERE t.tiny = 7")
    checks.check(connection.execute("SELECT id FROM later ORDER BY id").fetchall() == [(57,), (500,)], "a later view reads from the beginning")
    found, text = error_of(connection, "DROP SOURCE \"dev.shop.types\"")
    checks.check(found == "2BP01", "it is not dropped under its views", text)
    connection.execute("DROP MATERIALIZED VIEW later")
    connection.execute("DROP MATERIALIZED VIEW named")
    names = [line[0] for line in connection.execute("SHOW SOURCES").fetchall()]
    checks.check(names == ["types"], "and goes with the last of them", names)
    connection.execute(
        f"CREATE SINK copying AS SELECT id, added FROM dev.shop.types WHERE tiny = 7 WITH (connector = 'iceberg', type = 'append-only', {rest(catalog)}, "
        "'database.name' = 'shop', 'table.name' = 'copies', create_table_if_not_exists = 'true')")
    copies = wait_until(lambda: lake.load_table("shop.copies").scan().to_arrow().sort_by("id").to_pylist())
    checks.check(copies == [{"id": 57, "added": None}, {"id": 500, "added": "new"}], "a sink takes it, too", copies)
    connection.execute("DROP SINK copying")
    names = [line[0] for line in connection.execute("SHOW SOURCES").fetchall()]
    checks.check(names == ["types"], "and leaves no source behind", names)


def refused(checks, connection, lake, catalog):
    base = f"connector = 'iceberg', {rest(catalog)}, 'database.name' = 'shop'"
    for statement, state in [
            (f"CREATE SOURCE x WITH ({base}, 'table.name' = 'missing')", "42704"), (f"CREATE SOURCE x WITH ({base})", "22023"),
            (f"CREATE SOURCE x (id INT, name VARCHAR) WITH ({base}, 'table.name' = 'facts')", "55000"),
            (f"CREATE SOURCE x (nobody INT) WITH ({base}, 'table.name' = 'facts')", "55000"),
            (f"CREATE SOURCE x WITH ({base}, 'table.name' = 'facts', 'monitor-interval' = '1')", "22023"),
            (f"CREATE SOURCE x WITH ({base}, 'table.name' = 'facts', 'scan.startup.mode' = 'newest')", "22023"),
            (f"CREATE SOURCE x WITH ({base}, 'table.name' = 'facts') FORMAT PLAIN ENCODE JSON", "0A000"),
            ("CREATE SOURCE x WITH (connector = 'iceberg', 'catalog.name' = 'nowhere', 'database.name' = 'shop', 'table.name' = 'facts')", "3D000"),
            (f"CREATE SOURCE x WITH (connector = 'iceberg', 'catalog.uri' = 'http://127.0.0.1:{free_port()}/api/catalog', 'database.name' = 'a', 'table.name' = 'b')", "08006"),
            ("CREATE MATERIALIZED VIEW v AS SELECT * FROM dev.shop.missing", "42P01"), ("CREATE MATERIALIZED VIEW v AS SELECT * FROM dev.shop.facts.snapshots", "0A000"),
            ("CREATE MATERIALIZED VIEW v AS SELECT * FROM dev.shop.facts FOR SYSTEM_VERSION AS OF 1", "0A000"),
            ("CREATE MATERIALIZED VIEW v AS SELECT nobody FROM dev.shop.facts", "42703")]:
        found, text = error_of(connection, statement)
        checks.check(found == state, f"{statement[:40]}...{statement[-50:]} is {state}", text)
    names = [line[0] for line in connection.execute("SHOW SOURCES").fetchall()]
    checks.check(names == ["types", "counted", "unread", "late", "dev.shop.facts"], "what was refused left nothing behind", names)


def followed(checks, server, lake, catalog, kills, seed):
    """Appends, a sink of this server with its compaction and expiry, kill -9."""
    generator = random.Random(seed)
    base = f"connector = 'iceberg', {rest(catalog)}, 'database.name' = 'shop', 'monitor-interval' = '200ms'"
    with server.connect() as connection:
        connection.execute("CREATE TABLE origin (id BIGINT PRIMARY KEY, name VARCHAR)")
        connection.execute(
            f"CREATE SINK filling FROM origin WITH (connector = 'iceberg', type = 'append-only', force_append_only = 'true', {rest(catalog)}, 'database.name' = 'shop', "
            "'table.name' = 'facts', create_table_if_not_exists = 'true', commit_interval = '200ms', enable_compaction = 'true', compaction_interval_sec = 1, "
            "snapshots_max = 1000, snapshot_expiration_max_age_millis = 3600000)")
        wait_until(lambda: lake.table_exists("shop.facts"))
        facts(lake.load_table("shop.facts"), [-1_000_001, -1_000_002, -1_000_003])
        connection.execute(f"CREATE SOURCE counted WITH ({base}, 'table.name' = 'facts')")
        connection.execute(f"CREATE SOURCE unread WITH ({base}, 'table.name' = 'facts')")
        connection.execute(f"CREATE SOURCE late WITH ({base}, 'table.name' = 'facts', 'scan.startup.mode' = 'latest')")
        connection.execute("CREATE MATERIALIZED VIEW only_later AS SELECT id FROM late")
        connection.execute("CREATE MATERIALIZED VIEW totals AS SELECT count(*) AS n, count(DISTINCT id) AS ids, sum(id) AS total FROM counted")
        connection.execute("CREATE MATERIALIZED VIEW joined AS SELECT f.id, o.name FROM dev.shop.facts f JOIN origin o ON f.id = o.id")
    over, theirs = threading.Event(), []

    def append():
        number = -1
        while not over.is_set():
            try:
                facts(lake.load_table("shop.facts"), [number])
                theirs.append(number)
            except Exception:  # the server is away: whether it has the row is seen in the end
                theirs.append(number)
            number -= 1
            over.wait(0.5)

    beside = threading.Thread(target=append, daemon=True)
    beside.start()
    number = 0
    for kill in range(kills):
        end = time.monotonic() + generator.uniform(2.0, 4.0)
        try:
            with server.connect() as connection:
                while time.monotonic() < end:
                    number += 1
                    connection.execute("INSERT INTO origin VALUES (%s, %s)", (number, f"row {number}"))
        except psycopg.Error:
            pass
        server.kill()
        server.start()
        checks.check(server.wait_ready(), f"the server starts again after kill {kill + 1}") if kill == kills - 1 else server.wait_ready()
    over.set()
    beside.join(30)
    with server.connect() as connection:
        connection.execute("FLUSH")

        def settled():
            connection.execute("FLUSH")
            rows = lake.load_table("shop.facts").scan().to_arrow().column("id").to_pylist()
            stored = connection.execute("SELECT count(*) FROM origin").fetchone()[0]
            return rows if sum(1 for value in rows if value > 0) == stored else None

        rows = wait_until(settled, 60, 0.5) or []
        connection.execute("FLUSH")
        expected = (len(rows), len(set(rows)), sum(rows))
        found = connection.execute("SELECT n, ids, total FROM totals").fetchone()
        checks.check(found == expected and expected[0] == expected[1], f"{expected[0]} rows, each once, after {kills} kills", (found, expected, message(connection, "counted")))
        found = connection.execute("SELECT count(*), count(DISTINCT id) FROM joined").fetchone()
        mine = sum(1 for value in rows if value > 0)
        checks.check(found == (mine, mine), f"{mine} of them joined through dev.shop.facts", found)
        snapshots = lake.load_table("shop.facts").snapshots()
        operations = [snapshot.summary.operation.value for snapshot in snapshots]
        # Only now that the sources have read them: how long that takes is the machine's affair.
        wait_until(lambda: expired(lake.load_table("shop.facts"), snapshots[-1]))
        kept = lake.load_table("shop.facts").snapshots()
        checks.check(snapshots[-1].sequence_number > 10 and len(kept) < 5, f"of {kept[-1].sequence_number} snapshots {len(kept)} are kept", operations)
        files = lake.load_table("shop.facts").inspect.data_files().num_rows
        checks.check(files < snapshots[-1].sequence_number - 7, f"of their files compaction left {files}", operations)
        # Made when there were other snapshots, and read by nobody so far.
        wait_until(lambda: expired(lake.load_table("shop.facts"), lake.load_table("shop.facts").snapshots()[-1]))
        connection.execute("CREATE MATERIALIZED VIEW first AS SELECT count(*) AS n FROM unread")
        found = connection.execute("SELECT n FROM first").fetchone()
        checks.check(found == expected[:1], "a source that nobody has read begins with the table as it is", found)
        connection.execute("CREATE MATERIALIZED VIEW again AS SELECT count(*) AS n, sum(id) AS total FROM counted")
        found = connection.execute("SELECT n, total FROM again").fetchone()
        checks.check(found == (expected[0], expected[2]), "a view made when the first snapshots have expired has all rows", found)
        found = connection.execute("SELECT count(*) FROM counted").fetchone()
        checks.check(found == expected[:1], "so does a SELECT on the source", found)
        found = connection.execute("SELECT count(*) FROM only_later").fetchone()
        checks.check(found == (expected[0] - 3,), "from 'latest' on what came later", found)


def stopped(checks, connection, lake, catalog):
    """Deletes, renamed columns, tables made anew and set back."""
    base = f"connector = 'iceberg', {rest(catalog)}, 'database.name' = 'stop', 'monitor-interval' = '200ms'"

    def make(name, **options):
        table = lake.create_table(f"stop.{name}", FACTS)
        facts(table, range(10))
        more = "".join(", '" + key.replace("_", "-") + f"' = '{value}'" for key, value in options.items())
        connection.execute(f"CREATE SOURCE {name} WITH ({base}, 'table.name' = '{name}'{more})")
        connection.execute(f"CREATE MATERIALIZED VIEW {name}_rows AS SELECT count(*) AS n FROM {name}")
        return table

    def told(name, *words):
        seen = wait_until(lambda: (lambda text: text if all(word in text for word in words) else None)(message(connection, name)))
        checks.check(bool(seen), f"{name}: it is told", message(connection, name))
        found = connection.execute(f"SELECT n FROM {name}_rows").fetchone()
        checks.check(found == (10,), f"{name}: and what was read stays", found)

    lake.create_namespace("stop")
    make("deletes").delete("id = 3")
    told("deletes", "takes rows away", "delete")
    table = make("skips", streaming_skip_delete_snapshots="true", streaming_skip_overwrite_snapshots="true")
    table.delete("id = 3")
    facts(table, [100])
    connection.execute("FLUSH")
    found = connection.execute("SELECT n FROM skips_rows").fetchone()
    checks.check(found == (11,), "skips: deletes are passed over when that is asked for", found)
    table = make("renamed")
    with table.update_schema() as update:
        update.rename_column("name", "title")
    facts_renamed = pa.Table.from_pylist([{"id": 11, "title": "x"}], schema=table.schema().as_arrow())
    table.append(facts_renamed)
    told("renamed", "has no column \"name\"")
    make("anew")
    lake.drop_table("stop.anew")
    told("anew", "anew")
    facts(lake.create_table("stop.anew", FACTS), range(3))
    told("anew", "made anew")
    table = make("back")
    facts(table, [50])
    connection.execute("FLUSH")
    first = table.snapshots()[0].snapshot_id
    table.manage_snapshots().set_current_snapshot(snapshot_id=first).commit()
    facts(lake.load_table("stop.back"), [51])
    seen = wait_until(lambda: "set back" in message(connection, "back"))
    checks.check(bool(seen), "back: a table that is set back is told", message(connection, "back"))
    table = lake.create_table("stop.empty", FACTS)
    connection.execute("CREATE MATERIALIZED VIEW from_empty AS SELECT * FROM dev.stop.empty")
    facts(table, [1, 2])
    connection.execute("FLUSH")
    checks.check(connection.execute("SELECT count(*) FROM from_empty").fetchone() == (2,), "a table without a snapshot gets its first")


def main():
    kills, seed = (int(argument) for argument in (sys.argv[1:] + ["4", "1"][len(sys.argv) - 1:])[:2])
    print(f"test-iceberg-source: {kills} kills, seed {seed}")
    checks = Checks("iceberg-source")
    catalog = f"127.0.0.1:{free_port()}"
    with Server(catalog=catalog, workers=2) as server:
        lake = client(catalog)
        lake.create_namespace("shop")
        with server.connect() as connection:
            types(checks, connection, lake, catalog)
        followed(checks, server, lake, catalog, kills, seed)
        with server.connect() as connection:
            refused(checks, connection, lake, catalog)
            stopped(checks, connection, lake, catalog)
    checks.finish()


if __name__ == "__main__":
    main()
