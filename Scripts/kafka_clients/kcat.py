"""kcat against a broker."""
import subprocess

from checks import address, check, name, same


def kcat(*arguments, text=None, seconds=25):
    done = subprocess.run(["kcat", "-b", address, *arguments], input=text, capture_output=True, text=True, timeout=seconds)
    if done.returncode != 0:
        raise AssertionError(f"status {done.returncode}: {done.stderr}")
    return done.stdout


@check("-P and -C to the end, with keys")
def _():
    used = name("kcat")
    kcat("-P", "-t", used, "-K", ":", text="".join(f"k{i}:v{i}\n" for i in range(1000)))
    same(kcat("-C", "-t", used, "-o", "beginning", "-e", "-q", "-K", ":").splitlines(), [f"k{i}:v{i}" for i in range(1000)])


for codec in ["gzip", "snappy", "lz4", "zstd"]:
    @check(f"-z {codec}")
    def _():
        used = name("kcat")
        lines = [f"line {i} " * 5 for i in range(500)]
        kcat("-P", "-t", used, "-z", codec, text="\n".join(lines) + "\n")
        same(kcat("-C", "-t", used, "-o", "beginning", "-e", "-q").splitlines(), lines)


@check("-L lists topics and the broker")
def _():
    used = name("kcat")
    kcat("-P", "-t", used, text="x\n")
    listed = kcat("-L")
    assert f'topic "{used}" with 1 partitions' in listed and "1 brokers" in listed, listed


@check("-Q looks up offsets by time")
def _():
    used = name("kcat")
    kcat("-P", "-t", used, text="a\nb\nc\n")
    same(kcat("-Q", "-t", f"{used}:0:0").split(), [used, "[0]", "offset", "0"])
    same(kcat("-Q", "-t", f"{used}:0:-1").split(), [used, "[0]", "offset", "3"])


@check("-G consumes in a group")
def _():
    used = name("kcat")
    kcat("-P", "-t", used, text="".join(f"{i}\n" for i in range(20)))
    same(len(kcat("-G", name("g"), "-q", "-X", "auto.offset.reset=earliest", "-X", "session.timeout.ms=6000", "-c", "20", used).split()), 20)
