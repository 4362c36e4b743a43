"""How many rows other readers than PyIceberg see in a table: DuckDB and polars, by its metadata file."""
import importlib
import pathlib

import duckdb
import polars


def readings(table, variables):
    """Pairs of a reader's name and its count of rows."""
    location = table.metadata_location
    endpoint = variables["plf_aws_endpoint_url"]
    keys = {
        "s3.endpoint": endpoint, "s3.access-key-id": variables.get("plf_aws_access_key_id", ""),
        "s3.secret-access-key": variables.get("plf_aws_secret_access_key", ""), "s3.region": variables["plf_aws_region"]}
    is_local = location.startswith("file:")
    yield "polars", polars.scan_iceberg(location, storage_options=None if is_local else keys).select(polars.len()).collect().item()
    if not is_local:
        return
    connection = duckdb.connect()
    for name in ("avro", "iceberg"):
        folder = pathlib.Path(importlib.import_module("duckdb_extension_" + name).__file__).parent
        connection.sql(f"LOAD '{next(folder.glob('extensions/*/*.duckdb_extension'))}'")
    path = location.removeprefix("file://")
    yield "DuckDB", connection.execute(f"SELECT count(*) FROM iceberg_scan('{path}')").fetchone()[0]

