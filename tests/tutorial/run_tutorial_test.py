#!/usr/bin/env python3
"""The runner of the tutorial must fail where the tutorial is wrong."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

RUNNER = pathlib.Path(__file__).with_name("run_tutorial.py")


class RunTutorial(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.addCleanup(self.temporary.cleanup)
        self.folder = pathlib.Path(self.temporary.name)
        program = self.folder / "greet"
        program.write_text('#!/bin/sh\necho "hello, $1"\necho "took 0.25 s, 1,234 rows" >&2\n')
        program.chmod(0o755)

    def run_page(self, page):
        (self.folder / "page.md").write_text(page)
        return subprocess.run([sys.executable, RUNNER, self.folder / "page.md", self.folder], capture_output=True, text=True)

    def expect_good(self, page, words=""):
        done = self.run_page(page)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(words, done.stdout)

    def expect_bad(self, page, words):
        done = self.run_page(page)
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn(words, done.stderr)

    def test_counts_the_commands_that_ran(self):
        self.expect_good("```sh\n# a comment\ngreet one\ngreet \\\n  two\n```\n", "2 commands ran, 0 outputs are as shown, 0 blocks")

    def test_blocks_share_a_folder(self):
        self.expect_good("```sh\necho kept >file\n```\n```sh\ncat file\n```\n```text\nkept\n```\n", "1 outputs")

    def test_a_command_that_fails_is_an_error_even_before_others(self):
        self.expect_bad("```sh\nfalse\ntrue\n```\n", "line 1: exit code 1 instead of 0")
        self.expect_bad("```sh\nfalse | cat\n```\n", "exit code 1 instead of 0")
        self.expect_bad("```sh\nno-such-program\n```\n", "exit code 127")

    def test_an_expected_exit_code_must_come(self):
        self.expect_good("```sh exit 3\nexit 3\n```\n")
        self.expect_bad("```sh exit 3\nexit 4\n```\n", "exit code 4 instead of 3")
        self.expect_bad("```sh exit 3\ntrue\n```\n", "exit code 0 instead of 3")

    def test_output_must_be_as_shown(self):
        page = "```sh\ngreet you 2>/dev/null\n```\n```text\n{}\n```\n"
        self.expect_good(page.format("hello, you"))
        self.expect_bad(page.format("hello, me"), "this line does not fit: hello, me")
        self.expect_bad(page.format("hello, you\nand more"), "this line does not fit: and more")
        self.expect_bad("```sh\ngreet you\n```\n```text\nhello, you\n```\n", "more was printed than is shown")

    def test_dots_stand_for_anything(self):
        page = "```sh\ngreet you\nseq 9\n```\n```text\n{}\n```\n"
        self.expect_good(page.format("hello, you\ntook ... s, ... rows\n1\n...\n9"))
        self.expect_good(page.format("...\n5\n..."))
        self.expect_bad(page.format("...\n5\n5\n..."), "does not fit: 5")
        self.expect_bad(page.format("...\n8"), "more was printed")
        self.expect_bad(page.format("...\ntook ... minutes\n..."), "does not fit: took ... minutes")

    def test_numbers_may_vary_as_far_as_is_said(self):
        page = "```sh\ngreet you\n```\n```text within 10%\nhello, you\ntook {} s,  {} rows\n```\n"
        self.expect_good(page.format("0.26", "1,200"))
        self.expect_good(page.format("...", "1300"))
        self.expect_bad(page.format("0.3", "1,200"), "does not fit")
        self.expect_bad(page.format("0.25", "123"), "does not fit")
        self.expect_bad(page.format("0.25", "some"), "does not fit")

    def test_progress_is_not_compared(self):
        self.expect_good("```sh\necho 'training 50%, pass 1'\necho done\n```\n```text\ndone\n```\n")

    def test_a_page_without_commands_is_an_error(self):
        self.expect_bad("Words only.\n", "there is no command in it")
        self.expect_bad("```sh skip: later\ntrue\n```\n", "there is no command in it")

    def test_skipped_blocks_do_not_run(self):
        self.expect_good("```sh\ntrue\n```\n```sh skip: later\nfalse\n```\n", "1 commands ran, 0 outputs are as shown, 1 blocks")

    def test_what_cannot_be_checked_is_an_error(self):
        self.expect_bad("```sh\ntrue\n```\n```\nplain\n```\n", "line 4: '' is none of 'sh'")
        self.expect_bad("```text\nout\n```\n", "no command was run that could have printed this")
        self.expect_bad("```sh exti 3\nexit 3\n```\n", "line 1: 'sh exti 3' is none of")
        self.expect_bad("```sh\ntrue\n", "this block has no end")


if __name__ == "__main__":
    unittest.main()
