"""Hostile bytes on both listeners, from a printed seed; the server must close the connection and go on."""
import argparse
import concurrent.futures
import random
import socket
import struct
import time

from confluent_kafka.admin import AdminClient
from harness import Checks, Server, wait_until

STARTUP = struct.pack("!II", 8 + len(b"user\0root\0database\0dev\0\0"), 196608) + b"user\0root\0database\0dev\0\0"


def kafka_request(source, key, version, body):
    header = struct.pack("!hhih", key, version, source.randrange(2**31), 2) + b"me"
    return struct.pack("!i", len(header) + len(body)) + header + body


def kafka_bytes(source):
    noise = source.randbytes(source.randrange(0, 400))
    return source.choice([
        lambda: noise,
        lambda: struct.pack("!i", 2**31 - 1) + noise,
        lambda: struct.pack("!i", -source.randrange(1, 2**31)) + noise,
        lambda: struct.pack("!i", source.randrange(0, 12)) + noise,
        lambda: struct.pack("!i", 1_000_000) + noise,
        lambda: kafka_request(source, source.randrange(-1, 80), source.randrange(-1, 20), noise),
        lambda: kafka_request(source, source.choice([0, 1, 2, 3, 8, 9, 10, 11, 12, 13, 14, 18, 19, 20, 22]), source.randrange(0, 13), noise),
        lambda: kafka_request(source, 18, 0, b"") * 50,
        lambda: kafka_request(source, 3, 1, struct.pack("!i", 2**31 - 1)),
        lambda: kafka_request(source, 0, 3, struct.pack("!hhii", -1, 1, 1000, 2**31 - 1) + noise),
        lambda: kafka_request(source, 1, 4, b"\xff" * 40),
        lambda: b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    ])()


def pg_message(kind, body):
    return kind + struct.pack("!i", len(body) + 4) + body


def pg_bytes(source):
    noise = source.randbytes(source.randrange(0, 400))
    kind = bytes([source.choice(b"QPBEDCSHXFdcfp\0\xff")])
    return source.choice([
        lambda: noise,
        lambda: struct.pack("!II", 2**31 - 1, 196608) + noise,
        lambda: struct.pack("!II", source.randrange(0, 9), 196608) + noise,
        lambda: struct.pack("!II", 8, 80877103),
        lambda: struct.pack("!IIII", 16, 80877102, source.randrange(2**31), source.randrange(2**31)),
        lambda: STARTUP[:source.randrange(len(STARTUP))],
        lambda: STARTUP + noise,
        lambda: STARTUP + kind + struct.pack("!i", 2**31 - 1) + noise,
        lambda: STARTUP + kind + struct.pack("!i", source.randrange(-5, 5)) + noise,
        lambda: STARTUP + pg_message(kind, noise),
        lambda: STARTUP + pg_message(b"P", b"s\0SELECT $1\0" + struct.pack("!h", 32767)) + pg_message(b"S", b""),
        lambda: STARTUP + pg_message(b"B", b"\0\0" + struct.pack("!hhi", 0, 30000, -7)) + pg_message(b"S", b""),
        lambda: STARTUP + pg_message(b"Q", b"SELECT " + b"(" * 20_000 + b"\0"),
        lambda: STARTUP + pg_message(b"Q", b"SELECT '" + noise.replace(b"\0", b"x") + b"\0"),
        lambda: b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + noise,
    ])()


def attack(address, data, waits, resets):
    """One connection: send, maybe read a little, close, maybe without a goodbye."""
    try:
        with socket.create_connection(address, timeout=5) as connection:
            if resets:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            connection.sendall(data)
            if waits:
                connection.settimeout(0.05)
                try:
                    connection.recv(4096)
                except TimeoutError:
                    pass
    except OSError:
        pass


def answers(server):
    with server.connect() as connection:
        assert connection.execute("SELECT 1 + 1").fetchone() == (2,)
    return AdminClient({"bootstrap.servers": server.kafka}).list_topics(timeout=10).brokers


def main(seed, connections):
    checks = Checks("test-hostile")
    print(f"  seed {seed}")
    source = random.Random(seed)
    with Server() as server:
        checks.check(answers(server), "the server answers before")
        files, memory = server.open_files(), server.rss_mib()
        targets = [(a.rsplit(":", 1)[0], int(a.rsplit(":", 1)[1]), make) for a, make in ((server.kafka, kafka_bytes), (server.pg, pg_bytes))]
        with concurrent.futures.ThreadPoolExecutor(64) as pool:
            for part in range(10):
                work = []
                for _ in range(connections // 10):
                    host, port, make = source.choice(targets)
                    work.append(pool.submit(attack, (host, port), make(source), source.random() < 0.5, source.random() < 0.2))
                concurrent.futures.wait(work)
                if not server.alive:
                    break
        if checks.check(server.alive, f"alive after {connections} connections", "".join(server.lines[-5:])):
            # Half a message, held open by hundreds at once, is not allowed to cost others their service.
            idle = [socket.create_connection(targets[n % 2][:2], timeout=5) for n in range(400)]
            for n, connection in enumerate(idle):
                connection.sendall(b"\0\0" if n % 4 < 2 else (STARTUP[:20] if n % 2 else struct.pack("!i", 100)))
            checks.check(answers(server), "answers while 400 connections hold half a message")
            for connection in idle:
                connection.close()
            settled = wait_until(lambda: server.open_files() <= files + 20, 20, 0.2)
            checks.check(settled, "closed connections are given back", f"{server.open_files()} open files, {files} before")
            grown = server.rss_mib() - memory
            checks.check(grown < 500, f"memory grew by {grown} MiB")
            checks.check(answers(server), "answers afterwards")
            topics = [t for t in AdminClient({"bootstrap.servers": server.kafka}).list_topics(timeout=10).topics]
            print(f"  {len(topics)} topics afterwards")
    checks.finish()


parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=int(time.time()))
parser.add_argument("--connections", type=int, default=4000)
arguments = parser.parse_args()
main(arguments.seed, arguments.connections)
