"""Certificates of small random problems, checked in 60 digits: the primal is right and the dual is a bound."""
import json
import math
import shlex
import struct

from mpmath import mpf

import optimum

RELATIVE = mpf(10) ** -12
HONEST = 16  # times the rounding of sums in double
SOLVERS = {
    "hinge": ["--inner 1", "--inner 3", "--inner converge", "--solver average", "--solver subsample",
              "--solver indexed --truncate none", "--schedule fixed --blocks 2 --inner 2"],
    "squared-hinge": ["--inner 1", "--inner 3", "--solver newton", "--solver primal", "--solver cmls",
                      "--solver average", "--solver subsample", "--solver indexed --truncate none",
                      "--solver indexed --truncate none --block-solver newton", "--solver primal --order cyclic"],
    "logistic": ["--inner 1", "--inner 3", "--solver newton", "--solver primal", "--solver primal --exponential library",
                 "--solver average", "--solver subsample", "--solver primal --exponential stored"],
}
TRUNCATED = ["--inner 2", "--solver newton", "--solver primal", "--solver indexed"]


def single(value: float) -> float:
    """As a 32-bit float, which is what a store holds."""
    return struct.unpack("<f", struct.pack("<f", value))[0]


class Puzzle:
    """A random problem: rows, weights, costs, and the options that say so."""

    def __init__(self, random):
        self.random = random
        self.features = random.randint(1, 6)
        self.labels = sorted(random.sample([-3, -1, 0, 1, 2, 7], random.choice([2, 2, 2, 3, 4])))
        count = random.randint(max(2, len(self.labels)), 40)
        scale = 10.0 ** random.uniform(-3, 3)
        self.rows = [(self.labels[i] if i < len(self.labels) else random.choice(self.labels), self.values(scale))
                     for i in range(count)]
        self.weights = [single(random.choice([1, 1, 0.5, 3, random.random()]) * self.spread()) for _ in self.rows]
        self.weighted = random.random() < 0.4
        self.bias = random.choice([None, None, 1.0, 10.0, 0.001])
        self.cost = 10 ** random.uniform(-10, 16)
        self.class_weights = {label: 10 ** random.uniform(-3, 3) for label in self.labels if random.random() < 0.2}

    def spread(self):
        return 10 ** self.random.uniform(-6, 6) if self.random.random() < 0.1 else 1

    def values(self, scale):
        wide = self.random.random() < 0.1
        return [single(self.random.gauss(0, 1) * scale * (10 ** self.random.uniform(-6, 6) if wide else 1))
                if self.random.random() < 0.8 else 0.0 for _ in range(self.features)]

    def text(self) -> bytes:
        lines = []
        for place, (label, values) in enumerate(self.rows):
            # The last feature is always there in the first row, so that the model has all of them.
            cells = [f"{i + 1}:{v!r}" for i, v in enumerate(values) if v or (place == 0 and i == self.features - 1)]
            lines.append(f"{label} {' '.join(cells)}\n")
        return "".join(lines).encode()

    def options(self) -> list[str]:
        words = ["--cost", repr(self.cost)] + (["--bias", repr(self.bias)] if self.bias is not None else [])
        for label, weight in self.class_weights.items():
            words += ["--class-weight", f"{label}={weight!r}"]
        return words

    def examples(self):
        found = []
        for (label, values), weight in zip(self.rows, self.weights):
            cost = mpf(self.cost) * (mpf(weight) if self.weighted else 1) * mpf(self.class_weights.get(label, 1))
            x = [mpf(v) for v in values] + ([mpf(self.bias)] if self.bias is not None else [])
            found.append(optimum.Example(label, x, cost))
        return found

    @property
    def size(self):
        return self.features + (self.bias is not None)


def trial(t):
    puzzle = Puzzle(t.random)
    t.write("p.svm", puzzle.text())
    weights = ["--weights", "w"] if puzzle.weighted else []
    t.write("w", "".join(f"{weight!r}\n" for weight in puzzle.weights).encode())
    t.must("pack", "p.svm", "-o", "p", "--index-base", "1", "--codec", "none", "-q", *weights)
    kind = t.random.random()
    if kind < 0.15:
        check_all(t, puzzle, "crammer-singer", ["--multiclass crammer-singer"] * 3)
    elif kind < 0.3:
        check_truncated(t, puzzle)
    else:
        loss = t.random.choice(sorted(SOLVERS))
        solvers = t.random.sample(SOLVERS[loss], 4)
        check_all(t, puzzle, loss, [f"--loss {loss} {solver}" for solver in solvers])


def train(t, puzzle, line):
    """The summary and the weights, a column for each classifier; None if the options are refused."""
    tolerance = 10 ** t.random.uniform(-9, math.log10(0.5))
    passes = t.random.randint(50, 2000)
    words = ["train", "p", "-o", "m", "--json", "-q", "--tolerance", repr(tolerance), "--max-passes", str(passes),
             "--max-seconds", "5", *puzzle.options(), *shlex.split(line)]
    end = t.run(*words, tested=True, timeout=60)
    if end.code == 2:
        return None
    t.expect(end.code == 0, f"{shlex.join(words)}: {end.words()}")
    return json.loads(end.out), read_model(t.folder / "m"), shlex.join(words)


def read_model(path):
    """Labels and columns of weights; what a file says beyond LIBLINEAR's format is not looked at."""
    words = path.read_text().split()
    labels_at, features_at = words.index("label"), words.index("nr_feature")
    labels = [int(word) for word in words[labels_at + 1:labels_at + 1 + int(words[words.index("nr_class") + 1])]]
    bias = float(words[words.index("bias") + 1])
    rows = int(words[features_at + 1]) + (bias >= 0)
    lines = path.read_text().split("\nw \n", 1)[1].split("\n")[:rows]
    table = [[mpf(float(word)) for word in line.split()] for line in lines]
    return labels, [list(column) for column in zip(*table)]


def tasks_of(summary, labels):
    """(positive label, certificate) of each classifier; of two labels the first is the positive one."""
    if "tasks" in summary:
        return [(task["label"], task) for task in summary["tasks"]]
    return [(labels[0], summary)]


def check_all(t, puzzle, loss, lines):
    """Several models of one problem: each dual must be below the primal of each of them, and of the optimum."""
    examples, found = puzzle.examples(), {}
    for line in lines:
        trained = train(t, puzzle, line)
        if trained is None:
            continue
        summary, (labels, columns), command = trained
        check_summary(t, summary, command)
        if loss == "crammer-singer":
            value = optimum.class_objective(examples, labels, columns)
            found.setdefault(None, []).append((summary, value, command, summary["certified_gap"] is not None))
            continue
        for (positive, task), w in zip(tasks_of(summary, labels), columns):
            value = optimum.objective(loss, examples, positive, w)
            found.setdefault(positive, []).append((task, value, command, summary["certified_gap"] is not None))
    for positive, models in found.items():
        check_bounds(t, positive, models, best_known(puzzle, loss, examples, positive, models))


def best_known(puzzle, loss, examples, positive, models):
    """The optimum, or an upper bound of it."""
    bounds = [value for _, (value, _), _, _ in models]
    if loss in ("squared-hinge", "logistic"):
        bounds.append(optimum.newton(loss, examples, positive, puzzle.size))
    elif loss == "hinge" and len(examples) <= 12:
        bounds.append(optimum.hinge_ascent(examples, positive, puzzle.size))
    return min(bounds)


def check_summary(t, summary, command):
    gap = summary["certified_gap"]
    t.expect(gap is None or is_finite(gap) and gap >= 0, f"{command}: the gap is {gap}")
    t.expect(not summary["converged"] or gap is not None, f"{command}: converged without a gap")


def is_finite(number) -> bool:
    return isinstance(number, (int, float)) and math.isfinite(number)


def check_bounds(t, positive, models, best):
    for task, (value, honest), command, certified in models:
        where = f"{command} (label {positive})"
        t.expect(is_finite(task["primal"]), f"{where}: the primal is {task['primal']}")
        primal = mpf(task["primal"])
        t.expect(abs(primal - value) <= RELATIVE * value + HONEST * honest,
                 f"{where}: primal {task['primal']!r}, but that of the model is {shown(value)}")
        if not certified:
            continue
        t.expect(is_finite(task["dual"]) and is_finite(task["certified_gap"]) and task["certified_gap"] >= 0,
                 f"{where}: certified with dual {task['dual']} and gap {task['certified_gap']}")
        t.expect(mpf(task["dual"]) <= best * (1 + RELATIVE),
                 f"{where}: dual {task['dual']!r} is above {shown(best)}, which can be reached")
        if best > 0:
            true_gap = (value - best) / best
            t.expect(mpf(task["certified_gap"]) >= true_gap - RELATIVE - HONEST * honest / best,
                     f"{where}: certified gap {task['certified_gap']!r}, but the true gap is at least {shown(true_gap)}")


def check_truncated(t, puzzle):
    """The truncated objective at the weights; the convex bound is below the primal, and that below the whole loss."""
    loss = t.random.choice(["hinge", "squared-hinge", "logistic"])
    examples = puzzle.examples()
    for solver in t.random.sample(TRUNCATED, 2):
        trained = train(t, puzzle, f"--loss {loss} --truncate 1 {solver}")
        if trained is None:
            continue
        summary, (labels, columns), command = trained
        check_summary(t, summary, command)
        for (positive, task), w in zip(tasks_of(summary, labels), columns):
            whole, honest = optimum.objective(loss, examples, positive, w)
            cut, _ = optimum.objective(loss, examples, positive, w, cap=mpf(2))
            where, slack = f"{command} (label {positive})", RELATIVE * whole + HONEST * honest
            said = mpf(task["truncated"]["objective"])
            t.expect(abs(said - cut) <= slack, f"{where}: truncated objective {shown(said)}, but it is {shown(cut)}")
            t.expect(mpf(task["primal"]) <= whole + slack, f"{where}: primal {task['primal']!r} is above {shown(whole)}")
            if summary["certified_gap"] is not None:
                t.expect(mpf(task["dual"]) <= mpf(task["primal"]) + slack, f"{where}: the dual is above the primal")


def shown(number) -> str:
    return optimum.mp.nstr(number, 20)
