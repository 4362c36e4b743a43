"""DuckDB over the JSON files, parsed anew by every query: run_duckdb.py THREADS SCRATCH"""
import os
import sys

import duckdb

import nexmark
from cost import Cost
from driver import Engine, serve


class DuckDB(Engine):
    version = duckdb.__version__
    queries = nexmark.Dialect().queries()

    def __init__(self, threads, scratch):
        self.connection = duckdb.connect()
        self.connection.execute(f"SET threads = {threads}; SET preserve_insertion_order = false; SET temp_directory = '{scratch}'")

    def open(self, directory, events):
        for table, columns in nexmark.COLUMNS.items():
            types = ", ".join(f"{name}: '{kind}'" for name, kind in (column.split() for column in columns.split(", ")))
            self.connection.execute(
                f"CREATE OR REPLACE VIEW {table} AS SELECT * FROM "
                f"read_json('{directory}/{table}/*.jsonl', format = 'newline_delimited', columns = {{{types}}})")

    def measure(self, query):
        cost = Cost(os.getpid())
        self.connection.execute(f"CREATE OR REPLACE TEMP TABLE result AS SELECT * FROM ({self.queries[query]})")
        result = cost.finish()
        result["rows"] = self.connection.execute("SELECT count(*) FROM result").fetchone()[0]
        self.connection.execute("DROP TABLE result")
        return result

    def rows(self, query):
        cursor = self.connection.execute(self.queries[query])
        while rows := cursor.fetchmany(10_000):
            yield from ((1, row) for row in rows)


serve(DuckDB(sys.argv[1], sys.argv[2]))
