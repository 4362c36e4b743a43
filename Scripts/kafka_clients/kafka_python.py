"""kafka-python 2 and 3 against a broker."""
import threading
import time

import kafka
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import KafkaAdminClient, NewPartitions, NewTopic
from kafka.errors import TopicAlreadyExistsError, UnknownTopicOrPartitionError

from checks import address, check, name, same, until

print(f"kafka-python {kafka.__version__}", flush=True)
admin = KafkaAdminClient(bootstrap_servers=address)


def topic(partitions=1):
    created = name("kp")
    admin.create_topics([NewTopic(created, partitions, 1)])
    return created


def produce(into, records, **options):
    producer = KafkaProducer(bootstrap_servers=address, **options)
    sent = [producer.send(into, **record) for record in records]
    producer.flush(20)
    placed = [future.get(10) for future in sent]
    producer.close(10)
    return placed


def read(of, count, seconds=15, **options):
    consumer = KafkaConsumer(bootstrap_servers=address, auto_offset_reset="earliest", **options)
    if "group_id" in options:
        consumer.subscribe([of])
    else:
        consumer.assign([TopicPartition(of, part) for part in consumer.partitions_for_topic(of)])
    records, end = [], time.time() + seconds
    while len(records) < count and time.time() < end:
        for batch in consumer.poll(200).values():
            records += batch
    consumer.close()
    same(len(records), count)
    return records


@check("produce and consume keys, values, headers, timestamps")
def _():
    used = topic()
    stamp = 1_600_000_000_000
    placed = produce(used, [dict(key=b"k%d" % i, value=b"v%d" % i, headers=[("a", b"1"), ("b", b"")], timestamp_ms=stamp + i) for i in range(100)])
    same([p.offset for p in placed], list(range(100)))
    records = read(used, 100)
    same([(r.offset, r.key, r.value, r.timestamp) for r in records], [(i, b"k%d" % i, b"v%d" % i, stamp + i) for i in range(100)])
    same([tuple(h) for h in records[0].headers], [("a", b"1"), ("b", b"")])


for codec in ["gzip", "snappy", "lz4", "zstd"]:
    @check(f"codec {codec}")
    def _():
        used = topic()
        produce(used, [dict(value=b"value %d" % i * 20) for i in range(2000)], compression_type=codec, linger_ms=20)
        same([r.value for r in read(used, 2000)], [b"value %d" % i * 20 for i in range(2000)])


@check("null keys and null values")
def _():
    used = topic()
    produce(used, [dict(key=b"k", value=None), dict(key=None, value=b"v"), dict(key=b"", value=b"")])
    same([(r.key, r.value) for r in read(used, 3)], [(b"k", None), (None, b"v"), (b"", b"")])


@check("keys choose partitions, every partition is read")
def _():
    used = topic(4)
    placed = produce(used, [dict(key=b"k%d" % i, value=b"v%d" % i) for i in range(200)])
    same({p.partition for p in placed}, {0, 1, 2, 3})
    same({r.value for r in read(used, 200)}, {b"v%d" % i for i in range(200)})


@check("acks 0, 1 and all")
def _():
    # kafka-python 2.3 never sends a request with acks=0: it counts it as done while it is still in its own buffer.
    for acks in ([1, "all"] if kafka.__version__.startswith("2.3") else [0, 1, "all"]):
        used = topic()
        produce(used, [dict(value=b"v%d" % i) for i in range(50)], acks=acks)
        same(len(read(used, 50)), 50)


@check("idempotent producer")
def _():
    used = topic(2)
    produce(used, [dict(value=b"v%d" % i, partition=i % 2) for i in range(500)], enable_idempotence=True, linger_ms=5)
    same(sorted(int(r.value[1:]) for r in read(used, 500)), list(range(500)))


@check("large values")
def _():
    used = topic()
    produce(used, [dict(value=bytes([i]) * 900_000) for i in range(5)])
    same([r.value for r in read(used, 5)], [bytes([i]) * 900_000 for i in range(5)])


@check("auto-create by producing")
def _():
    used = name("auto")
    same(produce(used, [dict(value=b"x")])[0].offset, 0)
    same(read(used, 1)[0].value, b"x")


@check("auto-create by subscribing")
def _():
    used = name("auto")
    consumer = KafkaConsumer(used, bootstrap_servers=address, auto_offset_reset="earliest", group_id=name("g"), metadata_max_age_ms=500)
    consumer.poll(1000)
    produce(used, [dict(value=b"x")])
    found = []
    until(lambda: found.extend(r for batch in consumer.poll(300).values() for r in batch) or found)
    consumer.close()


@check("create an existing topic is error 36")
def _():
    used = topic()
    try:
        answer = admin.create_topics([NewTopic(used, 1, 1)])
    except TopicAlreadyExistsError as error:
        same(error.errno, 36)
        return
    raise AssertionError(f"no error but {answer}")


@check("list, describe and delete topics")
def _():
    used = topic(3)
    assert used in admin.list_topics()
    described = admin.describe_topics([used])
    same(len(described[0]["partitions"]), 3)
    admin.delete_topics([used])
    until(lambda: used not in admin.list_topics(), 5)
    try:
        admin.delete_topics([used])
    except UnknownTopicOrPartitionError:
        return
    raise AssertionError("a second delete has no error")


@check("create partitions")
def _():
    used = topic(1)
    try:
        admin.create_partitions({used: NewPartitions(3)})
    except TypeError:
        admin.create_partitions({used: 3})
    same(len(admin.describe_topics([used])[0]["partitions"]), 3)


@check("commit and resume")
def _():
    used, group = topic(), name("g")
    produce(used, [dict(value=b"%d" % i) for i in range(10)])
    first = KafkaConsumer(used, bootstrap_servers=address, group_id=group, auto_offset_reset="earliest", enable_auto_commit=False, max_poll_records=4)
    got = []
    until(lambda: got.extend(r for batch in first.poll(300).values() for r in batch) or got)
    first.commit()
    first.close()
    same(len(got), 4)
    rest = read(used, 6, group_id=group)
    same([r.value for r in rest], [b"%d" % i for i in range(4, 10)])
    consumer = KafkaConsumer(bootstrap_servers=address, group_id=group)
    same(consumer.committed(TopicPartition(used, 0)), 10)
    consumer.close()


@check("two members share four partitions and one takes over")
def _():
    used, group = topic(4), name("g")
    produce(used, [dict(value=b"%d" % i, partition=i % 4) for i in range(100)])
    assigned, seen, stops = {}, set(), {}

    def member(who):
        consumer = KafkaConsumer(bootstrap_servers=address, group_id=group, auto_offset_reset="earliest", session_timeout_ms=6000, heartbeat_interval_ms=500)
        # kafka-python 3 can stay without partitions if it leads the group before it knows the topic.
        consumer.partitions_for_topic(used)
        consumer.subscribe([used])
        while not stops[who].is_set():
            for batch in consumer.poll(200).values():
                seen.update(r.value for r in batch)
            assigned[who] = {p.partition for p in consumer.assignment()}
        consumer.close()

    threads = {}
    for who in "ab":
        stops[who], assigned[who] = threading.Event(), set()
        threads[who] = threading.Thread(target=member, args=who)
        threads[who].start()
    try:
        until(lambda: time.sleep(0.1) or len(assigned["a"]) == 2 and len(assigned["b"]) == 2 and not assigned["a"] & assigned["b"], 25)
        stops["b"].set()
        threads["b"].join()
        until(lambda: time.sleep(0.1) or len(assigned["a"]) == 4, 20)
        until(lambda: time.sleep(0.1) or len(seen) == 100, 10)
    finally:
        for who in "ab":
            stops[who].set()
            threads[who].join()


@check("offsets by time, beginning and end")
def _():
    used = topic()
    produce(used, [dict(value=b"v", timestamp_ms=1000 * i) for i in range(1, 11)])
    part = TopicPartition(used, 0)
    consumer = KafkaConsumer(bootstrap_servers=address)
    found = consumer.offsets_for_times({part: 4500})[part]
    same((found.offset, found.timestamp), (4, 5000))
    same(consumer.offsets_for_times({part: 99999})[part], None)
    same((consumer.beginning_offsets([part])[part], consumer.end_offsets([part])[part]), (0, 10))
    consumer.assign([part])
    consumer.seek(part, 7)
    got = []
    until(lambda: got.extend(r for batch in consumer.poll(300).values() for r in batch) or got)
    same(got[0].offset, 7)
    consumer.close()


@check("a waiting fetch is woken by an append")
def _():
    used = topic()
    consumer = KafkaConsumer(bootstrap_servers=address, fetch_max_wait_ms=20000, auto_offset_reset="earliest", request_timeout_ms=60000)
    consumer.assign([TopicPartition(used, 0)])
    consumer.poll(500)
    produce(used, [dict(value=b"x")])
    start = time.time()
    until(lambda: consumer.poll(3000), 5)
    assert time.time() - start < 3, "the fetch waited for its time-out"
    consumer.close(autocommit=False)


@check("list and describe groups")
def _():
    used, group = topic(), name("g")
    produce(used, [dict(value=b"x")])
    read(used, 1, group_id=group)
    groups = admin.list_groups() if hasattr(admin, "list_groups") else admin.list_consumer_groups()
    assert group in str(groups), groups


@check("committed records are seen and aborted ones are not")
def _():
    used = topic()
    producer = KafkaProducer(bootstrap_servers=address, transactional_id=name("t"))
    producer.init_transactions()
    for i in range(6):
        producer.begin_transaction()
        producer.send(used, b"%d" % i).get(10)
        producer.commit_transaction() if i % 2 == 0 else producer.abort_transaction()
    producer.close(10)
    same([r.value for r in read(used, 3, isolation_level="read_committed")], [b"0", b"2", b"4"])
    same([r.value for r in read(used, 6)], [b"%d" % i for i in range(6)])
