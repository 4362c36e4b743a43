"""confluent-kafka, which is librdkafka, against a broker."""
import time

import confluent_kafka
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, NewPartitions, NewTopic

from checks import address, check, name, same, until

print(f"confluent-kafka {confluent_kafka.version()}, librdkafka {confluent_kafka.libversion()}", flush=True)
admin = AdminClient({"bootstrap.servers": address})


def topic(partitions=1):
    created = name("ck")
    admin.create_topics([NewTopic(created, partitions, 1)])[created].result(10)
    return created


def produce(into, records, **options):
    producer = Producer({"bootstrap.servers": address, "message.timeout.ms": 15000, **{k.replace("_", "."): v for k, v in options.items()}})
    placed, errors = [], []
    for record in records:
        producer.produce(into, on_delivery=lambda e, m: errors.append(e) if e else placed.append((m.partition(), m.offset())), **record)
        producer.poll(0)
    same(producer.flush(20), 0)
    same(errors, [])
    return placed


def read(of, count, group=None, seconds=20, **options):
    consumer = Consumer({
        "bootstrap.servers": address, "group.id": group or name("none"), "auto.offset.reset": "earliest", "enable.auto.commit": group is not None,
        "session.timeout.ms": 6000, **options})
    if group:
        consumer.subscribe([of])
    else:
        consumer.assign([TopicPartition(of, part, OFFSET_BEGINNING) for part in admin.list_topics(of, timeout=10).topics[of].partitions])
    records, end = [], time.time() + seconds
    while len(records) < count and time.time() < end:
        message = consumer.poll(0.3)
        if message is None:
            continue
        if message.error():
            raise KafkaException(message.error())
        records.append(message)
    consumer.close()
    same(len(records), count)
    return records


@check("produce and consume keys, values, headers, timestamps")
def _():
    used = topic()
    stamp = 1_600_000_000_000
    placed = produce(used, [dict(key=b"k%d" % i, value=b"v%d" % i, headers=[("a", b"1"), ("n", None)], timestamp=stamp + i) for i in range(100)])
    same(placed, [(0, i) for i in range(100)])
    records = read(used, 100)
    same([(m.offset(), m.key(), m.value(), m.timestamp()[1]) for m in records], [(i, b"k%d" % i, b"v%d" % i, stamp + i) for i in range(100)])
    same(records[0].headers(), [("a", b"1"), ("n", None)])


for codec in ["gzip", "snappy", "lz4", "zstd"]:
    @check(f"codec {codec}")
    def _():
        used = topic()
        produce(used, [dict(value=b"value %d" % i * 20) for i in range(5000)], compression_type=codec, linger_ms=50)
        same([m.value() for m in read(used, 5000)], [b"value %d" % i * 20 for i in range(5000)])


@check("null keys and null values")
def _():
    used = topic()
    produce(used, [dict(key=b"k", value=None), dict(value=b"v"), dict(key=b"", value=b"")])
    same([(m.key(), m.value()) for m in read(used, 3)], [(b"k", None), (None, b"v"), (b"", b"")])


@check("every partition is read")
def _():
    used = topic(4)
    placed = produce(used, [dict(key=b"k%d" % i, value=b"v%d" % i) for i in range(200)])
    same({p for p, _ in placed}, {0, 1, 2, 3})
    same({m.value() for m in read(used, 200)}, {b"v%d" % i for i in range(200)})


@check("acks 0, 1 and all")
def _():
    for acks in ["0", "1", "all"]:
        used = topic()
        produce(used, [dict(value=b"v%d" % i) for i in range(50)], acks=acks)
        same(len(read(used, 50)), 50)


@check("idempotent producer, many batches under way")
def _():
    used = topic(2)
    produce(used, [dict(value=b"v%d" % i, partition=i % 2) for i in range(20000)], enable_idempotence=True, batch_num_messages=100)
    for part in range(2):
        got = [int(m.value()[1:]) for m in read(used, 20000) if m.partition() == part]
        same(got, list(range(part, 20000, 2)))


@check("large values")
def _():
    used = topic()
    produce(used, [dict(value=bytes([i]) * 900_000) for i in range(5)])
    same([m.value() for m in read(used, 5)], [bytes([i]) * 900_000 for i in range(5)])


@check("auto-create by producing")
def _():
    used = name("auto")
    same(produce(used, [dict(value=b"x")]), [(0, 0)])
    same(read(used, 1)[0].value(), b"x")


@check("create an existing topic is error 36")
def _():
    used = topic()
    try:
        admin.create_topics([NewTopic(used, 1, 1)])[used].result(10)
    except KafkaException as error:
        same(error.args[0].code(), KafkaError.TOPIC_ALREADY_EXISTS)
        return
    raise AssertionError("no error")


@check("list, delete and grow topics")
def _():
    used = topic(3)
    same(len(admin.list_topics(timeout=10).topics[used].partitions), 3)
    admin.create_partitions([NewPartitions(used, 5)])[used].result(10)
    until(lambda: len(admin.list_topics(timeout=10).topics[used].partitions) == 5, 5)
    admin.delete_topics([used])[used].result(10)
    until(lambda: used not in admin.list_topics(timeout=10).topics, 5)


@check("describe configs")
def _():
    used = topic()
    configs = list(admin.describe_configs([ConfigResource("topic", used)]).values())[0].result(10)
    same(configs["cleanup.policy"].value, "delete")
    configs = list(admin.describe_configs([ConfigResource("broker", "1")]).values())[0].result(10)
    same(configs["default.replication.factor"].value, "1")


@check("commit and resume")
def _():
    used, group = topic(), name("g")
    produce(used, [dict(value=b"%d" % i) for i in range(10)])
    consumer = Consumer({"bootstrap.servers": address, "group.id": group, "auto.offset.reset": "earliest", "enable.auto.commit": False, "session.timeout.ms": 6000})
    consumer.subscribe([used])
    got = []
    until(lambda: (m := consumer.poll(0.3)) and not m.error() and got.append(m) or len(got) >= 4)
    consumer.commit(message=got[3], asynchronous=False)
    consumer.close()
    same([m.value() for m in read(used, 6, group=group)], [b"%d" % i for i in range(4, 10)])
    consumer = Consumer({"bootstrap.servers": address, "group.id": group})
    same(consumer.committed([TopicPartition(used, 0)], 10)[0].offset, 10)
    consumer.close()


for strategy in ["range", "cooperative-sticky"]:
    @check(f"two members share four partitions and one takes over, {strategy}")
    def _():
        used, group = topic(4), name("g")
        produce(used, [dict(value=b"%d" % i, partition=i % 4) for i in range(100)])
        options = {
            "bootstrap.servers": address, "group.id": group, "auto.offset.reset": "earliest", "session.timeout.ms": 6000,
            "heartbeat.interval.ms": 500, "partition.assignment.strategy": strategy}
        a, b = Consumer(options), Consumer(options)
        a.subscribe([used])
        b.subscribe([used])
        until(lambda: [c.poll(0.1) for c in (a, b)] and len(a.assignment()) == 2 and len(b.assignment()) == 2, 30)
        b.close()
        until(lambda: a.poll(0.1) is None and len(a.assignment()) == 4 or len(a.assignment()) == 4, 30)
        a.close()


@check("a static member restarts without a rebalance")
def _():
    used, group = topic(2), name("g")
    produce(used, [dict(value=b"%d" % i, partition=i % 2) for i in range(10)])
    options = {"bootstrap.servers": address, "group.id": group, "group.instance.id": "one", "auto.offset.reset": "earliest", "session.timeout.ms": 10000}
    for _ in range(2):
        consumer = Consumer(options)
        consumer.subscribe([used])
        until(lambda: consumer.poll(0.1) is None and len(consumer.assignment()) == 2 or len(consumer.assignment()) == 2, 20)
        consumer.close()


@check("offsets by time, watermarks, out of range")
def _():
    used = topic()
    produce(used, [dict(value=b"v", timestamp=1000 * i) for i in range(1, 11)])
    consumer = Consumer({"bootstrap.servers": address, "group.id": name("none"), "auto.offset.reset": "error"})
    same(consumer.offsets_for_times([TopicPartition(used, 0, 4500)], 10)[0].offset, 4)
    same(consumer.get_watermark_offsets(TopicPartition(used, 0), 10), (0, 10))
    consumer.assign([TopicPartition(used, 0, 999)])
    found = []
    until(lambda: (m := consumer.poll(0.3)) and m.error() and found.append(m.error().code()) or found, 10)
    same(found[0], KafkaError._AUTO_OFFSET_RESET)
    consumer.close()


@check("a waiting fetch is woken by an append")
def _():
    used = topic()
    consumer = Consumer({"bootstrap.servers": address, "group.id": name("none"), "fetch.wait.max.ms": 20000, "socket.timeout.ms": 60000})
    consumer.assign([TopicPartition(used, 0, OFFSET_BEGINNING)])
    consumer.poll(1)
    produce(used, [dict(value=b"x")])
    start = time.time()
    until(lambda: consumer.poll(1) is not None, 10)
    assert time.time() - start < 5, "the fetch waited for its time-out"
    consumer.close()


@check("list, describe and delete groups")
def _():
    used, group = topic(), name("g")
    produce(used, [dict(value=b"x")])
    read(used, 1, group=group)
    listed = [g.group_id for g in admin.list_consumer_groups(request_timeout=10).result(10).valid]
    assert group in listed, listed
    described = admin.describe_consumer_groups([group], request_timeout=10)[group].result(10)
    same((described.group_id, described.state.name), (group, "EMPTY"))
    admin.delete_consumer_groups([group], request_timeout=10)[group].result(10)


def transactional(transaction, **options):
    producer = Producer({"bootstrap.servers": address, "transactional.id": transaction, **options})
    producer.init_transactions(15)
    return producer


def committed(of, count):
    return [m.value() for m in read(of, count, **{"isolation.level": "read_committed"})]


@check("committed records are seen and aborted ones are not")
def _():
    used = topic(2)
    producer = transactional(name("t"))
    for i in range(6):
        producer.begin_transaction()
        for n in range(20):
            producer.produce(used, b"%d.%d" % (i, n), partition=n % 2)
        if i % 2 == 0:
            producer.commit_transaction(15)
        else:
            producer.flush(10)
            producer.abort_transaction(15)
    same({v[:1] for v in committed(used, 60)}, {b"0", b"2", b"4"})
    same(len(read(used, 120, **{"isolation.level": "read_uncommitted"})), 120)


@check("an open transaction holds readers back")
def _():
    used = topic()
    producer = transactional(name("t"))
    producer.begin_transaction()
    producer.produce(used, b"a")
    producer.flush(10)
    consumer = Consumer({"bootstrap.servers": address, "group.id": name("none"), "isolation.level": "read_committed"})
    consumer.assign([TopicPartition(used, 0, OFFSET_BEGINNING)])
    same(consumer.poll(1), None)
    producer.commit_transaction(15)
    found = []
    until(lambda: (m := consumer.poll(0.3)) and found.append(m.value()) or found)
    same(found, [b"a"])
    consumer.close()


@check("a new instance fences the old one")
def _():
    used, transaction = topic(), name("t")
    old = transactional(transaction)
    old.begin_transaction()
    old.produce(used, b"zombie")
    old.flush(10)
    fresh = transactional(transaction)
    try:
        old.commit_transaction(15)
        raise AssertionError("the old instance committed")
    except KafkaException as error:
        assert error.args[0].fatal(), error
    fresh.begin_transaction()
    fresh.produce(used, b"kept")
    fresh.commit_transaction(15)
    same(committed(used, 1), [b"kept"])


@check("read, change and write exactly once")
def _():
    source, target, group, transaction = topic(), topic(), name("g"), name("t")
    produce(source, [dict(value=b"%d" % i) for i in range(6)])
    for attempt in range(3):
        consumer = Consumer({
            "bootstrap.servers": address, "group.id": group, "auto.offset.reset": "earliest", "enable.auto.commit": False,
            "session.timeout.ms": 6000, "isolation.level": "read_committed"})
        consumer.subscribe([source])
        got = []
        until(lambda: (m := consumer.poll(0.3)) and not m.error() and got.append(m) or len(got) >= 2)
        producer = transactional(transaction)
        producer.begin_transaction()
        for message in got[:2]:
            producer.produce(target, message.value() + b"!")
        producer.send_offsets_to_transaction([TopicPartition(source, 0, got[1].offset() + 1)], consumer.consumer_group_metadata(), 15)
        if attempt == 1:
            producer.abort_transaction(15)
        else:
            producer.commit_transaction(15)
        consumer.close()
    same(committed(target, 4), [b"0!", b"1!", b"2!", b"3!"])


@check("settings of a topic")
def _():
    created = name("ck")
    admin.create_topics([NewTopic(created, 1, 1, config={"cleanup.policy": "compact", "segment.bytes": "65536"})])[created].result(10)

    def settings():
        return {k: v.value for k, v in admin.describe_configs([ConfigResource("topic", created)])[ConfigResource("topic", created)].result(10).items()}

    same((settings()["cleanup.policy"], settings()["segment.bytes"]), ("compact", "65536"))
    wanted = ConfigResource("topic", created, set_config={"retention.ms": "60000"})
    list(admin.alter_configs([wanted]).values())[0].result(10)
    same((settings()["cleanup.policy"], settings()["retention.ms"]), ("delete", "60000"))
    refused = ConfigResource("topic", created, set_config={"retention.ms": "soon"})
    try:
        list(admin.alter_configs([refused]).values())[0].result(10)
    except KafkaException as error:
        same(error.args[0].code(), KafkaError.INVALID_CONFIG)
        return
    raise AssertionError("no error")


if hasattr(admin, "delete_records"):
    @check("delete records")
    def _():
        used = topic()
        produce(used, [dict(value=b"%d" % i) for i in range(10)])
        admin.delete_records([TopicPartition(used, 0, 6)])[TopicPartition(used, 0)].result(10)
        same([m.value() for m in read(used, 4)], [b"6", b"7", b"8", b"9"])


@check("a name and a password, where nobody asks for them")
def _():
    used = topic()
    credentials = {"security.protocol": "sasl_plaintext", "sasl.mechanism": "PLAIN", "sasl.username": "u", "sasl.password": "p"}
    producer = Producer({"bootstrap.servers": address, **credentials})
    producer.produce(used, b"x")
    same(producer.flush(10), 0)
    same([m.value() for m in read(used, 1)], [b"x"])
