"""DuckDB's iceberg extension against the catalog, for Scripts/test-catalog."""
import glob
import importlib
import os

import duckdb


def play_duckdb(checks, service):
    connection = duckdb.connect()
    for name in ("httpfs", "avro", "iceberg"):
        folder = os.path.dirname(importlib.import_module("duckdb_extension_" + name).__file__)
        connection.sql(f"LOAD '{glob.glob(folder + '/extensions/*/*.duckdb_extension')[0]}'")
    connection.sql(
        f"CREATE SECRET ice (TYPE iceberg, CLIENT_ID 'root', CLIENT_SECRET 'secret', OAUTH2_SERVER_URI '{service.uri}/v1/oauth/tokens')")
    connection.sql(f"ATTACH 'dev' AS lake (TYPE iceberg, ENDPOINT '{service.uri}', SECRET ice, ACCESS_DELEGATION_MODE 'none')")
    connection.sql("CREATE SCHEMA lake.duck")
    connection.sql("CREATE TABLE lake.duck.t (a BIGINT, s VARCHAR)")
    connection.sql("INSERT INTO lake.duck.t VALUES (1, 'x'), (2, 'y')")
    rows = connection.sql("SELECT * FROM lake.duck.t ORDER BY a").fetchall()
    checks.check(rows == [(1, "x"), (2, "y")], "DuckDB makes a table and reads what it inserted", str(rows))
    connection.sql("DELETE FROM lake.duck.t WHERE a = 1")
    connection.sql("UPDATE lake.duck.t SET s = 'q' WHERE a = 2")
    rows = connection.sql("SELECT * FROM lake.duck.t").fetchall()
    checks.check(rows == [(2, "q")], "DuckDB deletes and updates", str(rows))
    read = service.client("dev").load_table("duck.t").scan().to_arrow().to_pylist()
    checks.check(read == [{"a": 2, "s": "q"}], "PyIceberg reads what DuckDB wrote", str(read))
    connection.sql("DROP TABLE lake.duck.t")
    connection.sql("DROP SCHEMA lake.duck")
    checks.check("duck" not in str(service.client("dev").list_namespaces()), "DuckDB drops what it made")
