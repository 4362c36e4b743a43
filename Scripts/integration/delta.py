"""Seed 1 as its document writes it: the two files untouched, on the default ports, with one and with two workers."""
import collections
import datetime as dt
import json
import os
import subprocess
import sys
import time

from harness import ROOT, Checks, Server, read_topic, wait_until

EXAMPLE = ROOT / "examples/delta"
POLLS = 200


def states(events):
    """The view's rows after each prefix of the topic."""
    result, latest = [()], {}
    for event in events:
        known = latest.get(event["id"])
        if known is None or event["event_order"] >= known["event_order"]:
            latest[event["id"]] = event
        rows = ((e["id"], e["name"], e["age"]) for e in latest.values() if e["op"] != "delete")
        result.append(tuple(sorted(rows)))
    return result


def run(checks, workers):
    with Server(pg="localhost:4566", kafka="localhost:9092", workers=workers) as server:
        # The document's own command: no database name.
        command = ["psql", "-h", "localhost", "-p", "4566", "-U", "root", "-f", "init.sql"]
        psql = subprocess.run(command, cwd=EXAMPLE, text=True, capture_output=True, timeout=60)
        checks.check(psql.returncode == 0 and "ERROR" not in psql.stderr, f"init.sql by psql, {workers} workers", psql.stderr.strip())
        again = subprocess.run(command, cwd=EXAMPLE, text=True, capture_output=True, timeout=60)
        checks.check(again.returncode == 0 and "ERROR" not in again.stderr, "init.sql a second time", again.stderr.strip())

        environment = dict(os.environ, PYTHONPATH=str(ROOT / "Scripts/integration/sleepless"), PRODUCER_PAUSE="0.04")
        producer = subprocess.Popen(
            [sys.executable, "producer.py"], cwd=EXAMPLE, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        answers = []
        with server.connect() as connection:
            while producer.poll() is None:
                rows = connection.execute("SELECT * FROM latest_user_state ORDER BY id").fetchall()
                answers.append(tuple(rows))
                time.sleep(0.005)
            during = len(answers)
            _, problems = producer.communicate()
            checks.check(producer.returncode == 0, "producer.py by kafka-python 2", problems[-500:])

            events = [json.loads(value) for _, _, value in read_topic("localhost:9092", "user-events")]
            checks.check(len(events) == 100, "an independent reader finds 100 events in the topic", len(events))
            expected = states(events)
            connection.execute("FLUSH")
            last = tuple(connection.execute("SELECT * FROM latest_user_state ORDER BY id").fetchall())
            answers.append(last)
            checks.check(last == expected[-1], "the final answer is the whole topic's", f"{last} instead of {expected[-1]}")

            prefix, wrong, seen = 0, None, collections.Counter()
            for number, answer in enumerate(answers):
                found = next((k for k in range(prefix, len(expected)) if expected[k] == answer), None)
                if found is None:
                    wrong = f"poll {number}: {answer} is no prefix at or after {prefix}"
                    break
                prefix = found
                seen[found] += 1
            checks.check(during >= POLLS, f"{during} polls during the run, {POLLS} wanted")
            checks.check(wrong is None, f"every answer is a prefix, none goes back ({len(seen)} different prefixes seen)", wrong or "")

            ids = {event["id"] for event in events}
            without = [k for k in seen if any(e["op"] == "delete" for e in events[:k]) and len(expected[k]) < len({e["id"] for e in events[:k]})]
            checks.check(bool(without), f"deleted ids are absent: in {len(without)} of these prefixes one of {sorted(ids)} was deleted last")

            history = connection.execute("SELECT * FROM user_events ORDER BY event_order DESC LIMIT 20").fetchall()
            wanted = [
                (e["id"], e["name"], e["age"], e["op"], e["event_order"], dt.datetime.fromisoformat(e["ts"]).replace(tzinfo=None))
                for e in reversed(events[-20:])
            ]
            checks.check(history == wanted, "the event history on the source itself", f"{history[:2]} instead of {wanted[:2]}")
        checks.check(server.alive, "the server is alive")


checks = Checks("test-delta")
for workers in (1, 2):
    run(checks, workers)
checks.finish()
