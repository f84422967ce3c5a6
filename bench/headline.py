"""What a stranger asks first: text to a certified 1% against every peer; more rows, less memory, one thread or two, and predictions."""
import re
from collections.abc import Sequence

from anchors import Anchor, best, plain
from commands import (BLOCKS, EVERYTHING, HINGE, LIBLINEAR_MODEL, LOGISTIC, MEBIBYTE, PACK, SGD, SGD_MODEL, SQUARED_HINGE, VW, evaluate, generate, part_of_peak,
                      part_of_rows, train)
from program import Bound, Claim, Experiment, Measure, Program
from values import of, peak_over_budget, percent, together, wall, without_v

LOSSES = (HINGE, SQUARED_HINGE, LOGISTIC)
SETS = ("documents", "imdb", "20news", "splice-unit", "kddcup99", "mnist")
LARGE_SETS = ("splice-large", "webspam", "kddcup10", "epsilon")
REPEATS = 5


def end_to_end(bench: str, name: str, anchor: Anchor, options: str, sets: Sequence[str], lost: float, part: int = 10, others: Sequence[Program] = (), **more: object) -> Experiment:
    """In that part of LIBLINEAR's memory, from text, and with memory for all from a store where the anchor has one; at most so many points less accurate."""
    theirs, ours = anchor.program, train(f"linblock, {name}", "{text}", f"{options} --cost 1")
    stored = [train("linblock, from a store, rows in memory", "{store}", f"{options} --cost 1", EVERYTHING, model="{model}-stored")] if anchor.training else []
    tested = {ours: evaluate("{model}", ours), theirs: evaluate(LIBLINEAR_MODEL, theirs)} | {SGD: evaluate(SGD_MODEL, SGD) for one in others if one is SGD}
    from_text = {"LIBLINEAR": anchor.text} | {one.name: wall(one) for one in others}
    in_memory = {name: value for name, value in (("LIBLINEAR", anchor.training), ("Snap ML", anchor.snap_ml)) if value}
    return Experiment(
        bench, f"text to model, {name}", f"From svmlight text to a certified model (`{options}`), in 1/{part} of the memory that LIBLINEAR takes." + (
            " LIBLINEAR is the fastest of its solvers and tolerances that end within 1% of the optimum (docs/data.md)." if anchor.training else ""),
        (theirs, *anchor.others, *others, *stored, ours), data_sets=tuple(sets), before=anchor.before, after=tuple(tested.values()),
        derived={"memory": part_of_peak(theirs, part)} | anchor.derived, measures=(
            *(Measure(f"{one}, from text", "s", value) for one, value in from_text.items()), Measure("linblock, from text", "s", wall(ours)),
            *(Measure(f"{one} / linblock, from text", "times", value / wall(ours), mean=True) for one, value in from_text.items()),
            *(Measure(one.name, "s", wall(one)) for one in stored),
            *(Measure(f"{one}, training alone / linblock, from a store, rows in memory", "times", value / wall(stored[0]), mean=True) for one, value in in_memory.items()),
            *(Measure(f"memory, {one.name}", "MiB", of(one, lambda run: run.peak_memory_bytes / MEBIBYTE)) for one in (theirs, *others, ours)),
            Measure("peak / --memory", "", peak_over_budget(ours), Bound(most=1)), Measure("certified gap", "%", percent(ours, "certified_gap"), Bound(most=1)),
            Measure("certificates without v", "%", without_v(ours)), *anchor.measures,
            *(Measure(f"test accuracy, {one.name}", "%", percent(judge, "accuracy")) for one, judge in tested.items()),
            Measure("accuracy lost to LIBLINEAR", "points", percent(tested[theirs], "accuracy") - percent(tested[ours], "accuracy"), Bound(most=lost))), **more)


def less_memory(loss: str) -> Experiment:
    parts = (1, 5, 10, 40)
    programs = {part: train(f"memory for 1/{part} of the rows" if part > 1 else "memory for all", "{store}", f"--loss {loss}", f"{{part_{part}}}" if part > 1 else EVERYTHING)
                for part in parts}
    return Experiment("peers", f"memory, {loss}", "From a packed store to a certified 1%, the budget from everything down to a fortieth of the rows; what each run needs "
                      "alike (weights, duals, program) comes on top.", tuple(programs.values()), data_sets=(*SETS, "splice"), before=(PACK,),
                      derived={f"part_{part}": part_of_rows(part) for part in parts}, repeats=9, measures=(
        Measure("nonzeros", "M", of(PACK, "nonzeros") / 1e6), *(measure for part, one in programs.items() for measure in (
            Measure(one.name, "s", wall(one)), *(Measure(f"{one.name} / memory for all", "times", wall(one) / wall(programs[1]), mean=True) for _ in range(part > 1)),
            Measure(f"passes, {one.name}", "", of(one, "passes")), Measure(f"read, {one.name}", "MB", of(one, "bytes_read") / 1e6)))))


def threads(loss: str) -> Experiment:
    one, two = (train(f"{count} thread{'s' * (count - 1)}", "{text}", f"--loss {loss}", 256 * MEBIBYTE, count) for count in (1, 2))
    return Experiment("peers", f"threads, {loss}", "From text to a certified 1% with one thread and with two.", (one, two),
                      data_sets=("documents", "imdb", "kddcup99", "mnist", "splice"), repeats=REPEATS, measures=(
        Measure("one thread", "s", wall(one)), Measure("two", "s", wall(two)), Measure("one / two", "times", wall(one) / wall(two), mean=True)))


def predict() -> Experiment:
    """Of one model that LIBLINEAR's programs and ours both read; the rows are those that it was trained on."""
    model = train("model", "{store}", f"--loss {SQUARED_HINGE}", EVERYTHING)
    theirs = Program("liblinear-predict", "liblinear-predict", "{text} {model} {model}-theirs", makes="{model}-theirs")
    ours = Program("linblock predict", "linblock", "predict {model} {text} -o {model}-ours --memory 256M -q", makes="{model}-ours")
    right = Program("accuracy", "linblock", "evaluate {model} {text} --json")
    said = of(theirs, lambda run: float(re.search(r"Accuracy = (\S+)%", run.stdout)[1]))
    return Experiment("peers", "predict", "Rows per second, text in and labels out.", (theirs, ours), data_sets=SETS, before=(PACK, model), after=(right,), repeats=REPEATS, measures=(
        *(Measure(one.name, "M rows/s", of(PACK, "rows") / wall(one) / 1e6) for one in (theirs, ours)),
        Measure("liblinear-predict / linblock", "times", wall(theirs) / wall(ours), mean=True),
        Measure("accuracies apart", "points", together(lambda a, b: abs(a - b), said, percent(right, "accuracy")), Bound(most=0.01))))


def growth() -> Experiment:
    limit, sizes = 192 * MEBIBYTE, (1, 2, 4, 8)
    makes = tuple(generate(f"--rows {{rows_{size}}} --features 200000", f"{{generated}}-{size}", f"generate {size}") for size in sizes)
    theirs = tuple(Program(f"LIBLINEAR, rows x {size}", "liblinear-train", f"-s 3 {{generated}}-{size} {{model}}", makes="{model}", may_fail=True,
                           memory_limit=str(limit), most_repeats=1) for size in sizes)
    ours = tuple(train(f"linblock, rows x {size}", f"{{generated}}-{size}", f"--loss {HINGE} --codec none", limit // 4, memory_limit=str(limit),
                       most_repeats=1) for size in sizes)
    seconds = [of(one, lambda run: float("inf") if run.failed else run.wall_seconds) for one in (theirs[0], theirs[-1])]
    return Experiment("peers papers", "growth, block: figure 1", "Rows x 1, 2, 4, 8 (40,000 documents and more) in a control group of 192 MB, of which linblock takes 48: time, "
                      "memory and passes.", (*theirs, *ours), before=makes, rows=(40_000, 1_000), measures=(
        *(Measure(one.name, "", of(one, lambda run: run.ending())) for one in theirs), *(Measure(one.name, "s", wall(one)) for one in ours),
        *(Measure(f"passes, {one.name}", "", of(one, "passes")) for one in ours),
        *(Measure(f"peak / --memory, {one.name}", "", peak_over_budget(one), Bound(most=1)) for one in ours)), claims=(
        Claim(BLOCKS, "Figure 1", "beyond the memory LIBLINEAR's time grows rapidly (without swap it is killed)", tuple(seconds), slack=1 / 16),))


EXPERIMENTS = (
    *(end_to_end("peers", loss, best(loss), f"--loss {loss}", SETS, 0.2, others=(SGD, VW) if loss == HINGE else (), repeats=REPEATS) for loss in LOSSES),
    end_to_end("peers", f"{HINGE}, large", plain("-s 3"), f"--loss {HINGE}", LARGE_SETS, 0.2),
    growth(), *map(less_memory, LOSSES), *map(threads, LOSSES), predict())
