"""The half of a benchmark that runs inside an engine's own Python environment.

Reads one request a line on standard input, answers each with one JSON object a line on what was standard output when it began,
and ends, with all it started, at the end of input:
    {"verb": "measure", "query": "q0", "input": DIRECTORY, "events": N}   -> seconds, cpu_seconds, peak_bytes, ... (see cost.py)
    {"verb": "answer", "query": "q0", "input": DIRECTORY, "events": N}    -> rows, hash (see answer.py)
A request that fails is answered with {"error": TEXT}. What libraries print goes to standard error.
"""
import abc
import json
import os
import sys
import traceback

import nexmark
from answer import Answer


class Engine(abc.ABC):
    """An engine that runs queries over the JSON files of a directory."""

    version: str

    @abc.abstractmethod
    def open(self, directory, events):
        """Gives the files of the directory, which hold that many events, the names person, auction and bid."""

    @abc.abstractmethod
    def measure(self, query):
        """Runs a query to its end, its result thrown away inside the engine; what it cost."""

    @abc.abstractmethod
    def rows(self, query):
        """The query's result as pairs of a weight and a row."""

    def close(self):
        pass


def summary(failure):
    """One line that says what is wrong: of a Java stack trace, the innermost cause."""
    text = str(failure) or type(failure).__name__
    causes = [line.removeprefix("Caused by: ") for line in text.split("\n") if line.startswith("Caused by: ")]
    return " ".join((causes[-1] if causes else text).split())[:400]


def serve(engine):
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def reply(message):
        print(json.dumps(message), file=replies, flush=True)

    try:
        reply({"version": engine.version})
        opened = None
        for line in sys.stdin:
            request = json.loads(line)
            query = request["query"]
            try:
                if opened != request["input"]:
                    engine.open(request["input"], request["events"])
                    opened = request["input"]
                if request["verb"] == "measure":
                    reply(engine.measure(query))
                else:
                    answer = Answer(nexmark.KINDS[query])
                    for weight, row in engine.rows(query):
                        answer.add(row, weight)
                    reply(answer.finish())
            except Exception as failure:
                traceback.print_exc()
                reply({"error": summary(failure)})
    finally:
        engine.close()
