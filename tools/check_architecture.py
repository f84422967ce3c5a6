#!/usr/bin/env python3
"""docs/architecture.md names every source file: one table per folder, one row per .h and .cc pair, by its stem.

A table belongs to the heading above it that names its folder: ### `src/base`.
"""
import pathlib
import re
import sys

PAGE = "docs/architecture.md"
HEADING = re.compile(r"^#+ `((?:src|apps)[^`]*)`")
OTHER_HEADING = re.compile(r"^#")
ROW = re.compile(r"^\| `([^`]+)` \| *([^|]*?) *\|$")


def stems(root: pathlib.Path) -> dict[str, set[str]]:
    """By folder; what is on disk, so that a new file counts before it is committed."""
    found: dict[str, set[str]] = {}
    for top in ("src", "apps"):
        for path in (root / top).rglob("*"):
            if path.suffix in (".h", ".cc"):
                found.setdefault(str(path.parent.relative_to(root)), set()).add(path.stem)
    return found


def tables(text: str) -> dict[str, list[tuple[str, str]]]:
    """The rows of each folder's table: a stem, and what it is for."""
    found: dict[str, list[tuple[str, str]]] = {}
    folder = None
    for line in text.splitlines():
        if heading := HEADING.match(line):
            folder = heading.group(1)
            found.setdefault(folder, [])
        elif OTHER_HEADING.match(line):
            folder = None
        elif folder is not None and (row := ROW.match(line)):
            found[folder].append((row.group(1), row.group(2)))
    return found


def problems(files: dict[str, set[str]], named: dict[str, list[tuple[str, str]]]):
    for folder in sorted(files.keys() - named.keys()):
        yield f"{PAGE}: {folder} has no section; add the heading ### `{folder}` and a table of its files"
    for folder in sorted(named.keys() - files.keys()):
        yield f"{PAGE}: remove the section ### `{folder}`: the folder has no .h or .cc file"
    for folder in sorted(files.keys() & named.keys()):
        rows = [stem for stem, _ in named[folder]]
        for stem in sorted(files[folder] - set(rows)):
            yield f"{PAGE}: {folder}/{stem} is missing; add this row under ### `{folder}`: | `{stem}` | what it is for |"
        for stem in sorted(set(rows) - files[folder]):
            yield f"{PAGE}: remove the row | `{stem}` | under ### `{folder}`: there is no {folder}/{stem}.h or .cc"
        for stem in sorted({stem for stem in rows if rows.count(stem) > 1}):
            yield f"{PAGE}: {folder}/{stem} has two rows; keep one"
        for stem, purpose in named[folder]:
            if not purpose:
                yield f"{PAGE}: the row of {folder}/{stem} does not say what it is for"


def main(words: list[str]) -> int:
    root = pathlib.Path(words[0]) if words else pathlib.Path(__file__).resolve().parent.parent
    files = stems(root)
    found = list(problems(files, tables((root / PAGE).read_text())))
    print("\n".join(found) if found else f"architecture: all {sum(map(len, files.values()))} files are in the tables")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
