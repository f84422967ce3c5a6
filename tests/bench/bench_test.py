#!/usr/bin/env python3
"""A killed bench goes on where it was, a peer's failing is an outcome, and --check finds what is missing."""
import contextlib
import io
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import unittest
from collections import Counter

BENCH = pathlib.Path(__file__).resolve().parents[2] / "bench"
sys.path.insert(0, str(BENCH))

import report  # noqa: E402
from experiments import Bench, Derived, Experiment, Measure, Program, run_experiment  # noqa: E402
from journal import Journal  # noqa: E402

SHELL = "/bin/sh"


def words(runs):
    return [run.ending() if run.failed else run.stdout.strip() for run in runs]


class InFolder(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)


class Experiments(InFolder):
    """Of shell scripts: "ours" counts as linblock does, the others are peers."""

    def setUp(self):
        super().setUp()
        self.says = self.folder / "says"
        self.says.touch()

    def program(self, name, script, tool="ours", **more):
        return Program(name, tool, f"-c 'echo {name} >>{self.says}; {script}'", **more)

    def run_bench(self, experiment, fresh=False, commit="a"):
        journal = Journal(self.folder / "journal.jsonl", commit, {}, fresh)
        bench = Bench({"ours": SHELL, "liblinear-train": SHELL}, self.folder, journal, 1, quick=True)
        with contextlib.redirect_stderr(io.StringIO()):
            outcome = run_experiment(experiment, "set", {"store": self.folder / "store", "model": self.folder / "model"}, 1, bench)
        return outcome, journal

    def ran(self):
        """The programs that ran since it was last asked."""
        names = self.says.read_text().split()
        self.says.write_text("")
        return names

    def chain(self):
        pack = self.program("pack", "echo rows >$0; echo 7' {store} '", makes="{store}")
        add = self.program("add", "echo more >>$0' {store} '", changes="{store}", after="pack")
        train = self.program("train", "cat $0 >$1; echo $2' {store} {model} {derived} '", makes="{model}", after="add")
        test = self.program("test", "cat $0' {model} '", after="train")
        return Experiment("chain", (train,), (Measure("tested", "", ("test",), words),), before=(pack, add), after=(test,),
                          derived={"derived": Derived("pack", lambda run, quick: run.stdout.strip())})

    def cut_after(self, lines):
        """As a kill leaves the journal: some whole lines, and a piece of the next."""
        journal = self.folder / "journal.jsonl"
        kept = journal.read_text().splitlines(keepends=True)
        journal.write_text("".join(kept[:lines]) + "".join(kept[lines:])[:30])

    def test_what_is_in_the_journal_is_not_run_again(self):
        first, _ = self.run_bench(self.chain())
        self.assertEqual(self.ran(), ["pack", "add", "train", "test"])
        second, journal = self.run_bench(self.chain())
        self.assertEqual(self.ran(), [])
        self.assertEqual(journal.taken, 4)
        self.assertEqual(second.runs, first.runs)

    def test_a_line_that_was_cut_is_run_again(self):
        self.run_bench(self.chain())
        self.cut_after(3)
        self.ran()
        outcome, _ = self.run_bench(self.chain())
        self.assertEqual(self.ran(), ["test"])
        self.assertEqual(outcome.runs["test"][0].stdout, "rows\nmore\n")
        self.run_bench(self.chain())
        self.assertEqual(self.ran(), [], "the new line must not be lost behind the piece of the old one")

    def test_a_needed_file_that_is_gone_is_made_again_with_all_it_needs(self):
        self.run_bench(self.chain())
        self.cut_after(3)
        self.ran()
        (self.folder / "model").unlink()
        (self.folder / "store").unlink()
        outcome, _ = self.run_bench(self.chain())
        self.assertEqual(self.ran(), ["pack", "add", "train", "test"])
        self.assertEqual(outcome.runs["test"][0].stdout, "rows\nmore\n")

    def test_a_program_that_was_killed_while_it_changed_a_file_finds_it_as_it_was(self):
        self.run_bench(self.chain())
        self.cut_after(1)  # add had changed the store already
        self.ran()
        outcome, _ = self.run_bench(self.chain())
        self.assertEqual(self.ran(), ["pack", "add", "train", "test"])
        self.assertEqual(outcome.runs["test"][0].stdout, "rows\nmore\n")

    def test_a_finished_bench_another_commit_and_fresh_begin_anew(self):
        _, journal = self.run_bench(self.chain())
        self.ran()
        self.run_bench(self.chain(), commit="b")
        self.assertEqual(len(self.ran()), 4)
        self.run_bench(self.chain(), fresh=True)
        self.assertEqual(len(self.ran()), 4)
        journal.finish()
        self.run_bench(self.chain())
        self.assertEqual(len(self.ran()), 4)

    def test_a_peer_that_fails_is_left_out_with_its_ending(self):
        peer = self.program("peer", "echo no memory >&2; exit 3", "liblinear-train")
        experiment = Experiment("one", (peer, self.program("ours", "echo fine")),
                                (Measure("theirs", "", ("peer",), words), Measure("ours", "", ("ours",), words)))
        outcome, _ = self.run_bench(experiment)
        self.assertEqual(outcome.failures, [])
        self.assertRegex(outcome.missing["peer"], r"^peer failed: exit code 3 after \S+ s at \d+ MB$")
        line = json.loads((self.folder / "journal.jsonl").read_text().splitlines()[0])
        self.assertEqual((line["exit_code"], line["stderr"]), (3, "no memory"))
        self.assertGreater(line["wall_seconds"], 0)
        self.ran()
        self.assertEqual(self.run_bench(experiment)[0].missing, outcome.missing)
        self.assertEqual(self.ran(), [], "its failing is known")

    def test_a_measure_can_say_that_a_peer_was_killed(self):
        peer = self.program("peer", "kill -9 $$", "liblinear-train", may_fail=True)
        after = self.program("after", "echo never", after="peer")
        outcome, _ = self.run_bench(Experiment("one", (peer, after), (Measure("it", "", ("peer",), words),)))
        self.assertEqual(outcome.failures, [])
        rows = report.measures_table([outcome], (), judged=False)[1]
        self.assertRegex(rows[0][2], r"^killed after \S+ s at \d+ MB$")
        self.assertEqual(self.ran(), ["peer"])
        self.assertIn("killed", outcome.missing["after"])

    def test_our_own_failing_is_an_error_and_is_tried_again(self):
        experiment = Experiment("one", (self.program("ours", "exit 3"),), ())
        for _ in range(2):
            self.assertEqual(len(self.run_bench(experiment)[0].failures), 1)
            self.assertEqual(self.ran(), ["ours"])

    def test_check_finds_what_has_no_value_and_no_reason(self):
        def gaps(values, program=self.program("ours", "echo fine"), absent=()):
            experiment = Experiment("one", (program,), (Measure("it", "", (program.name,), values),))
            outcome, _ = self.run_bench(experiment)
            return report.gaps((experiment,), [outcome], absent)

        self.assertEqual(gaps(words), [])
        self.assertEqual(gaps(words, self.program("vw", "", "vw")), [], "an absent peer is a reason")
        self.assertIn("no finite number", gaps(lambda runs: [float("nan")])[0])
        self.assertIn("ZeroDivisionError", gaps(lambda runs: [1 / 0])[0])
        self.assertIn("no finite number", gaps(lambda runs: [])[0])
        self.assertIn("KeyError", gaps(lambda runs: [runs[0].summary()["gap"]])[0])
        self.assertIn("failed", gaps(words, self.program("peer", "exit 1", "liblinear-train"))[0])
        elsewhere = Experiment("two", (), (), data_sets=("a",))
        self.assertEqual(report.gaps((elsewhere,), [], ["data set a is absent (real data)"]), [])
        self.assertEqual(len(report.gaps((elsewhere,), [], [])), 1)


class KilledBench(InFolder):
    def start(self):
        command = [sys.executable, BENCH / "bench.py", "primal", "--check", "--only", "default choice, squared", "--sets", "documents",
                   "--repeats", "2", "--linblock", os.environ["LINBLOCK"], "--scratch", self.folder, "--results", self.folder]
        return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)

    def lines(self):
        journal = self.folder / "primal-part-quick.jsonl"
        return journal.read_text().splitlines() if journal.exists() else []

    def test_goes_on_where_it_was_killed(self):
        first = self.start()
        while len(self.lines()) < 5 and first.poll() is None:
            time.sleep(0.01)
        first.kill()
        first.communicate()
        done = [json.loads(line) for line in self.lines()]
        self.assertLess(len(done), 10, "it was over before it could be killed")
        self.assertFalse((self.folder / "primal-part-quick.md").exists())
        second = self.start()
        said = second.communicate()[1]
        self.assertEqual(second.returncode, 0, said)
        self.assertEqual(said.count("(done before)"), len(done))
        runs = Counter((line["program"], line["repeat"]) for line in map(json.loads, self.lines()[:-1]))
        self.assertEqual(set(runs.values()), {1}, runs)
        self.assertEqual(len(runs), 10)
        self.assertIn("finished", json.loads(self.lines()[-1]))
        page = (self.folder / "primal-part-quick.md").read_text()
        self.assertIn(f"{len(done)} runs are of a bench that was interrupted", page)
        self.assertRegex(page, r"\| chosen, squared-hinge +\| \w+")
        self.assertRegex(page, r"\| default / best, squared-hinge +\| \d\.\d+")


if __name__ == "__main__":
    unittest.main()
