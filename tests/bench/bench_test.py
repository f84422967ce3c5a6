#!/usr/bin/env python3
"""A killed bench goes on where it was, a peer's failing is an outcome, --check finds what is missing, and the page says what was seen."""
import contextlib
import dataclasses
import io
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import unittest
import unittest.mock

BENCH = pathlib.Path(__file__).resolve().parents[2] / "bench"
sys.path.insert(0, str(BENCH))

import page  # noqa: E402
import peers  # noqa: E402
from experiments import Bench, run_experiment  # noqa: E402
from journal import Journal  # noqa: E402
from program import Bound, Claim, Experiment, Figure, Measure, Program, from_run  # noqa: E402
from values import Line, NotReached, Point, Value, least, of, reach, together, wall  # noqa: E402

SHELL = "/bin/sh"


class InFolder(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)


class Experiments(InFolder):
    """Of shell scripts: "ours" counts as linblock does, the others are peers."""

    def program(self, name, script, tool="ours", **more):
        return Program(name, tool, f"-c '{script}'", **more)

    def run_bench(self, *programs, repeats=1, fresh=False, **more):
        experiment = Experiment("test", "one", "It shows.", programs, **more)
        journal = Journal(self.folder / "journal.jsonl", "a", "machine")
        bench = Bench({"ours": (SHELL,), "liblinear-train": (SHELL,)}, self.folder, journal, repeats, quick=True, fresh=fresh)
        with contextlib.redirect_stderr(io.StringIO()):
            return run_experiment(experiment, "set", {name: self.folder / name for name in ("store", "model")}, bench)

    def lines(self):
        return [json.loads(line) for line in (self.folder / "journal.jsonl").read_text().splitlines()]

    def test_programs_run_in_turn_with_what_earlier_ones_said(self):
        pack = self.program("pack", "echo rows >$0; echo \"{{\\\"bytes\\\": 7}}\"' {store} '", makes="{store}")
        a, b = (self.program(name, f"cat $0; echo {name} $1' {{store}} {{seven}} '") for name in "ab")
        outcome, failures = self.run_bench(a, b, repeats=2, before=(pack,), derived={"seven": from_run(pack, lambda run, quick: run.summary()["bytes"])})
        self.assertEqual(failures, [])
        self.assertEqual([line["program"] for line in self.lines()], ["pack", "a", "b", "a", "b"])
        self.assertEqual(outcome.runs["b"][1].stdout, "rows\nb 7\n")
        self.assertEqual({"commit", "machine", "command", "wall_seconds", "cpu_seconds", "peak_memory_bytes", "bytes_read"} - self.lines()[0].keys(), set())

    def test_a_peer_that_fails_is_left_out_with_its_ending(self):
        peer = self.program("peer", "echo no memory >&2; exit 3", "liblinear-train", makes="{model}")
        after = self.program("after", "cat $0' {model} '")
        outcome, failures = self.run_bench(peer, self.program("ours", "echo fine"), after=(after,))
        self.assertEqual(failures, [])
        self.assertRegex(outcome.missing["peer"], r"^peer failed: exit code 3 after \S+ s at \d+ MB$")
        self.assertEqual(outcome.missing["after"], outcome.missing["peer"], "what it should have made is not there")
        self.assertEqual((self.lines()[0]["exit_code"], self.lines()[0]["stderr"]), (3, "no memory"))
        self.assertIn("ours", outcome.runs)

    def test_a_measure_can_say_that_a_peer_was_killed(self):
        peer = self.program("peer", "kill -9 $$", "liblinear-train", may_fail=True)
        outcome, failures = self.run_bench(peer, measures=(Measure("it", "", of(peer, lambda run: run.ending())),))
        self.assertEqual(failures, [])
        self.assertRegex(page.measures_table([outcome], judged=False)[1][0][1], r"^killed after \S+ s at \d+ MB$")

    def test_our_own_failing_is_an_error(self):
        outcome, failures = self.run_bench(self.program("ours", "exit 3"), self.program("other", "true"))
        self.assertEqual(len(failures), 1)
        self.assertIn("other", outcome.runs, "the others are still measured")

    def test_an_absent_peer_and_an_unknown_place_are_named(self):
        outcome, failures = self.run_bench(self.program("vw", "true", "vw"), self.program("ours", "echo {memory}"))
        self.assertEqual(failures, [])
        self.assertEqual(outcome.missing, {"vw": "no vw", "ours": "memory not known"})

    def test_what_is_kept_runs_once_for_a_command(self):
        def ran(script, **more):
            self.run_bench(self.program("search", f"echo run >>$0; {script}' {{store}} '", kept=True), **more)
            return (self.folder / "store").read_text().count("run")

        self.assertEqual([ran("exit 3"), ran("exit 3"), ran("echo 7"), ran("echo 7"), ran("echo 8")], [1, 2, 3, 3, 4], "a failed run is tried again")
        self.assertEqual(ran("echo 7", fresh=True), 5)
        self.assertEqual([line["stdout"] for line in self.lines() if "program" in line], ["", "", "7\n", "7\n", "8\n", "7\n"], "the journal has it each time")

    def test_check_finds_what_has_no_value_and_no_reason(self):
        def gaps(look, program=self.program("ours", "echo fine"), **more):
            return page.gaps(self.run_bench(program, measures=(Measure("it", "", of(program, look)),), **more)[0])

        self.assertEqual(gaps(lambda run: run.stdout.strip()), [])
        self.assertEqual(gaps(lambda run: 1, self.program("vw", "", "vw")), [], "an absent peer is a reason")
        self.assertIn("no finite number", gaps(lambda run: float("nan"))[0])
        self.assertIn("ZeroDivisionError", gaps(lambda run: 1 / 0)[0])
        self.assertIn("KeyError", gaps("gap")[0])
        self.assertIn("failed", gaps(lambda run: 1, self.program("peer", "exit 1", "liblinear-train"))[0])
        self.assertIn("not known", gaps(lambda run: 1, self.program("ours", "echo {memory}"))[0])
        empty = Line("empty", (self.program("ours", "echo fine"),), lambda run: [])
        self.assertIn("no finite number", gaps(lambda run: 1, figures=(Figure("Figure 1", (empty,)),))[0], "a curve without points")


class Pages(unittest.TestCase):
    """What the page makes of runs."""

    def setUp(self):
        self.slow, self.fast, self.absent = (Program(name, "ours", "") for name in ("slow", "fast", "absent"))

    def outcome(self, **more):
        from experiments import Outcome
        from runner import Run
        runs = {name: [Run([name], seconds, seconds, 1 << 20, 0, 0, "{}") for seconds in several] for name, several in
                (("slow", (4.0, 6.0, 5.0)), ("fast", (1.0,)))}
        return Outcome(Experiment("peers", "one", "It shows.", (self.slow, self.fast), **more), "set", runs, {"absent": "no absent"})

    def test_values_are_compared_by_their_medians(self):
        runs = self.outcome().runs
        self.assertEqual((wall(self.slow) / wall(self.fast)).middle(runs), 5)
        self.assertEqual((wall(self.slow) - wall(self.fast)).middle(runs), 4)
        self.assertEqual((wall(self.slow) * 2).look(runs["slow"]), [8, 12, 10])
        self.assertEqual(together(max, wall(self.fast), wall(self.slow)).middle(runs), 5)

    def test_the_least_is_of_those_that_are_here(self):
        def cell(value):
            return page.measures_table([self.outcome(measures=(Measure("time", "s", value),))], judged=False)[1][0][1]

        slow, fast, absent = map(wall, (self.slow, self.fast, self.absent))
        self.assertEqual(cell(least(slow, fast)), "1")
        self.assertEqual(cell(least(slow, absent, absent + fast)), "5")
        self.assertEqual(cell(least(slow, absent) / fast), "5")
        self.assertEqual(cell(least(slow, absent) * 2), "10")
        self.assertEqual(cell(least(absent, slow)), "not measured", "the first must be here")
        self.assertEqual(cell(least(slow, absent) / absent), "not measured")

    def test_a_geometric_mean_is_of_the_data_sets_that_have_a_value(self):
        measures = (Measure("ratio", "", wall(self.slow) / wall(self.fast), mean=True), Measure("none", "", wall(self.absent), mean=True), Measure("time", "s", wall(self.slow)))
        one, other, without = (self.outcome(measures=measures) for _ in range(3))
        other.runs["slow"] = [dataclasses.replace(other.runs["slow"][0], wall_seconds=0.2)]
        del without.runs["fast"]
        head, rows = page.measures_table([one, other, without], judged=True)
        self.assertEqual(head, ("", "set", "set", "set", "geometric mean"))
        self.assertEqual(rows[0][1:4], ("5", "0.200", "not measured"))
        self.assertRegex(rows[0][4], r"^1(\.00)? of 2$")
        self.assertEqual([row[-1] for row in rows[1:]], ["", ""])

    def test_a_figure_that_is_missed_is_marked_and_only_where_it_is_asked(self):
        def cell(asked, only=(), judged=True):
            outcome = self.outcome(measures=(Measure("time", "s", wall(self.slow), asked, only),))
            return page.measures_table([outcome], judged)[1][0][1]

        self.assertEqual(cell(Bound(most=5)), "5 (4-6)")
        self.assertEqual(cell(Bound(most=4.9)), "5 (4-6) **MISSED**")
        self.assertEqual(cell(Bound(least=5.1)), "5 (4-6) **MISSED**")
        self.assertEqual(cell(Bound(most=4.9), ("other",)), "5 (4-6)")
        self.assertEqual(cell(Bound(most=4.9), judged=False), "5 (4-6)")

    def test_claims_agree_differ_or_cannot_be_tested(self):
        def never(*_):
            raise NotReached("so near at no time")

        def judged(*values, **more):
            return page.judge(self.outcome(), Claim("paper", "Figure 1", "it is fast", values, **more))

        fast, slow, hopeless = wall(self.fast), wall(self.slow), Value((self.fast,), never)
        self.assertEqual(judged(fast, slow), ("agrees", "1 s against 5 s"))
        self.assertEqual(judged(slow, fast)[0], "**differs**")
        self.assertEqual(judged(slow, fast, slack=4.9)[0], "**differs**")
        self.assertEqual(judged(slow, fast, margin=3.9)[0], "**differs**")
        self.assertEqual(judged(fast, slow, slack=0.2)[0], "agrees")
        self.assertEqual(judged(fast, slow, slack=0.1)[0], "**differs**", "it is less, but not so much less")
        self.assertEqual(judged(slow, most=4)[0], "**differs**")
        self.assertEqual(judged(fast, hopeless), ("agrees", "1 s against never"))
        self.assertEqual(judged(hopeless, fast)[0], "**differs**")
        self.assertEqual(judged(hopeless), ("not testable here", "reached by none"))
        self.assertEqual(judged(wall(self.absent), fast), ("not testable here", "no absent"))

    def test_claims_of_what_is_less_are_not_met_by_what_is_equal(self):
        def verdict(*numbers, unit="", **more):
            return page.verdict(Claim("paper", "Figure 1", "fewer", unit=unit, **more), numbers)

        self.assertEqual(verdict(447.1, 447.4, unit="MB"), "no difference", "447 MB against 447 MB")
        self.assertEqual(verdict(0.511, 0.496, unit="s"), "no difference", "seconds vary by 5%")
        self.assertEqual(verdict(0.496, 0.511, unit="s"), "no difference")
        self.assertEqual(verdict(0.511, 0.486, unit="s"), "**differs**")
        self.assertEqual(verdict(0.486, 0.511, unit="s"), "agrees")
        self.assertEqual(verdict(4, 5, 4, unit="passes"), "no difference", "not fewer than all of them")
        self.assertEqual(verdict(4, 5, 3, 4, unit="passes"), "**differs**")
        self.assertEqual(verdict(2.5, 2.5, unit="%"), "no difference")
        self.assertEqual(verdict(2.5, 2.5, unit="%", even=True), "no difference, as claimed", "never an agreement beside two equal numbers")
        self.assertEqual(verdict(2.4, 2.5, unit="%", even=True), "agrees", "the paper says that they are equal, or that the first is less")
        self.assertEqual(verdict(7.68, 7.59, unit="%", margin=0.1, even=True), "no difference, as claimed")
        self.assertEqual(verdict(7.68, 7.57, unit="%", margin=0.1, even=True), "**differs**")
        self.assertEqual(verdict(4, most=4), "agrees")
        self.assertEqual(verdict(5, most=4), "**differs**")

    def test_how_a_claim_is_judged_is_shown_with_it(self):
        def cell(**more):
            outcome = self.outcome(claims=(Claim("paper", "Figure 1", "fewer", (wall(self.fast), wall(self.slow)), **more),))
            return page.claims_table([outcome])[1][0][0]

        self.assertEqual(cell(), "Figure 1: fewer (slack 5%)")
        self.assertEqual(cell(unit="MB"), "Figure 1: fewer")
        self.assertEqual(cell(slack=0.5), "Figure 1: fewer (at most 0.5 times)")
        self.assertEqual(cell(unit="%", margin=0.2), "Figure 1: fewer (slack 0.2 points)")
        self.assertEqual(cell(slack=1.5), "Figure 1: fewer (slack 50%)")
        self.assertEqual(cell(most=4), "Figure 1: fewer (at most 4)")

    def test_where_a_curve_comes_near_to_the_best(self):
        def line(name, program, *points):
            return Line(name, (program,), lambda run: [Point(number, number / 10, 0, objective, error) for number, (objective, error) in enumerate(points, 1)])

        good, bad = line("good", self.fast, (9.0, 5.0), (2.01, 1.0), (2.0, 1.5)), line("bad", self.slow, (4.0, 2.0), (3.0, 1.6))
        runs = self.outcome().runs
        self.assertEqual(reach(good, (bad,)).middle(runs), 0.2)
        self.assertEqual(reach(good, (bad,), level=1e-3, across="passes").middle(runs), 3)
        self.assertEqual(reach(bad, (good,), level=0.6, across="passes", upward="error").middle(runs), 2)
        with self.assertRaises(NotReached):
            reach(bad, (good,)).middle(runs)
        outcome = self.outcome(figures=(Figure("Figure 1", (good, bad)),))
        drawn = page.pictures([outcome])
        self.assertEqual(list(drawn), ["one-figure-1-set.svg"])
        self.assertEqual(drawn["one-figure-1-set.svg"].count("<polyline"), 2)
        self.assertEqual(page.curves(outcome.experiment.figures[0], {"good": good.look(None)})["good"][1], (0.2, 2.01 / 2.0 - 1))

    def test_the_page_has_each_experiment_with_its_command(self):
        claim = Claim("paper", "Figure 1", "it is fast", (wall(self.slow), wall(self.fast)), if_not="the disk is slow")
        outcome = self.outcome(measures=(Measure("time", "s", wall(self.absent)),), claims=(claim,))
        text, _ = page.page([outcome], [dataclasses.replace(claim, why_not="no such disk")], ["a note"], judged=True)
        for words in ("## Against its peers", "### one", "It shows. Made by `./run bench peers --only one`.", "| not measured |", "*Not measured:* no absent.",
                      "Figure 1: it is fast", "**differs**: 5 s against 1 s", "where it differs:* the disk is slow.", "- a note"):
            self.assertIn(words, text)


class Peers(unittest.TestCase):
    def test_what_is_absent_is_named_with_the_reason(self):
        missing = peers.Peer((SHELL + "-nowhere",), "nothing")
        with unittest.mock.patch.dict(peers.PEERS, {"gone": missing, "here": peers.Peer((SHELL, "-c"), "nothing")}):
            self.assertEqual(peers.find({"gone", "here"}, may_install=False),
                             ({"here": (SHELL, "-c")}, ["absent: gone (not installed; package nothing of Debian)", "here of unknown version"]))

    def test_a_quick_bench_installs_nothing(self):
        with unittest.mock.patch.multiple(peers, is_here=lambda peer: False, install=self.fail):
            self.assertEqual(peers.find({"snapml"}, may_install=False), ({}, ["absent: snapml (a quick bench installs nothing; package snapml of PyPI)"]))
        asked = []
        with unittest.mock.patch.multiple(peers, is_here=lambda peer: False, install=asked.append):
            self.assertEqual(peers.find({"snapml"}, may_install=True), ({}, ["absent: snapml (could not be installed; package snapml of PyPI)"]))
        self.assertEqual(asked, ["snapml"])


class Anchors(InFolder):
    """LIBLINEAR's objective and its best setting, on rows for which the optimum is known: w = (1, -1) / 2 for two rows of +-(1, -1)."""

    def run_script(self, loss, optimum, *settings, text="1 1:1 2:-1\n-1 1:-1 2:1\n"):
        (self.folder / "rows.svm").write_text(text)
        (self.folder / "rows.npz").unlink(missing_ok=True)
        words = peers.PEERS["liblinear"].words
        if not peers.is_here(peers.PEERS["liblinear"]):
            self.skipTest("no scikit-learn for Debian's Python")
        done = subprocess.run([*words, self.folder / "rows.svm", loss, optimum, *settings], capture_output=True, text=True)
        if "liblinear.so.4" in done.stderr:
            self.skipTest("no LIBLINEAR of Debian")
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def test_the_objective_is_that_of_the_weights(self):
        # w = a (1, -1): a^2 + 2 max(0, 1 - 2a) is least, 1/4, at a = 1/2; a^2 + 2 max(0, 1 - 2a)^2, at a = 4/9, is 2/9.
        self.assertAlmostEqual(self.run_script("hinge", "0.25", "3:1e-6")["above"], 0, places=6)
        self.assertAlmostEqual(self.run_script("squared-hinge", repr(2 / 9), "1:1e-6")["above"], 0, places=6)
        self.assertAlmostEqual(self.run_script("squared-hinge", repr(1 / 9), "2:1e-6")["above"], 1, places=6)

    def test_the_search_takes_the_fastest_that_is_within_a_hundredth(self):
        found = self.run_script("squared-hinge", repr(2 / 9))
        self.assertLessEqual(found["above"], 0.01)
        near = [one for one in found["tried"] if one["above"] <= 0.01]
        self.assertEqual(found["seconds"], min(one["seconds"] for one in near))
        self.assertEqual({one["setting"].split(":")[0] for one in found["tried"]}, {"1", "2"})
        self.assertGreater(self.run_script("squared-hinge", repr(1 / 9))["above"], 0.99, "where none is near enough, the nearest, which says so")

    def test_every_class_counts(self):
        text = "3 1:1\n1 2:1\n2 3:1\n"  # in an order that is not that of the labels
        # Of each class: w = (a, b, b), and (a^2 + 2 b^2) / 2 + (1 - a)^2 + 2 (1 + b)^2 is least, 1, at a = 2/3, b = -2/3.
        self.assertAlmostEqual(self.run_script("squared-hinge", "1,1,1", "1:1e-6", text=text)["above"], 0, places=6)
        self.assertAlmostEqual(self.run_script("squared-hinge", "1,0.5,1", "2:1e-6", text=text)["above"], 1, places=5)


class Refusals(InFolder):
    def said(self, *options):
        done = subprocess.run([sys.executable, BENCH / "bench.py", "--linblock", os.environ["LINBLOCK"], *options], capture_output=True, text=True)
        self.assertNotEqual(done.returncode, 0)
        self.assertNotIn("Traceback", done.stderr)
        return done.stderr

    def test_say_what_is_wrong_and_what_there_is(self):
        self.assertIn("no bench nosuch: there are peers, papers", self.said("nosuch"))
        self.assertIn("no folder nowhere: --data", self.said("--data", "nowhere"))
        self.assertIn("no program nothing: build it first", self.said("--linblock", "nothing"))
        self.assertIn("--repeats must be at least 1", self.said("--repeats", "0"))
        left = self.said("store", "--only", "nosuch")
        self.assertIn("  generate (generated)", left)
        self.assertNotIn("threads", left, "of another bench")
        (self.folder / "file").touch()
        self.assertIn("file", self.said("store", "--quick", "--results", self.folder / "file"))


class KilledBench(InFolder):
    def start(self, *more):
        command = [sys.executable, BENCH / "bench.py", "primal", "--check", "--only", "default choice", "--sets", "documents", "--linblock", os.environ["LINBLOCK"],
                   "--scratch", self.folder, "--results", self.folder, *more]
        return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)

    def lines(self):
        journal, found = self.folder / "runs-quick.jsonl", []
        for line in journal.read_text().splitlines() if journal.exists() else []:
            with contextlib.suppress(ValueError):
                found.append(json.loads(line))
        return found

    def complete(self):
        return [line["complete"] for line in self.lines() if "complete" in line]

    def test_goes_on_where_it_was_killed(self):
        first = self.start()
        while not self.complete() and first.poll() is None:
            time.sleep(0.01)
        first.kill()
        first.communicate()
        done = self.complete()
        self.assertEqual(len(done), 1, "it was over before it could be killed")
        self.assertFalse((self.folder / "benchmarks-quick.md").exists())
        with (self.folder / "runs-quick.jsonl").open("a") as journal:
            journal.write('{"program": "cut in the mid')
        second = self.start()
        said = second.communicate()[1]
        self.assertEqual(second.returncode, 0, said)
        self.assertEqual(said.count("done before"), 1)
        self.assertEqual(self.complete(), [["default choice, squared-hinge", "documents"], ["default choice, logistic", "documents"]])
        self.assertEqual(self.lines()[-1]["finished"], self.complete())
        text = (self.folder / "benchmarks-quick.md").read_text()
        for words in ("### default choice, squared-hinge", "### default choice, logistic"):
            self.assertIn(words, text)
        self.assertRegex(text, r"\| chosen +\| \w+")
        self.assertRegex(text, r"\| default / best, times +\| \d")
        third = self.start("--only", "default choice, logistic")
        self.assertNotIn("done before", third.communicate()[1], "a bench that has finished is measured anew")
        self.assertEqual(len(self.complete()), 3)


if __name__ == "__main__":
    unittest.main()
