"""What measures are made of. `each` looks at every run of a program; `ratio` and `difference` compare the medians of two programs. Runs of
more programs may follow those: whatever looks at runs is given them too."""
from collections.abc import Callable, Sequence
from statistics import median

from experiments import NotReached, median_wall, summaries
from runner import Run

MEBIBYTE = 1 << 20
Values = Callable[..., Sequence[float]]  # of the runs of one program, beside those of others


def each(look: Callable[[Run], object]) -> Values:
    return lambda runs: [look(run) for run in runs]


def ratio(values: Values) -> Values:
    return lambda above, below, *more: [median(values(above, *more)) / median(values(below, *more))]


def difference(values: Values) -> Values:
    return lambda more, less: [median(values(more)) - median(values(less))]


def between(values: Values) -> Values:
    """The most that programs are apart."""
    def most(*programs: Sequence[Run]) -> list[float]:
        found = [median(values(runs)) for runs in programs]
        return [max(found) - min(found)]

    return most


def percent(key: str) -> Values:
    return lambda runs: [100 * value for value in summaries(key)(runs)]


walls = each(lambda run: run.wall_seconds)
walls_ratio = ratio(walls)
bytes_ratio = ratio(summaries("bytes_read"))
passes_ratio = ratio(summaries("passes"))
accuracy, gap_percent = percent("accuracy"), percent("gap")
accuracy_lost = difference(accuracy)
ending = each(Run.ending)  # of a program that may fail


def over_best(ours: Sequence[Run], *others: Sequence[Run]) -> list[float]:
    """Of those that reached 1%; what was chosen has also been run by its name, so noise alone may make this less than 1."""
    times = [median_wall(runs) for runs in others if max(gap_percent(runs)) <= 1]
    if not times:
        raise NotReached("a certified 1% by no method")
    return [median_wall(ours) / min(times)]


def readings(runs: Sequence[Run], packed: Sequence[Run]) -> list[float]:
    """How often a store was read, in all: certifying counts."""
    return [run.summary()["bytes_read"] / packed[0].summary()["bytes"] for run in runs]


def peak_over_budget(runs: Sequence[Run]) -> list[float]:
    """The peak as the kernel counts it for the program alone, against --memory."""
    return [max(run.summary()["peak_memory_bytes"] / int(run.command[run.command.index("--memory") + 1]) for run in runs)]


# Memory that programs are given, from what an earlier one says.

def at_least(wanted: int, quick: bool) -> int:
    """Little data has as many features as much data has, so it needs more than its share."""
    return max(wanted // MEBIBYTE, 64 if quick else 16) * MEBIBYTE


def tenth_of_peak(run: Run, quick: bool) -> int:
    return at_least(run.peak_memory_bytes // 10, quick)


def twentieth_of_store(run: Run, quick: bool) -> int:
    return at_least(run.summary()["bytes"] // 20, quick)


def more(value: Callable[[Run, bool], int], slack: int) -> Callable[[Run, bool], int]:
    return lambda run, quick: value(run, quick) + slack
