"""What a bench is made of: programs, what is measured of them, and what papers say of that."""
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Program:
    name: str
    tool: str  # which program: "linblock", one beside it, or a peer's name
    arguments: str  # {text}, {store}, {model} and the other places of bench.py, {rows_1} and what is derived are filled in
    makes: str = ""  # files and folders, removed before each run, not timed; who reads them depends on this program
    says: str = ""  # what stdout must hold for the run to count
    cold: str = ""  # files and folders, put out of the page cache before each run
    memory_limit: str = ""  # bytes, of a control group
    disk_limit: int = 0  # bytes a second, of a control group
    most_repeats: int = sys.maxsize
    kept: bool = False  # what it says depends on its command alone, and takes long to find out: taken from the journal where it stands there
    may_fail: bool = False  # measures look at how it ended; a peer that fails without this is left out, with the reason


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
    value: "Value"  # noqa: F821: values.py
    asked: Bound | None = None
    only: Sequence[str] = ()  # the data sets where that is asked; none: all
    mean: bool = False  # the geometric mean over the data sets is shown too


NOISE = 1.05  # times of one program are apart by so much from run to run


@dataclass(frozen=True)
class Claim:
    """What a paper says: the first value is less than each of the others, or no more than `most` where it is alone."""
    paper: str
    where: str
    says: str
    values: tuple = ()
    unit: str = "s"
    most: float = float("inf")
    slack: float = 0.0  # values that differ by no more than this factor are equal; below 1: the first must be so much less. 0: 5% for seconds, else none
    margin: float = 0.0  # so are values that differ by no more than this
    even: bool = False  # the paper says that they are equal, or that the first is less
    if_not: str = ""  # why it is not so here, where it is not
    why_not: str = ""  # it cannot be judged here

    def factor(self) -> float:
        return self.slack or (NOISE if self.unit == "s" else 1.0)

    def allows(self) -> str:
        """How the values are compared, in words."""
        if self.most < float("inf"):
            return f"at most {self.most:g}"
        if self.factor() < 1:
            return f"at most {self.factor():.2g} times"
        slack = [f"{100 * (self.factor() - 1):.3g}%"] * (self.factor() > 1) + [f"{self.margin:g} points"] * (self.margin > 0)
        return f"slack {' and '.join(slack)}" if slack else ""


@dataclass(frozen=True)
class Figure:
    """Curves. Across and upward: fields of a point; upward is how much it is above the best, as a part of it (objective) or a difference."""
    name: str
    lines: tuple
    across: str = "seconds"
    upward: str = "objective"


@dataclass(frozen=True)
class Experiment:
    bench: str  # or several, with blanks; the page has it under the first
    name: str
    says: str  # what it shows, for the page
    programs: tuple[Program, ...]  # the last is ours
    measures: tuple[Measure, ...] = ()
    data_sets: tuple[str, ...] = ()  # none: it makes its own
    rows: tuple[int, int] = (0, 0)  # {rows_1}, {rows_2} for twice as many: in full, and with --quick
    before: tuple[Program, ...] = ()  # run once, first
    after: tuple[Program, ...] = ()  # run once, last
    derived: Mapping[str, Callable] = field(default_factory=dict)  # places that later programs are given, from the latest runs by name, and quick
    figures: tuple[Figure, ...] = ()
    claims: tuple[Claim, ...] = ()
    repeats: int = 3  # runs of each program, unless --repeats says otherwise

    def all_programs(self) -> tuple[Program, ...]:
        return self.before + self.programs + self.after


def from_run(program: Program, value: Callable) -> Callable:
    """A derived place, from the latest run of one program."""
    return lambda last, quick: value(last[program.name], quick)
