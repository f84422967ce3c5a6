"""Runs an experiment on a data set: its programs in turn, A B A B, so that noise meets all alike."""
import contextlib
import dataclasses
import shlex
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import limits
import peers
import runner
from journal import Journal
from program import Experiment, Program
from runner import Absent, Run, RunFailed
from values import NotReached


@dataclass
class Outcome:
    """An experiment on one data set; a program has either runs or a reason why not."""
    experiment: Experiment
    data_set: str
    runs: dict[str, list[Run]] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Bench:
    """Where things are, and how much is asked for."""
    tools: Mapping[str, Sequence[str]]  # the words that start each, of those that are here
    scratch: Path
    journal: Journal
    repeats: int
    quick: bool
    fresh: bool = False  # nothing is taken from the journal


def run_experiment(experiment: Experiment, data_set: str, places: dict[str, object], bench: Bench) -> tuple[Outcome, list[RunFailed]]:
    """And what failed, that should not have."""
    outcome, failures = Outcome(experiment, data_set), []
    places = places | {f"rows_{times}": times * experiment.rows[bench.quick] for times in (1, 2, 4, 8)}
    in_turn = [(program, repeat) for repeat in range(bench.repeats) for program in experiment.programs if repeat < program.most_repeats]
    broken: dict[str, str] = {}  # places that the program that makes them left without what should be there, and why
    for program, repeat in (*((one, 0) for one in experiment.before), *in_turn, *((one, 0) for one in experiment.after)):
        if program.name in outcome.missing:
            continue
        print(f"{data_set}, {experiment.name}: {program.name}", file=sys.stderr)
        makes = shlex.split(program.makes)
        needed = [place for place in shlex.split(program.arguments) if place in broken and place not in makes]
        try:
            if needed:
                raise Absent(broken[needed[0]])
            run = execute(program, places, bench)
            bench.journal.write(run, experiment.name, data_set, program.name, repeat)
            if run.failed and not program.may_fail:
                raise RunFailed(run.command, run.ending(), run.stderr)
        except (Absent, RunFailed) as reason:
            outcome.missing[program.name] = f"{program.name} failed: {reason.what}" if isinstance(reason, RunFailed) else str(reason)
            broken |= dict.fromkeys(makes, outcome.missing[program.name])
            if isinstance(reason, RunFailed):  # the others can still be measured
                print(reason, file=sys.stderr)
                failures += [reason] if program.tool not in peers.PEERS else []
            continue
        outcome.runs.setdefault(program.name, []).append(run)
        broken = {place: why for place, why in broken.items() if place not in makes}
        if run.failed:
            broken |= dict.fromkeys(makes, f"{program.name}: {run.ending()}")
        else:
            places |= derived_from({name: runs[-1] for name, runs in outcome.runs.items()}, experiment, bench.quick)
    for name in outcome.missing:
        outcome.runs.pop(name, None)
    return outcome, failures


def derived_from(last: dict[str, Run], experiment: Experiment, quick: bool) -> dict[str, object]:
    values = {}
    for place, value in experiment.derived.items():
        with contextlib.suppress(KeyError, NotReached):  # a program that asks for it says that it is not known
            values[place] = value(last, quick)
    return values


def execute(program: Program, places: dict[str, object], bench: Bench) -> Run:
    if program.tool not in bench.tools:
        raise Absent(f"no {program.tool}")
    command = [*bench.tools[program.tool], *filled(program.arguments, places)]
    if program.kept and not bench.fresh and (known := bench.journal.kept(command)):
        return known
    for path in filled(program.makes, places):
        remove(Path(path))
    for path in filled(program.cold, places):
        runner.evict(Path(path))
    with limits.groups(int("".join(filled(program.memory_limit, places)) or 0), program.disk_limit, bench.scratch) as groups:
        run = runner.run(command, groups)
    if program.says not in run.stdout and not run.failed:
        raise RunFailed(run.command, f"expected '{program.says}' on stdout", run.stdout)
    traced = "{trace}" in program.arguments and not run.failed
    return dataclasses.replace(run, trace=runner.read_trace(Path(places["trace"]))) if traced else run


def filled(template: str, places: dict[str, object]) -> list[str]:
    """Words; split before filling in, so that a path may hold spaces."""
    try:
        return [word.format(**places) for word in shlex.split(template)]
    except KeyError as place:
        raise Absent(f"{place.args[0]} not known") from place


def remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
