"""Measures linblock: python3 bench/bench.py [NAME...] --data DIR. One record a run goes to results/NAME.jsonl, the tables to stdout and,
for docs/benchmarks.md, to results/NAME.md. A bench that was killed, or in which a program failed, is taken up again by the same command:
what it has measured at this commit is not run again. One that has finished is measured anew."""
import argparse
import os
import resource
import signal
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import claims
import data
import headline
import indexed
import models
import papers
import peers
import primal
import report
import runner
import store
import train
from experiments import Bench, Experiment, Outcome, Suite, remove, run_experiment
from journal import Journal

REPOSITORY = Path(__file__).resolve().parent.parent
BENCHES: dict[str, Suite] = {"store": store.SUITE, "train": train.SUITE, "models": models.SUITE, "primal": primal.SUITE,
                            "indexed": indexed.SUITE, "papers": papers.SUITE, "peers": headline.SUITE}
BESIDE_LINBLOCK = {"store_rates": "store_rates", "model_objective": "model_objective", "iteration_clock": "iteration_clock.so",
                   "truncated_progress": "truncated_progress"}
NO_DATA_SET = "generated"
MOST_REPEATS_OF_LARGE = 2


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"which benches to run: {', '.join(BENCHES)} (default: all)")
    parser.add_argument("--data", type=Path, default=os.environ.get("LINBLOCK_DATA") or None, metavar="DIR",
                        help="the folder of real data (default: LINBLOCK_DATA)")
    parser.add_argument("--linblock", type=Path, default=REPOSITORY / "build/release/linblock", metavar="PATH",
                        help="the other programs of the bench are looked for beside it")
    parser.add_argument("--scratch", type=Path, default=Path(tempfile.gettempdir()) / "linblock-bench", metavar="DIR",
                        help="made data is kept here and used again")
    parser.add_argument("--results", type=Path, default=REPOSITORY / "results", metavar="DIR")
    parser.add_argument("--docs", type=Path, metavar="DIR", help="the page and its pictures go there too, as docs/bench")
    parser.add_argument("--repeats", type=int, metavar="N", help="runs of each program (default: 5, with --quick 1)")
    parser.add_argument("--quick", action="store_true", help="little data, to see in seconds that all of it works")
    parser.add_argument("--check", action="store_true",
                        help="as --quick, and an error unless every measure has a finite value or a reason why it has none")
    parser.add_argument("--fresh", action="store_true", help="run everything, also what a killed bench has measured already")
    parser.add_argument("--only", metavar="NAME", help="only the experiments whose name begins so")
    parser.add_argument("--sets", metavar="A,B", type=lambda text: text.split(","), help="only these data sets")
    options = parser.parse_args()
    options.names = options.names or list(BENCHES)
    if unknown := set(options.names) - set(BENCHES):
        parser.error(f"no bench {', '.join(unknown)}: there are {', '.join(BENCHES)}")
    if not any(select(BENCHES[name], options) for name in options.names):
        parser.error("no experiment is left; there are: " + "; ".join(
            f"{experiment.name} ({', '.join(experiment.data_sets)})" for name in options.names for experiment in BENCHES[name].experiments))
    options.quick |= options.check
    if options.repeats is None:
        options.repeats = 1 if options.quick else 5
    if options.repeats < 1:
        parser.error("--repeats must be at least 1")
    if not is_program(options.linblock):
        parser.error(f"no program {options.linblock}: build it first, or name it with --linblock")
    return options


def is_program(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)


def select(suite: Suite, options: argparse.Namespace) -> tuple[Experiment, ...]:
    """The experiments asked for, on the data sets asked for."""
    chosen = [experiment for experiment in suite.experiments if experiment.name.startswith(options.only or "")]
    if options.sets is None:
        return tuple(chosen)
    narrowed = [replace(experiment, data_sets=tuple(name for name in experiment.data_sets if name in options.sets))
                for experiment in chosen]
    return tuple(experiment for experiment in narrowed if experiment.data_sets)


def find_tools(linblock: Path, experiments: tuple[Experiment, ...]) -> tuple[dict[str, str], list[str]]:
    """Where the programs are that the experiments need, and a sentence on each that is not ours or not here."""
    programs = [program for experiment in experiments for program in experiment.all_programs()]
    needed = {program.tool for program in programs} | {program.preload for program in programs}
    tools, sentences = peers.find(needed)
    tools |= {"linblock": str(linblock.resolve()), "sh": "/bin/sh"}
    for name, file in BESIDE_LINBLOCK.items():
        path = linblock.resolve().with_name(file)
        if path.is_file():
            tools[name] = str(path)
        elif name in needed:
            sentences.append(f"{name} is absent (build it beside linblock)")
    return tools, sentences


def run_all(experiments: tuple[Experiment, ...], bench: Bench, real_data: Path | None) -> tuple[list[Outcome], list[str]]:
    """Data set by data set; a data set that cannot be had is left out, and a sentence says why."""
    outcomes, absent = [], []
    for name in dict.fromkeys(name for experiment in experiments for name in experiment.data_sets):
        chosen = [experiment for experiment in experiments if name in experiment.data_sets]
        try:
            print(f"{name}: making it, unless it is there", file=sys.stderr)
            places = places_for(name, bench) | texts_for(name, chosen, bench, real_data)
        except data.Absent as reason:
            absent.append(f"data set {name} is absent ({reason})")
            print(absent[-1], file=sys.stderr)
            continue
        repeats = min(bench.repeats, MOST_REPEATS_OF_LARGE) if data.RECIPES[name].large else bench.repeats
        for experiment in chosen:
            data.warm(places["text"])
            outcomes.append(run_experiment(experiment, name, places, repeats, bench))
    outcomes += [run_experiment(experiment, NO_DATA_SET, places_for(NO_DATA_SET, bench), bench.repeats, bench)
                 for experiment in experiments if not experiment.data_sets]
    return outcomes, absent


def places_for(data_set: str, bench: Bench) -> dict[str, object]:
    return {
        "bench": Path(__file__).resolve().parent,
        "store": bench.scratch / f"{data_set}.store",
        "model": bench.scratch / f"{data_set}.model",
        "trace": bench.scratch / f"{data_set}.trace",
        "generated": bench.scratch / "generated.svm",
        "limit": 3 if bench.quick else 120,  # seconds, for what may not end
    }


def texts_for(data_set: str, experiments: list[Experiment], bench: Bench, real_data: Path | None) -> dict[str, Path]:
    """The text of a data set, with its test text and other forms where a program asks for them."""
    def make(name: str) -> Path:
        return data.make(name, bench.scratch, real_data, bench.tools["linblock"], bench.quick)

    arguments = " ".join(program.arguments for experiment in experiments for program in experiment.all_programs()
                         if program.tool in bench.tools)
    texts = {"text": make(data_set)}
    if "{test}" in arguments:
        texts["test"] = make(f"{data_set}.test")
    if "{vw_text}" in arguments:
        texts["vw_text"] = data.for_vw(texts["text"])
    if "{first_rows}" in arguments or "{every_tenth}" in arguments:
        texts |= data.changes_of(texts["text"])
    return texts


def describe(bench: Bench, sentences: list[str]) -> list[str]:
    computer = bench.journal.machine
    floor = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return [
        f"{computer['cpu']}, {computer['cores']} cores, {computer['memory_bytes'] / (1 << 30):.1f} GiB, {computer['kernel']}; "
        f"linblock at {bench.journal.commit}",
        f"runs of each program: {bench.repeats}, in turn; shown are the median (least-most); page cache warm, "
        "unless the program's name says cold",
        f"peak memory under {floor:.0f} MiB, that of the bench itself, cannot be told apart",
        *([f"{bench.journal.taken} runs are of a bench that was interrupted, at the same commit"] if bench.journal.taken else []),
        *(["quick: little data, so nothing is judged"] if bench.quick else []),
        *sentences,
    ]


def run_bench(bench_name: str, options: argparse.Namespace) -> tuple[Journal, list[str]]:
    """And what went wrong, a sentence each."""
    suite = BENCHES[bench_name]
    experiments = select(suite, options)
    # A part, or a quick run, has its own files: it must not stand in for what was measured in full.
    part = "-part" if options.only or options.sets else ""
    name = bench_name + part + ("-quick" if options.quick else "")
    scratch = options.scratch.resolve() / ("quick" if options.quick else "full")
    for folder in (scratch, options.results):
        folder.mkdir(parents=True, exist_ok=True)
    tools, sentences = find_tools(options.linblock, experiments)
    journal = Journal(options.results / f"{name}.jsonl", runner.commit_of(REPOSITORY), runner.machine(), options.fresh)
    bench = Bench(tools, scratch, journal, options.repeats, options.quick)
    try:
        outcomes, absent = run_all(experiments, bench, options.data)
    finally:
        for file in scratch.glob("generated.svm*"):  # gigabytes that no later run uses
            remove(file)
    tables = (report.measures_table(outcomes, suite.overall, judged=not options.quick), report.programs_table(outcomes),
              report.closing_table(outcomes, suite.closing), claims.claims_table(outcomes, suite.claims))
    pictures = claims.pictures(outcomes)
    shorten = {str(scratch): "SCRATCH", f"{REPOSITORY}/": ""}
    page = report.document(f"linblock bench {name}", tables, describe(bench, sentences + absent), report.command_lines(outcomes, shorten),
                           list(pictures))
    for folder in filter(None, (options.results, options.docs)):
        folder.mkdir(parents=True, exist_ok=True)
        for file, text in (pictures | {f"{name}.md": page}).items():
            (folder / file).write_text(text)
    print(page)
    print(f"wrote {journal.path} and {options.results / name}.md", file=sys.stderr)
    failures = [str(failure) for outcome in outcomes for failure in outcome.failures]
    return journal, failures + (report.gaps(experiments, outcomes, absent) if options.check else [])


def main() -> int:
    options = parse_arguments()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # it leaves as tidily as when interrupted
    journals, problems = [], []
    try:
        for name in filter(lambda name: select(BENCHES[name], options), options.names):
            journal, found = run_bench(name, options)
            journals, problems = [*journals, journal], problems + found
    except KeyboardInterrupt:
        return 130
    except runner.RunFailed as failure:  # of what makes the data
        problems.append(str(failure))
    for problem in problems:
        print(f"bench: {problem}", file=sys.stderr)
    for journal in journals if not problems else ():
        journal.finish()
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
