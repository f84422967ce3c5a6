#!/usr/bin/env python3
"""A pairwise selection of the matrix, and tests of the matrix itself: it must find programs that break the promise.

LINBLOCK names the program, LINBLOCK_HOOKED the one with the file hook.
"""
import os
import pathlib
import shlex
import stat
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import matrix
from matrix import Cell

LINBLOCK = os.path.abspath(os.environ["LINBLOCK"])
HOOKED = os.path.abspath(os.environ["LINBLOCK_HOOKED"])

# Runs the real program, and then changes a byte of the model if CONDITION holds.
FLIPS = """#!/bin/sh
resumed=no
[ ! -e m.checkpoint/STATE ] || resumed=yes
{real} "$@"
code=$?
if [ $code -eq 0 ] && [ "$1" = train ] && {condition}; then
  printf x | dd of=m bs=1 seek=200 conv=notrunc 2>/dev/null
fi
exit $code
"""


class PairwiseTest(unittest.TestCase):
    def test_every_pair_that_exists_is_chosen(self):
        cells = matrix.all_cells()
        chosen = matrix.pairwise(cells)
        covered = set().union(*map(matrix.pairs_of, chosen))
        self.assertEqual(covered, set().union(*map(matrix.pairs_of, cells)))
        self.assertLess(len(chosen), len(cells) / 20)
        self.assertEqual(chosen, matrix.pairwise(cells))


class MatrixTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.matrix = matrix.Matrix(LINBLOCK, HOOKED)

    def test_a_pairwise_selection_agrees(self):
        self.assertEqual(self.matrix.disagreements(matrix.pairwise(matrix.all_cells())), [])
        self.assertGreater(self.matrix.resumed, 0, "no run was killed late enough to leave a checkpoint")

    def found(self, condition, cells):
        """The disagreements of a program that is broken on a condition, and the sound references."""
        for cell in cells:
            self.matrix.reference(cell)
        broken = {}
        for name, real in (("program", LINBLOCK), ("hooked", HOOKED)):
            path = self.matrix.path / f"broken-{name}"
            path.write_text(FLIPS.format(real=shlex.quote(real), condition=condition))
            path.chmod(path.stat().st_mode | stat.S_IXUSR)
            broken[name] = str(path)
        sound = self.matrix.program, self.matrix.hooked
        self.matrix.program, self.matrix.hooked = broken["program"], broken["hooked"]
        try:
            return self.matrix.disagreements(cells)
        finally:
            self.matrix.program, self.matrix.hooked = sound

    def test_another_model_on_seven_threads_is_found(self):
        cells = [Cell("hinge", "dual", "decoded", threads) for threads in matrix.THREADS]
        found = self.found("echo \" $* \" | grep -q -- '--threads 7 '", cells)
        self.assertEqual(len(found), 1)
        self.assertIn("7 threads", found[0])
        self.assertIn("--threads 1 ", found[0])  # both commands are printed, and both sums
        self.assertIn(self.matrix.reference(cells[0])[0], found[0])

    def test_another_model_for_three_owners_is_found(self):
        cells = [Cell("hinge", "dual, batches", "decoded", 2, owners) for owners in matrix.OWNERS]
        found = self.found("[ \"$LINBLOCK_OWNERS\" = 3 ]", cells)
        self.assertEqual(len(found), 1)
        self.assertIn("LINBLOCK_OWNERS=3 ", found[0])

    def test_another_model_after_resuming_is_found(self):
        cells = [Cell("hinge", "dual", "streamed", threads, killed=True) for threads in (1, 2, 3, 16)]
        found = next(filter(None, (self.found("[ $resumed = yes ]", cells) for _ in range(5))), [])  # kills can be too early
        self.assertTrue(found)
        self.assertTrue(all("killed and resumed" in text for text in found))

    def test_a_row_of_the_matrix_that_holds_its_rows_otherwise_is_refused(self):
        held = matrix.HELD["encoded"]
        matrix.HELD["encoded"] = (held[0], "1G", held[2])
        try:
            with self.assertRaisesRegex(SystemExit, "the plan does not say"):
                self.matrix.reference(Cell("logistic", "dual, fixed", "encoded"))
        finally:
            matrix.HELD["encoded"] = held


if __name__ == "__main__":
    unittest.main()
