#!/usr/bin/env python3
"""The library speaks library: no string literal under src/ names an option of the program, such as --memory.

Settings stand in backquotes in the library's text (base/error.h), and apps/cli spells them. Comments may name options.
"""
import pathlib
import re
import sys

TOKEN = re.compile(
    r"""(?P<comment>//[^\n]*|/\*.*?\*/)
      | (?P<raw>R"(?P<mark>[^()\s\\]*)\(.*?\)(?P=mark)")
      | (?P<string>"(?:\\.|[^"\\\n])*")
      | (?P<number>\b[0-9](?:'?[\w.])*)      # before characters: 1'000 has no character in it
      | (?P<character>'(?:\\.|[^'\\\n])+')""",
    re.VERBOSE | re.DOTALL,
)
OPTION = re.compile(r"--[A-Za-z][\w-]*")
ROOT = pathlib.Path(__file__).resolve().parent.parent


def literals(source: str):
    """(line, text) of each string literal of this C++ source."""
    for token in TOKEN.finditer(source):
        if token["string"] or token["raw"]:
            yield source.count("\n", 0, token.start()) + 1, token[0]


def sources(root: pathlib.Path):
    return sorted(path for path in (root / "src").rglob("*") if path.suffix in (".h", ".cc"))


def problems_of(root: pathlib.Path):
    for path in sources(root):
        for line, text in literals(path.read_text()):
            for option in OPTION.findall(text):
                setting = option[2:].replace("-", "_")
                yield f"{path.relative_to(root)}:{line}: {option} is the program's word: name the setting, `{setting}`"


def main() -> int:
    problems = list(problems_of(ROOT))
    print("\n".join(problems) if problems else "literals: the library names settings, not options")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
