"""What an experiment is, and how one is run: its programs in turn, A B A B, so that noise meets all alike."""
import contextlib
import dataclasses
import functools
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

import limits
import runner
from limits import Limits
from runner import Run, RunFailed


@dataclass(frozen=True)
class Program:
    name: str
    tool: str  # which program: "linblock", one beside it, or a peer's name
    arguments: str  # {text}, {store}, {model} and the other places of bench.py, {rows} and what is derived are filled in
    makes: str = ""  # files and folders, removed before each run, not timed
    says: str = ""  # what stdout must hold for the run to count
    preload: str = ""  # a library that the program is started with
    cold: str = ""  # files and folders, put out of the page cache before each run
    memory_limit: str = ""  # bytes, of a control group
    disk_limit: int = 0  # bytes a second, of a control group
    most_repeats: int = sys.maxsize
    after: str = ""  # the program whose output it reads


@dataclass(frozen=True)
class Bound:
    least: float | None = None
    most: float | None = None

    def holds(self, value: float) -> bool:
        return (self.least is None or value >= self.least) and (self.most is None or value <= self.most)

    def __str__(self) -> str:
        return f"at least {self.least:.3g}" if self.most is None else f"at most {self.most:.3g}"


@dataclass(frozen=True)
class Measure:
    name: str
    unit: str
    programs: tuple[str, ...]
    values: Callable[..., Sequence[float | str]]  # from the runs of each program; their median is judged; words are shown as they are
    asked: Bound | Mapping[str, Bound] | None = None  # one for all, or by data set

    def bound(self, data_set: str) -> Bound | None:
        return self.asked.get(data_set) if isinstance(self.asked, Mapping) else self.asked


@dataclass(frozen=True)
class Overall:
    """The geometric mean of measures, over every data set where they have a bound."""
    name: str
    unit: str
    measures: tuple[str, ...]
    asked: Bound


@dataclass(frozen=True)
class Derived:
    """What later programs are given, from the latest run of an earlier one; the last argument says: quick."""
    program: str
    value: Callable[..., object]
    beside: str = ""  # a program before that one, whose latest run is the second argument then


@dataclass(frozen=True)
class Experiment:
    name: str
    programs: tuple[Program, ...]  # the last is ours
    measures: tuple[Measure, ...]
    data_sets: tuple[str, ...] = ()  # none: it makes its own
    rows: tuple[int, int] = (0, 0)  # {rows}: in full, and with --quick
    before: tuple[Program, ...] = ()  # run once, first
    after: tuple[Program, ...] = ()  # run once, last
    derived: Mapping[str, Derived] = field(default_factory=dict)

    def all_programs(self) -> tuple[Program, ...]:
        return self.before + self.programs + self.after


@dataclass(frozen=True)
class Suite:
    experiments: tuple[Experiment, ...]
    overall: tuple[Overall, ...] = ()
    closing: tuple[str, ...] = ()  # measures that are shown once more at the end, side by side


@dataclass
class Outcome:
    """An experiment on one data set; a program has either runs or a reason why not."""
    experiment: Experiment
    data_set: str
    runs: dict[str, list[Run]] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)
    failures: list[RunFailed] = field(default_factory=list)


@dataclass(frozen=True)
class Bench:
    """Where things are, and how much is asked for."""
    tools: Mapping[str, str]  # those that are here
    scratch: Path
    journal: Path  # the JSONL file
    commit: str
    machine: dict
    repeats: int
    quick: bool


class Missing(Exception):
    """Why a program cannot be run here: not an error, it is named and left out."""


class NotReached(Exception):
    """Why a measure has no value, although its programs ran: what it waits for never happened."""


def run_experiment(experiment: Experiment, data_set: str, places: dict[str, object], repeats: int, bench: Bench) -> Outcome:
    outcome = Outcome(experiment, data_set)
    places = places | {"rows": experiment.rows[bench.quick]}
    in_turn = [program for repeat in range(repeats) for program in experiment.programs if repeat < program.most_repeats]
    for program in (*experiment.before, *in_turn, *experiment.after):
        if program.after in outcome.missing:
            outcome.missing[program.name] = outcome.missing[program.after]
        if program.name in outcome.missing:
            continue
        print(f"{data_set}, {experiment.name}: {program.name}", file=sys.stderr)
        try:
            run = run_program(program, places, experiment.name, data_set, bench)
        except Missing as reason:
            outcome.missing[program.name] = str(reason)
        except RunFailed as failure:  # the others can still be measured
            print(failure, file=sys.stderr)
            outcome.missing[program.name] = f"{program.name} failed ({failure.what})"
            outcome.failures.append(failure)
        else:
            outcome.runs.setdefault(program.name, []).append(run)
            places |= derived_from(program, experiment, outcome, bench.quick)
    for name in outcome.missing:
        outcome.runs.pop(name, None)
    return outcome


def derived_from(program: Program, experiment: Experiment, outcome: Outcome, quick: bool) -> dict[str, object]:
    values = {}
    for place, derived in experiment.derived.items():
        needed = [name for name in (derived.program, derived.beside) if name]
        if derived.program == program.name and all(name in outcome.runs for name in needed):
            with contextlib.suppress(NotReached):  # a program that asks for it will say that it is not known
                values[place] = derived.value(*(outcome.runs[name][-1] for name in needed), quick)
    return values


def run_program(program: Program, places: dict[str, object], experiment: str, data_set: str, bench: Bench) -> Run:
    check_here(program, bench)
    arguments = filled(program.arguments, places)
    if program.tool == "linblock":
        check_options(bench.tools["linblock"], *arguments)
    for path in filled(program.makes, places):
        remove(Path(path))
    for path in filled(program.cold, places):
        runner.evict(Path(path))
    environment = {"LD_PRELOAD": bench.tools[program.preload]} if program.preload else {}
    memory_limit = int("".join(filled(program.memory_limit, places)) or 0)
    with contextlib.ExitStack() as stack:
        try:
            groups = stack.enter_context(limits.groups(Limits(memory_limit, program.disk_limit), bench.scratch))
        except limits.Unavailable as reason:
            raise Missing(str(reason)) from reason
        run = runner.run([bench.tools[program.tool], *arguments], environment, groups)
    if program.says not in run.stdout:
        raise RunFailed(run.command, f"expected '{program.says}' on stdout", run.stdout)
    if "{trace}" in program.arguments:
        run = dataclasses.replace(run, trace=runner.read_trace(Path(places["trace"])))
    runner.record(bench.journal, run, bench.commit, bench.machine,
                  experiment=experiment, data_set=data_set, program=program.name, quick=bench.quick)
    return run


def filled(template: str, places: dict[str, object]) -> list[str]:
    """Words; split before filling in, so that a path may hold spaces."""
    try:
        return [word.format(**places) for word in shlex.split(template)]
    except KeyError as place:
        raise Missing(f"{place.args[0]} not known") from place


def check_here(program: Program, bench: Bench) -> None:
    for tool in filter(None, (program.tool, program.preload)):
        if tool not in bench.tools:
            raise Missing(f"no {tool}")


def check_options(linblock: str, command: str, *words: str) -> None:
    known = help_of(linblock, command)
    if not known:
        raise Missing(f"this linblock has no {command}")
    for word in words:
        if word.startswith("--") and word not in known:
            raise Missing(f"no {command} {word}")


@functools.cache
def help_of(linblock: str, command: str) -> frozenset[str]:
    """The words of a command's help: an option that is not among them is not there yet. None, where no such command is."""
    text = subprocess.run([linblock, command, "--help"], capture_output=True, text=True).stdout
    return frozenset(text.replace(",", " ").split()) if f"Usage: linblock {command} " in text else frozenset()


def remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def median_wall(runs: Sequence[Run]) -> float:
    return median(run.wall_seconds for run in runs)


def summaries(key: str) -> Callable[[Sequence[Run]], list[float]]:
    """A number from the JSON that a program prints."""
    return lambda runs: [run.summary()[key] for run in runs]
