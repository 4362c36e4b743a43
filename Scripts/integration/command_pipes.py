"""What tests share that tell our code what to do over two named pipes, and look at what it did by another program."""
import pathlib
import sys


class Checks:
    """Counts what held and what did not; says only the latter. `finish` ends the program."""

    def __init__(self, name):
        self.name, self.passed, self.failed = name, 0, 0

    def check(self, holds, what, detail=""):
        if holds:
            self.passed += 1
        else:
            self.failed += 1
            print(f"  FAIL  {what}: {str(detail)[:400]}", flush=True)

    def finish(self):
        print(f"{self.name}: {self.passed} passed, {self.failed} failed", flush=True)
        sys.exit(1 if self.failed or not self.passed else 0)


class Pipes:
    """Our code, a command at a time."""

    def __init__(self, directory):
        self.commands = open(pathlib.Path(directory) / "commands", "w", encoding="utf8")
        self.answers = open(pathlib.Path(directory) / "answers", encoding="utf8")

    def __call__(self, *words):
        """What it answers: a list that begins with ok or error."""
        self.commands.write("\t".join(map(str, words)) + "\n")
        self.commands.flush()
        return self.answers.readline().rstrip("\n").split("\t")
