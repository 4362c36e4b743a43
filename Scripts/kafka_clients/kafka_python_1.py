"""kafka-python 1.4 against a broker, as of each version of Kafka that it can speak to: message sets of format 0 and 1, then batches."""
import kafka
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import KafkaAdminClient, NewTopic
from kafka.errors import TopicAlreadyExistsError

from checks import address, check, name, same, until

print(f"kafka-python {kafka.__version__}", flush=True)
CODECS = [None, "gzip", "snappy", "lz4"]
OLD = [(0, 8, 2), (0, 9), (0, 10), (0, 10, 1)]


def produce(into, values, version=None, **options):
    producer = KafkaProducer(bootstrap_servers=address, linger_ms=20, api_version=version, **options)
    sent = [producer.send(into, key=b"k", value=value) for value in values]
    producer.flush(20)
    placed = [future.get(10).offset for future in sent]
    producer.close(10)
    return placed


def read(of, count, version=None, **options):
    consumer = KafkaConsumer(bootstrap_servers=address, auto_offset_reset="earliest", api_version=version, **options)
    if "group_id" in options and options["group_id"]:
        consumer.subscribe([of])
    else:
        consumer.assign([TopicPartition(of, 0)])
    records = []
    until(lambda: records.extend(r for batch in consumer.poll(300).values() for r in batch) or len(records) >= count)
    if options.get("group_id"):
        consumer.commit()
    consumer.close()
    same(len(records), count)
    return records


for version in OLD + [(0, 11), (1, 0), None]:
    for codec in CODECS:
        @check(f"as of Kafka {'.'.join(map(str, version)) if version else 'its own choice'}, {codec or 'no'} compression")
        def _():
            used = name("kp1")
            values = [b"value %d" % i * 5 for i in range(500)]
            same(produce(used, values, version, compression_type=codec), list(range(500)))
            records = read(used, 500, version, group_id=None)
            same([r.value for r in records], values)
            same([r.offset for r in records], list(range(500)))
            same(records[0].timestamp is not None and records[0].timestamp > 0, version is None or version >= (0, 10))


for version in OLD:
    @check(f"old as of {'.'.join(map(str, version))} and new read each other")
    def _():
        used = name("kp1")
        produce(used, [b"old %d" % i for i in range(50)], version, compression_type="gzip")
        produce(used, [b"new %d" % i for i in range(50)], None, compression_type="lz4")
        expected = [b"old %d" % i for i in range(50)] + [b"new %d" % i for i in range(50)]
        for reader in [version, None]:
            same([r.value for r in read(used, 100, reader, group_id=None)], expected)


for version in [(0, 9), (0, 10, 1), None]:
    @check(f"commit and resume as of {'.'.join(map(str, version)) if version else 'its own choice'}")
    def _():
        used, group = name("kp1"), name("g")
        produce(used, [b"a", b"b"], version)
        same([r.value for r in read(used, 2, version, group_id=group)], [b"a", b"b"])
        produce(used, [b"c"], version)
        same([r.value for r in read(used, 1, version, group_id=group)], [b"c"])


@check("beginning and end as of 0.9, offsets by time")
def _():
    used = name("kp1")
    produce(used, [b"%d" % i for i in range(10)])
    part = TopicPartition(used, 0)
    for version in [(0, 9), None]:
        consumer = KafkaConsumer(bootstrap_servers=address, api_version=version)
        same((consumer.beginning_offsets([part])[part], consumer.end_offsets([part])[part]), (0, 10))
        if version is None:
            same(consumer.offsets_for_times({part: 1})[part].offset, 0)
        consumer.close()


@check("create a topic, and again")
def _():
    admin = KafkaAdminClient(bootstrap_servers=address)
    used = name("kp1")
    admin.create_topics([NewTopic(used, 3, 1)])
    try:
        admin.create_topics([NewTopic(used, 3, 1)])
    except TopicAlreadyExistsError:
        admin.delete_topics([used])
        return
    raise AssertionError("no error")
