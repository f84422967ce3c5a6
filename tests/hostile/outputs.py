"""Closed and full standard descriptors, for every command: no abort, no other result, and no lie about stdout."""
import contextlib
import random
import re
import shlex

import harness
import jobs

# Every command, with what it prints on stdout. "made" lists files and folders that it writes.
COMMANDS = [
    "pack a.svm -o made --codec none",
    "pack a.svm -o made --codec none --json",
    "pack - -o made --codec none",
    "info s",
    "info s --json",
    "verify s",
    "unpack s",
    "unpack s -o made.txt",
    "append s more.svm",
    "append s more.svm --json",
    "remove s --rows ids",
    "remove s --rows ids --json",
    "remove s --rows -",
    "compact grown",
    "compact grown --json",
    "transpose s",
    "transpose s --json",
    "index c --tree-rows 300 --page-bytes 4K",
    "index c --json",
    "train s -o m --inner 2",
    "train s -o m --inner 2 --json -q",
    "train s -o m --inner 2 --dry-run",
    "train s -o m --solver newton --trace made.jsonl --test more.svm",
    "train a.svm -o m --inner 2 --codec none",
    "cv s --folds 2 --inner 2",
    "cv s --folds 2 --inner 2 --json",
    "tune s --folds 2 --costs 0.1,1 --inner 2",
    "tune s --folds 2 --costs 0.1,1 --inner 2 --json",
    "tune s -o m --folds 2 --costs 0.1,1 --inner 2 -q",
    "predict old more.svm",
    "predict old s --probability",
    "predict old more.svm -o made.txt",
    "predict old -",
    "evaluate old more.svm",
    "evaluate old more.svm --json",
    "report run.jsonl -o made.html",
    "report run.jsonl -o made.html --json",
    "generate documents -o made.svm --rows 200",
    "--help",
    "--version",
    "train --help",
    "pack missing.svm -o made",
    "train s -o m --solver nonsense",
    "",
]
NEEDS = ("a.svm", "more.svm", "ids", "s", "c", "grown", "old", "old.json")
# What is closed or full.
PLIGHTS = ["stdin closed", "stdout closed", "stderr closed", "stdout full", "stderr full", "all closed",
           "stdout and stderr full", "stderr full and stdout closed"]
TIMES = ("seconds", " s ", "MB/s")


def trial(t):
    """The pairs in a random order, each of them once before any comes again."""
    pairs = [(command, plight) for command in COMMANDS for plight in PLIGHTS]
    command, plight = random.Random(t.bench.seed).sample(pairs, len(pairs))[t.number % len(pairs)]
    usual = t.bench.once("usual " + command, lambda: usual_run(t.bench, command))
    lay_out(t)
    outcome = run_in(t, command, plight)
    where = f"linblock {command} ({plight})"
    t.expect(not outcome.timed_out, f"{where} does not end")
    t.expect(outcome.code >= 0 and outcome.code != 70, f"{where}: {outcome.words()}")
    t.expect(outcome.code == 0 or outcome.code in harness.REFUSALS, f"{where}: {outcome.words()}")
    expected = expected_code(command, plight, usual)
    t.expect(outcome.code in expected, f"{where}: exit code {outcome.code} instead of {expected}; {outcome.words()}")
    if outcome.code == usual.code:
        wrong = harness.differences(usual.files, files_of(t))
        t.expect(not wrong, f"{where}: compared with an ordinary run, " + ", ".join(wrong[:5]))
    if "stdout" not in plight and plight != "all closed" and outcome.code == usual.code:
        t.expect(plain(outcome.out) == plain(usual.out), f"{where}: stdout is not what it usually is")


def expected_code(command, plight, usual) -> set:
    """stderr never matters. What should be on stdout and is not is exit code 5; closed, it is nobody's wish."""
    expected = {usual.code}
    if "stdin closed" in plight or "all closed" in plight:
        if command.startswith("pack -"):
            expected = {harness.INPUT}  # no rows
        elif " -" in command and command.split()[-1] == "-":
            expected = {0, harness.INPUT}
    if "stdout full" in plight or plight.startswith("stdout and"):
        if usual.out and usual.code == 0:
            expected = {harness.IO}
    if "stdout closed" in plight or "all closed" in plight:
        expected |= {harness.IO} if usual.out else set()
    return expected


class Usual:
    """What a command does with ordinary descriptors."""

    def __init__(self, outcome, files):
        self.code, self.out, self.files = outcome.code, outcome.out, files


def usual_run(bench, command) -> Usual:
    trial = bench.trial("usual", COMMANDS.index(command))
    lay_out(trial)
    outcome = run_in(trial, command, "")
    usual = Usual(outcome, files_of(trial))
    trial.forget()
    return usual


def files_of(t) -> dict:
    """A trace is full of times."""
    return {name: what for name, what in jobs.results(t.folder).items() if name != "made.jsonl"}


def lay_out(t):
    inputs = jobs.inputs(t.bench)
    for name in NEEDS:
        t.copy(inputs / name)
    t.copy(t.bench.fixture("trace", lambda folder: make_trace(t.bench, inputs, folder)) / "run.jsonl")


def make_trace(bench, inputs, folder):
    bench.must(inputs, "train", "s", "-o", str(folder / "m"), "--inner", "2", "--trace", str(folder / "run.jsonl"))


def run_in(t, command, plight):
    closed = [number for number, name in enumerate(("stdin", "stdout", "stderr"))
              if f"{name} closed" in plight or plight == "all closed"]
    with contextlib.ExitStack() as files:
        full = files.enter_context(open("/dev/full", "wb"))
        text = files.enter_context(open(t.folder / ("ids" if command.startswith("remove") else "more.svm"), "rb"))
        out = full if "stdout full" in plight or plight.startswith("stdout and") else None
        err = full if "stderr full" in plight else None
        return t.run(*shlex.split(command), stdin=text, out=out, err=err, closed=closed, tested=True, log=plight,
                     timeout=60)


def plain(out: bytes):
    """stdout without times."""
    if out.startswith(b"{"):
        return harness.json_facts(out)
    lines = [line for line in out.decode(errors="replace").splitlines() if not any(word in line for word in TIMES)]
    return [re.sub(r" +\d+\.\d\d$", "", line) for line in lines]  # the last column of tune's table
