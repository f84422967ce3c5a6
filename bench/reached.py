"""When a solver reached something: ours from the lines of --trace, LIBLINEAR's from what it prints under iteration_clock. Loading and
packing are left out of both."""
import re
from collections.abc import Callable, Iterator

from experiments import NotReached
from runner import Run

NEAR = 0.01  # of the optimum

# LIBLINEAR prints a step before it takes it: f and |g| are those it began at.
LIBLINEAR_STEP = re.compile(r"^(\S+) s: iter +\d+ act (\S+) pre \S+ delta \S+ f (\S+) \|g\| \S+", re.MULTILINE)
LIBLINEAR_END = re.compile(r"^trained in (\S+) s, last norm (\S+)$", re.MULTILINE)


def near(objective: float, optimum: float) -> bool:
    return objective <= (1 + NEAR) * optimum


# Ours.

def passes_of(run: Run) -> Iterator[dict]:
    return (line for line in run.trace if line["event"] == "pass")


def first_pass(run: Run, what: str, holds: Callable[[dict], bool]) -> dict:
    for line in passes_of(run):
        if holds(line):
            return line
    raise NotReached(f"{what} in no pass")


def near_pass(run: Run, optimum: float, certified: bool = False) -> dict:
    """`certified`: for a method whose objective is an estimate until a certificate is made."""
    return first_pass(run, "within 1%", lambda line: line["primal"] is not None and near(line["primal"], optimum)
                      and (line["certified"] or not certified))


def gradient_pass(run: Run, norm: float) -> dict:
    """Newton's method alone: others know the gradient of no single point."""
    return first_pass(run, "so small a gradient", lambda line: line.get("gradient_norm", float("inf")) <= norm)


def seconds_until(run: Run, end: dict, certificates: bool) -> float:
    """Until the end of a pass, without the time that rows or columns took to come into memory. `certificates`: they count, since
    without them the method does not know where it is."""
    def total(key: str) -> float:
        return sum(line.get(key, 0) for line in passes_of(run) if line["pass"] <= end["pass"])

    return end["seconds"] - total("wait_seconds") - (0 if certificates else total("certify_seconds"))


# LIBLINEAR's.

def liblinear_near(run: Run, optimum: float) -> float:
    """Seconds of training, of Newton's method; objectives are printed to four digits."""
    for seconds, decrease, before in LIBLINEAR_STEP.findall(run.stdout):
        if near(float(before) - max(0.0, float(decrease)), optimum):
            return float(seconds)
    raise NotReached("within 1% in no step")


def liblinear_seconds(run: Run) -> float:
    return float(LIBLINEAR_END.search(run.stdout)[1])


def liblinear_norm(run: Run) -> float:
    """Of the gradient that Newton's method stopped at, which it does not print itself."""
    return float(LIBLINEAR_END.search(run.stdout)[2])
