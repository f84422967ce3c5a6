"""Newton's method where dual descent is slow: tight gaps of the hinge, plain tables; and which solver suits which data, the table of docs/solvers.md."""
import re
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from anchors import best
from commands import EVERYTHING, HINGE, PACK, part_of_bytes, train
from experiments import Outcome
from headline import LOSSES, end_to_end
from page import as_markdown, look_at, measure_cell
from program import Bound, Experiment, Measure, Program, from_run
from runner import Run
from values import NotReached, Value, of, percent, wall

ANCHORED = ("kddcup99", "mnist")
TIGHT = ("kddcup99", "mnist", "mnist-digits", "a9a", "w8a", "connect-4-two", "ijcnn1")
ALL_SETS = ("scales", "mnist-raw", "pendigits", "counts", "splice", "mnist", "connect-4-two", "a9a", "w8a", "kddcup99", "letter", "ijcnn1", "imdb", "20news-1",
            "documents-some")
LONG = "--max-passes 100000 --max-seconds {minute}"
INFO = Program("info", "linblock", "info {store} --json")
ROOMS = {"in memory": EVERYTHING, "a tenth": "{tenth}"}
SOLVERS = ("dual", "newton")  # that are chosen from; the columns of primal are made by hand


def to_a_tight_gap(tolerance: str) -> Experiment:
    """Newton is the default for it; dual is what the hinge had before."""
    default, dual = (train(name, "{store}", f"--loss {HINGE} --cost 1 --tolerance {tolerance} {LONG}{options}", EVERYTHING, most_repeats=1)
                     for name, options in (("default", ""), ("dual", " --solver dual")))
    return Experiment("second-order", f"hinge to {tolerance}", "From a store with rows in memory to a certified gap. What does not arrive is stopped after a minute, and counts "
                      "as one.", (dual, default), data_sets=TIGHT, before=(PACK,), measures=(
        Measure("chosen", "", of(default, "solver")), Measure("default", "s", wall(default)), Measure("dual", "s", wall(dual)),
        Measure("passes, default", "", of(default, "passes")), Measure("passes, dual", "", of(dual, "passes")),
        Measure("certified gap, default", "%", percent(default, "certified_gap"), Bound(most=100 * float(tolerance))),
        Measure("dual / default", "times", wall(dual) / wall(default), Bound(least=1), mean=True)))


def seconds_of(run: Run) -> float | None:
    """Processor seconds to the tolerance; None where it did not get there."""
    return run.cpu_seconds if run.summary().get("converged") else None


def seconds(program: Program) -> Value:
    def look(runs: Sequence[Run]) -> list[float]:
        if any(run.failed for run in runs):
            raise NotReached(f"{program.name} is refused for lack of memory")
        if None in (found := [seconds_of(run) for run in runs]):
            raise NotReached(f"{program.name} does not arrive within a minute")
        return found

    return Value((program,), look)


def over_fastest(default: Program, *others: Program) -> Value:
    """What was chosen has also been run by its name, so the default itself does not count among the others."""
    def look(mine: Sequence[Run], *theirs: Sequence[Run]) -> list[float]:
        arrived = [seconds_of(run) for runs in theirs for run in runs if seconds_of(run) is not None]
        if not arrived or any(seconds_of(run) is None for run in mine):
            raise NotReached("the default, or every solver, does not arrive within a minute")
        return [median(map(seconds_of, mine)) / min(arrived)]

    return Value((default, *others), look)


def difficulty(run: Run) -> float:
    """At cost 1; a store of an earlier version does not know it."""
    return run.summary()["mean_squared_length"]


def which_solver(loss: str, room: str) -> Experiment:
    default, *others = (train(solver or "default", "{store}", f"--loss {loss} --cost 1 --tolerance 0.01 {LONG}{solver and ' --solver ' + solver}", ROOMS[room], threads=1,
                              most_repeats=1, may_fail=bool(solver)) for solver in ("", *SOLVERS))
    return Experiment("second-order", f"which solver, {loss}, {room}", "The default to a certified 1%, from a store, against each solver that it chooses from. Processor seconds "
                      "of one thread.", (*others, default), data_sets=ALL_SETS, before=(PACK, INFO), derived={"tenth": part_of_bytes(PACK, 10)}, measures=(
        Measure("cost x squared row length", "", of(INFO, difficulty)), Measure("rows per feature", "", of(INFO, "rows") / of(INFO, "features")),
        Measure("chosen", "", of(default, "solver")), *(Measure(one.name, "s", seconds(one)) for one in (*others, default)),
        Measure("default / fastest", "times", over_fastest(default, *others), Bound(most=1.5))))


def against_scikit_learn(name: str, options: str, sets: Sequence[str], least: float | None) -> Experiment:
    """Both leave the bias unpenalized, and both are stopped within 0.1% of the optimum: scikit-learn by an oracle, linblock by its certificate."""
    optimum = train(f"the optimum, {name}", "{store}", f"{options} --tolerance 1e-5 --max-seconds 300", EVERYTHING, model="{model}-optimum", kept=True)
    theirs = Program("scikit-learn", "scikit-learn", "{bench}/unpenalized.py {text} {optimum} 0.001", most_repeats=1)
    ours = train("linblock", "{text}", f"{options} --tolerance 0.001", EVERYTHING)
    seconds = of(theirs, "seconds")
    return Experiment("second-order", name, f"From svmlight text to a model within 0.1% of the optimum (`{options}`); scikit-learn's lbfgs at its loosest `tol` that arrives.",
                      (theirs, ours), data_sets=sets, before=(PACK, optimum), repeats=3,
                      derived={"optimum": from_run(optimum, lambda run, quick: run.summary()["primal"])}, measures=(
        Measure("scikit-learn", "s", seconds), Measure("scikit-learn's tol", "", of(theirs, "tolerance")), Measure("scikit-learn, above the optimum", "%", percent(theirs, "above")),
        Measure("linblock", "s", wall(ours)), Measure("passes", "", of(ours, "passes")), Measure("certified gap", "%", percent(ours, "certified_gap"), Bound(most=0.1)),
        Measure("scikit-learn / linblock", "times", seconds / wall(ours), Bound(least=least) if least else None, mean=True)))


CHOICES = {(loss, room): which_solver(loss, room) for loss in LOSSES for room in ROOMS}
EXPERIMENTS = (*(end_to_end("second-order", f"second order, {loss}", best(loss), f"--loss {loss}", ANCHORED, 0.2, repeats=3) for loss in LOSSES),
               to_a_tight_gap("1e-4"), to_a_tight_gap("1e-6"),
               against_scikit_learn("softmax", "--multiclass softmax --free-bias", ("letter", "20news", "mnist-digits"), 3),
               against_scikit_learn("free bias, logistic", "--loss logistic --free-bias", ("imdb",), None), *CHOICES.values())

# The table of docs/solvers.md, between two comments.
BEGIN, END = "<!-- which solver: written by ./run bench second-order --data DIR --docs docs -->\n", "<!-- end -->\n"


def table(outcomes: Sequence[Outcome]) -> str:
    """A row for each set: what it is like, and the seconds of each solver in memory, with what is chosen in bold."""
    found = {(outcome.experiment.name, outcome.data_set): outcome for outcome in outcomes}
    rows = []
    for name in ALL_SETS:
        cells = []
        for loss in LOSSES:
            outcome = found.get((CHOICES[loss, "in memory"].name, name))
            if outcome is None:
                return ""  # not all of them were measured
            length, rows_per_feature, chosen, *times = outcome.experiment.measures[:3 + len(SOLVERS)]
            picked = look_at(outcome, chosen.value)[0]
            shown = {one.name: measure_cell(outcome, one, False) for one in times}
            cells.append(" / ".join(f"**{cell}**" if solver in picked else cell for solver, cell in shown.items()))
        rows.append((name, measure_cell(outcome, length, False), measure_cell(outcome, rows_per_feature, False), *cells))
    head = ("data", "cost x squared row length", "rows per feature", *(f"{loss}, s" for loss in LOSSES))
    return as_markdown((head, rows))


def update(path: Path, outcomes: Sequence[Outcome]) -> None:
    """Where all of it was measured."""
    made, text = table(outcomes), path.read_text()
    if made:
        path.write_text(re.sub(re.escape(BEGIN) + ".*?" + re.escape(END), lambda _: BEGIN + "\n" + made + "\n\n" + END, text, flags=re.DOTALL))
