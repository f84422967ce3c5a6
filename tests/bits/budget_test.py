#!/usr/bin/env python3
"""No method gets slower: passes to a certified gap of 1% and of 0.1%, against recorded numbers.

usage: budget_test.py             compares with budget.json (LINBLOCK names the program)
       budget_test.py --record    writes budget.json

Every method that certifies runs with every loss that it supports: one class and several, in memory and streamed. The
bits of a model may change for a good reason, and are recorded anew then (bits_test.py); the passes may not grow.
`average` and `subsample` certify but do not converge: their budget is the gap that they end with.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

from bits_test import text

RECORD = pathlib.Path(__file__).resolve().parent / "budget.json"
TOLERANCES = ("0.01", "0.001")
MOST_PASSES = 1000

# A new loss or solver must be added here: the test compares these names with those that the program knows.
ALL = ("hinge", "squared-hinge", "logistic", "huber-hinge")
SMOOTH = ("squared-hinge", "logistic", "huber-hinge")
SPARSE = ("hinge", "squared-hinge", "huber-hinge")
METHODS = {
    "dual --inner 1": ALL, "dual --inner 3": ALL, "dual --inner converge --schedule fixed --blocks 4": ALL,
    "newton": ALL, "newton --free-bias": ALL, "primal": SMOOTH, "primal --order cyclic": SMOOTH, "cmls": ("squared-hinge",),
    "indexed --truncate none": SPARSE, "indexed --truncate none --block-solver newton": ("squared-hinge",),
}
CERTIFY_WITHOUT_CONVERGING = ("average", "subsample")
WITHOUT_CERTIFICATE = ("pegasos",)
CRAMMER_SINGER = "--multiclass crammer-singer"
SOFTMAX = "--multiclass softmax"

# name: how its text is made, the memory to train in, which runs (a regular expression) are left out: they take too long
DATA = {
    "rows": (dict(seed=1, rows=2000, features=1000, nonzeros=20), "1G", None),
    "wide": (dict(seed=8, rows=2000, features=3000, nonzeros=20), "1G", "^(?!.*newton)"),  # its trust region
    "few features": (dict(seed=2, rows=3000, features=30, nonzeros=8, skew=1), "1G", None),
    "streamed": (dict(seed=3, rows=16000, features=1500, nonzeros=30), "10M", "fixed"),
    "classes": (dict(seed=4, rows=1200, features=300, nonzeros=12, classes=4), "1G", None),
    "classes, streamed": (dict(seed=5, rows=16000, features=500, nonzeros=30, classes=3), "10M",
                          "fixed|cyclic|indexed.* 0.001|cmls.* 0.001|--loss hinge .*free-bias.* 0.001"),
    # Rows in clusters, in which dual descent and a sample that is too small take hundreds of passes.
    "clusters": (dict(seed=6, rows=40000, features=60, nonzeros=12, clusters=40), "1G", "^(?!.*newton)"),
    "clusters, streamed": (dict(seed=6, rows=40000, features=60, nonzeros=12, clusters=40), "10M", "^(?!.*newton)|indexed"),
}


def cases():
    """A name, a data set, what train is given, and the budget's kind."""
    for data, (_, _, left_out) in DATA.items():
        # In memory these two solve everything as one block: only streamed rows tell them from the others.
        methods = METHODS | (dict.fromkeys(CERTIFY_WITHOUT_CONVERGING, ALL) if "streamed" in data else {})
        lines = [f"--loss {loss} --solver {method}" for method, losses in methods.items() for loss in losses]
        if "classes" in data:
            lines += [f"--loss hinge {CRAMMER_SINGER}", f"--loss logistic {SOFTMAX}", f"--loss logistic {SOFTMAX} --free-bias"]
        for line in lines:
            if any(f"--solver {one}" in line for one in CERTIFY_WITHOUT_CONVERGING):
                yield f"{data}: {line}", data, line, "gap"
                continue
            for run in (f"{line} --tolerance {tolerance}" for tolerance in TOLERANCES):
                if left_out is None or not re.search(left_out, run):
                    yield f"{data}: {run}", data, run, "passes"


def file_name(words):
    return re.sub("[^a-z0-9]+", "-", words)


class Folder:
    def __init__(self, program):
        self.program = program
        self.home = tempfile.TemporaryDirectory(prefix="linblock-budget-")
        self.path = pathlib.Path(self.home.name)
        self.row_bytes = {}

    def make(self, data):
        name = file_name(data)
        with open(self.path / f"{name}.svm", "w") as out:
            out.writelines(text(**DATA[data][0]))
        self.call("pack", f"{name}.svm", "-o", name, "--codec", "none", "--chunk-bytes", "16K", "-q")
        self.call("transpose", name, "-q")
        self.call("index", name, "-q")
        self.row_bytes[data] = sum(path.stat().st_size for path in (self.path / name).glob("*.rows"))

    def call(self, *words):
        done = subprocess.run([self.program, *words], cwd=self.path, capture_output=True, text=True)
        if done.returncode != 0:
            raise SystemExit(f"linblock {' '.join(words)}\nfailed: {done.stderr}")
        return done.stdout

    def train(self, case):
        name, data, line, _ = case
        return json.loads(self.call("train", file_name(data), "-o", file_name(f"model {name}"), *line.split(), "--memory", DATA[data][1],
                                    "--max-passes", str(MOST_PASSES), "--threads", "1", "--fresh", "--json", "-q"))


def used(summary, kind):
    return summary["passes"] if kind == "passes" else float(f"{summary['certified_gap']:.4g}")


def complaints(case, summary, budget, row_bytes):
    """What is wrong with a run; nothing: it is within its budget."""
    _, data, line, kind = case
    if kind == "passes":
        tolerance = float(line.rsplit(" ", 1)[1])
        if summary["termination"] != "converged" or not summary["converged"] or summary["certified_gap"] > tolerance:
            yield f"{summary['termination']} with a gap of {summary['certified_gap']}"
        if "streamed" in data and summary["bytes_read"] < 1.5 * row_bytes:
            yield "all rows fit in memory: these rows are too few to be a test"
    if budget is None:
        yield "it is not in budget.json: run budget_test.py --record"
        return
    most = max(budget + 1, int(1.1 * budget)) if kind == "passes" else 1.1 * budget
    if used(summary, kind) > most:
        yield f"{kind} {used(summary, kind)}, where {budget} was enough"


def unknown_names(program):
    """Solvers and losses that the program knows and this test does not, from its own refusals."""
    known = {"--solver": {line.split()[0] for line in METHODS} | {*CERTIFY_WITHOUT_CONVERGING, *WITHOUT_CERTIFICATE},
             "--loss": {loss for losses in METHODS.values() for loss in losses}}
    for option, names in known.items():
        said = subprocess.run([program, "train", "none", "-o", "none", option, "nosuch"], capture_output=True, text=True).stderr
        found = re.search(r"((?:[a-z-]+, )+[a-z-]+ or [a-z-]+)", said)
        if not found:
            yield f"{option} nosuch does not list what there is: {said}"
            continue
        listed = set(re.split(r", | or ", found.group(1)))
        yield from (f"{option} {name} has no budget: add it to METHODS in budget_test.py" for name in sorted(listed - names))


def main(words) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args(words)
    program = os.environ["LINBLOCK"]
    folder, listed = Folder(program), list(cases())
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        list(pool.map(folder.make, DATA))
        summaries = list(pool.map(folder.train, listed))
    if options.record:
        RECORD.write_text(json.dumps({case[0]: used(summary, case[3]) for case, summary in zip(listed, summaries)}, indent=1) + "\n")
    budgets = json.loads(RECORD.read_text())
    wrong = list(unknown_names(program))
    for case, summary in zip(listed, summaries):
        wrong += [f"{case[0]}: {complaint}" for complaint in complaints(case, summary, budgets.get(case[0]), folder.row_bytes[case[1]])]
    wrong += [f"{name} is in budget.json and not in the test" for name in sorted(budgets.keys() - {case[0] for case in listed})]
    print("\n".join(["FAILED " + one for one in wrong] + [f"{len(listed)} runs, {len(wrong)} failures"]))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
