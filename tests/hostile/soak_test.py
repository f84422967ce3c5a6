#!/usr/bin/env python3
"""Tests of the harness itself: it must find broken programs, and must find nothing wrong with a sound one.

LINBLOCK names the program, LINBLOCK_HOOKED the one with the file hook.
"""
import os
import pathlib
import shutil
import stat
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import forged
import harness
import manifests
import soak

LINBLOCK = os.environ.get("LINBLOCK")
HOOKED = os.environ.get("LINBLOCK_HOOKED")
SEED = 7

# A program that runs the real one and lies about the result.
FALSE_CERTIFICATE = """#!/usr/bin/python3
import json, subprocess, sys
done = subprocess.run([{real!r}, *sys.argv[1:]], capture_output=True)
out = done.stdout
if sys.argv[1] == "train" and done.returncode == 0:
    summary = json.loads(out)
    for task in [summary, *summary.get("tasks", [])]:
        if task["{key}"] is not None: task["{key}"] *= {factor}
    out = json.dumps(summary).encode()
sys.stdout.buffer.write(out)
sys.stderr.buffer.write(done.stderr)
sys.exit(done.returncode)
"""
DEAF_TO_FULL_DISKS = """#!/bin/sh
{real} "$@" | (cat 2>/dev/null || true)
exit 0
"""
CLEANS_UP_TOO_MUCH = """#!/bin/sh
rm -f home/letter.txt
exec {real} "$@"
"""


class SoakTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="soak-test-"))
        cls.made = {}

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    def bench(self, **programs):
        """Inputs are made once, by the sound program, for all tests."""
        programs = {"linblock": LINBLOCK, **programs}
        bench = harness.Bench(harness.Programs(**programs), SEED, self.folder / "root", self.folder / "kept")
        bench.made = self.made
        return bench

    def failures(self, campaign, numbers, **programs):
        bench = self.bench(**programs)
        found = [soak.run_trial(bench, campaign, number) for number in numbers]
        return [why for why in found if why]

    def fake(self, text, **values):
        path = self.folder / f"fake-{len(list(self.folder.iterdir()))}"
        path.write_text(text.format(real=LINBLOCK, **values))
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return str(path)

    def prepare(self, campaign, numbers):
        """References are made by the sound program, before a broken one is tried."""
        self.assertEqual(self.failures(campaign, numbers), [])

    def test_sound_kills_and_a_lost_rename(self):
        self.prepare("kills", range(8))
        self.assertTrue(self.failures("kills", range(8), linblock=HOOKED, broken="lose:rename:1"))
        self.assertTrue(self.failures("kills", range(2), linblock=HOOKED, broken="lose:rename:0"))

    def test_sound_calls_and_a_lost_rename(self):
        numbers = range(8)
        self.assertEqual(self.failures("calls", numbers, hooked=HOOKED), [])
        self.assertTrue(self.failures("calls", numbers, linblock=HOOKED, hooked=HOOKED, broken="lose:rename:1"))

    def test_a_false_primal_and_a_false_dual(self):
        numbers = range(4)
        self.assertEqual(self.failures("certificates", numbers), [])
        primal = self.fake(FALSE_CERTIFICATE, key="primal", factor=1.001)
        dual = self.fake(FALSE_CERTIFICATE, key="dual", factor=1.5)
        self.assertTrue(self.failures("certificates", numbers, linblock=primal))
        self.assertTrue(self.failures("certificates", numbers, linblock=dual))

    def test_a_program_that_does_not_notice_a_full_stdout(self):
        numbers = range(30)
        self.prepare("outputs", numbers)
        self.assertTrue(self.failures("outputs", numbers, linblock=self.fake(DEAF_TO_FULL_DISKS)))

    def test_a_program_that_deletes_a_letter(self):
        self.prepare("lines", range(4))
        found = self.failures("lines", range(1), linblock=self.fake(CLEANS_UP_TOO_MUCH))
        self.assertIn("'home/letter.txt' is gone", found[0])

    def test_interrupts_of_a_sound_program(self):
        self.prepare("interrupts", range(5))

    def test_forged_files_of_a_sound_program(self):
        self.prepare("forged", range(6))

    def test_a_store_that_was_rewritten_without_a_change(self):
        bench = self.bench()
        source = bench.fixture("forged", lambda folder: forged.build(bench, folder))
        store = self.folder / "rewritten"
        shutil.copytree(source / "s", store)
        for inner in (store, store / "columns", store / "index"):
            manifests.reseal(inner, manifests.read(inner))
        manifests.adopt(store)
        self.assertEqual(harness.differences(harness.snapshot(source / "s"), harness.snapshot(store)), [])
        bench.must(self.folder, "verify", "rewritten")

    def test_a_snapshot_that_was_rewritten_without_a_change(self):
        bench = self.bench()
        state = bench.fixture("forged", lambda folder: forged.build(bench, folder)) / "m.state"
        again = self.folder / "again.state"
        manifests.write_snapshot(again, manifests.read_snapshot(state))
        self.assertEqual(state.read_bytes(), again.read_bytes())

    def test_a_failure_is_kept_with_what_repeats_it(self):
        why = self.failures("lines", [0], linblock=self.fake(CLEANS_UP_TOO_MUCH))[0]
        kept = self.folder / "kept" / "lines-0"
        self.assertIn(str(kept), why)
        for name in ("why", "commands.sh", "stdout", "stderr", "work"):
            self.assertTrue((kept / name).exists(), name)


if __name__ == "__main__":
    unittest.main()
