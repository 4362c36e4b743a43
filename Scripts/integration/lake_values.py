"""Values of all readers in one form, so that rows can be compared whoever read them.

Dates are days and times microseconds as whole numbers (Python has no year 0 and none beyond 9999), floats their bits, JSON and nested
values JSON with its numbers as they are written. Everything else is what Python has for it.
"""
import json
import struct
import uuid

import pyarrow as pa
from psycopg.adapt import Loader
from psycopg.pq import Format

from arrow_json import as_json

DAYS_TO_2000, MICROS_TO_2000 = 10_957, 946_684_800_000_000
JSONB = 3802


def bits(number):
    return "nan" if number != number else struct.pack(">d", number).hex()


def canonical(text):
    return json.dumps(json.loads(text, parse_float=str, parse_int=str), sort_keys=True, ensure_ascii=False)


def loader(convert):
    return type("Loader", (Loader,), {"format": Format.BINARY, "load": lambda self, data: convert(bytes(data))})


LOADERS = {
    "float4": lambda data: bits(struct.unpack("!f", data)[0]), "float8": lambda data: bits(struct.unpack("!d", data)[0]),
    "date": lambda data: struct.unpack("!i", data)[0] + DAYS_TO_2000, "time": lambda data: struct.unpack("!q", data)[0],
    "timestamp": lambda data: struct.unpack("!q", data)[0] + MICROS_TO_2000,
    "timestamptz": lambda data: struct.unpack("!q", data)[0] + MICROS_TO_2000, "jsonb": lambda data: canonical(data[1:].decode()),
}


class Rows:
    """Rows of one reader: the columns' names, which of them are JSON, and tuples in order."""

    def __init__(self, names, json_columns, rows):
        self.names, self.json_columns, self.rows = list(names), set(json_columns), sorted(rows, key=repr)

    def difference(self, theirs):
        """What another reader's rows (an arrow table, or `Rows`) have otherwise, or None."""
        names = theirs.names if isinstance(theirs, Rows) else theirs.column_names
        if sorted(names) != sorted(self.names):
            return f"columns {names} for {self.names}"
        columns = [self.column(theirs, name) for name in self.names]
        found = sorted(zip(*columns), key=repr)
        for place, (row, expected) in enumerate(zip(found, self.rows)):
            if row != expected:
                wrong = [(name, a, b) for name, a, b in zip(self.names, row, expected) if a != b]
                return f"{len(found)} rows for {len(self.rows)}, row {place}: {str(wrong)[:300]}"
        return None if len(found) == len(self.rows) else f"{len(found)} rows for {len(self.rows)}"

    def column(self, theirs, name):
        is_json = name in self.json_columns
        if not isinstance(theirs, Rows):
            values = of_arrow(theirs[name], is_json)
            ours = [row[self.names.index(name)] for row in self.rows]
            # polars has no type for UUIDs.
            is_uuid = any(isinstance(value, bytes) for value in values) and any(isinstance(value, str) for value in ours)
            return [value and str(uuid.UUID(bytes=value)) for value in values] if is_uuid else values
        values = [row[theirs.names.index(name)] for row in theirs.rows]
        # A table has JSON as text.
        is_text = is_json and name not in theirs.json_columns
        return [canonical(value) if is_text and value is not None else value for value in values]


def by_millrace(connection, query):
    """What this server answers. Intervals are taken as text: no reader has a type for them."""
    cursor = connection.cursor(binary=True)
    for name, convert in LOADERS.items():
        cursor.adapters.register_loader(name, loader(convert))
    cursor.execute(query)
    columns = cursor.description
    return Rows([column.name for column in columns], {column.name for column in columns if column.type_code == JSONB}, cursor.fetchall())


def of_arrow(column, is_json=False):
    kind = column.type
    if isinstance(kind, pa.BaseExtensionType):
        return [None if value is None else str(value) for value in column.to_pylist()]
    if pa.types.is_dictionary(kind):
        return of_arrow(column.cast(kind.value_type), is_json)
    if pa.types.is_date32(kind):
        return column.cast(pa.int32()).to_pylist()
    if pa.types.is_time64(kind) or pa.types.is_timestamp(kind):
        factor = {"s": 1_000_000, "ms": 1000, "us": 1, "ns": None}[kind.unit]
        return [None if n is None else n * factor if factor else n // 1000 for n in column.cast(pa.int64()).to_pylist()]
    if pa.types.is_floating(kind):
        return [None if value is None else bits(value) for value in column.to_pylist()]
    if is_json:
        texts = column.to_pylist()
        if pa.types.is_nested(kind):
            texts = [None if value is None else json.dumps(as_json(value, kind), default=str) for value in texts]
        return [None if text is None else canonical(text) for text in texts]
    return column.to_pylist()
