"""Measures the time from an event's own timestamp to the first answer that shows it, at a steady rate."""
import argparse
import json
import multiprocessing
import statistics
import time

from confluent_kafka import Producer
from harness import Checks, Server, wait_until


def produce(bootstrap, rate, seconds, sent):
    """Sends at the rate, each event with its time in microseconds; gives the times back."""
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 1})
    times, start = [], time.time()
    total = int(rate * seconds)
    while len(times) < total:
        due = min(total, int((time.time() - start) * rate) + 1)
        while len(times) < due:
            now = time.time_ns() // 1000
            times.append(now)
            producer.produce("latency", json.dumps({"id": len(times), "sent_us": now}).encode())
        producer.poll(0)
        time.sleep(0.0005)
    producer.flush(60)
    sent.send(times)


def main(rate, seconds):
    checks = Checks("test-latency")
    with Server() as server, server.connect() as connection:
        connection.execute(f"""
            CREATE SOURCE latency (id BIGINT, sent_us BIGINT) WITH (connector = 'kafka', topic = 'latency',
            properties.bootstrap.server = '{server.kafka}', scan.startup.mode = 'earliest') FORMAT PLAIN ENCODE JSON""")
        connection.execute("CREATE MATERIALIZED VIEW newest AS SELECT max(sent_us) AS sent_us, count(*) - 1 AS events FROM latency")
        # The first event makes the topic, which the source then has to find: once in a topic's life, so not measured here.
        first = Producer({"bootstrap.servers": server.kafka})
        first.produce("latency", json.dumps({"id": 0, "sent_us": 0}).encode())
        first.flush(30)
        found = wait_until(lambda: connection.execute("SELECT events FROM newest").fetchone() == (0,))
        checks.check(found, "the first event is found")
        receiver, sender = multiprocessing.Pipe(False)
        producer = multiprocessing.Process(target=produce, args=(server.kafka, rate, seconds, sender), daemon=True)
        producer.start()
        total, answers, seen = int(rate * seconds), [], 0
        deadline = time.monotonic() + seconds + 60
        while seen < total and time.monotonic() < deadline:
            newest, seen = connection.execute("SELECT sent_us, events FROM newest").fetchone()
            if newest:
                answers.append((time.time_ns() // 1000, newest))
            time.sleep(0.0002)
        checks.check(seen == total, f"all {total} events become visible", seen)
        times = receiver.recv() if receiver.poll(60) else []
        latencies, at = [], 0
        for sent in times:
            while at < len(answers) and answers[at][1] < sent:
                at += 1
            if at < len(answers):
                latencies.append((answers[at][0] - sent) / 1000)
        latencies.sort()
        if checks.check(bool(latencies), "latencies were measured"):
            median, p99 = statistics.median(latencies), latencies[int(len(latencies) * 0.99)]
            print(f"  {rate} events/s for {seconds} s, {len(answers)} answers: median {median:.1f} ms, p99 {p99:.1f} ms, worst {latencies[-1]:.1f} ms")
            # How fast is the benchmark's affair: this machine may be busy.
            checks.check(median < 1000 * seconds, "events are seen while others still come", f"{median:.1f} ms")
    checks.finish()


parser = argparse.ArgumentParser()
parser.add_argument("--rate", type=int, default=10_000, help="events a second")
parser.add_argument("--seconds", type=float, default=5)
arguments = parser.parse_args()
if __name__ == "__main__":
    main(arguments.rate, arguments.seconds)
