"""Rows of a table into folders of Parquet files, with the server killed at random moments: folder_sinks.py DIRECTORY S3-URL KILLS SEED"""
import collections
import datetime as dt
import os
import random
import sys
import time

import duckdb
import polars
import pyarrow.dataset as ds
import pyarrow.fs
from harness import Checks, Server, wait_until

CITIES = ["Köln", "New/York", "a=b", "100%", "tab\there", None, "Zürich *?[x]", "007"]
DAYS = [dt.date(2026, 1, day) for day in (30, 31)]
ROWS = 200


def rows_of(first):
    """A statement's rows, from their first id on; the same at every try."""
    return [(n, CITIES[n % len(CITIES)], DAYS[n // 3 % len(DAYS)], f"{n}.{n % 100:02}", n % 7 == 0) for n in range(first, first + ROWS)]


def insert(connection, first):
    values = ", ".join(["(%s, %s, %s, %s, %s)"] * ROWS)
    connection.execute(f"INSERT INTO facts VALUES {values}", [value for row in rows_of(first) for value in row])


class Folder:
    """Where a sink writes, as Python's readers see it."""

    def __init__(self, name, path, filesystem, options, key):
        self.name, self.path, self.filesystem, self.options, self.key = name, path, filesystem, options, key

    def create(self, connection):
        options = dict(self.options, type="append-only", force_append_only="true", partition_by="day, city", max_row_count="150")
        text = ", ".join(f"{name} = '{value}'" for name, value in options.items())
        connection.execute(f"CREATE SINK to_{self.name} FROM facts WITH ({text}) FORMAT PLAIN ENCODE PARQUET")

    def table(self):
        if self.filesystem.get_file_info(self.key).type == pyarrow.fs.FileType.NotFound:
            return None
        partitioning = ds.HivePartitioning(pyarrow.schema([("day", pyarrow.date32()), ("city", pyarrow.string())]))
        return ds.dataset(self.key, format="parquet", filesystem=self.filesystem, partitioning=partitioning).to_table()

    def ids(self):
        """Of all rows that a reader sees now; a file that goes away while it is read is read about again."""
        for _ in range(20):
            try:
                table = self.table()
                return table["id"].to_pylist() if table is not None and table.num_rows else []
            except FileNotFoundError:
                continue
        return []


def life(checks, folders, directory, chance, last, number):
    """One server: rows go in until it is killed, or all `last` are there; how many there are."""
    options = ["--checkpoint-interval", "100"]
    with Server(data_dir=f"{directory}/data", options=options) as server:
        with server.connect() as connection:
            if number == 0:
                connection.execute("CREATE TABLE facts (id BIGINT PRIMARY KEY, city VARCHAR, day DATE, amount NUMERIC(12, 2), flag BOOLEAN)")
                for folder in folders:
                    folder.create(connection)
            done = connection.execute("SELECT count(*) FROM facts").fetchone()[0]
            end = time.monotonic() + chance.uniform(0.05, 2.5)
            try:
                while done < last or number == 0 and done == 0:
                    insert(connection, done)
                    done += ROWS
                    if time.monotonic() > end:
                        break
                while time.monotonic() < end:
                    time.sleep(0.01)
            finally:
                server.kill()
    for folder in folders:
        twice = [n for n, count in collections.Counter(folder.ids()).items() if count > 1]
        checks.check(not twice, f"after kill {number + 1} no reader of {folder.name} sees a row twice", twice[:5])
    return done


def readers(checks, folder, expected):
    """What each of them makes of a folder on this machine."""
    columns = ["id", "city", "day", "amount", "flag"]
    wanted = sorted((n, city, day, float(amount), flag) for n, city, day, amount, flag in expected)

    def same(name, rows):
        rows = sorted((n, city, day, float(amount), flag) for n, city, day, amount, flag in rows)
        checks.check(rows == wanted, f"{name} reads every row of {folder.name} once, whole", next((p for p in zip(rows, wanted) if p[0] != p[1]), len(rows)))

    same("pyarrow", zip(*[folder.table()[name].to_pylist() for name in columns]))
    path = f"{folder.path}/**/*.parquet"
    types = "{'day': DATE, 'city': VARCHAR}"
    same("DuckDB", duckdb.sql(f"SELECT {', '.join(columns)} FROM read_parquet('{path}', hive_partitioning = true, hive_types = {types})").fetchall())
    frame = polars.scan_parquet(path, hive_partitioning=True, hive_schema={"day": polars.Date, "city": polars.String})
    same("polars", frame.select(columns).collect().rows())


def main():
    directory, s3, kills, seed = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    print(f"test-sinks: seed {seed}, {kills} kills")
    chance, checks = random.Random(seed), Checks("test-sinks")
    path = f"{directory}/out/local"
    folders = [Folder("local", path, pyarrow.fs.LocalFileSystem(), {"connector": "fs", "path": path}, path)]
    if s3:
        keys = {"access_key": "millrace", "secret_key": "millrace-secret"}
        filesystem = pyarrow.fs.S3FileSystem(endpoint_override=s3, scheme="http", region="us-east-1", **keys)
        options = {
            "connector": "s3", "s3.bucket_name": "millrace", "s3.path": f"sinks/{seed}", "s3.endpoint": s3, "s3.region": "us-east-1",
            "s3.credentials.access": keys["access_key"], "s3.credentials.secret": keys["secret_key"]}
        folders.append(Folder("s3", f"s3://millrace/sinks/{seed}", filesystem, options, f"millrace/sinks/{seed}"))
    done = 0
    for number in range(kills):
        done = life(checks, folders, directory, chance, (number + 1) * 10 * ROWS, number)
    with Server(data_dir=f"{directory}/data") as server, server.connect() as connection:
        done = connection.execute("SELECT count(*) FROM facts").fetchone()[0]
        expected = [row for first in range(0, done, ROWS) for row in rows_of(first)]
        for folder in folders:
            complete = wait_until(lambda: len(folder.ids()) >= done, 60, 0.2)
            seen = collections.Counter(folder.ids())
            checks.check(
                complete and len(seen) == done and set(seen.values()) == {1}, f"after {kills} kills {folder.name} has each of {done} rows once",
                f"{len(seen)} of them, {sum(seen.values())} in all; {connection.execute('SHOW SINKS').fetchall()}")
        local = folders[0]
        readers(checks, local, expected)
        for folder in folders:
            if folder.name == "s3":
                os.environ.update(AWS_ACCESS_KEY_ID="millrace", AWS_SECRET_ACCESS_KEY="millrace-secret", AWS_ENDPOINT_URL=s3)
                continue
            rows = connection.execute(f"SELECT id, city, day, amount, flag FROM read_parquet('{folder.path}') ORDER BY id").fetchall()
            ours = [(n, city, day, float(amount), flag) for n, city, day, amount, flag in rows]
            wanted = [(n, city, day, float(amount), flag) for n, city, day, amount, flag in expected]
            checks.check(ours == wanted, f"read_parquet reads {folder.name} as it was written")
        leftovers = [name for _, _, names in os.walk(local.path) for name in names if name.startswith(".millrace-")]
        checks.check(len(leftovers) <= len(DAYS) * len(CITIES), "what the kills left half-written is gone", leftovers)
    if s3:
        # The keys are those of the environment, as a container has them.
        with Server(data_dir=f"{directory}/reader") as server, server.connect() as connection:
            found = connection.execute(f"SELECT count(*), count(DISTINCT id), count(city) FROM read_parquet('{folders[1].path}')").fetchone()
            cities = sum(1 for row in expected if row[1] is not None)
            checks.check(found == (done, done, cities), "read_parquet reads s3 as it was written", found)
    checks.finish()


main()
