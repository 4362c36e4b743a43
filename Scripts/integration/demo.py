"""Runs the demo, then recounts its topic with an independent reader and compares the leaderboard it printed."""
import argparse
import collections
import json
import os
import subprocess
import sys
import tempfile

from harness import BINARY, ROOT, Checks, Server, read_topic


def main(duration):
    checks = Checks("test-demo")
    with tempfile.TemporaryDirectory(prefix="millrace-demo-") as directory:
        data = os.path.join(directory, "data")
        command = [BINARY, "demo", "--duration", duration, "--data-dir", data, "--kafka", "127.0.0.1:0", "--pg", "127.0.0.1:0",
                   "--catalog", "127.0.0.1:0"]
        demo = subprocess.run(command, cwd=ROOT, text=True, capture_output=True, timeout=120)
        if not checks.check(demo.returncode == 0, "the demo ends well", demo.stderr[-500:]):
            checks.finish()
        _, found, tail = demo.stdout.rpartition("final leaderboard\n")
        tail, _, tables = tail.partition("tables read back\n")
        printed = {}
        for line in tail.splitlines():
            fields = line.split("\t")
            if len(fields) == 3 and fields[1].lstrip("-").isdigit():
                printed[fields[0]] = (int(fields[1]), int(fields[2]))
        checks.check(found and printed, f"a final leaderboard of {len(printed)} players", demo.stdout[-300:])
        with Server(data_dir=data, catalog="127.0.0.1:0") as server:
            counted = collections.defaultdict(lambda: (0, 0))
            records = read_topic(server.kafka, "balloon-game")
            for _, _, value in records:
                event = json.loads(value)
                score, hits = counted[event["player"]]
                counted[event["player"]] = (score + event["score"], hits + (event["favorite_color_bonus"] is True))
            with server.connect() as connection:
                last = dict(connection.execute("SELECT player, max(total_score) FROM dev.balloon_pops.leaderboard GROUP BY player").fetchall())
        different = {p: (printed.get(p), counted.get(p)) for p in printed.keys() | counted.keys() if printed.get(p) != counted.get(p)}
        checks.check(records and not different, f"equals a recount of the topic's {len(records)} events", str(list(different.items())[:3]))
        lines = [line.split("\t") for line in tables.splitlines()]
        checks.check(
            len(lines) == 5 and all(len(line) == 3 and not line[1].startswith("0 ") for line in lines), "five tables were read back", tables)
        checks.check(last == {player: score for player, (score, _) in printed.items()}, "the table's last scores are the leaderboard's", last)
    checks.finish()


parser = argparse.ArgumentParser()
parser.add_argument("--duration", default="5")
main(parser.parse_args().duration)
