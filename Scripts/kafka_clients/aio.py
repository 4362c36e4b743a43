"""aiokafka against a broker."""
import asyncio

import aiokafka
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.errors import KafkaError, ProducerFenced

from checks import address, check, name, same

print(f"aiokafka {aiokafka.__version__}", flush=True)


def checked(title):
    """A check whose body is a coroutine."""
    def run(body):
        check(title)(lambda: asyncio.run(asyncio.wait_for(body(), 60)))
    return run


async def produce(into, values, **options):
    async with AIOKafkaProducer(bootstrap_servers=address, **options) as producer:
        return [(await sent).offset for sent in [await producer.send(into, value, key=b"k") for value in values]]


async def read(of, count, partitions=1, **options):
    consumer = AIOKafkaConsumer(bootstrap_servers=address, auto_offset_reset="earliest", enable_auto_commit=False, **options)
    await consumer.start()
    try:
        if "group_id" in options:
            consumer.subscribe([of])
        else:
            consumer.assign([TopicPartition(of, part) for part in range(partitions)])
        records = []
        while len(records) < count:
            records.append(await asyncio.wait_for(consumer.getone(), 15))
        if "group_id" in options:
            await consumer.commit()
        return records
    finally:
        await consumer.stop()


@checked("produce and consume, no topic made first")
async def _():
    used = name("aio")
    same(await produce(used, [b"v%d" % i for i in range(100)]), list(range(100)))
    same([r.value for r in await read(used, 100)], [b"v%d" % i for i in range(100)])


for codec in ["gzip", "snappy", "lz4", "zstd"]:
    @checked(f"codec {codec}")
    async def _():
        used = name("aio")
        await produce(used, [b"value %d" % i for i in range(1000)], compression_type=codec, linger_ms=20)
        same([r.value for r in await read(used, 1000)], [b"value %d" % i for i in range(1000)])


@checked("idempotent producer, send_and_wait")
async def _():
    used = name("aio")
    async with AIOKafkaProducer(bootstrap_servers=address, enable_idempotence=True) as producer:
        for i in range(50):
            same((await producer.send_and_wait(used, b"%d" % i, headers=[("h", b"1")])).offset, i)
    same((await read(used, 50))[0].headers, (("h", b"1"),))


@checked("commit and resume")
async def _():
    used, group = name("aio"), name("g")
    await produce(used, [b"a", b"b"])
    await read(used, 2, group_id=group)
    await produce(used, [b"c"])
    same([r.value for r in await read(used, 1, group_id=group)], [b"c"])


@checked("committed records are seen and aborted ones are not")
async def _():
    used = name("aio")
    async with AIOKafkaProducer(bootstrap_servers=address, transactional_id=name("t")) as producer:
        for i in range(6):
            await producer.begin_transaction()
            await producer.send_and_wait(used, b"%d" % i)
            await (producer.commit_transaction() if i % 2 == 0 else producer.abort_transaction())
    same([r.value for r in await read(used, 3, isolation_level="read_committed")], [b"0", b"2", b"4"])
    same([r.value for r in await read(used, 6)], [b"%d" % i for i in range(6)])


@checked("read, change and write exactly once")
async def _():
    source, target, group, transaction = name("aio"), name("aio"), name("g"), name("t")
    await produce(source, [b"%d" % i for i in range(6)])
    for attempt in range(3):
        consumer = AIOKafkaConsumer(source, bootstrap_servers=address, group_id=group, auto_offset_reset="earliest", enable_auto_commit=False)
        await consumer.start()
        async with AIOKafkaProducer(bootstrap_servers=address, transactional_id=transaction) as producer:
            try:
                async with producer.transaction():
                    for _ in range(2):
                        record = await asyncio.wait_for(consumer.getone(), 15)
                        await producer.send(target, record.value + b"!")
                    await producer.send_offsets_to_transaction({TopicPartition(source, 0): record.offset + 1}, group)
                    if attempt == 1:
                        raise ValueError
            except ValueError:
                pass
        await consumer.stop()
    same([r.value for r in await read(target, 4, isolation_level="read_committed")], [b"0!", b"1!", b"2!", b"3!"])


@checked("a new instance fences the old one")
async def _():
    used, transaction = name("aio"), name("t")
    old = AIOKafkaProducer(bootstrap_servers=address, transactional_id=transaction)
    await old.start()
    await old.begin_transaction()
    await old.send_and_wait(used, b"zombie")
    async with AIOKafkaProducer(bootstrap_servers=address, transactional_id=transaction) as fresh:
        await fresh.begin_transaction()
        await fresh.send_and_wait(used, b"kept")
        await fresh.commit_transaction()
    try:
        await old.commit_transaction()
        raise AssertionError("the old instance committed")
    except (ProducerFenced, KafkaError):
        pass
    await old.stop()
    same([r.value for r in await read(used, 1, isolation_level="read_committed")], [b"kept"])


@checked("create, list and delete topics")
async def _():
    used = name("aio")
    admin = AIOKafkaAdminClient(bootstrap_servers=address)
    await admin.start()
    try:
        await admin.create_topics([NewTopic(used, 2, 1)])
        assert used in await admin.list_topics()
        await admin.delete_topics([used])
        assert used not in await admin.list_topics()
    finally:
        await admin.close()
