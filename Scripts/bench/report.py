"""The tables of a file of results, in Markdown."""
import math
import statistics

from nexmark import NOTES
from peers import PEERS

# Cores that other work may take during a run before its figures are marked.
QUIET = 0.25


class Report:
    def __init__(self, document):
        self.document = document
        with_runs = {run["engine"] for run in document["runs"]}
        self.engines = [name for name in document["settings"]["engines"] if name in with_runs or name not in document["absent"]]
        self.queries = document["settings"]["queries"]

    def records(self, kind, engine, query):
        return [record for record in self.document[kind] if (record["engine"], record["query"]) == (engine, query)]

    def median(self, engine, query, figure):
        """The median over the good runs, or nothing without any."""
        values = [figure(run) for run in self.records("runs", engine, query) if "error" not in run]
        return statistics.median(values) if values else None

    def rate(self, engine, query):
        return self.median(engine, query, lambda run: run["events"] / max(run["cpu_seconds"], 0.001))

    def missing(self, kind, engine, query):
        return "failed" if self.records(kind, engine, query) else "–"

    def tables(self):
        return "\n\n".join(part for part in (self.head(), self.rates(), self.clock(), self.answers(), self.remarks()) if part)

    def head(self):
        machine, settings = self.document["machine"], self.document["settings"]
        versions = ", ".join(f"{PEERS[name].title} {version}" for name, version in self.document["versions"].items())
        measured = self.document["inputs"].get(str(settings["events"]), {})
        loads = [run["load"] for run in self.document["runs"] if "load" in run] or [0]
        return (
            f"{self.document['date'][:10]}: {machine['cpu']}, {machine['cores']} cores, {machine['memory_bytes'] / 2**30:.0f} GiB, "
            f"{machine['system']}, Linux {machine['kernel']}. Commit {self.document['commit']}: {versions}.\n"
            f"{settings['events']:,} events ({sum(stream['bytes'] for stream in measured.values()) / 1e6:,.0f} MB of JSON), medians of "
            f"{settings['runs']} run{'s' * (settings['runs'] > 1)}; Millrace with {settings['workers']} worker, the peers with "
            f"{settings['threads']} threads; load average {min(loads)} to {max(loads)}.")

    def rates(self):
        """Events per CPU second, and how many times as many Millrace takes."""
        peers = [name for name in self.engines if name != "millrace"] if "millrace" in self.engines else []
        titles = [PEERS[name].title for name in self.engines] + [f"Millrace / {PEERS[name].title}" for name in peers]
        rows, ratios = [], {name: [] for name in peers}
        for query in self.queries:
            cells = [self.rate_cell(name, query) for name in self.engines]
            for name in peers:
                ours, theirs = self.rate("millrace", query), self.rate(name, query)
                if ours and theirs:
                    ratios[name].append(ours / theirs)
                cells.append(f"{ours / theirs:.1f}" if ours and theirs else "–")
            rows.append([query, *cells])
        means = [f"**{math.exp(statistics.fmean(map(math.log, values))):.1f}**" if values else "–" for values in ratios.values()]
        if peers:
            rows.append(["geometric mean", *["" for _ in self.engines], *means])
        return "Thousand events per CPU second:\n\n" + table(["query", *titles], rows)

    def rate_cell(self, engine, query):
        rate = self.rate(engine, query)
        if rate is None:
            return self.missing("runs", engine, query)
        disturbed = self.median(engine, query, lambda run: run["others"]) > QUIET
        return f"{rate / 1000:,.0f}" + ("\\*" if disturbed else "")

    def clock(self):
        rows = []
        for query in self.queries:
            cells = []
            for name in self.engines:
                seconds = self.median(name, query, lambda run: run["seconds"])
                peak = self.median(name, query, lambda run: run["peak_bytes"])
                cells.append(self.missing("runs", name, query) if seconds is None else f"{seconds:.2f} s, {peak / 2**20:,.0f} MiB")
            rows.append([query, *cells])
        return "By the clock, and peak memory:\n\n" + table(["query", *(PEERS[name].title for name in self.engines)], rows)

    def answers(self):
        if not self.document["answers"]:
            return ""
        rows = []
        for query in self.queries:
            found = {name: answer for name in self.engines for answer in self.records("answers", name, query) if "error" not in answer}
            first = next(iter(found.values()), None)
            cells = [self.answer_cell(name, query, found.get(name), first) for name in self.engines]
            rows.append([query, f"{first['rows']:,}" if first else "–", *cells, NOTES.get(query, "")])
        titles = ["query", "rows", *(PEERS[name].title for name in self.engines), "compared"]
        return f"Answers over {self.document['settings']['answer_events']:,} events:\n\n" + table(titles, rows)

    def answer_cell(self, engine, query, answer, first):
        if answer is None:
            return self.missing("answers", engine, query)
        return "same" if answer["hash"] == first["hash"] and answer["rows"] == first["rows"] else f"**differs**: {answer['rows']:,} rows"

    def remarks(self):
        lines = [
            "CPU seconds and peak memory are those of the process that runs the query while it runs it: Flink's is the TaskManager, whose "
            "heap is touched up to its limit before it is collected; its JobManager (1 GB) and client come beside. "
            "DuckDB and chDB are batch engines that see the whole input at once.",
        ]
        if any("*" in self.rate_cell(name, query) for name in self.engines for query in self.queries):
            lines.append(f"\\* Other work took more than {QUIET} cores meanwhile: distrust the clock, and the CPU figure a little.")
        lines += [f"- {PEERS[name].title} is absent: {reason}." for name, reason in self.document["absent"].items()]
        lines += [f"- {line}" for line in failures(self.document)]
        return "\n".join(lines)


def table(titles, rows):
    return "\n".join("| " + " | ".join(row) + " |" for row in [titles, ["---", *["---:" for _ in titles[1:]]], *rows])


def failures(document):
    """What failed, what differs: lines for people."""
    lines = []
    for kind, where in ("runs", "at"), ("answers", "at the answer of"):
        lines += [f"{PEERS[r['engine']].title} failed {where} {r['query']}: {r['error']}" for r in document[kind] if "error" in r]
    for query in document["settings"]["queries"]:
        if len({(r["rows"], r["hash"]) for r in document["answers"] if r["query"] == query and "error" not in r}) > 1:
            lines.append(f"{query}: the answers differ")
        sizes = {r["rows"] for r in document["runs"] if r["query"] == query and "rows" in r}
        if len(sizes) > 1:
            lines.append(f"{query}: the measured results have different sizes: {', '.join(map(str, sorted(sizes)))} rows")
    return lines


def tables(document):
    return Report(document).tables()
