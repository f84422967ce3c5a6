#!/usr/bin/env python3
"""tools/check_words.py finds banned phrases, British spelling and long lines, and nothing else."""
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import check_words


class Words(unittest.TestCase):
    def problems(self, files):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for name, text in files.items():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(text)
            return list(check_words.problems_of(root))

    def page(self, text):
        return [problem.removeprefix("docs/a.md:") for problem in self.problems({"docs/a.md": text})]

    def test_phrases_are_found_across_lines(self):
        self.assertEqual(self.page("It\ngoes\non. Fine."), ['2: "goes on": write continues, resumes'])
        self.assertEqual(self.page("It is said here."), ['1: "is said": write who prints it'])
        self.assertEqual(self.page("This said, it goes online."), [])

    def test_british_spelling_is_found(self):
        for british, american in (("minimised", "minimized"), ("Normalisation", "Normalization"), ("colours", "colors"), ("labelled", "labeled"),
                                  ("licence", "license"), ("analyse", "analyze"), ("neighbours", "neighbors")):
            self.assertEqual(self.page(f"x {british} y"), [f'1: "{british}": American spelling is "{american}"'], british)
        for word in ("minimized", "otherwise", "promised", "four", "hour", "label", "analysis", "science", "advertised"):
            self.assertEqual(self.page(f"x {word} y"), [], word)

    def test_long_lines_of_text_are_found_but_not_tables_or_code(self):
        line = "word " * 21
        self.assertEqual(self.page(f"a\n{line}"), ["2: 105 characters: break the line at 100"])
        self.assertEqual(self.page(f"| {line} |\n```\n{line}\n```\n    {line}\n{'x' * 120}"), [])

    def test_messages_are_looked_at_and_comments_for_spelling_alone(self):
        self.assertEqual(self.problems({"src/a.cc": '// it goes on\nf("all well so far");'}),
                         ['src/a.cc:2: "all well so far": write no damage found so far'])
        self.assertEqual(self.problems({"apps/a.h": "// behaviour"}), ['apps/a.h:1: "behaviour": American spelling is "behavior"'])


class Project(unittest.TestCase):
    def test_has_the_words_of_the_guide(self):
        self.assertGreater(len(check_words.pages(check_words.ROOT)), 10)
        self.assertGreater(len(check_words.sources(check_words.ROOT)), 200)
        self.assertEqual(list(check_words.problems_of(check_words.ROOT)), [])


if __name__ == "__main__":
    unittest.main()
