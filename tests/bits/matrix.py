#!/usr/bin/env python3
"""The same model byte for byte, however it was trained: all combinations of what must not matter.

usage: matrix.py --linblock PROGRAM --hooked PROGRAM [--pairs] [--part K/N] [--seed N]

For each loss, method and way in which rows are held (decoded, encoded, streamed, streamed with dual variables in a file,
by an index; of several classes), one model is trained by one thread on an idle machine. Models trained by 1, 2, 3, 7 and 16 threads, for
several numbers of owners of features, undisturbed or killed and resumed, with the processors idle or busy, must have the
same bytes. --pairs: a selection in which every two values that go together occur together.
The hooked program is the same program, with LINBLOCK_OWNERS=N for the number of owners.
"""
import argparse
import dataclasses
import hashlib
import itertools
import json
import os
import pathlib
import random
import shlex
import signal
import subprocess
import sys
import tempfile
import time

# Options of generate, the memory, and what the plan must say: a row that is held in another way would test nothing.
DATA = {
    "rows": "documents --rows 12000 --features 3000 --nonzeros 40",
    "tiny": "documents --rows 120000 --features 300 --nonzeros 2",
    "classes": "documents --rows 4000 --features 1000 --nonzeros 20 --classes 5",
    "table": "clusters --rows 20000 --features 40",  # newton has models of samples where features are few
    "wide": "documents --rows 20000 --features 300000 --nonzeros 70",  # where dual chooses batches by itself
}
HELD = {
    "decoded": ("rows", "64M", "stay in memory, decoded"),
    "encoded": ("rows", "12500K", "stay in memory, encoded"),
    "streamed": ("rows", "9M", "are read in each pass"),
    "filed": ("tiny", "8M", "the others in a file"),
    "index": ("rows", "9M", "pages of the index are read"),
    "classes": ("classes", "64M", "stay in memory"),
    "table": ("table", "64M", "factors"),
    "table, streamed": ("table", "9500K", "working set"),
    "wide": ("wide", "64M", "batches"),
}
DUAL_LOSSES = ("hinge", "squared-hinge", "logistic", "huber-hinge")
SMOOTH_LOSSES = ("squared-hinge", "logistic")
SPARSE_LOSSES = ("hinge", "squared-hinge")
# Method: its options, its losses, and how rows can be held. Each trains for long enough to be killed in the middle.
METHODS = {
    "dual": ("--solver dual --tolerance 1e-4 --max-passes 12", DUAL_LOSSES,
             ("decoded", "encoded", "streamed", "filed", "classes")),
    "dual, single steps": ("--solver dual --batch 1 --tolerance 1e-4 --max-passes 8", DUAL_LOSSES, ("decoded", "streamed")),
    "dual, batches": ("--solver dual --batch 64 --tolerance 1e-4 --max-passes 12", DUAL_LOSSES,
                      ("decoded", "encoded", "streamed", "classes")),
    "dual, fixed": ("--solver dual --schedule fixed --blocks 4 --inner 2 --max-passes 8", DUAL_LOSSES,
                    ("decoded", "encoded")),
    "dual, truncated": ("--solver dual --truncate 1 --max-passes 8", SPARSE_LOSSES, ("decoded", "streamed", "filed")),
    "crammer-singer": ("--multiclass crammer-singer --tolerance 1e-4 --max-passes 12", ("hinge",), ("classes",)),
    "dual, batches by itself": ("--solver dual --tolerance 1e-5 --max-passes 6", DUAL_LOSSES, ("wide",)),
    "newton, models": ("--solver newton --tolerance 1e-5 --max-passes 40", DUAL_LOSSES, ("table", "table, streamed")),
    "newton, the hinge": ("--solver newton --tolerance 1e-3 --max-passes 40", ("hinge",), ("decoded", "streamed", "classes")),
    "softmax": ("--multiclass softmax --tolerance 1e-6 --max-passes 40", ("logistic",), ("decoded", "encoded", "streamed", "classes")),
    "softmax, free bias": ("--multiclass softmax --free-bias --tolerance 1e-6 --max-passes 40", ("logistic",), ("streamed", "classes")),
    "newton": ("--solver newton --tolerance 1e-4 --max-passes 40", SMOOTH_LOSSES,
               ("decoded", "encoded", "streamed", "classes")),
    "newton, free bias": ("--solver newton --free-bias --tolerance 1e-4 --max-passes 40", SMOOTH_LOSSES,
                          ("decoded", "streamed", "classes")),
    "newton, free bias, models": ("--solver newton --free-bias --tolerance 1e-4 --max-passes 40", ("hinge",),
                                  ("decoded", "classes")),
    "primal": ("--solver primal --tolerance 1e-3 --max-passes 20", SMOOTH_LOSSES, ("decoded", "classes")),
    "cmls": ("--solver cmls --max-passes 20", ("squared-hinge",), ("decoded",)),
    "indexed": ("--solver indexed --truncate none --max-passes 20", SPARSE_LOSSES, ("index",)),
    "pegasos": ("--solver pegasos --max-passes 6", SPARSE_LOSSES, ("decoded", "streamed")),
    "average": ("--solver average", DUAL_LOSSES, ("decoded", "streamed")),
    "subsample": ("--solver subsample --share 0.3 --max-passes 20", DUAL_LOSSES, ("decoded", "streamed")),
}
THREADS = (1, 2, 3, 7, 16)
OWNERS = (0, 1, 2, 3, 5, 16)  # 0: as the program chooses; methods without batches have none
KILLED = (False, True)
BUSY = (False, True)


@dataclasses.dataclass(frozen=True)
class Cell:
    loss: str
    method: str
    held: str
    threads: int = 1
    owners: int = 0
    killed: bool = False
    busy: bool = False

    def reference(self):
        return Cell(self.loss, self.method, self.held)

    def name(self):
        words = [self.loss, self.method, self.held, f"{self.threads} threads"]
        words += [f"{self.owners} owners"] if self.owners else []
        words += ["killed and resumed"] if self.killed else []
        words += ["busy"] if self.busy else []
        return ", ".join(words)

    def line(self):
        data, memory, _ = HELD[self.held]
        return (f"train {data} -o m --loss {self.loss} {METHODS[self.method][0]} --memory {memory} "
                f"--threads {self.threads} --checkpoint-seconds 0.01")


def problems():
    for method, (_, losses, held) in METHODS.items():
        for loss, how in itertools.product(losses, held):
            yield loss, method, how


def all_cells():
    return [Cell(*problem, *rest) for problem in problems()
            for rest in itertools.product(THREADS, OWNERS if has_batches(problem) else (0,), KILLED, BUSY)]


def has_batches(problem):
    return problem[1] in ("dual", "dual, batches", "dual, batches by itself", "dual, fixed", "dual, truncated")


def pairs_of(cell):
    values = dataclasses.astuple(cell)
    return {(i, values[i], j, values[j]) for i in range(len(values)) for j in range(i)}


def pairwise(cells, seed=1):
    """Greedily, the cell with the most pairs that are still missing; the same list each time."""
    cells = list(cells)
    random.Random(seed).shuffle(cells)
    pairs = [pairs_of(cell) for cell in cells]
    missing = set().union(*pairs)
    bound = [len(own) for own in pairs]  # it only falls
    chosen = []
    while missing:
        best, most = None, 0
        for at in sorted(range(len(cells)), key=lambda at: -bound[at]):
            if bound[at] <= most:
                break
            bound[at] = len(pairs[at] & missing)
            if bound[at] > most:
                best, most = at, bound[at]
        chosen.append(cells[best])
        missing -= pairs[best]
    return chosen


class Busy:
    """Two loops beside the program."""

    def __enter__(self):
        self.loops = [subprocess.Popen(["/bin/sh", "-c", "while :; do :; done"]) for _ in range(2)]

    def __exit__(self, *_):
        for loop in self.loops:
            loop.kill()
            loop.wait()


class Matrix:
    def __init__(self, program, hooked, seed=1):
        self.program, self.hooked = program, hooked
        self.random = random.Random(seed)
        self.home = tempfile.TemporaryDirectory(prefix="linblock-matrix-")
        self.path = pathlib.Path(self.home.name)
        self.references = {}
        self.made = self.kills = self.resumed = 0
        for name, shape in DATA.items():
            self.call(f"generate {shape} -o {name}.svm -q")
            self.call(f"pack {name}.svm -o {name} --codec none -q")
            self.call(f"transpose {name} -q")
            self.call(f"index {name} -q")

    def call(self, line):
        done = subprocess.run([self.program, *shlex.split(line)], cwd=self.path, capture_output=True)
        if done.returncode != 0:
            raise SystemExit(f"linblock {line}\nfailed: {done.stderr.decode()}")

    def train(self, cell, seconds):
        """The sum of the model's bytes. `seconds`: how long it takes undisturbed."""
        folder = self.path / f"cell-{self.made}"
        folder.mkdir()
        self.made += 1
        (folder / HELD[cell.held][0]).symlink_to(self.path / HELD[cell.held][0])
        # Late ones first would repeat the same passes; many early ones would never end.
        moments = sorted(self.random.uniform(0.1, 1) * seconds for _ in range(3)) if cell.killed else []
        said = ""
        for moment in [*moments, None]:
            code, stderr = self.run(cell, folder, moment)
            said += stderr
            self.kills += code == -signal.SIGKILL
            if code == 0:
                break
            if code != -signal.SIGKILL or moment is None:
                raise SystemExit(f"{cell.name()}\n  {self.command(cell)}\nfailed with {code}: {stderr}")
        if cell == cell.reference() and HELD[cell.held][2] not in said:
            raise SystemExit(f"{cell.name()}: the plan does not say '{HELD[cell.held][2]}': {said}")
        self.resumed += "resuming from the checkpoint" in said
        digest = hashlib.sha256((folder / "m").read_bytes()).hexdigest()[:16]
        for path in folder.iterdir():
            if path.is_file() or path.is_symlink():
                path.unlink()
        folder.rmdir()  # nothing else is left, no checkpoint either
        return digest

    def run(self, cell, folder, moment):
        environment = dict(os.environ, LINBLOCK_OWNERS=str(cell.owners)) if cell.owners else None
        program = self.hooked if cell.owners else self.program
        running = subprocess.Popen([program, *shlex.split(cell.line())], cwd=folder, env=environment, text=True,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True)
        try:
            said = running.communicate(timeout=moment)[1]
        except subprocess.TimeoutExpired:
            os.killpg(running.pid, signal.SIGKILL)
            said = running.communicate()[1]
        return running.returncode, said

    def command(self, cell):
        owners = f"LINBLOCK_OWNERS={cell.owners} " if cell.owners else ""
        return f"{owners}{self.hooked if cell.owners else self.program} {cell.line()}"

    def reference(self, cell):
        problem = cell.reference()
        if problem not in self.references:
            begin = time.monotonic()
            digest = self.train(problem, 0)
            self.references[problem] = (digest, time.monotonic() - begin)
        return self.references[problem]

    def disagreements(self, cells, note=lambda text: None):
        """A text for each cell whose model is another one."""
        cells = list(cells)
        found = []
        for cell in cells:
            self.reference(cell)
        # The busy ones together: the loops need not be started for each.
        for busy in BUSY:
            own = [cell for cell in cells if cell.busy == busy]
            if busy and own:
                with Busy():
                    found += self.compare(own, note)
            else:
                found += self.compare(own, note)
        return found

    def compare(self, cells, note):
        found = []
        for cell in cells:
            want, seconds = self.reference(cell)
            got = self.train(cell, seconds)
            if got != want:
                found.append(f"DIFFERENT {cell.name()}\n  {want}  {self.command(cell.reference())}\n"
                             f"  {got}  {self.command(cell)}\n  with the data of: {DATA[HELD[cell.held][0]]}")
                note(found[-1])
        return found


def main(words) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--linblock", default=os.environ.get("LINBLOCK"))
    parser.add_argument("--hooked", default=os.environ.get("LINBLOCK_HOOKED"))
    parser.add_argument("--pairs", action="store_true")
    parser.add_argument("--part", default="1/1", help="of several runs side by side, such as 2/4")
    parser.add_argument("--seed", type=int, default=1, help="of the moments of kills, and of --pairs")
    options = parser.parse_args(words)
    cells = pairwise(all_cells(), options.seed) if options.pairs else all_cells()
    part, parts = map(int, options.part.split("/"))
    cells = cells[part - 1::parts]
    matrix = Matrix(os.path.abspath(options.linblock), os.path.abspath(options.hooked), options.seed)
    found = matrix.disagreements(cells, lambda text: print(text, flush=True))
    print(f"{len(cells)} trainings, {len(matrix.references)} references, {matrix.kills} kills, {matrix.resumed} resumed from "
          f"a checkpoint: {len(found)} different")
    if matrix.resumed == 0:
        print("nothing was resumed, so resuming was not tested")
    return 1 if found or matrix.resumed == 0 else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
