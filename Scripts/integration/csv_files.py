"""Random files of CSV, read by us, by pyarrow and by Python's csv module: csv_files.py DIRECTORY FILES SEED"""
import csv
import io
import random
import sys

import pyarrow
import pyarrow.csv
from harness import Checks, Server

TEXTS = ["", "a", "plain text", 'say "hi"', "two\nlines", "crlf\r\ninside", "x,y;z|t\tu", '"', '""', " spaces ", "é 事件 🐟", "-12.5e3", "NULL", "x" * 300]


def written(value, delimiter, chance):
    """A value as one of the writers that there are would write it; None is NULL."""
    if value is None:
        return ""
    must = value == "" or any(c in value for c in (delimiter, '"', "\n", "\r"))
    return '"' + value.replace('"', '""') + '"' if must or chance.random() < 0.3 else value


def make(chance, number):
    """Rows of texts, and a file of them: text, delimiter, whether it has a header."""
    columns = chance.randint(2, 6)
    delimiter, newline, header = chance.choice(",;|\t"), chance.choice(["\n", "\r\n"]), chance.random() < 0.7
    rows = [[None if chance.random() < 0.15 else chance.choice(TEXTS) for _ in range(columns)] for _ in range(chance.choice([0, 1, 7, 400, 3000]))]
    # A line of nothing is passed over.
    rows = [row for row in rows if any(value is not None for value in row)]
    names = [f"c{i}" for i in range(columns)]
    lines = ([names] if header else []) + rows
    text = newline.join(delimiter.join(written(value, delimiter, chance) for value in line) for line in lines)
    if lines and (chance.random() < 0.7 or number % 5 == 0):
        text += newline
    return rows, names, ("\ufeff" if chance.random() < 0.3 else "") + text, delimiter, header


def by_pyarrow(path, names, delimiter, header):
    table = pyarrow.csv.read_csv(
        path, pyarrow.csv.ReadOptions(column_names=None if header else names), pyarrow.csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
        pyarrow.csv.ConvertOptions(
            column_types={name: pyarrow.string() for name in names}, strings_can_be_null=True, quoted_strings_can_be_null=False, null_values=[""]))
    return [list(row) for row in zip(*[table[name].to_pylist() for name in names])]


def main():
    directory, count, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    print(f"test-csv: seed {seed}, {count} files")
    chance, checks = random.Random(seed), Checks("test-csv")
    ours_wrong, pyarrow_wrong, python_wrong, values = [], [], [], 0
    with Server() as server, server.connect() as connection:
        for number in range(count):
            rows, names, text, delimiter, header = make(chance, number)
            path = f"{directory}/{number}.csv"
            with open(path, "w", encoding="utf8", newline="") as file:
                file.write(text)
            values += len(rows) * len(names)
            declared = ", ".join(f"{name} varchar" for name in (sorted(names, reverse=True) if header else names))
            connection.execute(
                f"CREATE SOURCE s{number} ({declared}) WITH (connector = 'file', path = '{path}') "
                f"FORMAT PLAIN ENCODE CSV (without_header = '{str(not header).lower()}', delimiter = '{delimiter}')")
            ours = [list(row) for row in connection.execute(f"SELECT {', '.join(names)} FROM s{number}").fetchall()]
            refused = connection.execute(f"SELECT count(*) FROM s{number}_rejects").fetchone()[0]
            if ours != rows or refused:
                ours_wrong.append((number, next((p for p in zip(ours, rows) if p[0] != p[1]), (len(ours), len(rows), refused))))
            if rows and by_pyarrow(path, names, delimiter, header) != rows:
                pyarrow_wrong.append(number)
            read = list(csv.reader(io.StringIO(text.lstrip("\ufeff"), newline=""), delimiter=delimiter, strict=True))[1 if header else 0:]
            if read != [[value or "" for value in row] for row in rows]:
                python_wrong.append(number)
        checks.check(not ours_wrong, f"{values} values of {count} files are read as they were written", ours_wrong[:3])
        checks.check(not pyarrow_wrong, "pyarrow reads the same", pyarrow_wrong[:10])
        checks.check(not python_wrong, "Python's csv module reads the same, but for what is NULL", python_wrong[:10])
    checks.finish()


main()
