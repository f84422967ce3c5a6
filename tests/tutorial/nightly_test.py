#!/usr/bin/env python3
"""The script of docs/nightly.md for three nights, killed in the middle: run again, it ends with the model of an undisturbed run.

usage: nightly_test.py, with LINBLOCK and LINBLOCK_HOOKED in the environment
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import run_tutorial  # noqa: E402

LINBLOCK, HOOKED = os.environ["LINBLOCK"], os.environ["LINBLOCK_HOOKED"]
DAYS = ["2026-11-15", "2026-11-16", "2026-11-17"]
COMMANDS = ["snapshot", "append", "remove", "train"]  # in the order of the night
PAGE = pathlib.Path(__file__).parents[2] / "docs/nightly.md"

# In the place of the program: kills COMMAND at its N-th file call of a kind, once.
PROGRAM = """#!/bin/bash
if [ "$1" = "${KILL_COMMAND:-}" ] && [ ! -e killed ]; then
  touch killed
  export LINBLOCK_HOOK=kill:$KILL_AT
  exec "%s" "$@"
fi
exec "%s" "$@"
"""


def block_with(words: str) -> str:
    """The sh block of the page that has these words."""
    found = [block for block in run_tutorial.read_blocks(PAGE.read_text()) if words in "\n".join(block.lines)]
    assert len(found) == 1, words
    return "\n".join(found[0].lines)


class Nights:
    def __init__(self, root: pathlib.Path, name: str):
        self.folder = root / name
        self.folder.mkdir()
        programs = root / "programs"
        if not programs.exists():
            programs.mkdir()
            (programs / "linblock").write_text(PROGRAM % (HOOKED, LINBLOCK))
            (programs / "linblock").chmod(0o755)
        self.environment = dict(os.environ, PATH=f"{programs}:{os.environ['PATH']}", LC_ALL="C", RETRY_SECONDS="0")

    def run(self, script: str, **more: str) -> subprocess.CompletedProcess:
        return subprocess.run(["bash", "-c", "set -euo pipefail\n" + script], cwd=self.folder, text=True,
                              env=dict(self.environment, **more), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=100)

    def set_up(self) -> None:
        made = self.run(block_with("cat >nightly.sh") + "\n" + block_with("cat >retry.sh").replace("./retry.sh 2026", ": 2026"))
        assert made.returncode == 0, made.stdout
        for i, day in enumerate(DAYS):
            self.generate(day, 1500, 1500 * i)
        self.generate("test", 500, 4500)

    def generate(self, name: str, rows: int, skip: int) -> None:
        done = self.run(f"linblock generate documents -o {name}.svm --rows {rows} --features 3000 --skip {skip} -q")
        assert done.returncode == 0, done.stdout

    def copy_of(self, other: "Nights") -> "Nights":
        shutil.copytree(other.folder, self.folder, dirs_exist_ok=True, symlinks=True)
        return self

    def night(self, day: str, script: str = "./nightly.sh", **more: str) -> subprocess.CompletedProcess:
        return self.run(f"{script} {day}", **more)

    def result(self) -> dict[str, bytes]:
        """All that the nights have left, but for what depends on the time."""
        names = ["current", *(f"model-{day}" for day in DAYS), *(f"model-{day}.state" for day in DAYS), "days.store/MANIFEST"]
        return {name: (self.folder / name).read_bytes() for name in names if (self.folder / name).exists()}


class NightlyTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.root = pathlib.Path(cls.temporary.name)
        cls.first = Nights(cls.root, "first")
        cls.first.set_up()
        for day in DAYS[:2]:
            done = cls.first.night(day)
            assert done.returncode == 0, done.stdout
        cls.whole = Nights(cls.root, "whole").copy_of(cls.first)
        done = cls.whole.night(DAYS[2])
        assert done.returncode == 0, done.stdout
        cls.expected = cls.whole.result()

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def test_undisturbed_nights_serve_the_newest_model(self):
        self.assertEqual(os.readlink(self.whole.folder / "current"), f"model-{DAYS[2]}")
        self.assertIn(f"model-{DAYS[2]}.state", self.expected)
        again = self.whole.night(DAYS[2])
        self.assertEqual(again.returncode, 0, again.stdout)
        self.assertEqual(self.whole.result(), self.expected)

    def test_a_night_killed_in_any_command_ends_with_the_same_model_when_it_is_run_again(self):
        killed = 0
        for command in COMMANDS:
            for at in ["any:3", "sync:1", "rename:1", "sync_directory:1", "any:60"]:
                with self.subTest(command=command, at=at):
                    nights = Nights(self.root, f"{command}-{at}").copy_of(self.first)
                    stopped = nights.night(DAYS[2], KILL_COMMAND=command, KILL_AT=at)
                    self.assertTrue((nights.folder / "killed").exists(), "the night has no such command")
                    if stopped.returncode != 0:
                        self.assertEqual(stopped.returncode, 137, stopped.stdout)
                        self.assertEqual(os.readlink(nights.folder / "current"), f"model-{DAYS[1]}")
                        killed += 1
                        again = nights.night(DAYS[2])
                        self.assertEqual(again.returncode, 0, again.stdout)
                    self.assertEqual(nights.result(), self.expected)
        self.assertGreater(killed, 12)

    def test_retrying_goes_on_after_a_kill_and_not_after_wrong_input(self):
        nights = Nights(self.root, "retried").copy_of(self.first)
        done = nights.night(DAYS[2], "./retry.sh", KILL_COMMAND="train", KILL_AT="rename:1")
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertEqual(nights.result(), self.expected)
        nights = Nights(self.root, "wrong").copy_of(self.first)
        (nights.folder / f"{DAYS[2]}.svm").write_text("no number\n")
        done = nights.night(DAYS[2], "./retry.sh")
        self.assertEqual(done.returncode, 3, done.stdout)
        self.assertEqual(done.stdout.count("no number"), 1, done.stdout)
        self.assertEqual(os.readlink(nights.folder / "current"), f"model-{DAYS[1]}")

    def test_a_model_that_is_worse_or_has_not_converged_is_not_served(self):
        nights = Nights(self.root, "worse").copy_of(self.first)
        rows = (nights.folder / f"{DAYS[2]}.svm").read_text().splitlines()
        flipped = [("-1" if row.startswith("1 ") or row.startswith("+1 ") else "1") + row[row.index(" "):] for row in rows]
        (nights.folder / f"{DAYS[2]}.svm").write_text("\n".join(flipped) + "\n")
        done = nights.night(DAYS[2])
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertRegex(done.stdout, f"model-{DAYS[2]} has accuracy .*, model-{DAYS[1]} has .* and is still served")
        self.assertEqual(os.readlink(nights.folder / "current"), f"model-{DAYS[1]}")
        nights = Nights(self.root, "unfinished").copy_of(self.first)
        script = nights.folder / "nightly.sh"
        script.write_text(script.read_text().replace("--require-converged", "--require-converged --max-passes 1 --tolerance 1e-9"))
        done = nights.night(DAYS[2], "./retry.sh")
        self.assertEqual(done.returncode, 7, done.stdout)
        self.assertEqual(os.readlink(nights.folder / "current"), f"model-{DAYS[1]}")


if __name__ == "__main__":
    unittest.main()
