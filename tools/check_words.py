#!/usr/bin/env python3
"""The project's words: no banned phrase, American spelling, and Markdown lines of at most 100 characters.

Phrases are looked for in the pages and in string literals under src/ and apps/, which become messages and help; spelling in
comments and code too. Tables, blocks of code and the page that the bench writes may have long lines.
"""
import pathlib
import re
import sys

import check_literals

ROOT = pathlib.Path(__file__).resolve().parent.parent
LONGEST = 100
WRITTEN_BY_A_TOOL = "docs/benchmarks.md"

# A phrase, and what to write in its place.
PHRASES = {
    "is said": "who prints it",
    "says so": "prints a warning",
    "goes on": "continues, resumes",
    "begins anew": "starts over",
    "made anew": "rebuilt",
    "comes as far": "makes the same progress",
    "have a say": "are support vectors",
    "in vain": "without a result",
    "stands in": "occurs in",
    "what else is held": "the rest",
    "all well so far": "no damage found so far",
    "a row a line": "one row per line",
    "fits the memory": "fits in memory",
    "fit the memory": "fit in memory",
    "one against the rest": "one-vs-rest",
}
# The American form is the British one after these changes.
SPELLINGS = (
    (r"\w*(?:minim|maxim|optim|normal|regular|recogn|initial|general|summar|organ|penal|random)is(?:e[ds]?|ing|ers?|ations?)", "is", "iz"),
    (r"\w*(?:colour|behaviour|neighbour|honour|favour)\w*", "our", "or"),
    (r"(?:un)?(?:label|cancel|model|travel)l(?:ed|ing)", "ll", "l"),
    (r"licences?", "ence", "ense"),
    (r"analys(?:e|ed|er|ing)", "ys", "yz"),
)
PHRASE = re.compile(r"\b(?:" + "|".join(PHRASES) + r")\b", re.IGNORECASE)
BRITISH = [(re.compile(rf"(?<![A-Za-z]){word}(?![a-z])", re.IGNORECASE), old, new) for word, old, new in SPELLINGS]
CODE = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)


def pages(root: pathlib.Path):
    return [path for path in (*sorted(root.glob("*.md")), *sorted((root / "docs").glob("*.md"))) if str(path.relative_to(root)) != WRITTEN_BY_A_TOOL]


def sources(root: pathlib.Path):
    return sorted(path for folder in ("src", "apps") for path in (root / folder).rglob("*") if path.suffix in (".h", ".cc", ".js", ".html"))


def phrases_of(text: str):
    """(offset, problem) of each banned phrase, across the ends of lines too."""
    folded = re.sub(r"\s", " ", text)
    for found in PHRASE.finditer(folded):
        yield found.start(), f'"{found[0]}": write {PHRASES[found[0].lower()]}'


def spellings_of(text: str):
    for british, old, new in BRITISH:
        for found in british.finditer(text):
            yield found.start(), f'"{found[0]}": American spelling is "{found[0].replace(old, new)}"'


def long_lines_of(page: str):
    code = [(block.start(), block.end()) for block in CODE.finditer(page)]
    offset = 0
    for line in page.split("\n"):
        plain = not line.startswith("    ") and not line.lstrip().startswith(("|", "!", "<")) and " " in line[:LONGEST]
        if len(line) > LONGEST and plain and not any(begin <= offset < end for begin, end in code):
            yield offset, f"{len(line)} characters: break the line at {LONGEST}"
        offset += len(line) + 1


def problems_of(root: pathlib.Path):
    for path in pages(root):
        text = path.read_text()
        for offset, problem in (*phrases_of(text), *spellings_of(text), *long_lines_of(text)):
            yield f"{path.relative_to(root)}:{text.count(chr(10), 0, offset) + 1}: {problem}"
    for path in sources(root):
        text = path.read_text()
        for offset, problem in spellings_of(text):
            yield f"{path.relative_to(root)}:{text.count(chr(10), 0, offset) + 1}: {problem}"
        if path.suffix not in (".h", ".cc"):
            continue
        for line, literal in check_literals.literals(text):
            for _, problem in phrases_of(literal):
                yield f"{path.relative_to(root)}:{line}: {problem}"


def main() -> int:
    problems = list(problems_of(ROOT))
    print("\n".join(problems) if problems else "words: as the writing guide has them")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
