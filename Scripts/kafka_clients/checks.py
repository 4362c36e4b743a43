"""Named checks that print one line each."""
import sys
import time
import traceback
import uuid

client, address = sys.argv[1], sys.argv[2]
_counter = 0


def name(prefix):
    """A topic or group name that no other run has."""
    global _counter
    _counter += 1
    return f"{prefix}-{uuid.uuid4().hex[:8]}-{_counter}"


def check(title):
    def run(body):
        start = time.time()
        try:
            body()
        except Exception as error:
            where = traceback.extract_tb(error.__traceback__)[-1]
            text = " ".join(f"{type(error).__name__}: {error}".split())[:300]
            print(f"FAIL {client}: {title} ({time.time() - start:.1f}s) line {where.lineno}: {text}", flush=True)
        else:
            print(f"PASS {client}: {title} ({time.time() - start:.1f}s)", flush=True)
    return run


def same(found, expected):
    if found != expected:
        raise AssertionError(f"found {found!r}, expected {expected!r}")


def until(condition, seconds=20):
    """Polls `condition` until it is true."""
    end = time.time() + seconds
    while time.time() < end:
        if condition():
            return
    raise AssertionError(f"not within {seconds} seconds")
