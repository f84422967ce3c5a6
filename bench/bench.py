"""Measures linblock: python3 bench/bench.py [NAME...] --data DIR. One record a run goes to results/runs.jsonl; the page of all that was measured
is results/benchmarks.md. A bench that was killed, or in which a program failed, is taken up again by the same command: experiments that it has
completed with this program are not run again. One that has finished is measured anew."""
import argparse
import hashlib
import os
import signal
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import data
import headline
import indexed
import models
import page
import papers
import peers
import primal
import runner
import second_order
import store
import train
from experiments import Bench, Outcome, remove, run_experiment
from journal import Journal
from program import Experiment

REPOSITORY = Path(__file__).resolve().parent.parent
EXPERIMENTS = sum((module.EXPERIMENTS for module in (headline, papers, store, train, models, primal, indexed, second_order)), ())
NO_DATA_SET = "generated"
PICTURES = "bench"  # below the folder of docs
LIMIT = 12  # seconds for what may not end


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"which benches to run: {', '.join(page.TITLES)} (default: all)")
    parser.add_argument("--data", type=Path, default=os.environ.get("LINBLOCK_DATA") or None, metavar="DIR",
                        help="the folder of real data (default: LINBLOCK_DATA)")
    parser.add_argument("--linblock", type=Path, default=REPOSITORY / "build/release/linblock", metavar="PATH")
    parser.add_argument("--scratch", type=Path, default=Path(tempfile.gettempdir()) / "linblock-bench", metavar="DIR",
                        help="made data is kept here and used again")
    parser.add_argument("--results", type=Path, default=REPOSITORY / "results", metavar="DIR")
    parser.add_argument("--docs", type=Path, metavar="DIR", help=f"the page goes there too, and its pictures to DIR/{PICTURES}")
    parser.add_argument("--repeats", type=int, metavar="N", help="runs of each program (default: what the experiment says, with --quick 1)")
    parser.add_argument("--quick", action="store_true", help="little data, to see in minutes that all of it works")
    parser.add_argument("--check", action="store_true",
                        help="as --quick, and an error unless every measure has a finite value or a reason why it has none, and every figure points")
    parser.add_argument("--fresh", action="store_true", help="run everything, also what a killed bench has completed already")
    parser.add_argument("--only", metavar="NAME", help="only the experiments whose name begins so")
    parser.add_argument("--sets", metavar="A,B", type=lambda text: text.split(","), help="only these data sets")
    options = parser.parse_args()
    if unknown := set(options.names) - set(page.TITLES):
        parser.error(f"no bench {', '.join(unknown)}: there are {', '.join(page.TITLES)}")
    if not select(options):
        there = [one for one in EXPERIMENTS if not options.names or set(one.bench.split()) & set(options.names)]
        parser.error("no experiment is left; there are\n" + "\n".join(f"  {one.name} ({', '.join(one.data_sets) or NO_DATA_SET})" for one in there))
    if options.data and not options.data.is_dir():
        parser.error(f"no folder {options.data}: --data (or LINBLOCK_DATA) is where the real data is, docs/data.md says as what")
    options.quick |= options.check
    options.repeats = 1 if options.quick and options.repeats is None else options.repeats
    if options.repeats is not None and options.repeats < 1:
        parser.error("--repeats must be at least 1")
    if not (options.linblock.is_file() and os.access(options.linblock, os.X_OK)):
        parser.error(f"no program {options.linblock}: build it first, or name it with --linblock")
    return options


def select(options: argparse.Namespace) -> tuple[Experiment, ...]:
    """The experiments asked for, on the data sets asked for."""
    chosen = [experiment for experiment in EXPERIMENTS
              if set(experiment.bench.split()) & set(options.names or page.TITLES) and experiment.name.startswith(options.only or "")]
    if options.sets is None:
        return tuple(chosen)
    narrowed = [replace(experiment, data_sets=tuple(name for name in experiment.data_sets if name in options.sets)) for experiment in chosen]
    return tuple(experiment for experiment in narrowed if experiment.data_sets)


def find_tools(options: argparse.Namespace, experiments: tuple[Experiment, ...]) -> tuple[dict[str, tuple[str, ...]], list[str]]:
    """What starts the programs that the experiments need, and a sentence on each peer."""
    found, sentences = peers.find({program.tool for experiment in experiments for program in experiment.all_programs()}, may_install=not options.quick)
    return found | {"linblock": (str(options.linblock.resolve()),)}, sentences


def run_all(experiments: tuple[Experiment, ...], bench: Bench, options: argparse.Namespace) -> tuple[list[list[str]], list[str], list[str]]:
    """Data set by data set. What was done, what went wrong, and which data sets cannot be had, with the reason."""
    done, problems, absent = [], [], {}
    known = {} if options.fresh else bench.journal.unfinished()
    for name in dict.fromkeys(name for experiment in experiments for name in experiment.data_sets or (NO_DATA_SET,)):
        chosen = [experiment for experiment in experiments if name in (experiment.data_sets or (NO_DATA_SET,))]
        places = places_for(name, bench)
        try:
            places |= texts_for(name, chosen, bench, options.data) if name != NO_DATA_SET else {}
        except runner.Absent as reason:
            absent.setdefault(str(reason), []).append(name)
            continue
        for experiment in chosen:
            repeats = 1 if name != NO_DATA_SET and data.RECIPES[name].large else options.repeats or experiment.repeats
            asked = repr((experiment.all_programs(), repeats, Path(bench.tools["linblock"][0]).stat().st_mtime))
            key = hashlib.sha256(asked.encode()).hexdigest()
            done.append([experiment.name, name])
            if known.get((experiment.name, name)) == key:
                print(f"{name}, {experiment.name}: done before", file=sys.stderr)
                continue
            if "text" in places:  # every program finds it in the page cache
                subprocess.run(["cat", places["text"]], stdout=subprocess.DEVNULL, check=True)
            bench.journal.begin(experiment.name, name)
            outcome, failures = run_experiment(experiment, name, places, replace(bench, repeats=repeats))
            problems += map(str, failures) if failures or not options.check else page.gaps(outcome)
            if not failures:
                bench.journal.complete(experiment.name, name, key, outcome.missing)
    return done, problems, [f"absent data sets ({reason}): {', '.join(names)}" for reason, names in absent.items()]


def places_for(data_set: str, bench: Bench) -> dict[str, object]:
    limit = 3 if bench.quick else LIMIT
    return {"bench": Path(__file__).resolve().parent, "generated": bench.scratch / "generated.svm", "limit": limit, "short": limit // 3, "minute": 5 * limit} | {
        what: bench.scratch / f"{data_set}.{what}" for what in ("store", "model", "trace")}


def texts_for(data_set: str, experiments: list[Experiment], bench: Bench, real_data: Path | None) -> dict[str, Path]:
    """The text of a data set, with its test text and other forms where a program asks for them."""
    arguments = " ".join(program.arguments for experiment in experiments for program in experiment.all_programs() if program.tool in bench.tools)
    names = {"text": data_set} | ({"test": f"{data_set}.test"} if "{test}" in arguments else {})
    texts = {place: data.make(name, bench.scratch, real_data, bench.tools["linblock"][0], bench.quick) for place, name in names.items()}
    return texts | {form: data.form_of(texts["text"], form) for form in data.FORMS if f"{{{form}}}" in arguments}


def write_page(options: argparse.Namespace, journal: Journal, done: list[list[str]], sentences: list[str]) -> Path:
    """Of all that is in the journal; experiments that are no more are left out. What was just done is printed."""
    named = {experiment.name: experiment for experiment in EXPERIMENTS}
    latest = {of: found for of, found in journal.latest().items() if of[0] in named}
    outcomes = [Outcome(named[name], data_set, runs, line["missing"]) for (name, data_set), (line, runs) in latest.items()]
    outcomes.sort(key=lambda one: (EXPERIMENTS.index(one.experiment), [*one.experiment.data_sets, one.data_set].index(one.data_set)))
    notes = [*dict.fromkeys(f"linblock at {line['commit']}, {line['machine']}" for line, _ in latest.values()),
             "the programs of an experiment run in turn, several times; shown are the median (least-most); page cache warm, unless cold is said",
             *(["quick: little data, so nothing is judged"] if options.quick else []), *sentences]
    text, pictures = page.page(outcomes, papers.NOT_HERE, notes, not options.quick, f"{PICTURES}/")
    print(page.page([one for one in outcomes if [one.experiment.name, one.data_set] in done], papers.NOT_HERE, notes, not options.quick)[0])
    files = {"benchmarks-quick.md" if options.quick else "benchmarks.md": text} | {f"{PICTURES}/{file}": picture for file, picture in pictures.items()}
    for folder in filter(None, (options.results, options.docs)):
        (folder / PICTURES).mkdir(parents=True, exist_ok=True)
        for file, content in files.items():
            (folder / file).write_text(content)
    if options.docs and not options.quick and (options.docs / "solvers.md").exists():
        second_order.update(options.docs / "solvers.md", outcomes)
    return options.results / next(iter(files))


def main() -> int:
    options = parse_arguments()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # it leaves as tidily as when interrupted
    scratch = options.scratch.resolve() / ("quick" if options.quick else "full")
    for folder in (scratch, options.results):
        folder.mkdir(parents=True, exist_ok=True)
    experiments = select(options)
    tools, sentences = find_tools(options, experiments)
    # What was measured with little data must not stand in for what was measured in full.
    path = options.results / ("runs-quick.jsonl" if options.quick else "runs.jsonl")
    journal = Journal(path, runner.commit_of(REPOSITORY), runner.machine())
    try:
        done, problems, absent = run_all(experiments, Bench(tools, scratch, journal, options.repeats or 1, options.quick, options.fresh), options)
    except KeyboardInterrupt:
        return 130
    except runner.RunFailed as failure:  # of what makes the data
        done, problems, absent = [], [str(failure)], []
    finally:
        for file in scratch.glob("generated.svm*"):  # gigabytes that no later run uses
            remove(file)
    print(f"wrote {path} and {write_page(options, journal, done, sentences + absent)}", file=sys.stderr)
    for problem in problems:
        print(f"bench: {problem}", file=sys.stderr)
    if not problems:
        journal.finish(done)
    return 1 if problems else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except OSError as error:  # of the bench's own files; what it starts says so itself
        sys.exit(f"bench: {error}")
