"""Sinks of the crash harness: two views into Iceberg tables of the embedded catalog, one of them with updates, and one into a folder of Parquet.

All of it lives in the server that is killed: the views, the sinks, the catalog that is asked to commit. Read at the end by PyIceberg and
pyarrow.
"""
import time

import pyarrow.dataset
from pyiceberg.catalog.rest import RestCatalog

TABLES = ["events", "windows"]
SCHEMA = "crash"


def define(connection, catalog, folder):
    lake = (
        f"connector = 'iceberg', catalog.type = 'rest', catalog.name = 'dev', catalog.uri = 'http://{catalog}/api/catalog', "
        f"catalog.credential = 'root:secret', catalog.scope = 'PRINCIPAL_ROLE:ALL', warehouse.path = 'dev', database.name = '{SCHEMA}', "
        "create_table_if_not_exists = 'true'")
    connection.execute(f"CREATE SINK events_lake FROM events WITH ({lake}, type = 'append-only', table.name = 'events')")
    connection.execute(f"CREATE SINK windows_lake FROM windows WITH ({lake}, type = 'upsert', primary_key = 'window_start, producer', table.name = 'windows')")
    connection.execute(f"CREATE SINK events_folder FROM events WITH (connector = 'fs', path = '{folder}', type = 'append-only', partition_by = 'producer')")


def read(catalog, folder):
    """The rows in the targets, by sink, in the order of the views' columns."""
    client = RestCatalog(
        "crash", uri=f"http://{catalog}/api/catalog", credential="root:secret", warehouse="dev", scope="PRINCIPAL_ROLE:ALL",
        **{"oauth2-server-uri": f"http://{catalog}/api/catalog/v1/oauth/tokens"})
    found = {f"{name}_lake": rows(client.load_table(f"{SCHEMA}.{name}").scan().to_arrow()) for name in TABLES}
    files = pyarrow.dataset.dataset(folder, format="parquet", partitioning="hive")
    found["events_folder"] = rows(files.to_table(columns=["producer", "seq", "k", "v", "at"]))
    return found


def rows(table):
    return list(zip(*(column.to_pylist() for column in table.columns)))


def check(checks, catalog, folder, expected, difference, seconds=60):
    """Waits until each sink has come to the end, and compares: `expected` has the rows by sink."""
    deadline = time.monotonic() + seconds
    while True:
        found = read(catalog, folder)
        wrong = {name: difference([tuple(map(plain, row)) for row in found[name]], expected[name]) for name in expected}
        if not any(wrong.values()) or time.monotonic() > deadline:
            break
        time.sleep(0.5)
    for name, its in wrong.items():
        checks.check(not its, f"{name} has each of {len(expected[name])} rows once", its)


def plain(value):
    return int(value) if hasattr(value, "as_tuple") else value
