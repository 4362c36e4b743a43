"""Exactly once through kill -9: transactions.py [--rounds N] [--seed S] [--records N]

A pump reads numbers, writes each to another topic and commits its offset in the same transaction, now and then aborting one. Both are
killed at random moments and started again. In the end a reader of committed records, and a view, must see every number once.
"""
import argparse
import json
import multiprocessing
import random
import shutil
import socket
import tempfile
import time

from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from harness import Checks, Server


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def pump(kafka, count, seed):
    """From "numbers" to "copies", a transaction at a time, until the end. Runs in a process that is killed together with the server: a new
    instance takes over, as after a machine's crash."""
    choose = random.Random(seed)
    source = TopicPartition("numbers", 0)
    producer = Producer({"bootstrap.servers": kafka, "transactional.id": "pump", "transaction.timeout.ms": 10000, "linger.ms": 0})
    producer.init_transactions(20)
    consumer = Consumer({"bootstrap.servers": kafka, "group.id": "pump", "enable.auto.commit": False, "isolation.level": "read_committed"})
    start = consumer.committed([source], 10)[0].offset
    consumer.assign([TopicPartition("numbers", 0, max(start, 0))])
    while consumer.committed([source], 10)[0].offset < count:
        records = [m for m in consumer.consume(choose.randrange(1, 30), 0.5) if not m.error()]
        if not records:
            continue
        producer.begin_transaction()
        for record in records:
            producer.produce("copies", record.value(), partition=record.offset() % 2)
        end = records[-1].offset() + 1
        producer.send_offsets_to_transaction([TopicPartition("numbers", 0, end)], consumer.consumer_group_metadata(), 10)
        if choose.random() < 0.2:
            producer.abort_transaction(10)
            consumer.seek(TopicPartition("numbers", 0, records[0].offset()))
        else:
            producer.commit_transaction(10)
    consumer.close()


def committed_values(kafka, seconds=30):
    consumer = Consumer({"bootstrap.servers": kafka, "group.id": "check", "isolation.level": "read_committed", "enable.partition.eof": True})
    parts = [TopicPartition("copies", part, OFFSET_BEGINNING) for part in range(2)]
    consumer.assign(parts)
    values, ended, end = [], set(), time.time() + seconds
    while len(ended) < 2 and time.time() < end:
        message = consumer.poll(0.5)
        if message is None:
            continue
        if message.error():
            ended.add(message.partition())
        else:
            values.append(json.loads(message.value())["v"])
    consumer.close()
    return values


def fill(kafka, count, checks):
    admin = AdminClient({"bootstrap.servers": kafka})
    for made in admin.create_topics([NewTopic("numbers", 1, 1), NewTopic("copies", 2, 1)]).values():
        made.result(10)
    producer = Producer({"bootstrap.servers": kafka})
    for number in range(count):
        producer.produce("numbers", '{"v": %d}' % number)
    checks.check(producer.flush(20) == 0, "the input is there")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--records", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    options = parser.parse_args()
    print(f"seed {options.seed}")
    choose = random.Random(options.seed)
    checks = Checks("transactions")
    directory = tempfile.mkdtemp(prefix="millrace-transactions-")
    kafka = f"127.0.0.1:{free_port()}"
    lives = 0
    try:
        while True:
            lives += 1
            with Server(kafka=kafka, data_dir=directory) as server:
                if lives == 1:
                    fill(kafka, options.records, checks)
                worker = multiprocessing.Process(target=pump, args=(kafka, options.records, options.seed + lives), daemon=True)
                worker.start()
                worker.join(60 if lives > options.rounds else choose.uniform(0.3, 1.5))
                if not worker.is_alive() or lives > options.rounds:
                    checks.check(worker.exitcode == 0, "the pump gets to the end", f"in life {lives}: exit status {worker.exitcode}")
                    worker.kill()
                    break
                server.process.kill()
                server.process.wait()
                worker.kill()
                worker.join()
        print(f"  killed {lives - 1} times")
        with Server(kafka=kafka, data_dir=directory) as server:
            values = committed_values(kafka)
            lost = len(set(range(options.records)) - set(values))
            checks.check(lost == 0, "nothing is lost", f"{lost} of {options.records}")
            checks.check(len(values) == len(set(values)), "nothing is doubled", f"{len(values)} records, {len(set(values))} numbers")
            with server.connect() as connection:
                connection.execute(
                    "CREATE SOURCE copies (v BIGINT) WITH (connector = 'kafka', topic = 'copies', "
                    f"properties.bootstrap.server = '{kafka}') FORMAT PLAIN ENCODE JSON")
                found = connection.execute("SELECT count(*), sum(v) FROM copies").fetchone()
            expected = (options.records, sum(range(options.records)))
            checks.check(tuple(found) == expected, "a source reads every number once", f"{found}, not {expected}")
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    checks.finish()


main()
