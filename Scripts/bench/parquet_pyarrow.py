"""pyarrow's half of Scripts/bench-parquet: parquet_pyarrow.py prepare|measure|report DIRECTORY

One thread each; a line is program, codec, rows, CPU seconds of writing, of reading, bytes.
"""
import pathlib
import statistics
import sys
import time

import pyarrow as pa
import pyarrow.json
import pyarrow.parquet as pq

RUNS = 5


def prepare(directory):
    schema = pa.schema([
        ("auction", pa.int64()), ("bidder", pa.int64()), ("price", pa.int64()), ("channel", pa.string()), ("url", pa.string()),
        ("date_time", pa.timestamp("us")), ("extra", pa.string())])
    parse = pyarrow.json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore")
    parts = [pyarrow.json.read_json(path, parse_options=parse) for path in sorted(pathlib.Path(directory, "nexmark", "bid").iterdir())]
    pq.write_table(pa.concat_tables(parts).combine_chunks(), f"{directory}/bid.parquet", compression="none")


def measure(directory):
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    table = pq.read_table(f"{directory}/bid.parquet", use_threads=False)
    for codec in ("zstd", "none"):
        for _ in range(RUNS):
            start = time.process_time()
            pq.write_table(table, f"{directory}/pyarrow.{codec}", compression=codec)
            written = time.process_time()
            pq.read_table(f"{directory}/pyarrow.{codec}", use_threads=False)
            size = pathlib.Path(f"{directory}/pyarrow.{codec}").stat().st_size
            print(f"pyarrow,{codec},{table.num_rows},{written - start},{time.process_time() - written},{size}", flush=True)


def report(directory):
    runs = {}
    for line in sys.stdin:
        program, codec, *numbers = line.strip().split(",")
        runs.setdefault((codec, program), []).append([float(n) for n in numbers])
    for (codec, program), lines in sorted(runs.items()):
        rows, size = lines[0][0], lines[0][3]
        write, read = (sorted(line[i] for line in lines) for i in (1, 2))
        print(
            f"{codec:5} {program:9} write {rows / statistics.median(write) / 1e6:6.2f} M rows per CPU second"
            f" ({rows / write[-1] / 1e6:.2f} to {rows / write[0] / 1e6:.2f}), read {rows / statistics.median(read) / 1e6:6.2f}, {size / rows:6.1f} bytes a row")
    # What both wrote is the same.
    for codec in ("zstd", "none"):
        ours, theirs = pq.read_table(f"{directory}/bid.parquet.{codec}"), pq.read_table(f"{directory}/pyarrow.{codec}")
        print(f"{codec:5} the same rows: {ours.equals(theirs.cast(ours.schema))}")


{"prepare": prepare, "measure": measure, "report": report}[sys.argv[1]](sys.argv[2])
