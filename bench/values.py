"""Numbers from runs, which measures and claims are made of. `of(program, what)` has one for each run; arithmetic is that of medians."""
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partialmethod
from statistics import median

from program import Program
from runner import Run


class NotReached(Exception):
    """Why there is no number, although the programs ran: what it waits for never happened."""


@dataclass(frozen=True)
class Value:
    programs: tuple[Program, ...]
    look: Callable[..., Sequence[float | str]]  # from the runs of each program
    without: tuple[Program, ...] = ()  # it has a value without these too: their runs may be none

    def with_other(self, how: Callable, other: "Value | float") -> "Value":
        if isinstance(other, Value):
            return together(how, self, other)
        return Value(self.programs, lambda *runs: [how(one, other) for one in self.look(*runs)], self.without)

    def needs(self) -> tuple[Program, ...]:
        return tuple(program for program in self.programs if program not in self.without)

    __truediv__, __mul__ = partialmethod(with_other, operator.truediv), partialmethod(with_other, operator.mul)
    __add__, __sub__ = partialmethod(with_other, operator.add), partialmethod(with_other, operator.sub)

    def middle(self, runs: dict[str, list[Run]]) -> float:
        return median(self.look(*(runs[program.name] for program in self.programs)))


def together(how: Callable, *values: Value) -> Value:
    """One number from the medians of several."""
    programs = sum((value.programs for value in values), ())
    needed = sum((value.needs() for value in values), ())
    return Value(programs, lambda *runs: [how(*(value.middle({p.name: r for p, r in zip(programs, runs)}) for value in values))],
                 tuple(program for program in programs if program not in needed))


def least(first: Value, *others: Value) -> Value:
    """Of the first and those others whose programs are here."""
    programs = sum((value.programs for value in (first, *others)), ())

    def look(*runs: Sequence[Run]) -> list[float]:
        known = {program.name: several for program, several in zip(programs, runs)}
        return [min(value.middle(known) for value in (first, *others) if all(known[program.name] for program in value.needs()))]

    return Value(programs, look, tuple(program for program in programs if program not in first.needs()))


def of(program: Program, what: str | Callable[[Run], object]) -> Value:
    """`what`: a function of a run, or where it is in the JSON that the program prints, with dots."""
    def in_summary(run: Run) -> object:
        found = run.summary()
        for key in what.split("."):
            found = found[key]
        return found

    return Value((program,), lambda runs: [(what if callable(what) else in_summary)(run) for run in runs])


def wall(program: Program) -> Value:
    return of(program, lambda run: run.wall_seconds)


def percent(program: Program, key: str) -> Value:
    return of(program, key) * 100


def without_v(program: Program) -> Value:
    """The share of certificates that needed margins alone; newton's have no v to do without."""
    def look(runs: Sequence[Run]) -> list[float]:
        made = [run.summary().get("certificates") for run in runs]
        if None in made:
            raise NotReached(f"{program.name} used newton, which needs no v")
        return [100 * one["without_v"] / one["made"] for one in made]

    return Value((program,), look)


def apart(*values: Value) -> Value:
    """The most that any two are."""
    return together(lambda *all_of: max(all_of) - min(all_of), *values)


def over_best(ours: Program, *others: Program) -> Value:
    """Wall times; of the others, those that certified 1% count. What was chosen has also been run by its name, so noise alone may
    make this less than 1."""
    def ratio(mine: Sequence[Run], *theirs: Sequence[Run]) -> list[float]:
        times = [median(run.wall_seconds for run in runs) for runs in theirs if max(run.summary()["certified_gap"] for run in runs) <= 0.01]
        if not times:
            raise NotReached("a certified 1% by no method")
        return [median(run.wall_seconds for run in mine) / min(times)]

    return Value((ours, *others), ratio)


def readings(program: Program, packed: Program) -> Value:
    """How often a store was read, in all: certifying counts."""
    return of(program, "bytes_read") / of(packed, "bytes")


def peak_over_budget(program: Program) -> Value:
    """The peak as the kernel counts it for the program alone, against --memory."""
    return of(program, lambda run: run.summary()["peak_memory_bytes"] / int(run.command[run.command.index("--memory") + 1]))


# Curves: what is known of a model after more and more work.

@dataclass(frozen=True)
class Point:
    passes: int
    seconds: float  # of training: neither loading nor certificates
    megabytes: float
    objective: float
    error: float | None  # percent, on the test set


def error_of(accuracy: float | None) -> float | None:
    return None if accuracy is None else 100 * (1 - accuracy)


@dataclass(frozen=True)
class Line:
    name: str
    programs: tuple[Program, ...]
    look: Callable[..., list[Point]]  # from the last run of each program

    def points(self, runs: dict[str, list[Run]]) -> list[Point]:
        return self.look(*(runs[program.name][-1] for program in self.programs))


def ends(name: str, programs: Sequence[Program]) -> Line:
    """Of runs that end after more and more passes: each point is a certified objective and a tested model."""
    def look(*runs: Run) -> list[Point]:
        found = [run.summary() for run in runs]
        return [Point(one["passes"], one["seconds"]["solve"] + one["seconds"]["wait"], one["bytes_read"] / 1e6,
                      (one.get("truncated") or {}).get("objective") or one["primal"], error_of(one.get("test", {}).get("accuracy"))) for one in found]

    return Line(name, tuple(programs), look)


def traced(name: str, timed: Program, tested: Program) -> Line:
    """Of the passes of one run, for methods that know their objective after each; tests take time, and come from another run of the same."""
    def look(run: Run, other: Run) -> list[Point]:
        errors = {line["pass"]: error_of(line["test_accuracy"]) for line in other.trace}
        points, aside = [], 0.0
        for line in run.trace:
            aside += line["wait_seconds"] + line.get("certify_seconds", 0)
            if line["primal"] is not None:
                points.append(Point(line["pass"], line["seconds"] - aside, line["bytes_read"] / 1e6, line["primal"], errors.get(line["pass"])))
        return points

    return Line(name, (timed, tested), look)


def reach(line: Line, among: Sequence[Line], level: float = 0.01, across: str = "seconds", upward: str = "objective") -> Value:
    """Where a line first comes so near to the best of several: a part of the objective, or points of error."""
    lines = (line, *among)
    programs = tuple(dict.fromkeys(program for one in lines for program in one.programs))

    def look(*runs: Sequence[Run]) -> list[float]:
        known = dict(zip((program.name for program in programs), runs))
        best = min(getattr(point, upward) for one in lines for point in one.points(known))
        enough = best * (1 + level) if upward == "objective" else best + level
        for point in line.points(known):
            if getattr(point, upward) <= enough:
                return [getattr(point, across)]
        raise NotReached(f"{level:g} from the best at no time")

    return Value(programs, look)


def last(line: Line, upward: str) -> Value:
    def look(*runs: Sequence[Run]) -> list[float]:
        return [getattr(point, upward) for point in line.look(*(several[-1] for several in runs)) if getattr(point, upward) is not None][-1:]

    return Value(line.programs, look)
