"""The file of results: settings, the machine, every run and every answer; written anew after each."""
import datetime
import json
import os
import pathlib
import platform


def machine():
    """What the figures depend on."""
    fields = {}
    for path in "/proc/cpuinfo", "/proc/meminfo":
        with open(path) as lines:
            for line in lines:
                name, _, value = line.partition(":")
                fields.setdefault(name.strip(), value.strip())
    system = platform.freedesktop_os_release().get("PRETTY_NAME", "") if hasattr(platform, "freedesktop_os_release") else ""
    return {
        "cpu": fields.get("model name", platform.machine()), "cores": len(os.sched_getaffinity(0)),
        "memory_bytes": int(fields["MemTotal"].split()[0]) * 1024, "kernel": platform.release(), "system": system,
    }


class Results:
    """`runs` and `answers` are lists of records with an engine and a query each, or an error in place of figures."""

    def __init__(self, path, document):
        self.path, self.document = pathlib.Path(path), document

    @classmethod
    def load(cls, path):
        return cls(path, json.loads(pathlib.Path(path).read_text()))

    @classmethod
    def begin(cls, path, commit, settings):
        now = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
        return cls(path, {"date": now, "commit": commit, "machine": machine(), "settings": settings, "versions": {}, "absent": {},
                          "inputs": {}, "runs": [], "answers": []})

    def save(self):
        self.path.parent.mkdir(parents=True, exist_ok=True)
        beside = self.path.with_suffix(".new")
        beside.write_text(json.dumps(self.document, indent=1) + "\n")
        beside.replace(self.path)

    def add(self, kind, engine, query, record):
        self.document[kind].append({"engine": engine, "query": query, **record})
        self.save()

    def good(self, kind, engine, query):
        """The records of an engine and a query that are not failures."""
        return [record for record in self.document[kind]
                if (record["engine"], record["query"]) == (engine, query) and "error" not in record]

    def error(self, kind, engine, query):
        """Why the last record of an engine and a query has no figures, if it has none."""
        last = [record for record in self.document[kind] if (record["engine"], record["query"]) == (engine, query)][-1:]
        return last[0].get("error") if last else None

    def forget_errors(self, engine):
        for kind in "runs", "answers":
            self.document[kind] = [r for r in self.document[kind] if r["engine"] != engine or "error" not in r]
