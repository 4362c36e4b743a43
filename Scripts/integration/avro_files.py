"""The other half of Scripts/test-avro: avro_files.py write|compare DIRECTORY SEED

`write` has fastavro write random files into theirs/; `compare` has it read ours/, and holds what we read in theirs/ against what it reads.
"""
import datetime
import decimal
import json
import pathlib
import random
import struct
import sys
import uuid

import fastavro

from parquet_files import Checks

EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
CODECS = ["null", "deflate", "snappy", "zstandard"]


def plain(value):
    """A value as the other half writes it."""
    if isinstance(value, bool) or value is None or isinstance(value, (int, str)):
        return value
    if isinstance(value, float):
        return str(struct.unpack("<Q", struct.pack("<d", value))[0])
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, datetime.datetime):
        value = value if value.tzinfo else value.replace(tzinfo=datetime.timezone.utc)
        return (value - EPOCH) // datetime.timedelta(microseconds=1)
    if isinstance(value, datetime.date):
        return (value - EPOCH.date()).days
    if isinstance(value, datetime.time):
        return ((value.hour * 60 + value.minute) * 60 + value.second) * 1_000_000 + value.microsecond
    if isinstance(value, uuid.UUID):
        return str(value)
    if isinstance(value, list):
        return [plain(item) for item in value]
    return {key: plain(item) for key, item in value.items()}


class Sample:
    """A random schema and values of it."""

    def __init__(self, rng):
        self.rng, self.names = rng, 0
        self.schema = self.record(0)

    def name(self, prefix):
        self.names += 1
        return f"{prefix}{self.names}"

    def record(self, depth):
        name = self.name("r")
        return {"type": "record", "name": name, "namespace": self.rng.choice(["", "some.space"]), "doc": "a \"doc\"",
                "fields": [{"name": f"f{n}", "type": self.type(depth), "field-id": n + 1} for n in range(self.rng.randint(1, 7))]}

    def type(self, depth):
        rng = self.rng
        simple = ["null", "boolean", "int", "long", "float", "double", "bytes", "string"]
        kinds = simple * 2 + ["fixed", "enum", "date", "time", "timestamp", "optional"]
        if depth < 3:
            kinds += ["array", "map", "union", "record"]
        kind = rng.choice(kinds)
        if kind in simple:
            return kind
        if kind == "fixed":
            return {"type": "fixed", "name": self.name("x"), "size": rng.randint(0, 9)}
        if kind == "enum":
            return {"type": "enum", "name": self.name("e"), "symbols": ["A", "B", "C"]}
        if kind in ("date", "time", "timestamp"):
            logical = {"date": ("int", "date"), "time": ("long", "time-micros"), "timestamp": ("long", "timestamp-micros")}[kind]
            return {"type": logical[0], "logicalType": logical[1]}
        if kind == "optional":
            return rng.choice([["null", "long"], ["string", "null"]])
        if kind == "array":
            return {"type": "array", "items": self.type(depth + 1), "element-id": 7}
        if kind == "map":
            return {"type": "map", "values": self.type(depth + 1)}
        if kind == "union":
            return ["null", "long", "string", {"type": "array", "items": "int"}]
        return self.record(depth + 1)

    def value(self, schema):
        rng = self.rng
        if isinstance(schema, list):
            return self.value(rng.choice(schema))
        kind = schema if isinstance(schema, str) else schema["type"]
        logical = None if isinstance(schema, str) else schema.get("logicalType")
        if logical == "date":
            return (EPOCH + datetime.timedelta(days=rng.randint(-9999, 9999))).date()
        if logical == "time-micros":
            return (EPOCH + datetime.timedelta(microseconds=rng.randint(0, 86_399_999_999))).time()
        if logical == "timestamp-micros":
            return EPOCH + datetime.timedelta(microseconds=rng.randint(-10**15, 10**15))
        return {
            "null": lambda: None, "boolean": lambda: rng.random() < 0.5, "int": lambda: rng.randint(-2**31, 2**31 - 1),
            "long": lambda: rng.randint(-2**63, 2**63 - 1) >> rng.randint(0, 60), "float": lambda: rng.randint(-999, 999) / 8,
            "double": lambda: rng.random() * 1e9, "bytes": lambda: rng.randbytes(rng.randint(0, 30)),
            "string": lambda: rng.choice(["", "a", "ünïcode 🦀", "long " * 50]), "fixed": lambda: rng.randbytes(schema["size"]),
            "enum": lambda: rng.choice(schema["symbols"]), "array": lambda: [self.value(schema["items"]) for _ in range(rng.randint(0, 4))],
            "map": lambda: {f"k{n}": self.value(schema["values"]) for n in range(rng.randint(0, 3))},
            "record": lambda: {field["name"]: self.value(field["type"]) for field in schema["fields"]},
        }[kind]()


def write_theirs(directory, rng):
    root = directory / "theirs"
    root.mkdir()
    for number in range(80):
        sample = Sample(rng)
        records = [sample.value(sample.schema) for _ in range(rng.choice([0, 1, 30, 2000]))]
        with open(root / f"{number}-{CODECS[number % 4]}.avro", "wb") as out:
            fastavro.writer(out, fastavro.parse_schema(sample.schema), records, codec=CODECS[number % 4], sync_interval=rng.choice([100, 16_000]))


def lines(path):
    return [json.loads(line) for line in path.read_text().split("\n") if line]


def read(path):
    with open(path, "rb") as file:
        return [plain(record) for record in fastavro.reader(file)]


def main():
    command, directory, seed = sys.argv[1], pathlib.Path(sys.argv[2]), int(sys.argv[3])
    if command == "write":
        return write_theirs(directory, random.Random(seed))
    checks = Checks("avro")
    for path in sorted((directory / "ours").glob("*.avro")):
        want = lines(pathlib.Path(f"{path}.jsonl"))
        try:
            found = read(path)
        except Exception as error:  # whatever it is, it is what the reader says of our file
            checks.check(False, f"fastavro reads {path.name}", f"{type(error).__name__}: {error}")
            continue
        checks.check(found == want, f"fastavro reads {path.name}", f"{len(want)} written, {len(found)} read")
    for path in sorted((directory / "theirs").glob("*.avro")):
        error = pathlib.Path(f"{path}.error")
        if error.exists():
            checks.check(False, f"we read {path.name}", error.read_text())
            continue
        want, found = read(path), lines(pathlib.Path(f"{path}.read"))
        differing = [pair for pair in zip(want, found) if pair[0] != pair[1]][:1]
        checks.check(want == found, f"we read {path.name}", f"{len(want)} written, {len(found)} read; {differing}")
    checks.finish()


if __name__ == "__main__":
    main()
