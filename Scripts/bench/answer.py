"""An answer as its number of rows and a hash that depends neither on their order nor on the engine."""
import datetime
import decimal
import hashlib

EPOCH = datetime.datetime(1970, 1, 1)
MICROSECOND = datetime.timedelta(microseconds=1)


def micros(value):
    return (datetime.datetime.fromisoformat(value) if isinstance(value, str) else value) - EPOCH


TEXT = {
    "i": lambda value: str(int(value)),
    "d": lambda value: format(decimal.Decimal(str(value)).normalize(), "f"),
    "a": lambda value: str(int(decimal.Decimal(str(value)))),
    "t": lambda value: str(micros(value) // MICROSECOND),
    "s": str,
    "-": lambda value: "",
}


class Answer:
    """Rows as text, by the kinds of `nexmark.KINDS`; the sum of their hashes. A row taken back is subtracted, so a changelog
    ends at the same answer as the table it describes."""

    def __init__(self, kinds):
        self.texts = [TEXT[kind] for kind in kinds]
        self.rows = self.sum = 0

    def add(self, row, weight=1):
        if len(row) != len(self.texts):
            raise ValueError(f"{len(row)} columns where {len(self.texts)} are compared")
        text = "\x1f".join("\0" if value is None else text(value) for text, value in zip(self.texts, row))
        self.rows += weight
        self.sum += weight * int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")

    def finish(self):
        return {"rows": self.rows, "hash": f"{self.sum % 2**64:016x}"}
