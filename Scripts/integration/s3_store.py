"""The other half of Scripts/test-s3: s3_store.py DIRECTORY SERVER-URL SEED

Says through DIRECTORY's pipes what our store shall do, does the same with boto3, and compares; kills the server while an object is written.
"""
import hashlib
import http.server
import pathlib
import random
import ssl
import subprocess
import sys
import threading
import time
import urllib.request

import boto3
import trustme
from botocore.client import Config

from command_pipes import Checks, Pipes

DIRECTORY, URL, SEED = pathlib.Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
SERVER = pathlib.Path(__file__).resolve().parents[1] / "real/seaweedfs"
BUCKET = "millrace"
KEYS = [
    "plain", "deep/er/down.parquet", "day=2026-01-01/name=a%2Fb/x.parquet", "with space", "plus+and&amp;<signs>", "ünï/çödé", "tilde~star*'quote'",
    "question?hash#", "a//b", "colon:semi;comma,at@", "percent%", "%41", "(paren)[bracket]{brace}", "equals=x=y",
]


class Ours(Pipes):
    """Our store, a command at a time."""

    def put(self, key, content, condition="always"):
        (DIRECTORY / "in").write_bytes(content)
        return self("put", location(key), DIRECTORY / "in", condition)

    def get(self, key):
        answer = self("get", location(key), DIRECTORY / "out")
        return (DIRECTORY / "out").read_bytes() if answer[0] == "ok" else answer

    def list(self, prefix):
        answer = self("list", location(prefix), DIRECTORY / "out")
        return [line.split("\t") for line in (DIRECTORY / "out").read_text(encoding="utf8").splitlines()] if answer[0] == "ok" else answer

    def remove(self, keys):
        (DIRECTORY / "in").write_text("\n".join(map(location, keys)), encoding="utf8")
        return self("remove", DIRECTORY / "in")

    def write(self, content):
        (DIRECTORY / "in").write_bytes(content)
        return self("write", DIRECTORY / "in")


def location(key):
    return f"s3://{BUCKET}/{key}"


checks = Checks("s3")
rng = random.Random(SEED)
theirs = boto3.client(
    "s3", endpoint_url=URL, aws_access_key_id="millrace", aws_secret_access_key="millrace-secret", region_name="us-east-1",
    config=Config(s3={"addressing_style": "path"}, retries={"max_attempts": 3}))
ours = Ours(DIRECTORY)


def keys_of_theirs(prefix):
    pages = theirs.get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix=prefix)
    return sorted((item["Key"] for page in pages for item in page.get("Contents", [])), key=lambda key: key.encode())


def body_of_theirs(key):
    return theirs.get_object(Bucket=BUCKET, Key=key)["Body"].read()


def use(secret="millrace-secret", url=URL):
    answer = ours("use", url, "millrace", secret)
    checks.check(answer[0] == "ok", "a store", answer)


def objects_in_both_directions():
    for number, key in enumerate(KEYS):
        content = rng.randbytes(rng.choice([0, 1, 100, 70_000]))
        checks.check(ours.put(f"o/{key}", content)[0] == "ok", f"put {key}")
        checks.check(body_of_theirs(f"o/{key}") == content, f"they read {key}")
        checks.check(ours.get(f"o/{key}") == content, f"we read {key}")
        theirs.put_object(Bucket=BUCKET, Key=f"t/{key}", Body=content)
        checks.check(ours.get(f"t/{key}") == content, f"we read theirs {key}")
        look = ours("look", location(f"t/{key}"))
        head = theirs.head_object(Bucket=BUCKET, Key=f"t/{key}")
        checks.check(look[1:3] == [str(len(content)), head["ETag"]], f"look at {key}", look)
        checks.check(look[3] == str(int(head["LastModified"].timestamp() * 1_000_000)), f"time of {key}", (look, head["LastModified"]))
    for prefix in ["o/", "t/", "o/p", "o/with space", "o/ü", "none/"]:
        found = ours.list(prefix)
        checks.check([entry[0] for entry in found] == [location(key) for key in keys_of_theirs(prefix)], f"list {prefix}", found)
    checks.check(ours.get("o/none")[:2] == ["error", "ENOENT"], "what is not there", ours.get("o/none"))
    checks.check(ours("look", location("o/none")) == ["ok", "none"], "look at what is not there")


def ranges():
    content = rng.randbytes(3_000_000)
    theirs.put_object(Bucket=BUCKET, Key="range", Body=content)
    checks.check(ours("open", location("range"))[0] == "ok", "open")
    for _ in range(20):
        start, count = rng.randrange(3_100_000), rng.randrange(1, 500_000)
        answer = ours("read", start, count, DIRECTORY / "out")
        checks.check((DIRECTORY / "out").read_bytes() == content[start:start + count], f"bytes {start} + {count}", answer)
    theirs.put_object(Bucket=BUCKET, Key="range", Body=content[::-1])
    answer = ours("read", 0, 100, DIRECTORY / "out")
    checks.check(answer[:2] == ["error", "ESTALE"], "an object that was replaced", answer)
    url = ours("presign", "GET", location("range"))[1]
    with urllib.request.urlopen(url) as response:
        checks.check(response.read() == content[::-1], "a presigned URL")


def conditions():
    checks.check(ours("conditions", location("c/")) == ["ok", "true"], "the server decides conditions")
    checks.check(ours.put("c/v1", b"1", "missing")[0] == "ok", "put what is missing")
    checks.check(ours.put("c/v1", b"2", "missing")[:2] == ["error", "EEXIST"], "put what is there")
    tag = theirs.head_object(Bucket=BUCKET, Key="c/v1")["ETag"]
    checks.check(ours.put("c/v1", b"3", tag)[0] == "ok", "put over the tag")
    checks.check(ours.put("c/v1", b"4", tag)[:2] == ["error", "EEXIST"], "put over an old tag")
    checks.check(ours.put("c/none", b"4", tag)[:2] == ["error", "EEXIST"], "put over nothing", ours.put("c/none", b"4", tag))
    checks.check(body_of_theirs("c/v1") == b"3", "the right one stays")


def large_object():
    content = rng.randbytes(100_000_000)
    started = time.monotonic()
    ours("create", location("large"))
    written = ours.write(content)
    checks.check(keys_of_theirs("large") == [], "not seen before it is finished")
    finished = ours("finish")
    seconds = time.monotonic() - started
    checks.check(written[0] == "ok" and finished[0] == "ok", "100 MB in parts", (written, finished))
    checks.check(hashlib.sha256(body_of_theirs("large")).digest() == hashlib.sha256(content).digest(), "they read 100 MB")
    checks.check(ours.get("large") == content, "we read 100 MB")
    print(f"  100 MB written in {seconds:.1f} s", flush=True)
    ours("create", location("dropped"))
    ours.write(content[:20_000_000])
    ours("abandon")
    checks.check(keys_of_theirs("dropped") == [], "an abandoned object")
    uploads = theirs.list_multipart_uploads(Bucket=BUCKET).get("Uploads", [])
    checks.check(not uploads, "no upload is left", uploads)


def many_objects():
    def fill(start):
        client = boto3.client(
            "s3", endpoint_url=URL, aws_access_key_id="millrace", aws_secret_access_key="millrace-secret", region_name="us-east-1")
        for number in range(start, 2500, 4):
            client.put_object(Bucket=BUCKET, Key=f"many/{number:05}", Body=b"x")

    threads = [threading.Thread(target=fill, args=(start,)) for start in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = ours.list("many/")
    checks.check([entry[0] for entry in found] == [location(f"many/{number:05}") for number in range(2500)], "2,500 keys", len(found))
    answer = ours.remove([f"many/{number:05}" for number in range(2500)] + ["many/none"])
    checks.check(answer[0] == "ok", "remove 2,500", answer)
    checks.check(keys_of_theirs("many/") == [], "they are gone")
    answer = ours.remove([f"o/{key}" for key in KEYS])
    checks.check(answer[0] == "ok" and keys_of_theirs("o/") == [], "odd keys are removed", (answer, keys_of_theirs("o/")))


def refusals():
    use(secret="wrong")
    for answer in [ours.put("x", b"1"), ours.get("t/plain"), ours.list("t/"), ours("look", location("t/plain"))]:
        checks.check(answer[:2] == ["error", "EACCES"], "a wrong secret", answer)
    use(url="http://127.0.0.1:1")
    answer = ours.put("x", b"1")
    checks.check(answer[:2] == ["error", "EIO"] and "127.0.0.1:1" in answer[2], "a server that is not there", answer)
    use()
    # A put makes the bucket here.
    answer = ours("list", "s3://no-such-bucket-here/x", DIRECTORY / "out")
    checks.check(answer[:2] == ["error", "ENOENT"] and "NoSuchBucket" in answer[2], "a bucket that is not there", answer)


class Object(http.server.BaseHTTPRequestHandler):
    """A store of one object."""

    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", "6")
        self.end_headers()
        self.wfile.write(b"secret")

    def log_message(self, *_):
        pass


def certificates():
    """TLS with roots of one's own: the right one, another one, and the system's, which do not know the server."""
    authority, stranger = trustme.CA(), trustme.CA()
    authority.cert_pem.write_to_path(DIRECTORY / "roots.pem")
    stranger.cert_pem.write_to_path(DIRECTORY / "others.pem")
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Object)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    elsewhere = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("other.example").configure_cert(elsewhere)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"https://127.0.0.1:{server.server_port}"
    ours("use", url, "id", "secret", DIRECTORY / "roots.pem")
    checks.check(ours.get("x") == b"secret", "TLS by a root of one's own")
    for roots in [[DIRECTORY / "others.pem"], []]:
        ours("use", url, "id", "secret", *roots)
        answer = ours.get("x")
        checks.check(answer[:2] == ["error", "EIO"] and "certificate" in answer[2], "TLS with a stranger", answer)
    named = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Object)
    named.socket = elsewhere.wrap_socket(named.socket, server_side=True)
    threading.Thread(target=named.serve_forever, daemon=True).start()
    ours("use", f"https://127.0.0.1:{named.server_port}", "id", "secret", DIRECTORY / "roots.pem")
    answer = ours.get("x")
    checks.check(answer[:2] == ["error", "EIO"], "TLS with a server of another name", answer)
    use()


def server_dies_while_an_object_is_written():
    content = rng.randbytes(60_000_000)
    ours("create", location("killed"))
    first = ours.write(content[:20_000_000])
    subprocess.run([SERVER, "kill", DIRECTORY / "server"], check=True)
    rest = ours.write(content[20_000_000:])
    finished = ours("finish")
    checks.check(first[0] == "ok" and finished[:2] in (["error", "EIO"], ["error", "ETIMEDOUT"]), "the writer says that the store is away", (rest, finished))
    started = subprocess.run([SERVER, "start", DIRECTORY / "server"], check=True, stdout=subprocess.PIPE, text=True)
    checks.check(started.stdout.split()[0] == URL, "the server is back")
    checks.check(keys_of_theirs("killed") == [], "no half of an object")
    ours("create", location("killed"))
    ours.write(content)
    finished = ours("finish")
    checks.check(finished[0] == "ok" and body_of_theirs("killed") == content, "the same again", finished)


use()
objects_in_both_directions()
ranges()
conditions()
large_object()
many_objects()
refusals()
certificates()
server_dies_while_an_object_is_written()
checks.finish()
