#!/usr/bin/env python3
"""Every method keeps its bits, and needs no more passes than it did.

usage: bits_test.py                      compares with record.json (LINBLOCK names the program)
       bits_test.py --record             writes record.json
       bits_test.py --against PROGRAM    compares two programs, logistic loss included

Models are compared by their weights as text, for one thread and for two. The data is made here, without a mathematical
library whose last bits depend on the processor; logistic loss needs one, so it is compared between programs only.
"""
import argparse
import hashlib
import json
import os
import pathlib
import random
import shlex
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
RECORD = HERE / "record.json"
SLACK = 1.1  # of passes

# Which solvers go with which loss; options that decide the bits are all given.
ROWS = {
    "hinge": ["dual --inner 1", "dual --inner 3", "newton", "dual --inner converge --schedule fixed --blocks 4",
              "dual --inner 2 --truncate 1", "indexed --truncate none", "indexed --truncate 1", "pegasos", "average",
              "subsample"],
    "squared-hinge": ["dual --inner 1", "dual --inner 3", "newton", "primal", "primal --order cyclic", "cmls",
                      "indexed --truncate none", "indexed --truncate none --block-solver newton", "average", "subsample",
                      "dual --inner 2 --truncate 1", "newton --truncate 1", "primal --truncate 1", "pegasos --step 64"],
    "logistic": ["dual --inner 1", "dual --inner 3", "newton", "primal", "primal --exponential library", "average",
                 "subsample", "dual --inner 2 --truncate 1", "newton --truncate 1"],
}
STREAMED = {
    "hinge": ["dual --inner 2", "dual --inner 3 --schedule fixed --blocks 4", "newton", "indexed --truncate none",
              "average"],
    "squared-hinge": ["dual --inner 2", "newton", "primal", "cmls", "subsample", "dual --inner 2 --truncate 1"],
    "logistic": ["dual --inner 2", "newton", "primal"],
}
FILED = {"hinge": ["dual --inner 2"], "squared-hinge": ["dual --inner 2", "dual --inner 2 --truncate 1"],
         "logistic": ["dual --inner 2"]}
CLASSES = {"hinge": ["dual --inner 2", "newton", "dual --multiclass crammer-singer"],
           "squared-hinge": ["dual --inner 2", "newton", "primal", "dual --inner 2 --calibrate 0.2"],
           "logistic": ["dual --inner 2", "newton", "dual --multiclass softmax", "dual --multiclass softmax --free-bias"]}


def text(seed, rows, features, nonzeros, classes=2, skew=3, clusters=0):
    """svmlight text with planted weights and noise: sums and products of numbers from `random` alone."""
    draw = random.Random(seed)
    if clusters:
        yield from clustered_text(draw, rows, features, nonzeros, clusters)
        return
    planted = [[draw.random() - 0.5 for _ in range(features + 1)] for _ in range(classes)]
    for _ in range(rows):
        index = sorted({1 + int(features * draw.random() ** skew) for _ in range(nonzeros)})
        values = [(i, draw.randrange(1, 1000)) for i in index]
        scores = [sum(w[i] * v for i, v in values) + 80 * draw.random() for w in planted]
        label = scores.index(max(scores))
        name = label + 1 if classes > 2 else (1, -1)[label]
        yield f"{name} " + " ".join(f"{i}:{v / 1000}" for i, v in values) + "\n"


def clustered_text(draw, rows, features, nonzeros, clusters):
    """Nearly equal rows in clusters of very different sizes, of which most have one label; a few cross over."""
    centres = []
    for _ in range(clusters):
        index = sorted({1 + int(features * draw.random()) for _ in range(nonzeros)})
        centres.append((draw.randrange(2), [(i, draw.randrange(1, 1000)) for i in index]))
    for _ in range(rows):
        label, values = centres[int(clusters * draw.random() ** 3)]
        if draw.random() < 0.02:
            label = 1 - label
        moved = [(i, v + draw.randrange(-20, 21)) for i, v in values]
        yield f"{(1, -1)[label]} " + " ".join(f"{i}:{v / 1000}" for i, v in moved) + "\n"


# name: (how its text is made, memory, the solvers)
DATA = {
    "rows": (dict(seed=1, rows=3000, features=1500, nonzeros=25), "1G", ROWS),
    "streamed": (dict(seed=2, rows=50000, features=4000, nonzeros=45), "16M", STREAMED),
    "filed": (dict(seed=3, rows=1200000, features=300, nonzeros=1, skew=1), "16M", FILED),
    # More features than a factorization takes, and few rows for each: newton's trust region.
    "wide": (dict(seed=5, rows=2000, features=3000, nonzeros=20), "1G", {loss: ["newton"] for loss in ("squared-hinge", "logistic")}),
    "classes": (dict(seed=4, rows=1500, features=400, nonzeros=15, classes=4), "1G", CLASSES),
}


def cases(with_logistic):
    for data, (_, memory, solvers) in DATA.items():
        for loss, lines in solvers.items():
            if loss == "logistic" and not with_logistic:
                continue
            for line in lines:
                for tolerance in ("0.01", "0.001"):
                    if tolerance == "0.001" and data not in ("rows", "classes"):
                        continue
                    solver = "" if "--multiclass" in line else "--solver "
                    words = line if solver else line.removeprefix("dual ")
                    yield (f"{data}: {loss}, {line}, {tolerance}",
                           f"train {data} --loss {loss} {solver}{words} --memory {memory} --tolerance {tolerance} --max-passes 300")


class Folder:
    def __init__(self, programs):
        self.programs = programs
        self.home = tempfile.TemporaryDirectory(prefix="linblock-bits-")
        self.path = pathlib.Path(self.home.name)
        for name, (shape, memory, _) in DATA.items():
            with open(self.path / "text", "w") as out:
                out.writelines(text(**shape))
            self.call(programs[0], f"pack text -o {name} --codec none --memory {memory} -q")

    def call(self, program, line):
        done = subprocess.run([program, *shlex.split(line)], cwd=self.path, capture_output=True)
        if done.returncode != 0:
            raise SystemExit(f"linblock {line}\nfailed: {done.stderr.decode()}")
        return done.stdout

    def train(self, program, line, threads):
        summary = json.loads(self.call(program, f"{line} -o m --threads {threads} --fresh --json -q"))
        model = (self.path / "m").read_text()
        weights = model.split("\nw", 1)[1].split("#", 1)[0].split()
        return {"weights": hashlib.sha256(" ".join(weights).encode()).hexdigest()[:16], "passes": summary["passes"]}


def check(folder, expected) -> int:
    """expected: name -> what it should be; None: what the other program makes of it."""
    failed = done = 0
    for name, line in cases(with_logistic=expected is None):
        found = folder.train(folder.programs[0], line, 1)
        want = folder.train(folder.programs[1], line, 1) if expected is None else expected.get(name)
        wrong = []
        if want is None:
            wrong.append("it is not in record.json")
        elif found["weights"] != want["weights"]:
            wrong.append(f"other weights: {found['weights']}, and not {want['weights']}")
        if want is not None and found["passes"] > SLACK * want["passes"]:
            wrong.append(f"{found['passes']} passes, where {want['passes']} were enough")
        if folder.train(folder.programs[0], line, 2)["weights"] != found["weights"]:
            wrong.append("two threads make other weights than one")
        done += 1
        failed += bool(wrong)
        if wrong:
            print(f"FAILED {name}: {'; '.join(wrong)}\n  linblock {line}", flush=True)
    print(f"{done - failed} passed, {failed} failed")
    return 1 if failed else 0


def main(words) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--against", metavar="PROGRAM")
    options = parser.parse_args(words)
    program = os.environ["LINBLOCK"]
    folder = Folder([program, options.against] if options.against else [program])
    if options.record:
        found = {name: folder.train(program, line, 1) for name, line in cases(with_logistic=False)}
        RECORD.write_text(json.dumps(found, indent=1) + "\n")
        print(f"{len(found)} models recorded")
        return 0
    return check(folder, None if options.against else json.loads(RECORD.read_text()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
