"""The runs of all benches, a line of JSON each as soon as it has ended, with the commit, the machine and the command. An experiment on a
data set that is complete has a line of its own: a bench that was killed does not run it again, and the page is written from it."""
import contextlib
import dataclasses
import datetime
import json
from collections.abc import Iterator
from pathlib import Path

from runner import Run

FIELDS = {field.name for field in dataclasses.fields(Run)}


class Journal:
    def __init__(self, path: Path, commit: str, machine: str):
        self.path, self.commit, self.machine = path, commit, machine
        path.touch()
        if path.read_bytes()[-1:] not in (b"", b"\n"):
            self.append("")  # the next line does not go on with one that was cut by a kill

    def begin(self, experiment: str, data_set: str) -> None:
        self.append(json.dumps({"begin": [experiment, data_set]}))

    def write(self, run: Run, experiment: str, data_set: str, program: str, repeat: int) -> None:
        self.append(json.dumps({"experiment": experiment, "data_set": data_set, "program": program, "repeat": repeat, "commit": self.commit,
                                "machine": self.machine, "time": now(), **dataclasses.asdict(run)}))

    def complete(self, experiment: str, data_set: str, key: str, missing: dict[str, str]) -> None:
        """`key`: what was asked for, so that it is not taken for something else."""
        self.append(json.dumps({"complete": [experiment, data_set], "key": key, "missing": missing, "commit": self.commit, "machine": self.machine}))

    def finish(self, done: list[list[str]]) -> None:
        """Whoever starts a finished bench wants to measure: these are not taken again."""
        self.append(json.dumps({"finished": done, "time": now()}))

    def append(self, line: str) -> None:
        with self.path.open("a") as file:
            file.write(line + "\n")

    def lines(self) -> Iterator[dict]:
        """A line that was cut by a kill counts for nothing."""
        with self.path.open() as file:
            for text in file:
                with contextlib.suppress(ValueError):
                    yield json.loads(text)

    def kept(self, command: list[str]) -> Run | None:
        """The last run of this command that did not fail."""
        found = [line for line in self.lines() if line.get("command") == command and line["exit_code"] == 0]
        return Run(**{name: found[-1][name] for name in FIELDS}) if found else None

    def unfinished(self) -> dict[tuple[str, str], str]:
        """What is complete, of benches that were not finished, and its key."""
        known = {}
        for line in self.lines():
            if "complete" in line:
                known[tuple(line["complete"])] = line["key"]
            for done in line.get("finished", ()):
                known.pop(tuple(done), None)
        return known

    def latest(self) -> dict[tuple[str, str], tuple[dict, dict[str, list[Run]]]]:
        """Of each experiment and data set the line that last said complete, and the runs by program."""
        found, begun = {}, {}
        for line in self.lines():
            if "begin" in line:
                begun[tuple(line["begin"])] = {}
            elif "program" in line:
                begun[line["experiment"], line["data_set"]].setdefault(line["program"], []).append(Run(**{name: line[name] for name in FIELDS}))
            elif "complete" in line:
                found[tuple(line["complete"])] = line, begun.pop(tuple(line["complete"]))
        return found


def now() -> str:
    return datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
