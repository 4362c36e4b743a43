"""The other half of Scripts/test-catalog-client: catalog_client.py DIRECTORY S3-URL CATALOG-URL SEED

Says through DIRECTORY's pipes what our catalog client shall do, and does and checks the same with PyIceberg.
"""
import pathlib
import random
import subprocess
import sys
import threading

import pyarrow
from pyiceberg.catalog import load_catalog
from pyiceberg.schema import Schema
from pyiceberg.types import LongType, NestedField, StringType

from command_pipes import Checks, Pipes

DIRECTORY, S3, CATALOG, SEED = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
SERVER = pathlib.Path(__file__).resolve().parents[1] / "real/seaweedfs"
OPTIONS = {
    "uri": CATALOG, "warehouse": "lake", "credential": "millrace:millrace-secret", "scope": "PRINCIPAL_ROLE:ALL", "s3.endpoint": S3,
    "s3.access-key-id": "millrace", "s3.secret-access-key": "millrace-secret", "s3.region": "us-east-1",
}
SCHEMA = Schema(NestedField(1, "id", LongType(), required=True), NestedField(2, "name", StringType(), required=False))
ARROW = pyarrow.schema([pyarrow.field("id", pyarrow.int64(), nullable=False), pyarrow.field("name", pyarrow.string())])

checks = Checks("catalog-client")
rng = random.Random(SEED)
theirs = load_catalog("rest", **{"type": "rest", **OPTIONS})
ours = Pipes(DIRECTORY)
space = f"space{rng.randrange(10**9)}"


def use(**changes):
    return ours("use", *(f"{name}={value}" for name, value in {**OPTIONS, **changes}.items()))


def name(number):
    return None if number % 10 == 0 else f"row {number}"


def rows(table):
    found = theirs.load_table(table).scan().to_arrow().to_pylist()
    return sorted((row["id"], row["name"]) for row in found)


def wanted(*ranges):
    return sorted((number, name(number)) for numbers in ranges for number in numbers)


def append_theirs(table, numbers):
    theirs.load_table(table).append(
        pyarrow.Table.from_pylist([{"id": number, "name": name(number)} for number in numbers], schema=ARROW))


def names():
    checks.check(ours("make-namespace", space)[0] == "ok", "make a namespace")
    checks.check((space,) in theirs.list_namespaces(), "they see it", theirs.list_namespaces())
    checks.check(space in ours("namespaces")[1].split(), "we see it")
    checks.check(ours("has-namespace", space)[1:] == ["true"] and ours("has-namespace", "none")[1:] == ["false"], "it exists")
    again = ours("make-namespace", space)
    checks.check(again[0] == "error" and "commitConflict" in again[1], "make it again", again)
    for number in range(12):
        theirs.create_table(f"{space}.listed{number:02}", SCHEMA)
    checks.check(ours("tables", space)[1].split() == [f"listed{number:02}" for number in range(12)], "tables of it", ours("tables", space))
    for number in range(12):
        checks.check(ours("drop", f"{space}.listed{number:02}")[0] == "ok", "drop")
    checks.check(theirs.list_tables(space) == [], "they are dropped")
    gone = ours("load", f"{space}.listed00")
    checks.check(gone[0] == "error" and "missing" in gone[1], "a table that is not there", gone)


def tables_in_both_directions():
    mine, other = f"{space}.ours", f"{space}.theirs"
    checks.check(ours("create", mine)[0] == "ok", "create")
    checks.check(theirs.load_table(mine).properties.get("made.by") == "us", "they see our properties")
    # This catalog gives the table that is there, to everyone.
    theirs.create_table(mine, SCHEMA)
    checks.check(ours("create", mine)[0] == "ok", "create it again")
    table = theirs.create_table(other, SCHEMA)
    loaded = ours("load", other)
    checks.check(loaded[1:] == [str(table.metadata.table_uuid), "id,name", table.metadata_location], "load theirs", loaded)
    checks.check(int(ours("metadata", other)[1]) > 100, "read its metadata file")
    for table in (mine, other):
        answer = ours("append", table, 0, 1000)
        checks.check(answer[0] == "ok", f"append to {table}", answer)
        append_theirs(table, range(1000, 1500))
        answer = ours("append", table, 1500, 500)
        checks.check(answer[0] == "ok", f"append after them to {table}", answer)
        checks.check(rows(table) == wanted(range(2000)), f"they count the rows of {table}", len(rows(table)))
        checks.check(theirs.load_table(table).current_snapshot().summary.additional_properties.get("first") == "1500", "our word in the summary")


def conflicts():
    table = f"{space}.contested"
    theirs.create_table(table, SCHEMA)
    ours("load", table)
    append_theirs(table, range(10))
    stale = ours("property", table, "a", "b")
    checks.check(stale[0] == "error" and "commitConflict" in stale[1], "a requirement that does not hold", stale)
    ours("load", table)
    checks.check(ours("property", table, "a", "b")[0] == "ok", "the same after loading it again")
    checks.check(theirs.load_table(table).properties.get("a") == "b", "they see it")
    failures = []

    def write():
        for start in range(10_000, 10_500, 100):
            try:
                append_theirs(table, range(start, start + 100))
            except Exception as error:  # Whatever it was, what they could not write is told apart from what is lost.
                failures.append((start, error))

    writer = threading.Thread(target=write)
    writer.start()
    answers = [ours("append", table, start, 100) for start in range(1000, 2000, 100)]
    writer.join()
    checks.check(all(answer[0] == "ok" for answer in answers), "appends beside another writer", answers)
    lost = [range(start, start + 100) for start, _ in failures]
    expected = [row for row in wanted(range(10), range(1000, 2000), range(10_000, 10_500)) if not any(row[0] in numbers for numbers in lost)]
    checks.check(rows(table) == expected, "every row once", (len(rows(table)), len(expected), failures))
    print(f"  {len(failures)} of 5 appends of the other writer gave up", flush=True)


def refusals():
    use(credential="millrace:wrong")
    answer = ours("load", f"{space}.ours")
    checks.check(answer[0] == "error" and "token" in answer[1], "a wrong secret", answer)
    use(uri="http://127.0.0.1:1")
    answer = ours("load", f"{space}.ours")
    checks.check(answer[0] == "error" and "127.0.0.1" in answer[1], "a catalog that is not there", answer)
    use(uri=CATALOG + "/")
    checks.check(ours("exists", f"{space}.ours")[1:] == ["true"], "a URI with a slash at its end")


def catalog_dies_while_rows_are_appended():
    table = f"{space}.killed"
    theirs.create_table(table, SCHEMA)
    told, unsure = [], []
    killer = threading.Timer(rng.uniform(0.2, 1.0), lambda: subprocess.run([SERVER, "kill", f"{DIRECTORY}/server"], check=True))
    killer.start()
    for start in range(0, 100_000, 100):
        answer = ours("append", table, start, 100)
        (told if answer[0] == "ok" else unsure).append(range(start, start + 100))
        if answer[0] != "ok":
            break
    killer.join()
    checks.check(told and unsure, "the catalog died between appends", (len(told), answer))
    started = subprocess.run([SERVER, "start", f"{DIRECTORY}/server"], check=True, stdout=subprocess.PIPE, text=True)
    checks.check(started.stdout.split() == [S3, CATALOG], "the catalog is back")
    answer = ours("append", table, 200_000, 100)
    checks.check(answer[0] == "ok", "an append after that", answer)
    told.append(range(200_000, 200_100))
    found = rows(table)
    checks.check(found in (wanted(*told), wanted(*told, *unsure)), "what was told is there once, what was not wholly or not at all", len(found))
    print(f"  {len(told)} appends told, {len(unsure)} not; {len(found)} rows", flush=True)


use()
names()
tables_in_both_directions()
conflicts()
refusals()
use()
catalog_dies_while_rows_are_appended()
checks.finish()
