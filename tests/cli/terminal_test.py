#!/usr/bin/env python3
"""What stands on a terminal when a command has ended: whole lines, and nothing of what only showed how work went on.

A pseudo-terminal of 60, 80 and 120 columns; what the program writes to it is drawn on a screen of that width, which
breaks lines that are too long, as terminals do.
"""
import fcntl
import os
import pathlib
import pty
import re
import struct
import subprocess
import tempfile
import termios
import threading
import time
import unittest

LINBLOCK = os.environ["LINBLOCK"]
WIDTHS = (60, 80, 120)


class Screen:
    """Rows of characters, as wide as the terminal. It knows what the program uses: \\r, \\n, ESC [ K and colors."""

    def __init__(self, width):
        self.width, self.rows, self.column, self.longest_update = width, [""], 0, 0

    def draw(self, text):
        for token in re.findall(r"\x1b\[[0-9;]*[A-Za-z]|[^\x1b]", text):
            if token == "\r":
                self.column = 0
            elif token == "\n":
                self.rows.append("")
                self.column = 0
            elif token == "\x1b[K":
                self.rows[-1] = self.rows[-1][:self.column]
            elif not token.startswith("\x1b"):
                if self.column == self.width:
                    self.rows.append("")
                    self.column = 0
                self.rows[-1] = self.rows[-1][:self.column].ljust(self.column) + token + self.rows[-1][self.column + 1:]
                self.column += 1


def run_on_terminal(width, words, folder, stdin=None):
    """The screen at the end, and everything that was written on the way."""
    outer, inner = pty.openpty()
    fcntl.ioctl(inner, termios.TIOCSWINSZ, struct.pack("HHHH", 24, width, 0, 0))
    process = subprocess.Popen([LINBLOCK, *words], cwd=folder, stdin=stdin, stdout=inner, stderr=inner)
    os.close(inner)
    written = b""
    while True:
        try:
            piece = os.read(outer, 65536)
        except OSError:  # Linux says so when the other end is closed
            break
        if not piece:
            break
        written += piece
    os.close(outer)
    assert process.wait() == 0, written.decode()
    screen = Screen(width)
    screen.draw(written.decode().replace("\r\n", "\n"))
    return screen, written.decode()


def slow_rows(pipe, seconds=2.5, every=0.05):
    """Rows at a rate at which a bar appears."""
    end = time.monotonic() + seconds
    number = 0
    with os.fdopen(pipe, "w") as text:
        while time.monotonic() < end:
            for _ in range(200):
                number += 1
                text.write(f"{(-1, 1)[number % 2]} {1 + number % 97}:{1 + number % 7} {100 + number % 89}:0.5\n")
            text.flush()
            time.sleep(every)


class Terminal(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.path = pathlib.Path(self.folder.name)

    def check(self, width, screen, written, showed):
        self.assertRegex(written, rf"\r\x1b\[K{showed}[ ,]", "the bar did not appear: this tests nothing")
        for update in re.findall(r"\r\x1b\[K([^\r\n\x1b]*)", written):
            self.assertLess(len(update), width, f"{width} columns: {update}")
        for row in screen.rows:
            self.assertNotRegex(row, rf"{showed} \[|{showed}, .*/s", f"{width} columns: debris in '{row}'")
            self.assertLess(len(row.rstrip()), width + (row.startswith("next: ")) * 1000, row)
            self.assertEqual(row, row.rstrip(), "blanks at the end of a line")

    def test_packing_leaves_nothing_behind(self):
        for width in WIDTHS:
            read, write = os.pipe()
            feeder = threading.Thread(target=slow_rows, args=(write,))
            feeder.start()
            screen, written = run_on_terminal(width, ["pack", "-", "-o", f"store{width}"], self.path, stdin=read)
            os.close(read)
            feeder.join()
            self.check(width, screen, written, "packing")
            self.assertRegex("\n".join(screen.rows), r"packed [\d,]+ rows")

    def test_training_leaves_nothing_behind(self):
        with open(self.path / "rows.svm", "wb") as text:
            subprocess.run([LINBLOCK, "generate", "documents", "-o", "-", "--rows", "20000", "-q"], stdout=text, check=True)
        subprocess.run([LINBLOCK, "pack", "rows.svm", "-o", "store", "-q"], cwd=self.path, check=True)
        for width in WIDTHS:
            words = ["train", "store", "-o", f"model{width}", "--memory", "16M", "--tolerance", "1e-12", "--solver", "dual",
                     "--loss", "hinge", "--max-seconds", "3", "--fresh", "--batch", "1"]
            screen, written = run_on_terminal(width, words, self.path)
            self.check(width, screen, written, "training")
            self.assertRegex("\n".join(screen.rows), r"not converged: ")

    def test_a_log_has_a_line_per_second_and_the_last_one(self):
        with open(self.path / "rows.svm", "wb") as text:
            subprocess.run([LINBLOCK, "generate", "documents", "-o", "-", "--rows", "2000", "-q"], stdout=text, check=True)
        begin = time.monotonic()
        done = subprocess.run([LINBLOCK, "train", "rows.svm", "-o", "model", "--tolerance", "1e-6", "--solver", "dual"],
                              cwd=self.path, capture_output=True, text=True, check=True)
        seconds = time.monotonic() - begin
        passes = re.findall(r"^\d\d:\d\d:\d\d pass +(\d+)  ", done.stderr, re.MULTILINE)
        last = int(re.search(r"; (\d+) passes", done.stderr)[1])
        self.assertGreater(last, 5)
        self.assertEqual((int(passes[0]), int(passes[-1])), (1, last))
        self.assertLessEqual(len(passes), seconds + 2)
        self.assertNotIn("\x1b", done.stderr)
        self.assertNotIn("\r", done.stderr)


if __name__ == "__main__":
    unittest.main()
