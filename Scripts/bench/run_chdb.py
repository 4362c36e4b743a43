"""chDB (ClickHouse in a process) over the JSON files, parsed anew by every query: run_chdb.py THREADS SCRATCH"""
import decimal
import json
import os
import sys

import chdb
from chdb.session import Session

import nexmark
from cost import Cost
from driver import Engine, serve

TYPES = {"BIGINT": "Int64", "VARCHAR": "String", "TIMESTAMP": "DateTime64(3)"}


class ChDB(Engine):
    queries = nexmark.ClickHouse().queries()

    def __init__(self, threads, scratch):
        self.session = Session(f"{scratch}/session")
        self.result = f"{scratch}/result.json"
        self.settings = (
            f"SETTINGS max_threads = {threads}, date_time_input_format = 'best_effort', session_timezone = 'UTC', "
            "output_format_json_quote_64bit_integers = 0, output_format_json_quote_decimals = 0"
        )
        version = str(self.session.query("SELECT version()", "TabSeparated")).strip()
        self.version = f"{chdb.__version__} (ClickHouse {version})"

    def open(self, directory, events):
        for table, columns in nexmark.COLUMNS.items():
            types = ", ".join(f"{name} {TYPES[kind]}" for name, kind in (column.split() for column in columns.split(", ")))
            self.session.query(
                f"CREATE OR REPLACE VIEW {table} AS SELECT * FROM file('{directory}/{table}/*.jsonl', 'JSONEachRow', '{types}')")

    def measure(self, query):
        cost = Cost(os.getpid())
        self.session.query(f"{self.queries[query]} {self.settings} FORMAT Null")
        return cost.finish()

    def rows(self, query):
        self.session.query(f"{self.queries[query]} INTO OUTFILE '{self.result}' TRUNCATE {self.settings} FORMAT JSONCompactEachRow")
        with open(self.result) as lines:
            for line in lines:
                yield 1, json.loads(line, parse_float=decimal.Decimal)
        os.remove(self.result)


serve(ChDB(sys.argv[1], sys.argv[2]))
