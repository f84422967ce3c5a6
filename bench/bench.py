"""Measures linblock: python3 bench/bench.py store --data DIR. One record a run goes to results/NAME.jsonl,
the tables to stdout and, for docs/benchmarks.md, to results/NAME.md."""
import argparse
import os
import resource
import sys
import tempfile
from pathlib import Path

import data
import peers
import report
import runner
import store
from experiments import Bench, Experiment, Outcome, remove, run_experiment

REPOSITORY = Path(__file__).resolve().parent.parent
BENCHES: dict[str, tuple[Experiment, ...]] = {"store": store.EXPERIMENTS}
NO_DATA_SET = "generated"


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", choices=BENCHES, help="which bench to run")
    parser.add_argument("--data", type=Path, default=os.environ.get("LINBLOCK_DATA") or None, metavar="DIR",
                        help="the folder of real data (default: LINBLOCK_DATA)")
    parser.add_argument("--linblock", type=Path, default=REPOSITORY / "build/release/linblock", metavar="PATH")
    parser.add_argument("--rates", type=Path, default=REPOSITORY / "build/release/store_rates", metavar="PATH")
    parser.add_argument("--scratch", type=Path, default=Path(tempfile.gettempdir()) / "linblock-bench", metavar="DIR",
                        help="made data is kept here and used again")
    parser.add_argument("--results", type=Path, default=REPOSITORY / "results", metavar="DIR")
    parser.add_argument("--repeats", type=int, metavar="N", help="runs of each program (default: 5, with --quick 1)")
    parser.add_argument("--quick", action="store_true", help="little data, to see in seconds that all of it works")
    options = parser.parse_args()
    if options.repeats is None:
        options.repeats = 1 if options.quick else 5
    if options.repeats < 1:
        parser.error("--repeats must be at least 1")
    if not is_program(options.linblock):
        parser.error(f"no program {options.linblock}: build it first, or name it with --linblock")
    return options


def is_program(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)


def find_tools(options: argparse.Namespace, experiments: tuple[Experiment, ...]) -> tuple[dict[str, str], list[str]]:
    """Where the programs are that the experiments need, and a sentence on each that is not ours or not here."""
    needed = {program.tool for experiment in experiments for program in experiment.programs}
    tools, sentences = peers.find(needed)
    for name, path in (("linblock", options.linblock), ("store_rates", options.rates)):
        if is_program(path):
            tools[name] = str(path.resolve())
        elif name in needed:
            sentences.append(f"{name} is absent (build it, or say where it is)")
    return tools, sentences


def run_all(experiments: tuple[Experiment, ...], bench: Bench, real_data: Path | None) -> tuple[list[Outcome], list[str]]:
    """Data set by data set; a data set that cannot be had is left out, and a sentence says why."""
    outcomes, absent = [], []
    for name in dict.fromkeys(name for experiment in experiments for name in experiment.data_sets):
        try:
            print(f"{name}: making it, unless it is there", file=sys.stderr)
            text = data.make(name, bench.scratch, real_data, bench.tools["linblock"], bench.quick)
        except data.Absent as reason:
            absent.append(f"data set {name} is absent ({reason})")
            print(absent[-1], file=sys.stderr)
            continue
        data.warm(text)
        outcomes += [run_experiment(experiment, name, text, bench) for experiment in experiments if name in experiment.data_sets]
    outcomes += [run_experiment(experiment, NO_DATA_SET, None, bench) for experiment in experiments if not experiment.data_sets]
    return outcomes, absent


def describe(bench: Bench, sentences: list[str]) -> list[str]:
    computer = bench.machine
    floor = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return [
        f"{computer['cpu']}, {computer['cores']} cores, {computer['memory_bytes'] / (1 << 30):.1f} GiB, {computer['kernel']}; "
        f"linblock at {bench.commit}",
        f"runs of each program: {bench.repeats}, in turn; shown are the median (least-most); page cache warm",
        f"peak memory under {floor:.0f} MiB, that of the bench itself, cannot be told apart",
        *(["quick: little data, so nothing is judged"] if bench.quick else []),
        *sentences,
    ]


def main() -> int:
    options = parse_arguments()
    experiments = BENCHES[options.name]
    # A quick run has its own files: it must not stand in for measured ones.
    name = options.name + ("-quick" if options.quick else "")
    scratch = options.scratch.resolve() / ("quick" if options.quick else "full")
    for folder in (scratch, options.results):
        folder.mkdir(parents=True, exist_ok=True)
    tools, sentences = find_tools(options, experiments)
    bench = Bench(tools, scratch, options.results / f"{name}.jsonl", runner.commit_of(REPOSITORY), runner.machine(),
                  options.repeats, options.quick)
    try:
        outcomes, absent = run_all(experiments, bench, options.data)
    except runner.RunFailed as failure:
        print(f"bench: {failure}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    finally:
        remove(scratch / "generated.svm")  # a gigabyte that no later run uses
    tables = (report.measures_table(outcomes, judged=not options.quick), report.programs_table(outcomes))
    shorten = {str(scratch): "SCRATCH", f"{REPOSITORY}/": ""}
    page = (f"linblock bench {name}", tables, describe(bench, sentences + absent), report.command_lines(outcomes, shorten))
    (options.results / f"{name}.md").write_text(report.document(*page, markdown=True))
    print(report.document(*page, markdown=False))
    print(f"wrote {bench.journal} and {options.results / name}.md", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
