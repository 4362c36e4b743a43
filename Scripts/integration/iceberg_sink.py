"""Iceberg sinks through kill -9: iceberg_sink.py KILLS SEED

Three sinks of a running server: one that appends to a table in S3, one that upserts there, one that upserts into a table of the embedded
catalog. Rows are inserted, changed and deleted all the while; the server, or the store with its catalog, is killed at random moments and
started again; PyIceberg appends to the first table and reads all of them. In the end each row is in the first table once, and the others
are what the SQL table is.
"""
import random
import subprocess
import sys
import tempfile
import threading
import time

import psycopg
import pyarrow
from pyiceberg.catalog.rest import RestCatalog

from harness import ROOT, Checks, Server, free_port, wait_until

SEAWEED = ROOT / "Scripts/real/seaweedfs"
KEYS = 200
ARROW = pyarrow.schema([pyarrow.field("id", pyarrow.int64()), pyarrow.field("name", pyarrow.string())])


class Load:
    """What goes on beside the kills, and what it saw."""

    def __init__(self, pg, catalog, local, seed):
        self.pg, self.catalog, self.local, self.random = pg, catalog, local, random.Random(seed)
        self.over, self.kept, self.unsure, self.state = threading.Event(), [], [], {}
        self.theirs, self.theirs_unsure, self.reads, self.wrong = [], [], 0, []
        self.threads = [threading.Thread(target=body, daemon=True) for body in (self.write, self.append_theirs, self.read)]

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        for thread in self.threads:
            thread.join(60)

    def connect(self):
        host, port = self.pg.rsplit(":", 1)
        return psycopg.connect(host=host, port=port, user="root", dbname="dev", autocommit=True, connect_timeout=5)

    def write(self):
        number = 0
        while not self.over.is_set():
            try:
                with self.connect() as connection:
                    while not self.over.is_set():
                        number += 1
                        self.unsure.append(number)
                        connection.execute("INSERT INTO facts VALUES (%s, %s)", (number, f"row {number}"))
                        self.kept.append(self.unsure.pop())
                        key = self.random.randrange(KEYS)
                        if self.random.randrange(4):
                            connection.execute("UPDATE items SET name = %s WHERE id = %s", (f"item {number}", key))
                        else:
                            connection.execute("DELETE FROM items WHERE id = %s", (key,))
                            connection.execute("INSERT INTO items VALUES (%s, %s)", (key, f"new {number}"))
                        time.sleep(0.01)
            except psycopg.Error:
                time.sleep(0.1)

    def append_theirs(self):
        number = -1
        while not self.over.is_set():
            self.theirs_unsure.append(number)
            try:
                table = self.catalog().load_table("lake.facts")
                table.append(pyarrow.Table.from_pylist([{"id": number, "name": "theirs"}], schema=ARROW))
                self.theirs.append(self.theirs_unsure.pop())
            except Exception as error:  # the catalog is away, or we were faster: whether the row is there is not known
                self.last = error
            number -= 1
            self.over.wait(1)

    def read(self):
        """A table that can be loaded can be read."""
        while not self.over.is_set():
            for catalog, name in ((self.catalog, "lake.facts"), (self.catalog, "lake.items"), (self.local, "lake.items")):
                try:
                    table = catalog().load_table(name)
                except Exception:  # away
                    continue
                self.over.wait(0.3)
                try:
                    rows = table.scan().to_arrow().num_rows
                    self.reads += 1
                    if name == "lake.items" and rows > KEYS:
                        self.wrong.append(f"{name} has {rows} rows of {KEYS} keys")
                except FileNotFoundError as error:
                    self.wrong.append(f"{name}: {error}")
                except Exception as error:
                    self.last = error
            self.over.wait(0.2)


def options(uri, warehouse, credential, table, more=""):
    return (
        f"connector = 'iceberg', catalog.type = 'rest', catalog.uri = '{uri}', warehouse.path = '{warehouse}', catalog.credential = '{credential}', "
        f"catalog.scope = 'PRINCIPAL_ROLE:ALL', database.name = 'lake', table.name = '{table}', create_table_if_not_exists = 'true', "
        f"expired_files_grace_sec = '60', snapshots_max = 50{more}")


def define(checks, server, uri, s3, embedded):
    keys = f", s3.endpoint = '{s3}', s3.access.key = 'millrace', s3.secret.key = 'millrace-secret', s3.region = 'us-east-1'"
    far = ("lake", "millrace:millrace-secret")
    statements = [
        "CREATE TABLE facts (id bigint, name varchar)", "CREATE TABLE items (id bigint PRIMARY KEY, name varchar)",
        "INSERT INTO items VALUES " + ", ".join(f"({key}, 'first')" for key in range(KEYS)),
        f"CREATE SINK facts_far FROM facts WITH (type = 'append-only', force_append_only = 'true', {options(uri, *far, 'facts', keys)})",
        f"CREATE SINK items_far FROM items WITH (type = 'upsert', {options(uri, *far, 'items', keys)})",
        f"CREATE SINK items_near FROM items WITH (type = 'upsert', {options(embedded, 'dev', 'root:secret', 'items')})",
    ]
    for statement in statements:
        made = server.psql("-v", "ON_ERROR_STOP=1", "-c", statement)
        if not checks.check(made.returncode == 0, statement.split(" WITH")[0][:60], made.stderr[-400:]):
            checks.finish()


def main(kills, seed):
    print(f"test-iceberg-sink: {kills} kills, seed {seed}", flush=True)
    checks, choice = Checks("test-iceberg-sink"), random.Random(seed)
    with tempfile.TemporaryDirectory(prefix="millrace-sink-") as data, tempfile.TemporaryDirectory(prefix="millrace-sink-s3-") as far:
        started = subprocess.run([SEAWEED, "start", far], text=True, stdout=subprocess.PIPE, timeout=200)
        if started.returncode == 77:
            print("test-iceberg-sink: SKIPPED, its S3 server cannot be fetched")
            return
        ports = {name: f"127.0.0.1:{free_port()}" for name in ("pg", "kafka", "catalog")}
        server = Server(**ports, data_dir=data, workers=2).__enter__()
        try:
            s3, uri = started.stdout.split()
            embedded = f"http://{ports['catalog']}/api/catalog"
            keys = {"s3.endpoint": s3, "s3.access-key-id": "millrace", "s3.secret-access-key": "millrace-secret", "s3.region": "us-east-1"}
            catalog = lambda: RestCatalog("lake", **{"uri": uri, "warehouse": "lake", "credential": "millrace:millrace-secret"} | keys)
            local = lambda: RestCatalog(
                "dev", **{"uri": embedded, "warehouse": "dev", "credential": "root:secret", "scope": "PRINCIPAL_ROLE:ALL"})
            wait_until(lambda: is_there(catalog), 60, 0.2)
            define(checks, server, uri, s3, embedded)
            with Load(ports["pg"], catalog, local, seed) as load:
                for _ in range(kills):
                    time.sleep(choice.uniform(0.2, 6))
                    if choice.randrange(3):
                        server.kill()
                        server = Server(**ports, data_dir=data, workers=2).__enter__()
                    else:
                        subprocess.run([SEAWEED, "kill", far], check=True, timeout=60)
                        time.sleep(choice.uniform(0, 2))
                        subprocess.run([SEAWEED, "start", far], check=True, stdout=subprocess.PIPE, timeout=200)
                time.sleep(3)
            compare(checks, server, load, catalog, local)
            checks.check(server.alive, "the server is alive")
        finally:
            server.__exit__()
            subprocess.run([SEAWEED, "stop", far], timeout=60)
    checks.finish()


def is_there(catalog):
    try:
        return catalog().list_namespaces() is not None
    except Exception:  # not yet
        return False


def compare(checks, server, load, catalog, local):
    with server.connect() as connection:
        facts = sorted(connection.execute("SELECT id, name FROM facts").fetchall())
        items = sorted(connection.execute("SELECT id, name FROM items").fetchall())
    checks.check({number for number, _ in facts} >= set(load.kept), f"{len(facts)} facts, what was acknowledged among them")
    read = lambda catalog, name: sorted((row["id"], row["name"]) for row in catalog().load_table(name).scan().to_arrow().to_pylist())
    ours = lambda: [row for row in read(catalog, "lake.facts") if row[0] > 0]
    wait_until(lambda: ours() == facts and read(catalog, "lake.items") == items and read(local, "lake.items") == items, 120, 1)
    print(server.psql("-c", "SHOW SINKS").stdout, flush=True)
    found = ours()
    checks.check(found == facts, f"the table in S3 has each of {len(facts)} rows once", f"{len(found)} rows, {sorted(set(facts) ^ set(found))[:3]}")
    theirs = [number for number, _ in read(catalog, "lake.facts") if number < 0]
    checks.check(
        len(set(theirs)) == len(theirs) and set(load.theirs) <= set(theirs) <= set(load.theirs) | set(load.theirs_unsure),
        f"and each of {len(load.theirs)} rows of another writer once", f"{len(theirs)} rows")
    for name, source in (("S3", catalog), ("the embedded catalog", local)):
        rows = read(source, "lake.items")
        checks.check(rows == items, f"the upsert in {name} is the table: {len(items)} rows", f"{len(rows)} rows, {sorted(set(items) ^ set(rows))[:4]}")
        snapshots = len(source().load_table("lake.items").metadata.snapshots)
        checks.check(snapshots <= 62, f"it has {snapshots} snapshots")
    checks.check(load.reads > 0 and not load.wrong, f"{load.reads} reads beside missed nothing", str(load.wrong[:2]))


main(int(sys.argv[1]), int(sys.argv[2]))
