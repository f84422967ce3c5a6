#!/usr/bin/env python3
"""tools/check_literals.py finds options in string literals alone; and each setting that the library names is an option."""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import check_literals

# `memory` in a text; use("solver", ...), leave_out("warm"), give_at_least("memory", ...)
NAMED = re.compile(r"`(\w+)`")
REMEDY = re.compile(r'\b(?:use|leave_out|give_at_least)\("(\w+)"')


class Scanner(unittest.TestCase):
    def problems(self, source):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "src" / "base" / "a.cc"
            path.parent.mkdir(parents=True)
            path.write_text(source)
            return [line.partition(" is ")[0] for line in check_literals.problems_of(pathlib.Path(folder))]

    def test_options_in_literals_are_found_with_their_lines(self):
        self.assertEqual(self.problems('f("give --memory 4M");'), ["src/base/a.cc:1: --memory"])
        self.assertEqual(self.problems('f(\n"a \\" b"\n"--keep-state, --warm");'),
                         ["src/base/a.cc:3: --keep-state", "src/base/a.cc:3: --warm"])
        self.assertEqual(self.problems('f(R"x(a " b --loss)x");'), ["src/base/a.cc:1: --loss"])
        self.assertEqual(self.problems("a = 1'000; f('\"', \"--cost\");"), ["src/base/a.cc:1: --cost"])

    def test_comments_and_code_are_not(self):
        for source in ('// "--memory"', '/* "\n--memory" */', "--left; a = b--c;", 'f("a -- b", "---", "4--8");', "f('\"'); --a; g('\"');",
                       'f("// no comment"); --a;'):
            self.assertEqual(self.problems(source), [], source)


class Library(unittest.TestCase):
    def test_names_no_options(self):
        self.assertGreater(len(check_literals.sources(check_literals.ROOT)), 100)
        self.assertEqual(list(check_literals.problems_of(check_literals.ROOT)), [])

    def test_settings_are_options_of_the_program(self):
        def printed_by(*words):
            return subprocess.run([os.environ["LINBLOCK"], *words], capture_output=True, text=True, check=True).stdout
        commands = json.loads(printed_by("--describe-options"))
        self.assertIn("train", [command["command"] for command in commands])
        names = " ".join(option["name"] for command in commands for option in command["options"])
        options = set(re.findall(r"--([a-z][a-z-]*)", names))
        named = {}
        for path in check_literals.sources(check_literals.ROOT):
            source = path.read_text()
            for line, text in check_literals.literals(source):
                self.assertEqual(text.count("`") % 2, 0, f"{path}:{line}: a backquote without another")
                named |= {setting: path for setting in NAMED.findall(text)}
            named |= {setting: path for setting in REMEDY.findall(source)}
        self.assertGreater(len(named), 20)
        for setting, path in named.items():
            self.assertIn(setting.replace("_", "-"), options, f"{path} names the setting {setting}")


if __name__ == "__main__":
    unittest.main()
