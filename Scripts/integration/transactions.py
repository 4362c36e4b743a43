"""Exactly once through kill -9: transactions.py [--rounds N] [--seed S] [--records N]

A pump reads numbers, writes each to another topic and commits its offset in the same transaction, now and then aborting one. The server is
killed at random moments and started again. In the end a reader of committed records, and a view, must see every number once.
"""
import argparse
import json
import random
import shutil
import socket
import tempfile
import threading
import time

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from harness import Checks, Server


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Pump(threading.Thread):
    """From "numbers" to "copies", a transaction at a time; begins anew after every error."""

    def __init__(self, kafka, count, seed):
        super().__init__(daemon=True)
        self.kafka, self.count, self.random = kafka, count, random.Random(seed)
        self.committed = self.aborted = self.restarts = 0
        self.done = threading.Event()

    def run(self):
        while not self.done.is_set():
            try:
                self.pump()
            except KafkaException:
                self.restarts += 1
                time.sleep(0.05)

    def pump(self):
        source = TopicPartition("numbers", 0)
        consumer = Consumer({
            "bootstrap.servers": self.kafka, "group.id": "pump", "enable.auto.commit": False, "isolation.level": "read_committed",
            "auto.offset.reset": "earliest", "reconnect.backoff.max.ms": 200})
        producer = Producer({
            "bootstrap.servers": self.kafka, "transactional.id": "pump", "transaction.timeout.ms": 10000, "reconnect.backoff.max.ms": 200,
            "linger.ms": 0})
        try:
            producer.init_transactions(10)
            start = consumer.committed([source], 10)[0]
            consumer.assign([TopicPartition("numbers", 0, start.offset if start.offset >= 0 else 0)])
            while not self.done.is_set():
                records = [m for m in consumer.consume(self.random.randrange(1, 30), 0.5) if not m.error()]
                if not records:
                    if consumer.committed([source], 10)[0].offset >= self.count:
                        self.done.set()
                    continue
                producer.begin_transaction()
                for record in records:
                    producer.produce("copies", record.value(), partition=record.offset() % 2)
                end = records[-1].offset() + 1
                producer.send_offsets_to_transaction([TopicPartition("numbers", 0, end)], consumer.consumer_group_metadata(), 10)
                if self.random.random() < 0.2:
                    producer.abort_transaction(10)
                    self.aborted += 1
                    consumer.seek(TopicPartition("numbers", 0, records[0].offset()))
                else:
                    producer.commit_transaction(10)
                    self.committed += 1
        finally:
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


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--records", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    options = parser.parse_args()
    print(f"seed {options.seed}")
    choose = random.Random(options.seed)
    checks = Checks("transactions")
    directory = tempfile.mkdtemp(prefix="millrace-transactions-")
    kafka = f"127.0.0.1:{free_port()}"
    pump = Pump(kafka, options.records, options.seed)
    try:
        with Server(kafka=kafka, data_dir=directory) as server:
            admin = AdminClient({"bootstrap.servers": kafka})
            for made in admin.create_topics([NewTopic("numbers", 1, 1), NewTopic("copies", 2, 1)]).values():
                made.result(10)
            producer = Producer({"bootstrap.servers": kafka})
            for number in range(options.records):
                producer.produce("numbers", '{"v": %d}' % number)
            checks.check(producer.flush(20) == 0, "the input is there")
            pump.start()
            time.sleep(choose.uniform(0.2, 1.0))
            server.process.kill()
            server.process.wait()
        for _ in range(options.rounds - 1):
            with Server(kafka=kafka, data_dir=directory) as server:
                if pump.done.wait(choose.uniform(0.1, 1.5)):
                    break
                server.process.kill()
                server.process.wait()
        with Server(kafka=kafka, data_dir=directory) as server:
            checks.check(pump.done.wait(90), "the pump gets to the end", f"{pump.committed} transactions, {pump.restarts} restarts")
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
            print(f"  {pump.committed} committed, {pump.aborted} aborted, {pump.restarts} restarts of the pump")
    finally:
        pump.done.set()
        shutil.rmtree(directory, ignore_errors=True)
    checks.finish()


main()
