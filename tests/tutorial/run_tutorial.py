#!/usr/bin/env python3
"""Runs the commands of a page as a reader would, and compares what they print with what the page shows.

usage: run_tutorial.py PAGE PROGRAM_FOLDER

```sh blocks are run by bash, in order, in one empty folder, with PROGRAM_FOLDER first on the PATH. A ```text block shows what the
sh block before it printed (stdout and stderr): all of it, but for

  ...            in a line: any characters; alone on a line: any number of lines
  progress       "training 50%, ..." is printed only where work is slow, and is left out of the comparison
  time of day    stands before lines of progress and of passes in a log, not on a terminal, and is left out too

Behind `sh` or `text`, where a reader does not see it, stands what else is to be known of a block:

  sh exit 3         it must end with this exit code, instead of 0
  text within 20%   numbers shown may be this far from those printed, and blanks may be more or fewer
  sh skip: why      it is not run

Every fenced block is one of these: text that nobody checks would grow old unseen.
"""
import dataclasses
import os
import pathlib
import re
import subprocess
import sys
import tempfile

SECONDS_A_BLOCK = 120
NUMBER = r"\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?"
PROGRESS = re.compile(r"[a-z][a-z ]* \d+%, ")
TIME_OF_DAY = re.compile(r"^\d\d:\d\d:\d\d (?=pass |[a-z][a-z ]* \d+%, )", re.MULTILINE)


class PageError(Exception):
    """The page does not hold: where, and why."""


@dataclasses.dataclass
class Block:
    line: int  # where it begins in the page
    lines: list[str]
    language: str = ""
    exit_code: int = 0
    within: float | None = None
    skipped: bool = False

    def read_fence(self, words: str) -> None:
        if match := re.fullmatch(r"sh(?: exit (\d+))?", words):
            self.language, self.exit_code = "sh", int(match[1] or 0)
        elif match := re.fullmatch(r"text(?: within (\d+)%)?", words):
            self.language, self.within = "text", int(match[1]) / 100 if match[1] else None
        elif re.fullmatch(r"sh skip: .+", words):
            self.language, self.skipped = "sh", True
        else:
            raise PageError(f"line {self.line}: '{words}' is none of 'sh', 'sh exit N', 'sh skip: why', 'text', 'text within N%'")

    def commands(self) -> int:
        """Lines that begin a command: no comments, and no continued lines."""
        starts = [line for before, line in zip([""] + self.lines, self.lines) if not before.endswith("\\")]
        return sum(1 for line in starts if line.strip() and not line.strip().startswith("#"))


def read_blocks(text: str) -> list[Block]:
    blocks, block = [], None
    for number, line in enumerate(text.splitlines(), 1):
        if block is None and (fence := re.fullmatch(r"```(.*)", line)):
            block = Block(number, [])
            block.read_fence(fence[1].strip())
        elif block is not None and line == "```":
            blocks.append(block)
            block = None
        elif block is not None:
            block.lines.append(line)
    if block is not None:
        raise PageError(f"line {block.line}: this block has no end")
    return blocks


def line_fits(shown: str, real: str, within: float | None) -> bool:
    if within is None:
        return re.fullmatch(".*".join(map(re.escape, shown.rstrip().split("..."))), real.rstrip()) is not None
    shown, real = " ".join(shown.split()), " ".join(real.split())
    pattern, numbers = "", []
    for part in re.split(rf"(\.\.\.|{NUMBER})", shown):
        if part == "...":
            pattern += ".*"
        elif re.fullmatch(NUMBER, part):
            pattern += f"({NUMBER})"
            numbers.append(part)
        else:
            pattern += re.escape(part)
    match = re.fullmatch(pattern, real)
    if match is None:
        return False
    value = lambda digits: float(digits.replace(",", ""))
    return all(abs(value(a) - value(b)) <= within * value(a) for a, b in zip(numbers, match.groups()))


def first_misfit(shown: list[str], real: list[str], within: float | None) -> str | None:
    """What is wrong with `shown` as a picture of `real`; None where it fits."""
    # The numbers of real lines that the shown ones before may have used up.
    used = {0}
    for line in shown:
        if line.strip() == "...":
            after = set(range(min(used), len(real) + 1))
        else:
            after = {i + 1 for i in used if i < len(real) and line_fits(line, real[i], within)}
        if not after:
            return f"this line does not fit: {line}"
        used = after
    return None if len(real) in used else "more was printed than is shown"


def run_block(block: Block, folder: str, environment: dict[str, str]) -> list[str]:
    script = "set -euo pipefail\n" + "\n".join(block.lines)
    try:
        done = subprocess.run(["bash", "-c", script], cwd=folder, env=environment, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=SECONDS_A_BLOCK)
    except subprocess.TimeoutExpired as late:
        raise PageError(f"line {block.line}: not done after {SECONDS_A_BLOCK} seconds") from late
    printed = done.stdout.decode(errors="replace")
    if done.returncode != block.exit_code:
        commands = "\n".join(block.lines)
        raise PageError(f"line {block.line}: exit code {done.returncode} instead of {block.exit_code}\n{commands}\n"
                        f"--- printed:\n{printed}")
    return [line for line in TIME_OF_DAY.sub("", printed).splitlines() if not PROGRESS.match(line)]


def check_page(page: pathlib.Path, programs: pathlib.Path) -> str:
    blocks = read_blocks(page.read_text())
    commands = outputs = skipped = 0
    printed = None
    environment = dict(os.environ, PATH=f"{programs.resolve()}:{os.environ['PATH']}", LC_ALL="C")
    with tempfile.TemporaryDirectory() as folder:
        for block in blocks:
            if block.skipped:
                skipped += 1
                printed = None  # what is shown next would be compared with something else
            elif block.language == "sh":
                printed = run_block(block, folder, environment)
                commands += block.commands()
            elif printed is None:
                raise PageError(f"line {block.line}: no command was run that could have printed this")
            else:
                outputs += 1
                if misfit := first_misfit(block.lines, printed, block.within):
                    raise PageError(f"line {block.line}: {misfit}\n--- printed:\n" + "\n".join(printed))
    if commands == 0:
        raise PageError("there is no command in it")
    return f"{commands} commands ran, {outputs} outputs are as shown, {skipped} blocks were skipped"


def main() -> int:
    if len(sys.argv) != 3:
        print(__doc__, file=sys.stderr)
        return 2
    try:
        print(f"{sys.argv[1]}: {check_page(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]))}")
    except PageError as error:
        print(f"{sys.argv[1]}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
