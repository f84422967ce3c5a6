#!/usr/bin/env python3
"""The layer rule: a file includes its own folder and folders to its left, nothing else."""
import pathlib
import re
import sys

LAYERS = ["base", "store", "objective", "solve", "learn"]
INCLUDE = re.compile(r'^\s*#include "([^"/]+)/')


def violations(root: pathlib.Path):
    for position, layer in enumerate(LAYERS):
        for path in sorted((root / "src" / layer).rglob("*.*")):
            if path.suffix not in (".h", ".cc"):
                continue
            for number, line in enumerate(path.read_text().splitlines(), 1):
                found = INCLUDE.match(line)
                if found and found.group(1) not in LAYERS[: position + 1]:
                    yield f"{path.relative_to(root)}:{number}: {layer} may not include {found.group(1)}"


def main() -> int:
    root = pathlib.Path(__file__).resolve().parent.parent
    unknown = {p.name for p in (root / "src").iterdir()} - set(LAYERS)
    problems = [f"src/{name} is not a layer" for name in sorted(unknown)] + list(violations(root))
    print("\n".join(problems) if problems else "layers: every include points to the left")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
