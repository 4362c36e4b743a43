"""A broker that is away, at CREATE, at a start and in the middle: isolation.py

The broker that goes away is a second server's: an address that stays, a process that is killed and started again. Everything is asked
of the first one, which reads its own log and that broker.
"""
import json
import tempfile
import threading
import time
import urllib.error
import urllib.request

import psycopg
from confluent_kafka import Producer
from harness import Checks, Server, free_port, wait_until

# An answer that needs nothing of the broker that is away must come within this.
PROMPT_SECONDS = 2.0


def produce(address, topic, rows):
    failures = []
    producer = Producer({"bootstrap.servers": address})
    for row in rows:
        producer.produce(topic, json.dumps(row), on_delivery=lambda error, _: failures.append(error) if error else None)
    producer.flush(20)
    if failures:
        raise RuntimeError(f"{len(failures)} records were not acknowledged: {failures[0]}")


def source(name, address):
    return (
        f"CREATE SOURCE {name} (a INT) WITH (connector = 'kafka', topic = '{name}', properties.bootstrap.server = '{address}') "
        "FORMAT PLAIN ENCODE JSON"
    )


def total(connection, view):
    return connection.execute(f"SELECT n FROM {view}").fetchone()[0]


def totals(connection):
    """Of the views over the other broker; what is in the way while one cannot be read."""
    try:
        return [total(connection, view) for view in ("v_far", "above", "late")]
    except psycopg.Error as error:
        return str(error)


def job(connection, name):
    cursor = connection.execute("SHOW JOBS")
    names = [column.name for column in cursor.description]
    return next((dict(zip(names, row)) for row in cursor if row[1] == name), {})


def health(server):
    try:
        with urllib.request.urlopen(f"http://{server.addresses['http']}/health", timeout=10) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def metrics(server):
    with urllib.request.urlopen(f"http://{server.addresses['http']}/metrics", timeout=10) as answer:
        lines = [line for line in answer.read().decode().splitlines() if not line.startswith("#")]
    return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines)}


def others_go_on(checks, server, connection, when, count):
    """Statements that need nothing of the other broker, each timed."""
    slow = []

    def timed(what, body):
        begin = time.monotonic()
        answer = body()
        if time.monotonic() - begin > PROMPT_SECONDS:
            slow.append(f"{what}: {time.monotonic() - begin:.1f} s")
        return answer

    produce(server.kafka, "near", [{"a": 1}] * 10)
    wanted = count + 10
    near = timed("a view over the other broker", lambda: wait_until(lambda: total(connection, "v_near") == wanted, 10))
    timed("CREATE TABLE", lambda: connection.execute("CREATE TABLE scratch (id INT PRIMARY KEY)"))
    timed("INSERT", lambda: connection.execute("INSERT INTO scratch VALUES (1), (2)"))
    timed("CREATE MATERIALIZED VIEW", lambda: connection.execute("CREATE MATERIALIZED VIEW v_scratch AS SELECT count(*) AS n FROM near"))
    rows = timed("SELECT", lambda: (total(connection, "v_scratch"), connection.execute("SELECT count(*) FROM scratch").fetchone()[0]))
    timed("DROP", lambda: connection.execute("DROP MATERIALIZED VIEW v_scratch"))
    timed("DROP TABLE", lambda: connection.execute("DROP TABLE scratch"))
    checks.check(near and rows == (wanted, 2) and not slow, f"{when}: tables, views and other sources go on at once", slow or rows)
    return wanted


def refused(connection, statement):
    """SQLSTATE, message and seconds of a statement that must fail."""
    begin = time.monotonic()
    try:
        connection.execute(statement)
        return None, "it did not fail", 0
    except psycopg.Error as error:
        return error.sqlstate, str(error).splitlines()[0], time.monotonic() - begin


def main():
    checks = Checks("isolation")
    far_address = f"127.0.0.1:{free_port()}"
    with tempfile.TemporaryDirectory(prefix="millrace-isolation-") as home:
        far_dir, near_dir = f"{home}/far", f"{home}/near"
        near_kafka = f"127.0.0.1:{free_port()}"
        with Server(kafka=near_kafka, http="127.0.0.1:0", data_dir=near_dir) as server, server.connect() as connection:
            connection.execute(source("near", near_kafka))
            connection.execute("CREATE MATERIALIZED VIEW v_near AS SELECT count(*) AS n FROM near")
            code, answer = health(server)
            checks.check(code == 200 and answer["ready"] and answer["jobs"][0]["state"] == "running", "the health endpoint says ready", answer)

            # At CREATE: the statement fails with the reason, and holds nothing else.
            result = []
            with server.connect() as pending:
                thread = threading.Thread(target=lambda: result.append(refused(pending, source("far", far_address))))
                thread.start()
                count = others_go_on(checks, server, connection, "while CREATE SOURCE asks a dead broker", 0)
                thread.join(30)
            state, message, seconds = result[0]
            checks.check(state == "08006" and far_address in message and seconds < 10, "CREATE SOURCE on a dead broker is 08006 within 10 s", result)

            far = Server(kafka=far_address, data_dir=far_dir)
            with far:
                produce(far_address, "far", [{"a": 1}] * 50)
                connection.execute(source("far", far_address))
                connection.execute("CREATE MATERIALIZED VIEW v_far AS SELECT count(*) AS n FROM far")
                connection.execute("CREATE MATERIALIZED VIEW above AS SELECT n + 1 AS n FROM v_far")
                checks.check(wait_until(lambda: total(connection, "above") == 51), "a view over the second broker is right", total(connection, "above"))
                # In the middle.
                far.kill()
            retrying = wait_until(lambda: job(connection, "v_far").get("State") == "retrying", 20)
            line = job(connection, "v_far")
            checks.check(retrying and line["Message"] and line["Since"], "SHOW JOBS says that its view waits, why and since when", line)
            _, answer = health(server)
            entry = next(entry for entry in answer["jobs"] if entry["name"] == "v_far")
            checks.check(entry["state"] == "retrying" and entry["reason"] and entry["since_micros"], "so does the health endpoint", entry)
            checks.check(metrics(server).get('millrace_jobs{state="retrying"}', 0) >= 1, "and the metrics", metrics(server))
            count = others_go_on(checks, server, connection, "while a broker is dead", count)
            checks.check(total(connection, "above") == 51, "the view's rows can still be read", total(connection, "above"))

            with server.connect() as impatient:
                impatient.execute("SET source_timeout = '1s'")
                state, message, seconds = refused(impatient, "SELECT count(*) FROM far")
                checks.check(state == "08006" and seconds < 10, "SELECT over its source is 08006 after source_timeout", (state, message, seconds))
            begin = time.monotonic()
            connection.execute("CREATE MATERIALIZED VIEW late AS SELECT count(*) AS n FROM far WHERE a < 100")
            took = time.monotonic() - begin
            checks.check(took < 15, "CREATE MATERIALIZED VIEW over its source ends by itself", f"{took:.1f} s")
            begin = time.monotonic()
            connection.execute("FLUSH")
            checks.check(time.monotonic() - begin < 15, "so does FLUSH", f"{time.monotonic() - begin:.1f} s")

            with Server(kafka=far_address, data_dir=far_dir):
                produce(far_address, "far", [{"a": 2}] * 7)
                back = wait_until(lambda: totals(connection) == [57, 58, 57], 40)
                checks.check(back, "when it is back its views go on, no record lost or doubled", totals(connection))
                checks.check(wait_until(lambda: job(connection, "v_far").get("State") == "running", 20), "and SHOW JOBS says so", job(connection, "v_far"))
            server.kill()

        # At a start.
        with Server(kafka=near_kafka, http="127.0.0.1:0", data_dir=near_dir) as server, server.connect() as connection:
            wait_until(lambda: job(connection, "v_near").get("State") == "running", 20)
            count = others_go_on(checks, server, connection, "after a start without the broker", count)
            waits = wait_until(lambda: job(connection, "v_far").get("State") in ("retrying", "recovering") and job(connection, "v_far").get("Message"), 20)
            checks.check(waits, "after a start without the broker SHOW JOBS says why its view waits", job(connection, "v_far"))
            with Server(kafka=far_address, data_dir=far_dir):
                produce(far_address, "far", [{"a": 3}] * 3)
                checks.check(wait_until(lambda: totals(connection) == [60, 61, 60], 40), "and it goes on when the broker is there", job(connection, "v_far"))
                for statement in ("DROP MATERIALIZED VIEW late", "DROP MATERIALIZED VIEW above"):
                    connection.execute(statement)
            begin = time.monotonic()
            connection.execute("DROP SOURCE far CASCADE")
            checks.check(time.monotonic() - begin < PROMPT_SECONDS, "DROP of a dead broker's source is prompt", f"{time.monotonic() - begin:.1f} s")
            others_go_on(checks, server, connection, "after the DROP", count)
    checks.finish()


main()
