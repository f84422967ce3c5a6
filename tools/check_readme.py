#!/usr/bin/env python3
"""Runs the ```sh blocks of a page, in order, in an empty folder, with the built programs on the PATH.

usage: check_readme.py PAGE BUILD_FOLDER

Lines that begin with ./run are what this check is part of, and are left out.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile


def main() -> int:
    page, build = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]).resolve()
    blocks = re.findall(r"^```sh\n(.*?)^```", page.read_text(), re.M | re.S)
    lines = [line for block in blocks for line in block.splitlines() if not line.startswith("./run")]
    environment = dict(os.environ, PATH=f"{build}:{os.environ['PATH']}")
    with tempfile.TemporaryDirectory() as folder:
        script = "set -euo pipefail\n" + "\n".join(lines)
        done = subprocess.run(["bash", "-c", script], cwd=folder, env=environment, capture_output=True, text=True)
    if done.returncode != 0:
        print(f"a command of {page} failed:\n{done.stdout}{done.stderr}")
        return 1
    print(f"{page}: {sum(1 for line in lines if line.strip())} lines of commands ran")
    return 0


if __name__ == "__main__":
    sys.exit(main())
