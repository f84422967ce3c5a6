"""The page at the end of a bench, in Markdown, for the terminal and for docs/benchmarks.md."""
import math
import shlex
from collections.abc import Sequence
from statistics import geometric_mean, median

from experiments import Bound, Experiment, Measure, NotReached, Outcome, Overall, median_wall
from runner import Run

Table = tuple[tuple[str, ...], list[tuple[str, ...]]]  # head and rows
WRONG = "WRONG"  # in place of a value


def measures_table(outcomes: Sequence[Outcome], overall: Sequence[Overall], judged: bool) -> Table:
    head = ("data set", "measure", "measured", "asked", "")
    rows = [measure_row(outcome, measure, judged) for outcome in outcomes for measure in outcome.experiment.measures]
    return head, rows + [row for one in overall for row in overall_rows(one, outcomes, judged)]


def look_at(outcome: Outcome, measure: Measure) -> tuple[Sequence[float | str], str, str]:
    """Its values; where there are none, what is the matter in a word or two, and why."""
    for name in measure.programs:
        if name in outcome.missing:
            return (), "not measured", outcome.missing[name]
    try:
        values = measure.values(*(outcome.runs[name] for name in measure.programs))
        if not values or any(not isinstance(value, str) and not math.isfinite(value) for value in values):
            return (), WRONG, f"no finite number in {values}"
    except NotReached as reason:
        return (), "not reached", str(reason)
    except (LookupError, TypeError, ValueError, ArithmeticError) as error:  # a program does not say what it should
        return (), WRONG, f"{type(error).__name__}: {error}"
    return values, "", ""


def measure_row(outcome: Outcome, measure: Measure, judged: bool) -> tuple[str, ...]:
    bound = measure.bound(outcome.data_set)
    values, what, why = look_at(outcome, measure)
    if not values:
        return outcome.data_set, measure.name, what, str(bound or "-"), why
    if isinstance(values[0], str):
        return outcome.data_set, measure.name, ", ".join(dict.fromkeys(values)), "-", ""
    return (outcome.data_set, measure.name, f"{spread(values)} {measure.unit}".strip(), str(bound or "-"),
            verdict(median(values), bound, judged))


def overall_rows(overall: Overall, outcomes: Sequence[Outcome], judged: bool) -> list[tuple[str, ...]]:
    """One, or none where nothing of it was measured."""
    wanted = [look_at(outcome, measure)[0] for outcome in outcomes for measure in outcome.experiment.measures
              if measure.name in overall.measures and measure.bound(outcome.data_set)]
    found = [median(values) for values in wanted if values]
    if not found:
        return []
    mean = geometric_mean(found)
    count = "" if len(found) == len(wanted) else f" ({len(found)} of {len(wanted)})"
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
    there = {name for experiment in experiments for name in experiment.data_sets if not any(f"data set {name} is" in why for why in absent)}
    found = [f"{experiment.name} did not run" for experiment in experiments
             if experiment.name not in ran and (there & set(experiment.data_sets) or not experiment.data_sets)]
    for outcome in outcomes:
        for measure in outcome.experiment.measures:
            _, what, why = look_at(outcome, measure)
            if what == WRONG or " failed: " in why:
                found.append(f"{outcome.experiment.name}, {outcome.data_set}, {measure.name}: {why}")
    return found


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


def as_markdown(table: Table) -> str:
    """With columns as wide as their cells, so that it can be read as it is."""
    head, rows = table
    widths = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head))]
    lines = [head, tuple("-" * width for width in widths), *rows]
    return "\n".join("| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths)) + " |" for line in lines)


def document(title: str, tables: Sequence[Table], notes: Sequence[str], commands: Sequence[str], pictures: Sequence[str]) -> str:
    """The whole page, in Markdown."""
    parts = [f"## {title}", *(as_markdown(table) for table in tables if table[1])]
    parts += [f"![{name.removesuffix('.svg').replace('-', ' ')}]({name})" for name in pictures]
    parts.append("\n".join(f"- {note}" for note in notes))
    parts.append("\n".join(f"    {command}" for command in commands))
    return "\n\n".join(parts) + "\n"
