"""Scripts/test-catalog: catalog.py SEED

PyIceberg, DuckDB's iceberg extension and plain HTTP calls against `millrace serve --catalog`, with a restart in between and kills in the
middle of commits.
"""
import logging
import os
import random
import shutil
import sys
import tempfile
import threading

import pyarrow as pa
from pyiceberg.exceptions import CommitFailedException, NoSuchTableError
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import BucketTransform
from pyiceberg.types import IntegerType, LongType, NestedField, StringType
from pyiceberg.view.metadata import SQLViewRepresentation, ViewVersion

from catalog_calls import play_scripts
from catalog_duckdb import play_duckdb
from catalog_s3 import play_s3
from catalog_service import Service
from harness import Checks

ROWS = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "name": ["a", "b", "c"]})


def play_pyiceberg(checks, service):
    """The life of tables as a program has it."""
    catalog = service.client("balloon-game")
    catalog.create_namespace("shop")
    checks.check(("shop",) in catalog.list_namespaces(), "a namespace is made and listed")
    table = catalog.create_table("shop.orders", schema=ROWS.schema)
    table.append(ROWS)
    table.append(ROWS)
    checks.check(table.scan().to_arrow().num_rows == 6, "a table is made, appended to and scanned")
    table.append(ROWS)
    other = catalog.load_table("shop.orders")
    late = catalog.load_table("shop.orders")
    other.append(ROWS)
    late.append(ROWS)
    checks.check(catalog.load_table("shop.orders").scan().to_arrow().num_rows == 15, "of two appends at once both are there")
    first, second = catalog.load_table("shop.orders"), catalog.load_table("shop.orders")
    with first.update_schema() as update:
        update.add_column("x", IntegerType())
    try:
        with second.update_schema() as update:
            update.add_column("y", IntegerType())
        checks.check(False, "of two changes of the schema at once the later one is refused")
    except CommitFailedException:
        checks.check(True, "of two changes of the schema at once the later one is refused")
    table = catalog.load_table("shop.orders")
    table.delete("id = 1")
    checks.check(table.scan().to_arrow().num_rows == 10, "rows are deleted")
    with table.update_schema() as update:
        update.rename_column("name", "title")
    checks.check("title" in catalog.load_table("shop.orders").scan().to_arrow().column_names, "a column is renamed")
    keyed = catalog.create_table(
        "shop.keyed", schema=Schema(NestedField(1, "id", LongType(), required=True), NestedField(2, "v", StringType()), identifier_field_ids=[1]))
    kind = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("v", pa.string())])
    keyed.append(pa.table({"id": [1, 2], "v": ["a", "b"]}, schema=kind))
    result = keyed.upsert(pa.table({"id": [2, 3], "v": ["B", "C"]}, schema=kind))
    checks.check((result.rows_updated, result.rows_inserted) == (1, 1), "rows are upserted by the key that the table declares", str(result))
    staged = catalog.create_table_transaction("shop.ctas", schema=ROWS.schema)
    staged.append(ROWS)
    staged.commit_transaction()
    checks.check(catalog.load_table("shop.ctas").scan().to_arrow().num_rows == 3, "a staged table comes with its rows")
    shape = Schema(NestedField(1, "id", LongType()), NestedField(2, "name", StringType()))
    parts = catalog.create_table("shop.parts", schema=shape, partition_spec=PartitionSpec(PartitionField(1, 1000, BucketTransform(4), "b")))
    parts.append(pa.table({"id": pa.array(range(20), pa.int64()), "name": ["x"] * 20}))
    checks.check(parts.inspect.files().num_rows > 1, "a partitioned table has its rows in partitions")
    with table.manage_snapshots() as change:
        change.create_tag(table.current_snapshot().snapshot_id, "v1")
    checks.check("v1" in catalog.load_table("shop.orders").refs(), "a snapshot is tagged")
    catalog.rename_table("shop.ctas", "shop.renamed")
    checks.check(not catalog.table_exists("shop.ctas") and catalog.table_exists("shop.renamed"), "a table is renamed")
    catalog.create_namespace(("shop", "eu"))
    catalog.create_table(("shop", "eu", "small"), schema=ROWS.schema)
    checks.check(("shop", "eu") in catalog.list_namespaces("shop"), "namespaces nest")
    catalog.update_namespace_properties("shop", updates={"owner": "ann"})
    checks.check(catalog.load_namespace_properties("shop")["owner"] == "ann", "namespaces have properties")
    catalog.drop_table("shop.renamed")
    catalog.purge_table("shop.parts")
    left = [path for path, _, files in os.walk(os.path.join(service.directory, "warehouse/balloon-game/shop/parts")) if files]
    checks.check(not left, "a purged table leaves no files", str(left))
    try:
        catalog.load_table("shop.parts")
        checks.check(False, "a dropped table is gone")
    except NoSuchTableError:
        checks.check(True, "a dropped table is gone")


def play_views(checks, service):
    catalog = service.client("dev")
    catalog.create_namespace("seen")
    sql = SQLViewRepresentation(type="sql", sql="SELECT 1 AS id", dialect="spark")
    version = ViewVersion(version_id=1, schema_id=0, representations=[sql], default_namespace=["seen"])
    view = catalog.create_view("seen.v", ROWS.schema, version)
    checks.check(view.metadata.current_version_id == 1 and catalog.list_views("seen") == [("seen", "v")], "a view is made and listed")
    checks.check(catalog.load_view("seen.v").metadata == view.metadata, "a view is loaded as it was made")
    catalog.drop_view("seen.v")
    checks.check(not catalog.view_exists("seen.v"), "a view is dropped")
    for number in range(7):
        catalog.create_table(f"seen.t{number}", schema=ROWS.schema)
    found = [name for _, name in service.client("dev", **{"rest-page-size": "3"}).list_tables("seen")]
    checks.check(found == [f"t{number}" for number in range(7)], "seven tables come in pages of three", str(found))


def play_writers(checks, service, writers=3, appends=6):
    """Appends of several clients to one table: conflicts are tried again by the clients, and no row is lost or doubled."""
    service.client("dev").create_namespace("busy")
    service.client("dev").create_table("busy.t", schema=ROWS.schema, properties={"commit.retry.num-retries": "100", "commit.retry.min-wait-ms": "10"})
    failures = []

    def write(number):
        try:
            table = service.client("dev").load_table("busy.t")
            for step in range(appends):
                table.append(pa.table({"id": pa.array([number * 1000 + step], pa.int64()), "name": ["w"]}))
        except Exception as error:
            failures.append(repr(error))

    threads = [threading.Thread(target=write, args=(number,)) for number in range(writers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = sorted(service.client("dev").load_table("busy.t").scan().to_arrow()["id"].to_pylist())
    done = sorted(number * 1000 + step for number in range(writers) for step in range(appends))
    checks.check(not failures and found == done, f"{writers} clients append {appends} times each", f"{failures} {found}")


def play_polls(checks, service, commits=30, kept=5):
    """A table that is loaded over and over while it is committed to: no reader misses a file, and metadata files stay as few as the table says."""
    catalog = service.client("dev")
    catalog.create_namespace("polled")
    settings = {"write.metadata.delete-after-commit.enabled": "true", "write.metadata.previous-versions-max": str(kept)}
    table = catalog.create_table("polled.t", schema=ROWS.schema, properties=settings)
    done, loads, failures = threading.Event(), [], []

    def poll():
        try:
            client = service.client("dev")
            while not done.is_set():
                loads.append(client.load_table("polled.t").scan().to_arrow().num_rows)
        except Exception as error:
            failures.append(repr(error))

    thread = threading.Thread(target=poll)
    thread.start()
    for _ in range(commits):
        table.append(ROWS)
    done.set()
    thread.join()
    checks.check(not failures and loads == sorted(loads) and len(loads) > 1, f"{len(loads)} loads during {commits} commits each see a whole table", str(failures))
    files = [name for name in os.listdir(os.path.join(service.directory, "warehouse/dev/polled/t/metadata")) if name.endswith(".metadata.json")]
    checks.check(len(files) == kept + 1, f"{kept} old metadata files are kept", str(len(files)))


def play_kills(checks, service, seed, rounds=6):
    """kill -9 while commits run: each table is as before or as after a commit, and what was answered is there."""
    dice = random.Random(seed)
    client = service.client("dev")
    client.create_namespace("killed")
    client.create_table("killed.t", schema=ROWS.schema)
    acknowledged, wrong = 0, []
    for round_number in range(rounds):
        stop = threading.Event()
        counts = {"done": acknowledged, "tried": acknowledged}

        def write():
            try:
                table = service.client("dev").load_table("killed.t")
                while not stop.is_set():
                    counts["tried"] += 1
                    with table.transaction() as change:
                        change.set_properties({"count": str(counts["tried"])})
                    counts["done"] = counts["tried"]
            except Exception:
                return  # the server is gone

        thread = threading.Thread(target=write)
        thread.start()
        stop.wait(dice.uniform(0.3, 0.9))
        service.kill()
        thread.join()
        stop.set()
        service.start()
        table = service.client("dev").load_table("killed.t")
        found = int(table.properties.get("count", 0))
        if not counts["done"] <= found <= counts["tried"]:
            wrong.append((round_number, found, dict(counts)))
        table.scan().to_arrow()
        acknowledged = found
    checks.check(not wrong and acknowledged > rounds, f"{rounds} kills during {acknowledged} commits leave the old table or the new one", str(wrong))


def main():
    seed = int(sys.argv[1])
    # What clients tell of conflicts and of files that are gone already is what is tested.
    logging.disable(logging.WARNING)
    print(f"catalog: seed {seed}", flush=True)
    checks = Checks("catalog")
    directory = tempfile.mkdtemp(prefix="millrace-catalog-")
    try:
        with Service(directory) as service:
            play_scripts(checks, service)
            play_pyiceberg(checks, service)
            before = service.client("balloon-game").load_table("shop.orders").scan().to_arrow().sort_by("id")
            service.restart()
            after = service.client("balloon-game").load_table("shop.orders").scan().to_arrow().sort_by("id")
            checks.check(before == after, "a restart keeps everything")
            play_views(checks, service)
            play_s3(checks, service, os.path.join(directory, "s3"))
            play_duckdb(checks, service)
            play_writers(checks, service)
            play_polls(checks, service)
            play_kills(checks, service, seed)
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    checks.finish()


main()
