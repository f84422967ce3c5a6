"""The page of what was measured, in Markdown with pictures, from the outcomes of experiments."""
import math
import re
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import fmean, median

import charts
from experiments import Outcome
from program import Claim, Figure, Measure
from values import NotReached, Value, last

TITLES = {"peers": "Against its peers", "papers": "The papers' experiments", "store": "The store", "train": "Training", "models": "Several models",
          "primal": "Primal methods", "second-order": "Second order", "indexed": "The index and truncated losses"}
WRONG = "WRONG"  # in place of a value
NO_DIFFERENCE, AS_CLAIMED = "no difference", "no difference, as claimed"
AXES = {"seconds": "seconds of training", "megabytes": "megabytes read", "objective": "objective above the best", "error": "points of test error above the best"}
Table = tuple[tuple[str, ...], list[tuple[str, ...]]]  # head and rows


def look_at(outcome: Outcome, value: Value) -> tuple[Sequence[float | str], str, str]:
    """Its numbers; where there are none, what is the matter in a word or two, and why."""
    for program in value.needs():
        if program.name not in outcome.runs:
            return (), "not measured", outcome.missing.get(program.name, f"{program.name} did not run")
    try:
        values = value.look(*(outcome.runs.get(program.name, []) for program in value.programs))
        if not values or any(not isinstance(one, str) and not math.isfinite(one) for one in values):
            return (), WRONG, f"no finite number in {values}"
    except NotReached as reason:
        return (), "never", str(reason)
    except (LookupError, TypeError, ValueError, ArithmeticError) as error:  # a program does not say what it should
        return (), WRONG, f"{type(error).__name__}: {error}"
    return values, "", ""


def gaps(outcome: Outcome) -> list[str]:
    """What is not as it must be even with little data: measures and claims without a value or a reason, and curves without points."""
    experiment = outcome.experiment
    values = [(measure.name, measure.value) for measure in experiment.measures]
    values += [(claim.says, value) for claim in experiment.claims for value in claim.values]
    values += [(figure.name, last(line, figure.upward)) for figure in experiment.figures for line in figure.lines]
    found = [(name, *look_at(outcome, value)[1:]) for name, value in values]
    return [f"{experiment.name}, {outcome.data_set}, {name}: {why}" for name, what, why in found
            if what == WRONG or " failed: " in why or why.endswith("not known")]


# An experiment, from its outcomes, one a data set: a table of its measures, one of its claims, its pictures.

def measures_table(outcomes: Sequence[Outcome], judged: bool) -> Table:
    measures = outcomes[0].experiment.measures
    further = {"geometric mean": [geometric_mean(outcomes, measure) if measure.mean else "" for measure in measures],
               "asked": [str(measure.asked or "") for measure in measures]}
    shown = {head: cells for head, cells in further.items() if any(cells)}
    rows = [(f"{measure.name}, {measure.unit}" if measure.unit else measure.name, *(measure_cell(outcome, measure, judged) for outcome in outcomes), *more)
            for measure, *more in zip(measures, *shown.values())]
    return ("", *(outcome.data_set for outcome in outcomes), *shown), rows


def geometric_mean(outcomes: Sequence[Outcome], measure: Measure) -> str:
    """Over the data sets that have a value."""
    found = [median(values) for values in (look_at(outcome, measure.value)[0] for outcome in outcomes) if values]
    return number(math.exp(fmean(map(math.log, found)))) + f" of {len(found)}" if found else ""


def measure_cell(outcome: Outcome, measure: Measure, judged: bool) -> str:
    values, what, _ = look_at(outcome, measure.value)
    if not values:
        return what
    if isinstance(values[0], str):
        return ", ".join(dict.fromkeys(values))
    asked = judged and measure.asked and (not measure.only or outcome.data_set in measure.only)
    return spread(values) + ("" if not asked or measure.asked.holds(median(values)) else " **MISSED**")


def claims_table(outcomes: Sequence[Outcome]) -> Table:
    claims = outcomes[0].experiment.claims
    return (("the paper says", *(outcome.data_set for outcome in outcomes)),
            [(f"{claim.where}: {claim.says}" + (f" ({claim.allows()})" if claim.allows() else ""), *(": ".join(judge(outcome, claim)) for outcome in outcomes)) for claim in claims])


def judge(outcome: Outcome, claim: Claim) -> tuple[str, str]:
    numbers = []
    for value in claim.values:
        values, what, why = look_at(outcome, value)
        if not values and what != "never":
            return "not testable here", why
        numbers.append(median(values) if values else math.inf)
    if min(numbers) == math.inf:
        return "not testable here", "reached by none"
    return verdict(claim, numbers), " against ".join(f"{number(one)} {claim.unit}".strip() if one < math.inf else "never" for one in numbers)


def verdict(claim: Claim, numbers: Sequence[float]) -> str:
    orders = [order(claim, numbers[0], other) for other in numbers[1:]]
    if numbers[0] > claim.most or 1 in orders:
        return "**differs**"
    return "agrees" if 0 not in orders else AS_CLAIMED if claim.even else NO_DIFFERENCE


def order(claim: Claim, first: float, other: float) -> int:
    """-1: less; 0: no difference, as the page shows numbers and beyond the claim's slack; 1: more."""
    if first == other or math.isfinite(first + other) and number(first) == number(other):
        return 0
    if claim.factor() < 1:
        return -1 if first <= claim.factor() * other else 1
    beyond = claim.factor() * min(first, other) + claim.margin < max(first, other)
    return 0 if not beyond else -1 if first < other else 1


def reasons(outcomes: Sequence[Outcome]) -> list[str]:
    """Why claims differ where they do, and why numbers are missing."""
    claims = [claim for claim in outcomes[0].experiment.claims if claim.if_not and any("differs" in judge(outcome, claim)[0] for outcome in outcomes)]
    found = [look_at(outcome, measure.value) for outcome in outcomes for measure in outcome.experiment.measures]
    return [f"*{claim.where}, where it differs:* {claim.if_not}." for claim in claims] + [
        f"*{what.capitalize()}:* {'; '.join(dict.fromkeys(why for _, other, why in found if other == what))}."
        for what in dict.fromkeys(what for _, what, _ in found if what)]


def pictures(outcomes: Sequence[Outcome]) -> dict[str, str]:
    """SVG by the name of its file."""
    found = {}
    for outcome in outcomes:
        for figure in outcome.experiment.figures:
            points = {line.name: line.points(outcome.runs) for line in figure.lines if all(one.name in outcome.runs for one in line.programs)}
            if drawn := {name: line for name, line in curves(figure, points).items() if line}:
                file = re.sub(r"[^a-z0-9]+", "-", f"{outcome.experiment.name} {figure.name} {outcome.data_set}".lower()) + ".svg"
                found[file] = charts.chart(f"{figure.name}: {outcome.data_set}", AXES[figure.across], AXES[figure.upward], drawn)
    return found


def curves(figure: Figure, lines: Mapping[str, Sequence]) -> dict[str, list[tuple[float, float]]]:
    values = [getattr(point, figure.upward) for line in lines.values() for point in line]
    best = min((value for value in values if value is not None), default=0)
    above = (lambda value: value / best - 1) if figure.upward == "objective" else (lambda value: value - best)
    return {name: [(getattr(point, figure.across), above(getattr(point, figure.upward))) for point in line
                   if getattr(point, figure.upward) is not None] for name, line in lines.items()}


def section(outcomes: Sequence[Outcome], judged: bool, folder: str) -> tuple[list[str], dict[str, str]]:
    """The parts of an experiment's section, and its pictures, which are looked for in `folder`."""
    experiment, drawn = outcomes[0].experiment, pictures(outcomes)
    tables = [measures_table(outcomes, judged), claims_table(outcomes)]
    shown = " ".join(f"![{file.removesuffix('.svg').replace('-', ' ')}]({folder}{file})" for file in drawn)
    command = f"./run bench {experiment.bench.split()[0]} --only {shlex.quote(experiment.name)}" + (" --data DIR" if experiment.data_sets else "")
    return [f"### {experiment.name}", f"{experiment.says} Made by `{command}`.", *(as_markdown(table) for table in tables if table[1]),
            *reasons(outcomes), *([shown] if shown else [])], drawn


# The whole.

def page(outcomes: Sequence[Outcome], others: Sequence[Claim], notes: Sequence[str], judged: bool, folder: str = "") -> tuple[str, dict[str, str]]:
    """`others`: claims that no experiment judges."""
    parts, drawn = ["# What was measured", "Written by `./run bench --data DIR --docs docs`, or by the command under a heading for that part alone.",
                    "\n".join(f"- {note}" for note in notes)], {}
    for bench, title in TITLES.items():
        experiments = dict.fromkeys(outcome.experiment.name for outcome in outcomes if outcome.experiment.bench.split()[0] == bench)
        parts += [f"## {title}"] if experiments else []
        if bench == "papers" and experiments:
            parts += [counted(outcomes, others), as_markdown((("paper", "where", "what it says", "why it is not tested here"), [
                (claim.paper, claim.where, claim.says, claim.why_not) for claim in others]))]
        for name in experiments:
            words, svgs = section([one for one in outcomes if one.experiment.name == name], judged, folder)
            parts, drawn = parts + words, drawn | svgs
    return "\n\n".join(parts) + "\n", drawn


def counted(outcomes: Sequence[Outcome], others: Sequence[Claim]) -> str:
    verdicts = Counter(judge(outcome, claim)[0].strip("*") for outcome in outcomes for claim in outcome.experiment.claims)
    verdicts["not testable here"] += len(others)
    return (f"Of {verdicts.total()} checks (claim and data set), {verdicts['agrees']} agree with the paper, {verdicts['differs']} differ, {verdicts[NO_DIFFERENCE]} show no "
            f"difference, {verdicts[AS_CLAIMED]} show none where the paper claims none, and {verdicts['not testable here']} cannot be tested here. A difference within the "
            "slack, or too small for the digits shown, is none. Each check stands below its experiment; this table has those that no experiment can judge.")


def spread(values: Sequence[float]) -> str:
    least, middle, most = number(min(values)), number(median(values)), number(max(values))
    return middle if least == most else f"{middle} ({least}-{most})"


def number(value: float) -> str:
    size = abs(value)
    return f"{value:.0f}" if size >= 100 or value == int(value) else f"{value:.2f}" if size >= 1 else f"{value:.3f}"


def as_markdown(table: Table) -> str:
    """With columns as wide as their cells, so that it can be read as it is."""
    head, rows = table
    widths = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head))]
    lines = [head, tuple("-" * max(width, 3) for width in widths), *rows]
    return "\n".join("| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths)) + " |" for line in lines)
