"""The runs of a bench, a line of JSON each as soon as it has ended. A bench that was killed finds there what it has done already."""
import contextlib
import dataclasses
import datetime
import json
from pathlib import Path

from runner import Run

# What makes two runs the same one.
LABELS = ("experiment", "data_set", "program", "repeat", "quick", "command", "memory_limit", "disk_limit", "built", "commit")
FIELDS = {field.name for field in dataclasses.fields(Run)}


class Journal:
    def __init__(self, path: Path, commit: str, machine: dict, fresh: bool):
        self.path, self.commit, self.machine = path, commit, machine
        self.taken = 0
        path.touch()
        self.known = {} if fresh else unfinished(path)
        if path.read_bytes()[-1:] not in (b"", b"\n"):
            self.append("")  # the next line does not go on with one that was cut

    def take(self, even_failed: bool, **labels) -> tuple[Run, dict] | None:
        """A run that is known already, with what it left."""
        place = self.known.get(key_of(labels | {"commit": self.commit}))
        if place is None:
            return None
        with self.path.open("rb") as file:
            file.seek(place)
            line = json.loads(file.readline())
        if line["exit_code"] and not even_failed:
            return None
        self.taken += 1
        stdout = json.dumps(line["summary"]) if line["summary"] else line["stdout"]
        return Run(**{name: line[name] for name in FIELDS - {"stdout"}}, stdout=stdout), line["left"]

    def write(self, run: Run, left: dict, **labels) -> None:
        """`left`: the state of the files that it made."""
        summary = run.summary()
        fields = dataclasses.asdict(run) | {"stdout": "" if summary else run.stdout, "summary": summary}
        self.append(json.dumps(labels | fields | {"left": left, "commit": self.commit, "machine": self.machine, "time": now()}))

    def finish(self) -> None:
        """What is written above is never taken again: whoever starts a finished bench wants to measure."""
        self.append(json.dumps({"finished": now()}))

    def append(self, line: str) -> None:
        with self.path.open("a") as file:
            file.write(line + "\n")


def unfinished(path: Path) -> dict[str, int]:
    """The runs since the last bench that finished, and where their lines begin: to hold them all would count as memory of the programs
    that are started. A line that was cut by a kill counts for nothing."""
    known: dict[str, int] = {}
    place = 0
    with path.open("rb") as lines:
        for text in lines:
            with contextlib.suppress(ValueError):
                line = json.loads(text)
                if "finished" in line:
                    known.clear()
                elif FIELDS | set(LABELS) | {"left", "summary"} <= line.keys():  # one of an older bench has less
                    known[key_of(line)] = place
            place += len(text)
    return known


def key_of(labels: dict) -> str:
    return json.dumps([labels[name] for name in LABELS])


def now() -> str:
    return datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")


def state_of(path: Path) -> list | None:
    """Differs when a file, or anything in a folder, was changed."""
    files = [file.stat() for file in (path.rglob("*") if path.is_dir() else [path]) if file.is_file()]
    return [len(files), sum(file.st_size for file in files), max(file.st_mtime_ns for file in files)] if files else None
