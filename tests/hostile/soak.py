#!/usr/bin/env python3
"""Hostile tests of linblock, for as long as you like: every campaign gets an equal share of the time.

usage: soak.py --linblock PROGRAM [--asan PROGRAM] [--hooked PROGRAM] [--minutes M] [--only NAME,...] [--keep FOLDER]

A failure is kept with its folder, its commands and one sentence. To repeat one trial, give the seed that was printed:
soak.py --linblock PROGRAM --only kills --trial 17 --seed 42
"""
import argparse
import importlib
import multiprocessing
import os
import pathlib
import queue
import signal
import subprocess
import sys
import tempfile
import time
import traceback

import harness

CAMPAIGNS = ["kills", "calls", "forged", "lines", "outputs", "interrupts", "certificates"]
WORKERS = 2
PROGRESS_SECONDS = 20
MOST_KEPT = 40  # failures of a campaign that are shown and kept; the others are counted


def strace_works() -> bool:
    """Containers may forbid it."""
    try:
        return subprocess.run(["strace", "-f", "-qq", "-o", os.devnull, "true"], stdin=subprocess.DEVNULL,
                              capture_output=True, timeout=20).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def run_trial(bench, campaign: str, number: int, keep=True) -> str | None:
    """Why the trial failed, and where that is kept; None if all is well."""
    trial = bench.trial(campaign, number)
    try:
        importlib.import_module(campaign).trial(trial)
        trial.forget()
        return None
    except harness.Failed as failure:
        why = str(failure)
    except Exception:  # a defect of the harness must not pass as a success
        why = "the harness itself failed: " + traceback.format_exc()
    place = f"\n    kept in {trial.keep(why)}" if keep else ""
    trial.forget()
    return why + place


class Shares:
    """Which campaign has had least time so far, for all workers together."""

    def __init__(self, campaigns):
        self.campaigns = campaigns
        self.seconds = multiprocessing.Array("d", len(campaigns))
        self.begun = multiprocessing.Array("l", len(campaigns))
        self.failed = multiprocessing.Array("l", len(campaigns))

    def take(self) -> tuple[int, int]:
        """A campaign and the number of its next trial. A small advance keeps workers apart."""
        with self.seconds.get_lock():
            place = min(range(len(self.campaigns)), key=lambda i: self.seconds[i])
            self.seconds[place] += 0.5
            number = self.begun[place]
            self.begun[place] += 1
            return place, number

    def give(self, place: int, seconds: float, failed: bool):
        with self.seconds.get_lock():
            self.seconds[place] += seconds - 0.5
            self.failed[place] += failed


def stop(*_):
    """SIGTERM: leave by the same way as an exception, so that programs and folders do not stay behind."""
    sys.exit(1)


def work(options, programs, shares, reports, deadline, root):
    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, lambda *_: None)  # the parent decides
    bench = harness.Bench(programs, options.seed, root, options.keep)
    while time.monotonic() < deadline:
        place, number = shares.take()
        campaign = shares.campaigns[place]
        begin = time.monotonic()
        failure = run_trial(bench, campaign, number, keep=shares.failed[place] < MOST_KEPT)
        shares.give(place, time.monotonic() - begin, failure is not None)
        reports.put((campaign, number, failure))


class Tally:
    def __init__(self, campaigns):
        self.trials = dict.fromkeys(campaigns, 0)
        self.failures = {name: [] for name in campaigns}
        self.shown = time.monotonic()

    def add(self, campaign, number, failure):
        self.trials[campaign] += 1
        if failure:
            self.failures[campaign].append(number)
            if len(self.failures[campaign]) <= MOST_KEPT:
                print(f"FAILED {campaign} {number}: {failure}", flush=True)
        if time.monotonic() - self.shown > PROGRESS_SECONDS:
            self.shown = time.monotonic()
            print("... " + ", ".join(self.line(name) for name in self.trials), flush=True)

    def line(self, name) -> str:
        return f"{name}: {self.trials[name]} trials, {len(self.failures[name])} failed"

    def finish(self, keep) -> int:
        failed = sum(map(len, self.failures.values()))
        for name in self.trials:
            print(self.line(name))
        if failed:
            print(f"failures are kept in {keep}")
        print(f"{sum(self.trials.values()) - failed} passed, {failed} failed")
        return 1 if failed else 0


def soak(options, programs, campaigns, root) -> int:
    shares, reports, tally = Shares(campaigns), multiprocessing.Queue(), Tally(campaigns)
    deadline = time.monotonic() + 60 * options.minutes
    workers = [multiprocessing.Process(target=work, args=(options, programs, shares, reports, deadline,
                                                          root / f"worker-{number}")) for number in range(WORKERS)]
    for worker in workers:
        worker.start()
    try:
        while any(worker.is_alive() for worker in workers) or not reports.empty():
            try:
                tally.add(*reports.get(timeout=0.2))
            except queue.Empty:
                pass
    finally:
        for worker in workers:
            worker.terminate()
            worker.join()
    return tally.finish(options.keep)


def repeat(options, programs, campaigns, root) -> int:
    """One trial of each campaign, for a failure that was found before."""
    tally = Tally(campaigns)
    bench = harness.Bench(programs, options.seed, root, options.keep)
    for campaign in campaigns:
        for number in options.trial:
            tally.add(campaign, number, run_trial(bench, campaign, number))
    return tally.finish(options.keep)


def numbers(text: str) -> list[int]:
    """17, or 0:20 for the trials from 0 to 19."""
    first, colon, last = text.partition(":")
    return list(range(int(first), int(last))) if colon else [int(first)]


def parse(words) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=2, help="how long (default: 2)")
    parser.add_argument("--linblock", help="the program")
    parser.add_argument("--asan", help="the same with sanitizers: reads forged files")
    parser.add_argument("--hooked", help="the same with the file hook: for system calls where strace does not work")
    parser.add_argument("--keep", type=pathlib.Path, default=pathlib.Path("soak-failures"), help="where failures go")
    parser.add_argument("--seed", type=int, default=None, help="default: from the clock")
    parser.add_argument("--only", default=",".join(CAMPAIGNS), help="campaigns, with commas between")
    parser.add_argument("--trial", type=numbers, help="repeat this trial, or FIRST:LAST")
    parser.add_argument("--no-strace", action="store_true", help="use the hook even where strace works")
    parser.add_argument("--list", action="store_true", help="list the campaigns and stop")
    return parser.parse_args(words)


def main(words) -> int:
    options = parse(words)
    campaigns = options.only.split(",")
    if options.list:
        for name in CAMPAIGNS:
            print(f"{name}: {importlib.import_module(name).__doc__.splitlines()[0]}")
        return 0
    if unknown := set(campaigns) - set(CAMPAIGNS):
        print(f"no such campaign: {', '.join(unknown)}; --list shows them", file=sys.stderr)
        return 2
    if not options.linblock:
        print("--linblock PROGRAM is required", file=sys.stderr)
        return 2
    if options.seed is None:
        options.seed = time.time_ns() % 1_000_000_007
    options.keep = options.keep.resolve()
    absolute = lambda path: path and str(pathlib.Path(path).resolve(strict=True))
    programs = harness.Programs(absolute(options.linblock), absolute(options.asan), absolute(options.hooked),
                                strace=not options.no_strace and strace_works(),
                                broken=os.environ.get("LINBLOCK_HOOK"))
    print(f"seed {options.seed}; strace {'works' if programs.strace else 'is not used'}", flush=True)
    signal.signal(signal.SIGTERM, stop)
    with tempfile.TemporaryDirectory(prefix="linblock-soak-") as root:
        return (repeat if options.trial else soak)(options, programs, campaigns, pathlib.Path(root))


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
