"""The tables at the end of a bench: plain text for the terminal, Markdown for docs/benchmarks.md."""
import math
import re
import shlex
from collections.abc import Sequence
from statistics import geometric_mean, median

import charts
from experiments import Bound, Claim, Experiment, Measure, NotReached, Outcome, Overall, median_wall
from runner import Run

Table = tuple[tuple[str, ...], list[tuple[str, ...]]]  # head and rows


def measures_table(outcomes: Sequence[Outcome], overall: Sequence[Overall], judged: bool) -> Table:
    head = ("data set", "measure", "measured", "asked", "")
    rows = [measure_row(outcome, measure, judged) for outcome in outcomes for measure in outcome.experiment.measures]
    return head, rows + [row for one in overall for row in overall_rows(one, outcomes, judged)]


def measure_row(outcome: Outcome, measure: Measure, judged: bool) -> tuple[str, ...]:
    bound = measure.bound(outcome.data_set)
    reasons = missing(outcome, measure)
    if reasons:
        return outcome.data_set, measure.name, "not measured", str(bound or "-"), reasons[0]
    try:
        values = measured(outcome, measure)
    except KeyError as key:  # a program of another version says less
        return outcome.data_set, measure.name, "not measured", str(bound or "-"), f"no {key} in what was printed"
    except NotReached as reason:
        return outcome.data_set, measure.name, "not reached", str(bound or "-"), str(reason)
    if isinstance(values[0], str):
        return outcome.data_set, measure.name, ", ".join(dict.fromkeys(values)), "-", ""
    return (outcome.data_set, measure.name, f"{spread(values)} {measure.unit}".strip(), str(bound or "-"),
            verdict(median(values), bound, judged))


def overall_rows(overall: Overall, outcomes: Sequence[Outcome], judged: bool) -> list[tuple[str, ...]]:
    """One, or none where nothing of it was measured."""
    wanted = [(outcome, measure) for outcome in outcomes for measure in outcome.experiment.measures
              if measure.name in overall.measures and measure.bound(outcome.data_set)]
    values = [median(measured(*pair)) for pair in wanted if not missing(*pair)]
    if not values:
        return []
    mean = geometric_mean(values)
    count = "" if len(values) == len(wanted) else f" ({len(values)} of {len(wanted)})"
    return [("all", overall.name, f"{number(mean)} {overall.unit}{count}", str(overall.asked), verdict(mean, overall.asked, judged))]


def closing_table(outcomes: Sequence[Outcome], names: Sequence[str]) -> Table:
    """A row a data set, a column a measure."""
    cells: dict[str, dict[str, str]] = {}
    for outcome in outcomes:
        for measure in outcome.experiment.measures:
            if measure.name in names:
                cells.setdefault(outcome.data_set, {})[measure.name] = measure_row(outcome, measure, judged=False)[2]
    return ("data set", *names), [(data_set, *(found.get(name, "-") for name in names)) for data_set, found in cells.items()]


def gaps(experiments: Sequence[Experiment], outcomes: Sequence[Outcome], absent: Sequence[str]) -> list[str]:
    """What is not as it must be even with little data: experiments that did not run, and measures without a value or a reason."""
    ran = {outcome.experiment.name for outcome in outcomes}
    found = [f"{experiment.name} did not run: {'; '.join(absent) or 'no data set was asked for'}" for experiment in experiments
             if experiment.name not in ran and not all(any(f"data set {name} is" in why for why in absent) for name in experiment.data_sets)]
    for outcome in outcomes:
        for measure in outcome.experiment.measures:
            where = f"{outcome.experiment.name}, {outcome.data_set}, {measure.name}"
            reasons = missing(outcome, measure)
            found += [f"{where}: {reason}" for reason in reasons if " failed: " in reason]
            if not reasons:
                found += [f"{where}: {what}" for what in unfit(outcome, measure)]
    return found


def unfit(outcome: Outcome, measure: Measure) -> list[str]:
    try:
        values = measured(outcome, measure)
    except NotReached:  # a reason, in words
        return []
    except (KeyError, ArithmeticError, ValueError) as error:
        return [f"{type(error).__name__} {error}"]
    return ["no value"] if not values else [f"{value} is no finite number" for value in values
                                            if not isinstance(value, str) and not math.isfinite(value)]


def claims_table(outcomes: Sequence[Outcome], others: Sequence[Claim]) -> Table:
    rows = [claim_row(outcome, claim) for outcome in outcomes for claim in outcome.experiment.claims]
    rows += [(claim.paper, claim.where, claim.says, "-", "not testable here", claim.why_not) for claim in others]
    return ("paper", "where", "what it says", "data set", "here", "seen"), sorted(rows)


def claim_row(outcome: Outcome, claim: Claim) -> tuple[str, ...]:
    about = claim.paper, claim.where, claim.says, outcome.data_set
    wanted = [name for method in claim.programs for name in method]
    absent = [outcome.missing.get(name, f"{name} did not run") for name in wanted if name not in outcome.runs]
    if absent:
        return *about, "not testable here", absent[0]
    agrees, seen = claim.judge(*([outcome.runs[name][0] for name in method] for method in claim.programs))
    return *about, "agrees" if agrees else "differs", seen


def pictures(outcomes: Sequence[Outcome]) -> dict[str, str]:
    """SVG by the name of its file."""
    found = {}
    for outcome in outcomes:
        for figure in outcome.experiment.figures:
            runs = {line: [outcome.runs[name][0] for name in names if name in outcome.runs] for line, names in figure.lines.items()}
            everything = [run for several in runs.values() for run in several]
            lines = {line: [(figure.across[1](run, everything), figure.upward[1](run, everything)) for run in several]
                     for line, several in runs.items() if several}
            if lines:
                name = f"{outcome.experiment.name} {figure.name} {outcome.data_set}".lower()
                title = f"{figure.name}: {outcome.data_set}"
                found[re.sub(r"[^a-z0-9]+", "-", name) + ".svg"] = charts.chart(title, figure.across[0], figure.upward[0], lines)
    return found


def missing(outcome: Outcome, measure: Measure) -> list[str]:
    return [outcome.missing[name] for name in measure.programs if name in outcome.missing]


def measured(outcome: Outcome, measure: Measure) -> Sequence[float | str]:
    return measure.values(*(outcome.runs[name] for name in measure.programs))


def verdict(value: float, bound: Bound | None, judged: bool) -> str:
    if bound is None:
        return ""
    return "not judged" if not judged else "ok" if bound.holds(value) else "MISSED"


def programs_table(outcomes: Sequence[Outcome]) -> Table:
    head = ("data set", "program", "wall s", "CPU s", "peak MiB", "MB read", "times ours")
    return head, [row for outcome in outcomes for row in program_rows(outcome)]


def program_rows(outcome: Outcome) -> list[tuple[str, ...]]:
    """The last program of an experiment is ours; the ratio says how many times longer the others take."""
    *others, ours = [program.name for program in outcome.experiment.programs]
    rows = []
    for name in (*others, ours):
        if name not in outcome.runs:
            continue
        runs = outcome.runs[name]
        compared = name in others and ours in outcome.runs
        ratio = number(median_wall(runs) / median_wall(outcome.runs[ours])) if compared else ""
        if runs[-1].failed:
            ratio = runs[-1].ending()
        rows.append((outcome.data_set, name, *costs(runs), ratio))
    return rows


def costs(runs: Sequence[Run]) -> tuple[str, ...]:
    read = [run.bytes_read / 1e6 for run in runs if run.bytes_read is not None]
    return (
        spread([run.wall_seconds for run in runs]),
        spread([run.cpu_seconds for run in runs]),
        spread([run.peak_memory_bytes / (1 << 20) for run in runs]),
        number(median(read)) if read else "unknown",
    )


def command_lines(outcomes: Sequence[Outcome], shorten: dict[str, str]) -> list[str]:
    """Each command once; long folders by their short names, since they say nothing to another reader."""
    lines = []
    for outcome in outcomes:
        for runs in outcome.runs.values():
            words = runs[0].command
            for folder, short in shorten.items():
                words = [word.replace(folder, short) for word in words]
            lines.append(shlex.join(words))
    return list(dict.fromkeys(lines))


def spread(values: Sequence[float]) -> str:
    least, middle, most = number(min(values)), number(median(values)), number(max(values))
    return middle if least == most else f"{middle} ({least}-{most})"


def number(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.2f}" if value >= 10 else f"{value:.3f}"


def as_text(table: Table) -> str:
    head, rows = table
    widths = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head))]
    lines = [head, tuple("-" * width for width in widths), *rows]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip() for line in lines)


def as_markdown(table: Table) -> str:
    head, rows = table
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def document(title: str, tables: Sequence[Table], notes: Sequence[str], commands: Sequence[str], markdown: bool,
             pictures: Sequence[str] = ()) -> str:
    """The whole page, for the terminal or as Markdown."""
    show = as_markdown if markdown else as_text
    parts = [f"## {title}" if markdown else title, *(show(table) for table in tables if table[1])]
    parts += [f"![{name.removesuffix('.svg').replace('-', ' ')}]({name})" for name in pictures if markdown]
    parts.append("\n".join(f"- {note}" for note in notes))
    parts.append("\n".join(f"    {command}" for command in commands))
    return "\n\n".join(parts) + "\n"
