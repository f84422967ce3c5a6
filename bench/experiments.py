"""What an experiment is, and how one is run: its programs in turn, A B A B, so that noise meets all alike."""
import contextlib
import dataclasses
import shlex
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

import journal
import limits
import peers
import runner
from journal import Journal
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
    changes: str = ""  # files and folders of another program's making, that it changes or adds to
    may_fail: bool = False  # measures look at how it ended; a peer that fails without this is left out, with the reason

    def touches(self) -> str:
        return f"{self.makes} {self.changes}"

    def failing_is_an_outcome(self) -> bool:
        """Not an error of this bench."""
        return self.may_fail or self.tool in peers.NAMES


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
    programs: tuple["Program | str", ...]  # kept as their names
    values: Callable[..., Sequence[float | str]]  # from the runs of each program; their median is judged; words are shown as they are
    asked: Bound | Mapping[str, Bound] | None = None  # one for all, or by data set

    def __post_init__(self) -> None:
        object.__setattr__(self, "programs", tuple(one.name if isinstance(one, Program) else one for one in self.programs))

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
class Figure:
    """Curves: what goes across and upward, each a name and a value from a run and all runs of the figure."""
    name: str
    across: tuple[str, Callable[[Run, Sequence[Run]], float]]
    upward: tuple[str, Callable[[Run, Sequence[Run]], float]]
    lines: Mapping[str, tuple[str, ...]]  # by what the legend says, the programs of the points


@dataclass(frozen=True)
class Claim:
    """What a paper says, and whether it is so here."""
    paper: str
    where: str
    says: str
    programs: tuple[tuple[str, ...], ...] = ()  # of each method that the judge is shown
    judge: Callable[..., tuple[bool, str]] | None = None  # from the runs of each method: so or not, and what was seen
    why_not: str = ""  # it cannot be judged
    if_not: str = ""  # why it is not so here, where it is not


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
    figures: tuple[Figure, ...] = ()
    claims: tuple[Claim, ...] = ()

    def all_programs(self) -> tuple[Program, ...]:
        return self.before + self.programs + self.after


@dataclass(frozen=True)
class Suite:
    experiments: tuple[Experiment, ...]
    overall: tuple[Overall, ...] = ()
    closing: tuple[str, ...] = ()  # measures that are shown once more at the end, side by side
    claims: tuple[Claim, ...] = ()  # that no experiment judges


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
    journal: Journal
    repeats: int
    quick: bool


class Missing(Exception):
    """Why a program cannot be run here: not an error, it is named and left out."""


class NotReached(Exception):
    """Why a measure has no value, although its programs ran: what it waits for never happened."""


def run_experiment(experiment: Experiment, data_set: str, places: dict[str, object], repeats: int, bench: Bench) -> Outcome:
    outcome = Outcome(experiment, data_set)
    workshop = Workshop(experiment.name, data_set, places | multiples_of(experiment.rows[bench.quick]), bench)
    in_turn = [(program, repeat) for repeat in range(repeats) for program in experiment.programs if repeat < program.most_repeats]
    first, last = ([(program, 0) for program in programs] for programs in (experiment.before, experiment.after))
    broken: dict[str, str] = {}  # programs that left nothing to go on with, and why
    for program, repeat in (*first, *in_turn, *last):
        if program.name not in broken and program.after in broken:
            outcome.missing[program.name] = broken[program.name] = broken[program.after]
        if program.name in broken:
            continue
        try:
            run = workshop.run(program, repeat)
            if run.failed and not program.may_fail:
                raise RunFailed(run.command, run.ending(), run.stderr)
        except Missing as reason:
            outcome.missing[program.name] = broken[program.name] = str(reason)
            continue
        except RunFailed as failure:  # the others can still be measured
            print(failure, file=sys.stderr)
            outcome.missing[program.name] = broken[program.name] = f"{program.name} failed: {failure.what}"
            if not program.failing_is_an_outcome():
                outcome.failures.append(failure)
            continue
        outcome.runs.setdefault(program.name, []).append(run)
        if run.failed:
            broken[program.name] = f"{program.name}: {run.ending()}"
        else:
            workshop.places |= derived_from(program, experiment, outcome, bench.quick)
    for name in outcome.missing:
        outcome.runs.pop(name, None)
    return outcome


def multiples_of(rows: int) -> dict[str, object]:
    """{rows}, and {rows_2} for twice as many."""
    return {"rows": rows} | {f"rows_{times}": times * rows for times in (1, 2, 4, 8)}


def derived_from(program: Program, experiment: Experiment, outcome: Outcome, quick: bool) -> dict[str, object]:
    values = {}
    for place, derived in experiment.derived.items():
        needed = [name for name in (derived.program, derived.beside) if name]
        if derived.program == program.name and all(name in outcome.runs for name in needed):
            with contextlib.suppress(NotReached):  # a program that asks for it will say that it is not known
                values[place] = derived.value(*(outcome.runs[name][-1] for name in needed), quick)
    return values


@dataclass(frozen=True)
class Made:
    """How a program has left its files, and what is needed to make them again."""
    program: Program
    places: dict[str, object]
    state: dict[str, list | None]  # by path
    before: dict[str, "Made"]  # the files that it found


class Workshop:
    """Runs the programs of an experiment, or takes their runs from the journal. A file that was made by a run that is only taken is
    made again when a program needs it and it is not there any more as that run left it."""

    def __init__(self, experiment: str, data_set: str, places: dict[str, object], bench: Bench):
        self.experiment, self.data_set, self.places, self.bench = experiment, data_set, places, bench
        self.made: dict[str, Made] = {}  # by path: how files should be now
        self.here: dict[str, Made | None] = {}  # by path: how those are that programs have touched since this bench was started

    def run(self, program: Program, repeat: int) -> Run:
        command = self.command(program, self.places)
        labels = {"experiment": self.experiment, "data_set": self.data_set, "program": program.name, "repeat": repeat,
                  "quick": self.bench.quick, "memory_limit": memory_limit(program, self.places), "disk_limit": program.disk_limit,
                  "built": Path(command[0]).stat().st_mtime}
        known = self.bench.journal.take(program.failing_is_an_outcome(), command=command, **labels)
        print(f"{self.data_set}, {self.experiment}: {program.name}{' (done before)' if known else ''}", file=sys.stderr)
        if known:
            run, state = known
        else:
            self.prepare(program, self.places, self.made)
            run = self.execute(program, self.places)
            state = {path: journal.state_of(Path(path)) for path in filled(program.touches(), self.places)}
            self.bench.journal.write(run, state, **labels)
        if not run.failed:
            made = Made(program, dict(self.places), state, dict(self.made))
            self.made |= dict.fromkeys(state, made)
            self.here |= {} if known else dict.fromkeys(state, made)
        return run

    def prepare(self, program: Program, places: dict[str, object], made: dict[str, Made]) -> None:
        """Makes again what it reads, where that is needed."""
        its_own = filled(program.makes, places)
        for path in filled(f"{program.arguments} {program.cold}", places):
            maker = made.get(path) if path not in its_own else None
            if maker is None or (self.here[path] is maker if path in self.here else journal.state_of(Path(path)) == maker.state[path]):
                continue
            print(f"{self.data_set}, {self.experiment}: {maker.program.name} again, for {program.name}", file=sys.stderr)
            self.prepare(maker.program, maker.places, maker.before)
            run = self.execute(maker.program, maker.places)
            if run.failed:
                raise RunFailed(run.command, run.ending(), run.stderr)
            self.here |= dict.fromkeys(maker.state, maker)

    def execute(self, program: Program, places: dict[str, object]) -> Run:
        self.here |= dict.fromkeys(filled(program.touches(), places))
        for path in filled(program.makes, places):
            remove(Path(path))
        for path in filled(program.cold, places):
            runner.evict(Path(path))
        environment = {"LD_PRELOAD": self.bench.tools[program.preload]} if program.preload else {}
        with contextlib.ExitStack() as stack:
            try:
                held = Limits(memory_limit(program, places), program.disk_limit)
                groups = stack.enter_context(limits.groups(held, self.bench.scratch))
            except limits.Unavailable as reason:
                raise Missing(str(reason)) from reason
            run = runner.run(self.command(program, places), environment, groups)
        if program.says not in run.stdout and not run.failed:
            raise RunFailed(run.command, f"expected '{program.says}' on stdout", run.stdout)
        if "{trace}" in program.arguments and not run.failed:
            run = dataclasses.replace(run, trace=runner.read_trace(Path(places["trace"])))
        return run

    def command(self, program: Program, places: dict[str, object]) -> list[str]:
        for tool in filter(None, (program.tool, program.preload)):
            if tool not in self.bench.tools:
                raise Missing(f"no {tool}")
        return [self.bench.tools[program.tool], *filled(program.arguments, places)]


def memory_limit(program: Program, places: dict[str, object]) -> int:
    return int("".join(filled(program.memory_limit, places)) or 0)


def filled(template: str, places: dict[str, object]) -> list[str]:
    """Words; split before filling in, so that a path may hold spaces."""
    try:
        return [word.format(**places) for word in shlex.split(template)]
    except KeyError as place:
        raise Missing(f"{place.args[0]} not known") from place


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
