"""What a stranger asks first: text to a certified 1% against every peer; more rows, less memory, one thread or two."""
import sys
from collections.abc import Sequence

from commands import (BLOCKS, EVERYTHING, HINGE, LIBLINEAR_MODEL, MEBIBYTE, PACK, SGD, SGD_MODEL, SQUARED_HINGE, VW, evaluate, generate, liblinear,
                      objective, part_of_peak, part_of_rows, train)
from program import Bound, Claim, Experiment, Measure, Program
from values import of, peak_over_budget, percent, readings, wall

SETS = ("documents", "imdb", "splice-unit", "kddcup99", "mnist", "splice-large", "webspam", "kddcup10", "epsilon")


def end_to_end(bench: str, name: str, solver: int, options: str, sets: Sequence[str], faster: float, lost: float, part: int = 10,
               others: Sequence[Program] = (), loss: str = "", bars: Sequence[str] = (), repeats: int = sys.maxsize) -> Experiment:
    """In that part of LIBLINEAR's memory, or for 0 in 4 GB; at least so many times as fast as LIBLINEAR on the sets named in `bars`, and at most so many points less accurate; with a `loss`, the objective is
    compared too."""
    theirs, ours = liblinear(solver, most_repeats=repeats), train(f"linblock, {name}", "{text}", f"{options} --cost 1", most_repeats=repeats)
    scores = (objective("{model}", ours, loss), objective(LIBLINEAR_MODEL, theirs, loss)) if loss else ()
    tested = {ours: evaluate("{model}", ours), theirs: evaluate(LIBLINEAR_MODEL, theirs)} | {SGD: evaluate(SGD_MODEL, SGD) for one in others if one is SGD}
    return Experiment(
        bench, f"text to model, {name}", f"From svmlight text to a certified model (`{options}`), in {f'1/{part} of the memory that LIBLINEAR takes' if part else '4 GB'}.",
        (theirs, *others, ours), data_sets=tuple(sets), after=(*tested.values(), *scores),
        derived={"memory": part_of_peak(theirs, part) if part else lambda last, quick: EVERYTHING}, measures=(
            *(Measure(one.name, "s", wall(one)) for one in (theirs, *others, ours)),
            *(Measure(f"memory, {one.name}", "MiB", of(one, lambda run: run.peak_memory_bytes / MEBIBYTE)) for one in (theirs, *others, ours)),
            *(Measure(f"{one.name} / linblock", "times", wall(one) / wall(ours), Bound(least=faster) if one is theirs else None, bars) for one in (theirs, *others)),
            Measure("peak / --memory", "", peak_over_budget(ours), Bound(most=1)),
            Measure("certified gap", "%", percent(ours, "gap"), Bound(most=1), bars),
            *(Measure("objective / LIBLINEAR's", "", of(scores[0], "objective") / of(scores[1], "objective"), Bound(most=1.01)) for _ in scores[:1]),
            *(Measure(f"test accuracy, {one.name}", "%", percent(judge, "accuracy")) for one, judge in tested.items()),
            Measure("accuracy lost to LIBLINEAR", "points", percent(tested[theirs], "accuracy") - percent(tested[ours], "accuracy"), Bound(most=lost))))


def less_memory() -> Experiment:
    parts = (1, 2, 5, 10, 20, 40)
    programs = {part: train(f"memory for 1/{part} of the rows" if part > 1 else "memory for all", "{store}", f"--loss {HINGE}", f"{{part_{part}}}" if part > 1
                            else EVERYTHING) for part in parts}
    return Experiment("peers", "memory", "From a packed store to a certified 1%, the budget from everything down to a fortieth of the rows; what each run needs "
                      "alike (weights, duals, program) comes on top.", tuple(programs.values()), data_sets=("documents", "kddcup99"), before=(PACK,),
                      derived={f"part_{part}": part_of_rows(part) for part in parts}, measures=tuple(
        measure for one in programs.values() for measure in (Measure(one.name, "s", wall(one)), Measure(f"readings, {one.name}", "", readings(one, PACK)))))


def threads() -> Experiment:
    one, two = (train(f"{count} thread{'s' * (count - 1)}", "{text}", f"--loss {HINGE}", 256 * MEBIBYTE, count) for count in (1, 2))
    return Experiment("peers", "threads", "From text to a certified 1% with one thread and with two.", (one, two), data_sets=SETS[:5], measures=(
        Measure("one thread", "s", wall(one)), Measure("two", "s", wall(two)), Measure("one / two", "times", wall(one) / wall(two))))


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
    end_to_end("peers", HINGE, 3, f"--loss {HINGE}", SETS, 4, 0.2, others=(SGD, VW), loss=HINGE),
    end_to_end("peers", SQUARED_HINGE, 1, f"--loss {SQUARED_HINGE}", SETS[:5], 4, 0.2, loss=SQUARED_HINGE),
    growth(), less_memory(), threads())
