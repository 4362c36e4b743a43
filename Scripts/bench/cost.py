"""What a run costs: CPU seconds and peak memory of the engine's processes, and what the rest of the machine did meanwhile. Linux only."""
import os
import time

TICKS = os.sysconf("SC_CLK_TCK")


def family(pid):
    """A process and all that descend from it."""
    found, waiting = [], [pid]
    while waiting:
        pid = waiting.pop()
        found.append(pid)
        try:
            for thread in os.listdir(f"/proc/{pid}/task"):
                with open(f"/proc/{pid}/task/{thread}/children") as children:
                    waiting += [int(child) for child in children.read().split()]
        except OSError:
            pass  # it ended
    return found


def cpu_seconds(pids):
    """Used so far by all threads of these processes, and, to a tick, by their children that have ended."""
    seconds = 0
    for pid in pids:
        try:
            seconds += time.clock_gettime(~pid << 3 | 2)  # the clock of `clock_getcpuclockid`: a short query takes a few ticks only
            with open(f"/proc/{pid}/stat") as stat:
                seconds += sum(int(field) for field in stat.read().rsplit(")", 1)[1].split()[13:15]) / TICKS
        except OSError:
            pass  # it ended
    return seconds


def busy_seconds():
    """CPU seconds that the whole machine has spent working, or lost to its host, so far."""
    with open("/proc/stat") as stat:
        user, nice, system, _idle, _wait, irq, softirq, steal = (int(field) for field in stat.readline().split()[1:9])
    return (user + nice + system + irq + softirq + steal) / TICKS


class Cost:
    """Measures from its making until `finish`: process `engine`, which runs the query; whatever else descends from this process, such as
    a coordinator or a client, is counted apart."""

    def __init__(self, engine):
        self.engine = engine
        self.load = os.getloadavg()[0]
        self.reset_peak()
        self.before = self.reading()

    def reading(self):
        """CPU seconds of the engine, of this process and all its descendants, of the machine; and the clock."""
        return cpu_seconds(family(self.engine)), cpu_seconds(family(os.getpid())), busy_seconds(), time.monotonic()

    def reset_peak(self):
        try:
            with open(f"/proc/{self.engine}/clear_refs", "w") as command:
                command.write("5")
        except OSError:
            pass  # without the right to, the peak is that of the process so far

    def peak_bytes(self):
        with open(f"/proc/{self.engine}/status") as status:
            return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM"))

    def finish(self):
        engine, ours, machine, seconds = (after - before for after, before in zip(self.reading(), self.before))
        return {
            "seconds": round(seconds, 4), "cpu_seconds": round(engine, 3), "cpu_seconds_beside": round(ours - engine, 3),
            "peak_bytes": self.peak_bytes(), "load": round(self.load, 2), "others": round(max(0, machine - ours) / seconds, 2),
        }
