"""Seed 0's source and five views, rendered and otherwise untouched, made one after another while events flow."""
import argparse
import collections
import datetime as dt
import decimal
import json
import random
import re
import subprocess
import tempfile
import threading
import time
import uuid

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from harness import BINARY, ROOT, Checks, Server, wait_until

EXAMPLE = ROOT / "examples/balloon"
COLORS = ["red", "blue", "green", "yellow", "purple", "orange"]
PARTITIONS, BEFORE, DURING = 3, 500, 20_000
SCORES = {
    "mv_leaderboard": "total_score", "mv_balloon_color_stats": "points_by_color",
    "mv_realtime_scores": "total_score", "mv_balloon_colored_pops": "points_by_color",
}
POPS = {"mv_balloon_color_stats": "balloon_pops", "mv_balloon_colored_pops": "balloon_pops", "mv_color_performance_trends": "total_pops"}


def events(seed):
    """The game's events as its own generator writes them: no page_id, times with microseconds and Z."""
    source = random.Random(seed)
    favorites = {f"player-{n}": source.choice(COLORS) for n in range(25)}
    at = dt.datetime(2025, 3, 1, 12, 0, 0, 123_456)
    while True:
        player = source.choice(list(favorites))
        color = source.choice(COLORS)
        at += dt.timedelta(microseconds=source.randrange(1, 20_000))
        yield {
            "player": player, "balloon_color": color, "score": source.randrange(10, 200),
            "favorite_color_bonus": color == favorites[player], "event_ts": at.isoformat(timespec="microseconds") + "Z",
        }


def read_from(bootstrap, topic, origin):
    """The records from the origin on, by an independent reader (librdkafka without a group's offsets)."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": uuid.uuid4().hex, "enable.auto.commit": False})
    ends = {p: consumer.get_watermark_offsets(TopicPartition(topic, p), timeout=10)[1] for p in origin}
    consumer.assign([TopicPartition(topic, p, o) for p, o in origin.items()])
    left, found, deadline = sum(ends.values()) - sum(origin.values()), [], time.monotonic() + 60
    while len(found) < left and time.monotonic() < deadline:
        found += [json.loads(m.value()) for m in consumer.consume(1000, timeout=1) if not m.error()]
    consumer.close()
    return found


def recompute(found):
    """The five views over the records."""
    per = {view: collections.defaultdict(list) for view in (*SCORES, "mv_color_performance_trends")}
    for e in found:
        e["at"] = dt.datetime.fromisoformat(e["event_ts"].replace("Z", "+00:00"))
        start = e["at"].replace(second=e["at"].second // 15 * 15, microsecond=0)
        window = (start, start + dt.timedelta(seconds=15))
        per["mv_leaderboard"][e["player"],].append(e)
        per["mv_balloon_color_stats"][e["player"], e["balloon_color"]].append(e)
        per["mv_realtime_scores"][(e["player"], *window)].append(e)
        per["mv_balloon_colored_pops"][(e["player"], e["balloon_color"], *window)].append(e)
        per["mv_color_performance_trends"][(e["balloon_color"], *window)].append(e)
    score = lambda group: sum(e["score"] for e in group)
    hits = lambda group: sum(e["favorite_color_bonus"] for e in group)
    latest = lambda group: max(e["at"] for e in group)
    average = lambda group: decimal.Decimal(score(group)) / len(group)
    rows = {
        "mv_leaderboard": lambda k, g: (*k, score(g), hits(g), latest(g)),
        "mv_balloon_color_stats": lambda k, g: (*k, len(g), score(g), hits(g), latest(g)),
        "mv_realtime_scores": lambda k, g: (k[0], score(g), *k[1:]),
        "mv_balloon_colored_pops": lambda k, g: (*k[:2], len(g), score(g), hits(g), *k[2:]),
        "mv_color_performance_trends": lambda k, g: (k[0], average(g), len(g), *k[1:]),
    }
    return {view: sorted(rows[view](key, group) for key, group in groups.items()) for view, groups in per.items()}


def same(left, right):
    """Equal rows, averages to ten digits after the point."""
    close = lambda a, b: abs(a - b) < decimal.Decimal("1e-10") if isinstance(a, decimal.Decimal) else a == b
    return len(left) == len(right) and all(len(a) == len(b) and all(map(close, a, b)) for a, b in zip(left, right))


def agreement(connection, views):
    """Sums over every view that exists, in one statement."""
    parts = [f"SELECT 'score' AS what, '{v}' AS view_name, sum({c}) AS total FROM {v}" for v, c in SCORES.items() if v in views]
    parts += [f"SELECT 'pops', '{v}', sum({c}) FROM {v}" for v, c in POPS.items() if v in views]
    totals = collections.defaultdict(set)
    for what, _, total in connection.execute(" UNION ALL ".join(parts)).fetchall():
        totals[what].add(total)
    return totals


def main(broker):
    checks = Checks("test-balloon" + (" with an independent broker" if broker else ""))
    topic = "balloon-game-" + uuid.uuid4().hex[:8]
    with Server(workers=2) as server:
        bootstrap = broker or server.kafka
        admin = AdminClient({"bootstrap.servers": bootstrap})
        admin.create_topics([NewTopic(topic, PARTITIONS, 1)])[topic].result(10)
        with tempfile.NamedTemporaryFile("w", suffix=".yml") as variables:
            text = (EXAMPLE / "vars.yml").read_text()
            host, port = bootstrap.rsplit(":", 1)
            text = re.sub(r"(?m)^(balloon_game_kafka_topic:).*", rf"\1 {topic}", text)
            text = re.sub(r"(?m)^(balloon_game_kafka_host:).*", rf"\1 {host}", text)
            text = re.sub(r"(?m)^(balloon_game_kafka_port:).*", rf"\1 {port}", text)
            variables.write(text)
            variables.flush()
            rendered = subprocess.run(
                [BINARY, "render", EXAMPLE / "source.sql.j2", "-e", variables.name], text=True, capture_output=True)
        wanted = (EXAMPLE / "source.sql.j2").read_text().replace("{{ balloon_game_kafka_topic }}", topic)
        wanted = wanted.replace("{{ balloon_game_kafka_bootstrap_servers }}", bootstrap)
        if not checks.check(rendered.stdout == wanted, "millrace render", rendered.stderr or rendered.stdout[:200]):
            checks.finish()

        stream = events(seed=7)
        producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 2})
        send = lambda: producer.produce(topic, json.dumps(next(stream)).encode())
        for _ in range(BEFORE):
            send()
        producer.flush(30)
        consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "origin"})
        origin = {p: consumer.get_watermark_offsets(TopicPartition(topic, p), timeout=10)[1] for p in range(PARTITIONS)}
        consumer.close()
        checks.check(sum(origin.values()) == BEFORE, f"{BEFORE} events before the source", origin)

        statements = [s.strip() + ";" for s in rendered.stdout.split(";") if s.strip()]
        names = [re.search(r"IF NOT EXISTS (\w+)", s)[1] for s in statements]
        made = server.psql("-v", "ON_ERROR_STOP=1", "-c", statements[0])
        checks.check(made.returncode == 0, "the source by psql", made.stderr)

        sent = threading.Event()

        def produce():
            for number in range(DURING):
                send()
                if number % 50 == 0:
                    producer.poll(0)
                    time.sleep(0.01)
            producer.flush(60)
            sent.set()

        threading.Thread(target=produce, daemon=True).start()
        polls, disagreements, views = 0, [], []
        with server.connect() as connection:
            def poll():
                nonlocal polls
                totals = agreement(connection, views)
                polls += 1
                if any(len(values) > 1 for values in totals.values()):
                    disagreements.append(dict(totals))

            for name, statement in zip(names[1:], statements[1:]):
                made = server.psql("-v", "ON_ERROR_STOP=1", "-c", statement)
                checks.check(made.returncode == 0, f"{name} by psql while events flow", made.stderr)
                views.append(name)
                for _ in range(10):
                    poll()
                    time.sleep(0.01)
            while not sent.is_set():
                poll()
                time.sleep(0.01)
            connection.execute("FLUSH")
            poll()
            checks.check(not disagreements, f"the views agree at each of {polls} polls", str(disagreements[:2]))

            expected = recompute(read_from(bootstrap, topic, origin))
            for view, rows in expected.items():
                found = sorted(connection.execute(f"SELECT * FROM {view}").fetchall())
                checks.check(same(found, rows), f"{view}: {len(rows)} rows as recomputed", f"{len(found)} rows, {found[:2]} instead of {rows[:2]}")

            again = server.psql("-v", "ON_ERROR_STOP=1", input=rendered.stdout)
            notices = again.stderr.count("NOTICE")
            checks.check(again.returncode == 0 and notices == 6, "a second run changes nothing, with six notices", again.stderr)
            kinds = [row[0] for row in connection.execute("SHOW MATERIALIZED VIEWS").fetchall()]
            checks.check(sorted(kinds) == sorted(views), "SHOW MATERIALIZED VIEWS", kinds)
        checks.check(server.alive, "the server is alive")
    checks.finish()


parser = argparse.ArgumentParser()
parser.add_argument("--broker", help="HOST:PORT of another broker; the embedded one otherwise")
main(parser.parse_args().broker)
