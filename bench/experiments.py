"""What an experiment is, and how one is run: its programs in turn, A B A B, so that noise meets all alike."""
import shlex
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

import runner
from runner import Run, RunFailed


@dataclass(frozen=True)
class Program:
    name: str
    tool: str  # which program: "linblock", "store_rates" or a peer's name
    arguments: str  # {text}, {store}, {model}, {generated} and {rows} are filled in
    makes: str = ""  # removed before each run, not timed
    says: str = ""  # what stdout must hold for the run to count


@dataclass(frozen=True)
class Bound:
    least: float | None = None
    most: float | None = None

    def holds(self, value: float) -> bool:
        return (self.least is None or value >= self.least) and (self.most is None or value <= self.most)

    def __str__(self) -> str:
        return f"at least {self.least:g}" if self.most is None else f"at most {self.most:g}"


@dataclass(frozen=True)
class Measure:
    name: str
    unit: str
    programs: tuple[str, ...]
    values: Callable[..., Sequence[float]]  # from the runs of each program; their median is judged
    asked: Bound | Mapping[str, Bound] | None = None  # one for all, or by data set

    def bound(self, data_set: str) -> Bound | None:
        return self.asked.get(data_set) if isinstance(self.asked, Mapping) else self.asked


@dataclass(frozen=True)
class Experiment:
    name: str
    programs: tuple[Program, ...]
    measures: tuple[Measure, ...]
    data_sets: tuple[str, ...] = ()  # none: it makes its own
    rows: tuple[int, int] = (0, 0)  # {rows}: in full, and with --quick


@dataclass
class Outcome:
    """An experiment on one data set; a program that is not here has no runs."""
    experiment: Experiment
    data_set: str
    runs: dict[str, list[Run]] = field(default_factory=dict)


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


def run_experiment(experiment: Experiment, data_set: str, text: Path | None, bench: Bench) -> Outcome:
    here = [program for program in experiment.programs if program.tool in bench.tools]
    outcome = Outcome(experiment, data_set, {program.name: [] for program in here})
    places = places_for(data_set, text, bench) | {"rows": experiment.rows[bench.quick]}
    for repeat in range(bench.repeats):
        for program in here:
            print(f"{data_set}: {program.name}, {repeat + 1} of {bench.repeats}", file=sys.stderr)
            outcome.runs[program.name].append(run_program(program, places, experiment.name, data_set, bench))
    return outcome


def places_for(data_set: str, text: Path | None, bench: Bench) -> dict[str, object]:
    return {
        "text": text,
        "store": bench.scratch / f"{data_set}.store",
        "model": bench.scratch / f"{data_set}.model",
        "generated": bench.scratch / "generated.svm",
    }


def run_program(program: Program, places: dict, experiment: str, data_set: str, bench: Bench) -> Run:
    # Split before filling in, so that a path may hold spaces.
    words = [word.format(**places) for word in shlex.split(program.arguments)]
    if program.makes:
        remove(Path(program.makes.format(**places)))
    run = runner.run([bench.tools[program.tool], *words])
    if program.says not in run.stdout:
        raise RunFailed(run.command, f"expected '{program.says}' on stdout", run.stdout)
    runner.record(bench.journal, run, bench.commit, bench.machine,
                  experiment=experiment, data_set=data_set, program=program.name, quick=bench.quick)
    return run


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
