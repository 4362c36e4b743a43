"""Seed 0 to its end, by psql, into tables that PyIceberg made as the tutorial has them: balloon_lake.py SEED

The tables have required columns and partitions, and a history: each row is what its view had for a key after some prefix of the topic. So
a row that is no such state, a state that is there twice, and a last state that is missing are faults of delivery. The server is killed on
the way.
"""
import collections
import datetime as dt
import decimal
import json
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import time

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.exceptions import NoSuchNamespaceError, RESTError
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import DayTransform, HourTransform, IdentityTransform
from pyiceberg.types import DecimalType, LongType, NestedField, StringType, TimestamptzType

from harness import BINARY, ROOT, Checks, Server, free_port, wait_until
from iceberg_readers import readings

EXAMPLE = ROOT / "examples/balloon"
SEAWEED = pathlib.Path(__file__).resolve().parents[1] / "real/seaweedfs"
PLAYERS, COLORS, EVENTS, ROUNDS = [f"player-{n}" for n in range(6)], ["red", "blue", "green"], 400, 6
TEXT, LONG, TIME, DECIMAL = StringType(), LongType(), TimestamptzType(), DecimalType(28, 10)
TABLES = {
    "leaderboard": ([("player", TEXT), ("total_score", LONG), ("bonus_hits", LONG), ("event_ts", TIME)], [(4, DayTransform()), (1, IdentityTransform())]),
    "balloon_color_stats": (
        [("player", TEXT), ("balloon_color", TEXT), ("balloon_pops", LONG), ("points_by_color", LONG), ("bonus_hits", LONG), ("event_ts", TIME)],
        [(6, DayTransform()), (1, IdentityTransform())]),
    "realtime_scores": (
        [("player", TEXT), ("total_score", LONG), ("window_start", TIME), ("window_end", TIME)], [(3, HourTransform()), (1, IdentityTransform())]),
    "balloon_colored_pops": (
        [("player", TEXT), ("balloon_color", TEXT), ("balloon_pops", LONG), ("points_by_color", LONG), ("bonus_hits", LONG), ("window_start", TIME),
         ("window_end", TIME)], [(6, HourTransform()), (2, IdentityTransform())]),
    "color_performance_trends": (
        [("balloon_color", TEXT), ("avg_score_per_pop", DECIMAL), ("total_pops", LONG), ("window_start", TIME), ("window_end", TIME)],
        [(4, HourTransform()), (1, IdentityTransform())]),
}


def make_tables(catalog, database):
    catalog.create_namespace(database)
    for name, (columns, partitions) in TABLES.items():
        schema = Schema(*[NestedField(number, column, kind, required=True) for number, (column, kind) in enumerate(columns, 1)])
        fields = [
            PartitionField(source, 1000 + place, transform, f"{columns[source - 1][0]}_{str(transform)}")
            for place, (source, transform) in enumerate(partitions)]
        catalog.create_table(f"{database}.{name}", schema=schema, partition_spec=PartitionSpec(*fields))


def histories(events):
    """Of each table and key: all states in order."""
    groups = {name: collections.defaultdict(list) for name in TABLES}
    states = {name: collections.defaultdict(list) for name in TABLES}
    for event in events:
        at = event["at"]
        start = at.replace(second=at.second // 15 * 15, microsecond=0)
        window = (start, start + dt.timedelta(seconds=15))
        keys = {
            "leaderboard": (event["player"],), "balloon_color_stats": (event["player"], event["balloon_color"]),
            "realtime_scores": (event["player"], *window), "balloon_colored_pops": (event["player"], event["balloon_color"], *window),
            "color_performance_trends": (event["balloon_color"], *window),
        }
        for name, key in keys.items():
            groups[name][key].append(event)
            states[name][key].append(state(name, key, groups[name][key]))
    return states


def state(name, key, group):
    score = sum(e["score"] for e in group)
    hits = sum(e["favorite_color_bonus"] for e in group)
    match name:
        case "leaderboard": return (*key, score, hits, max(e["at"] for e in group))
        case "balloon_color_stats": return (*key, len(group), score, hits, max(e["at"] for e in group))
        case "realtime_scores": return (key[0], score, *key[1:])
        case "balloon_colored_pops": return (*key[:2], len(group), score, hits, *key[2:])
        case _:
            average = (decimal.Decimal(score) / len(group)).quantize(decimal.Decimal("1e-10"), decimal.ROUND_HALF_UP)
            return (key[0], average, len(group), *key[1:])


def faults(rows, states):
    """What is wrong with a table's rows, as words."""
    known = {row for key in states.values() for row in key}
    counted = collections.Counter(rows)
    wrong = [f"{row} is no state" for row in counted if row not in known]
    wrong += [f"{row} is there {count} times" for row, count in counted.items() if count > 1]
    return wrong + [f"{key[-1]} is missing" for key in states.values() if key[-1] not in counted]


def rendered(template, variables):
    with tempfile.NamedTemporaryFile("w", suffix=".yml") as file:
        file.write("\n".join(f"{name}: {json.dumps(value)}" for name, value in variables.items()))
        file.flush()
        return subprocess.run([BINARY, "render", EXAMPLE / template, "-e", file.name], text=True, capture_output=True, check=True).stdout


def play(checks, flavour, random_seed, make_catalog, make_variables):
    source = random.Random(random_seed)
    ports = {"pg": f"127.0.0.1:{free_port()}", "kafka": f"127.0.0.1:{free_port()}", "catalog": f"127.0.0.1:{free_port()}"}
    with tempfile.TemporaryDirectory(prefix="millrace-balloon-") as directory:
        start = lambda: Server(**ports, data_dir=directory).__enter__()
        server = start()
        try:
            catalog, variables = make_catalog(ports["catalog"]), make_variables(ports["catalog"])
            variables |= {"balloon_game_kafka_topic": "balloon-game", "balloon_game_kafka_bootstrap_servers": ports["kafka"], "balloon_game_db": "balloon_pops"}
            make_tables(catalog, "balloon_pops")
            admin = AdminClient({"bootstrap.servers": ports["kafka"], "log_level": 0})
            admin.create_topics([NewTopic("balloon-game", 1, 1)])["balloon-game"].result(10)
            for template in ("source.sql.j2", "sink.sql.j2"):
                made = server.psql("-v", "ON_ERROR_STOP=1", input=rendered(template, variables))
                if not checks.check(made.returncode == 0, f"{flavour}: {template} by psql", made.stderr[-500:]):
                    return
            shown = server.psql("-At", "-c", "SHOW SINKS").stdout.split("\n")
            checks.check({line.split("|")[0] for line in shown if line} == set(TABLES), f"{flavour}: SHOW SINKS", str(shown))
            again = server.psql("-v", "ON_ERROR_STOP=1", input=rendered("sink.sql.j2", variables))
            checks.check(again.returncode == 0 and again.stderr.count("NOTICE") == 5, f"{flavour}: a second run changes nothing", again.stderr[-300:])

            events, at = [], dt.datetime(2025, 3, 1, 12, 0, 0, 123_456, tzinfo=dt.timezone.utc)
            favorites = {player: source.choice(COLORS) for player in PLAYERS}
            for number in range(ROUNDS):
                producer = Producer({"bootstrap.servers": ports["kafka"], "linger.ms": 2, "log_level": 0})
                for _ in range(EVENTS):
                    at += dt.timedelta(microseconds=source.randrange(1, 60_000))
                    player, color = source.choice(PLAYERS), source.choice(COLORS)
                    event = {"player": player, "balloon_color": color, "score": source.randrange(10, 200), "favorite_color_bonus": color == favorites[player]}
                    events.append(event | {"at": at})
                    sent = event | {"event_ts": at.isoformat(timespec="microseconds").replace("+00:00", "Z")}
                    producer.produce("balloon-game", json.dumps(sent).encode(), partition=0)
                producer.flush(30)
                time.sleep(source.random() * 1.5)
                if number % 2:
                    server.kill()
                    server = start()
            states = histories(events)
            def delivered():
                found = {name: table_rows(catalog, name) for name in TABLES}
                return found if not any(faults(found[name], states[name]) for name in TABLES) else None

            wait_until(delivered, 60, 1)
            for name in TABLES:
                rows = table_rows(catalog, name)
                wrong = faults(rows, states[name])
                checks.check(not wrong, f"{flavour}: {name}: {len(rows)} rows, each state once, the last of {len(states[name])} keys", str(wrong[:3]))
                view = {tuple(row) for row in server.connect().execute(f"SELECT * FROM mv_{name}").fetchall()}
                last = {key[-1] for key in states[name].values()}
                same = {tuple(round(v, 10) if isinstance(v, decimal.Decimal) else v for v in row) for row in view} == {
                    tuple(round(v, 10) if isinstance(v, decimal.Decimal) else v for v in row) for row in last}
                checks.check(same, f"{flavour}: mv_{name} is the last state", f"{len(view)} rows, {len(last)} keys")
                for reader, found in readings(catalog.load_table(f"balloon_pops.{name}"), variables):
                    checks.check(found == len(rows), f"{flavour}: {name}: {reader} reads {found} rows", f"not {len(rows)}")
            checks.check(server.alive, f"{flavour}: the server is alive")
        finally:
            server.__exit__()


def table_rows(catalog, name):
    columns = [column for column, _ in TABLES[name][0]]
    return [tuple(row[column] for column in columns) for row in catalog.load_table(f"balloon_pops.{name}").scan().to_arrow().to_pylist()]


def embedded(checks, seed):
    def catalog(address):
        uri = f"http://{address}/api/catalog"
        return RestCatalog(
            "balloon-game", **{
                "uri": uri, "credential": "root:secret", "header.content-type": "application/vnd.api+json",
                "header.X-Iceberg-Access-Delegation": "vended-credentials", "header.Polaris-Realm": "POLARIS",
                "oauth2-server-uri": uri + "/v1/oauth/tokens", "warehouse": "balloon-game", "scope": "PRINCIPAL_ROLE:ALL"})

    variables = lambda address: {
        "plf_catalog_name": "balloon-game", "plf_polaris_catalog_uri": f"http://{address}/api/catalog/", "principal_client_id": "root",
        "principal_client_secret": "secret", "plf_aws_endpoint_url": "http://localhost:1", "plf_aws_region": "us-east-1"}
    play(checks, "embedded", seed, catalog, variables)


def seaweed(checks, seed):
    with tempfile.TemporaryDirectory(prefix="millrace-balloon-s3-") as directory:
        try:
            started = subprocess.run([SEAWEED, "start", directory], text=True, capture_output=True, timeout=200)
            if started.returncode == 77:
                print("  SKIPPED  tables in S3: its server cannot be fetched", flush=True)
                return
            if not checks.check(started.returncode == 0, "an S3 server with a catalog starts", started.stderr):
                return
            s3, uri = started.stdout.split()
            keys = {"s3.endpoint": s3, "s3.access-key-id": "millrace", "s3.secret-access-key": "millrace-secret", "s3.region": "us-east-1"}
            catalog = lambda _: RestCatalog(
                "lake", **{"uri": uri, "warehouse": "lake", "credential": "millrace:millrace-secret", "scope": "PRINCIPAL_ROLE:ALL"} | keys)
            wait_until(lambda: has_warehouse(catalog), 60, 0.2)
            variables = lambda _: {
                "plf_catalog_name": "lake", "plf_polaris_catalog_uri": uri, "principal_client_id": "millrace", "principal_client_secret": "millrace-secret",
                "plf_aws_endpoint_url": s3, "plf_aws_region": "us-east-1", "plf_aws_access_key_id": "millrace", "plf_aws_secret_access_key": "millrace-secret"}
            play(checks, "S3", seed, catalog, variables)
        finally:
            subprocess.run([SEAWEED, "stop", directory], timeout=60)


def has_warehouse(catalog):
    """The server answers before it has made what it was told to."""
    try:
        return catalog(None).list_namespaces() is not None
    except (NoSuchNamespaceError, RESTError):
        return False


def main(seed):
    print(f"test-balloon-lake: seed {seed}", flush=True)
    checks = Checks("test-balloon-lake")
    embedded(checks, seed)
    seaweed(checks, seed)
    checks.finish()


main(int(sys.argv[1]))
