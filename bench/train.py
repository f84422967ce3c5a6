"""Training: text to a certified model against LIBLINEAR and others, and what reading, memory and the disk cost."""
import itertools
import re
from collections.abc import Callable
from statistics import median

from experiments import Bound, Derived, Experiment, Measure, Overall, Program, Suite, summaries
from measures import (MEBIBYTE, accuracy, accuracy_lost, each, ending, gap_percent, more, over_best, peak_over_budget, ratio, readings,
                      tenth_of_peak, twentieth_of_store, walls_ratio)
from reached import passes_of
from runner import Run

UNSCALED = "splice"  # separable, long rows: dual descent needs hundreds of passes; reported without a bar
SETS = ("documents", "imdb", "splice-unit", "splice-large", "kddcup99", "mnist")
SMALLER_SETS = tuple(name for name in SETS if name != "splice-large")  # where fixed blocks take hours
SETS_BEYOND_CACHE = ("documents", "imdb", "splice-unit", "splice-large")  # a small group's page cache does not hold their stores
SLOW_DISK = 100_000_000  # bytes a second
GROUP_SLACK = 32 * MEBIBYTE
# With a slow disk: so little beside the budget that the page cache cannot hold the store.
SLOW_DISK_SLACK = 16 * MEBIBYTE


def rows_tenth(run: Run, quick: bool) -> int:
    """For rows a tenth of the decoded data, at 8 bytes a nonzero; beside it what every setting needs alike: a float weight and
    a double for the certificate a feature, the duals, a few chunks and the program itself."""
    packed = run.summary()
    return packed["nonzeros"] * 8 // 10 + 12 * packed["features"] + 9 * packed["rows"] + 12 * MEBIBYTE


def pass_over_slower_side(runs):
    """Of every pass: its wall time is what the solver worked and what it waited."""
    return [(line["wait_seconds"] + line["solve_seconds"]) / max(line["read_seconds"] + line["decode_seconds"], line["solve_seconds"])
            for run in runs for line in passes_of(run)]


def pass_over_iteration(ours, theirs):
    solve = median(run.summary()["seconds"]["solve"] for run in ours)
    return [solve / median(float(re.search(r"first iteration (\S+) s", run.stdout)[1]) for run in theirs)]


def time_over_reading(run: Run) -> float:
    """Against the time that the slow disk needs for the bytes read."""
    return run.wall_seconds / (run.summary()["bytes_read"] / SLOW_DISK)


# Programs.

PACK = Program("pack", "linblock", "pack {text} -o {store} --memory 256M --codec none --threads 2 -q --json", makes="{store}")
LIBLINEAR_MODEL, SGD_MODEL, VW_MODEL = "{model}-liblinear", "{model}-sgd", "{model}-vw"
EVERYTHING = 4 << 30  # memory for all rows of any set


def train(name: str, what: str, options: str = "", memory: object = "{memory}", threads: int = 2, model: str = "{model}",
          store: str = "{store}", **more_of_program) -> Program:
    """`what` is text, packed into `store` anew each time, or {store} or one beside it."""
    options, packed = (options, "") if what.startswith("{store}") else (f"--store {store} {options}", store)
    return Program(name, "linblock", f"train {what} -o {model} --memory {memory} --threads {threads} --fresh -q --json {options}",
                   makes=f"{model} {model}.checkpoint {packed}", **more_of_program)


def liblinear(solver: int, options: str = "", model: str = LIBLINEAR_MODEL, **more_of_program) -> Program:
    words = f"-s {solver} {options}".strip()
    return Program(f"LIBLINEAR {words}", "liblinear-train", f"{words} {{text}} {model}", makes=model, **more_of_program)


def test(model: str, of: Program) -> Program:
    """One judge for all models."""
    return Program(f"accuracy of {of.name}", "linblock", f"evaluate {model} {{test}} --json", after=of.name)


def objective(model: str, of: Program, loss: str, truncate: object = "") -> Program:
    return Program(f"objective of {of.name}", "model_objective", f"{model} {{text}} {loss} 1 {truncate}", after=of.name)


SGD = Program("SGDClassifier", "scikit-learn", "{bench}/sgd.py {text} " + SGD_MODEL, makes=SGD_MODEL, most_repeats=2)
VW = Program("vw, one pass", "vw", "--loss_function hinge --quiet --data {vw_text} --final_regressor " + VW_MODEL, makes=VW_MODEL)

# Text to a certified model.


def against_liblinear(name: str) -> str:
    return f"LIBLINEAR / train, {name}"


def end_to_end(name: str, solver: int, options: str, data_sets: tuple[str, ...], faster: dict[str, Bound],
               accurate: dict[str, Bound], memory: Callable = tenth_of_peak, others: tuple[Program, ...] = (),
               scored: dict[str, Bound] | None = None) -> Experiment:
    """`faster` than LIBLINEAR, as `accurate`; `scored`: the objective of a model of two classes is compared too, and the gap judged."""
    theirs, ours = liblinear(solver), train(f"train, {name}", "{text}", f"{options} --cost 1")
    tested = test("{model}", ours), test(LIBLINEAR_MODEL, theirs)
    scores = (objective("{model}", ours, name), objective(LIBLINEAR_MODEL, theirs, name)) if scored else ()
    others_tested = [test(SGD_MODEL, program) for program in others if program is SGD]
    return Experiment(
        f"text to model, {name}", (theirs, *others, ours), data_sets=data_sets, after=(*tested, *scores, *others_tested),
        derived={"memory": Derived(theirs.name, memory)}, measures=(
            Measure(against_liblinear(name), "times", (theirs, ours), walls_ratio, faster),
            Measure(f"peak / --memory, {name}", "", (ours,), peak_over_budget, {data_set: Bound(most=1) for data_set in accurate}),
            Measure(f"certified gap, {name}", "%", (ours,), gap_percent, scored and {data_set: Bound(most=1) for data_set in scored}),
            *(Measure(f"objective / LIBLINEAR's, {name}", "", scores, ratio(summaries("objective")), scored) for _ in scores[:1]),
            Measure(f"test accuracy, {name}", "%", tested[:1], accuracy),
            Measure(f"test accuracy lost to LIBLINEAR, {name}", "points", tested[::-1], accuracy_lost, accurate),
            *(Measure(f"test {program.name}", "%", (program,), accuracy) for program in others_tested),
        ))


def two_classes(loss: str, solver: int, *others: Program) -> Experiment:
    faster, accurate, scored = ({name: bound for name in SETS} for bound in (Bound(least=4), Bound(most=0.2), Bound(most=1.01)))
    return end_to_end(loss, solver, f"--loss {loss} --tolerance 0.01", (*SETS, UNSCALED), faster, accurate, others=others, scored=scored)


# How often the store is read.

TO_A_THOUSANDTH = "--loss hinge --tolerance 0.001 --max-seconds 100 --inner 10 "
FIXED = train("fixed blocks, 10 rounds", "{store}", TO_A_THOUSANDTH + "--schedule fixed --cache-fraction 0")
RECOMPOSED = train("recomposed with a cache, 10 rounds", "{store}", TO_A_THOUSANDTH + "--schedule recomposed --cache-fraction 0.5")
PASSES = Experiment(
    "passes", (FIXED, RECOMPOSED), data_sets=SMALLER_SETS, before=(PACK,), derived={"memory": Derived(PACK.name, rows_tenth)}, measures=(
        *(Measure(f"passes to 0.1%, {program.name}", "", (program, PACK), readings) for program in (FIXED, RECOMPOSED)),
        Measure("certified gap, fixed", "%", (FIXED,), gap_percent),  # above 0.1: time ran out, more passes were needed
        Measure("certified gap, recomposed with a cache", "%", (RECOMPOSED,), gap_percent, Bound(most=0.1)),
        Measure("recomposed with a cache / fixed", "", (RECOMPOSED, FIXED, PACK), ratio(readings), Bound(most=1 / 3)),
    ))

# Settings chosen by measuring, against settings tried.


def choices(disk: str, data_sets: tuple[str, ...], **limits) -> Experiment:
    fixed = tuple(train(f"inner {inner}, cache {cache}{disk}", "{store}",
                        f"--loss hinge --max-seconds 60 --inner {inner} --cache-fraction {cache}", **limits)
                  for inner, cache in itertools.product((1, 3, 10), (0, 0.3, 0.6)))
    auto = train(f"auto{disk}", "{store}", "--loss hinge --inner auto", **limits)
    return Experiment(f"auto{disk}", (*fixed, auto), data_sets=data_sets, before=(PACK,), measures=(
        Measure(f"auto / best setting{disk}", "times", (auto, *fixed), over_best, Bound(most=1.3)),
    ), derived={"memory": Derived(PACK.name, rows_tenth), "group": Derived(PACK.name, more(rows_tenth, SLOW_DISK_SLACK))})


SLOWLY = {"cold": "{store}", "memory_limit": "{group}", "disk_limit": SLOW_DISK}
AUTO_SLOW_DISK = choices(", cold, 100 MB/s", SETS_BEYOND_CACHE, **SLOWLY)

# Reading while solving.

STREAMED = train("streamed", "{store}", "--loss hinge --trace {trace}")
PIPELINE = Experiment("pipeline", (STREAMED,), data_sets=SETS, before=(PACK,), measures=(
    Measure("a pass / its slower side", "times", (STREAMED,), pass_over_slower_side, Bound(most=1.2)),
), derived={"memory": Derived(PACK.name, rows_tenth)})

# One pass over rows in memory. Ours is the first too, so nothing is shrunk in either.

ITERATION = liblinear(3, "-e 1e6", says="#iter = 1\n", preload="iteration_clock")
ONE_PASS = train("one pass in memory", "{store}", "--loss hinge --inner 1 --cache-fraction 0 --max-passes 1", memory=EVERYTHING)
PASS_RATIO = "pass in memory / LIBLINEAR's first iteration"
ONE_PASS_EACH = Experiment("one pass", (ITERATION, ONE_PASS), data_sets=SETS, before=(PACK,), measures=(
    Measure(PASS_RATIO, "times", (ONE_PASS, ITERATION), pass_over_iteration, Bound(most=1)),
))

# Rows twenty times the memory, in a group that leaves the page cache nothing; both begin cold.


def twentieth() -> Experiment:
    programs, measures = [], []
    for source, slower in (("text", 1.5), ("store", 3)):
        roomy = train(f"from cold {source}, memory for all", f"{{{source}}}", "--loss hinge", EVERYTHING, cold=f"{{{source}}}")
        tight = train(f"from cold {source}, a twentieth", f"{{{source}}}", "--loss hinge", cold=f"{{{source}}}", memory_limit="{group}")
        programs += [roomy, tight]
        measures += [Measure(f"a twentieth / memory for all, {source}", "times", (tight, roomy), walls_ratio, Bound(most=slower)),
                     Measure(f"peak / a twentieth, from {source}", "", (tight,), peak_over_budget, Bound(most=1))]
    return Experiment("a twentieth", tuple(programs), tuple(measures), data_sets=("documents-many",), before=(PACK,), derived={
        "memory": Derived(PACK.name, twentieth_of_store), "group": Derived(PACK.name, more(twentieth_of_store, GROUP_SLACK))})


# A disk of 100 MB/s.

FROM_SLOW_DISK = train("train, cold, 100 MB/s", "{store}", "--loss hinge", **SLOWLY)
SLOW = Experiment("slow disk", (FROM_SLOW_DISK,), data_sets=SETS_BEYOND_CACHE, before=(PACK,), measures=(
    Measure("passes, 100 MB/s", "", (FROM_SLOW_DISK, PACK), readings),
    Measure("time / bytes read at 100 MB/s", "times", (FROM_SLOW_DISK,), each(time_over_reading), Bound(most=1.3)),
), derived=AUTO_SLOW_DISK.derived)

# Vowpal Wabbit's one pass, and LIBLINEAR, which needs memory for all rows.

SMALL = 60 * MEBIBYTE
VW_SMALL = Program("vw, one pass, cold, 60 MB", "vw", VW.arguments, makes=VW.makes, cold="{vw_text}", memory_limit=str(SMALL))
TRAIN_SMALL = train("train, cold, 60 MB", "{text}", "--loss hinge", SMALL - GROUP_SLACK, cold="{text}", memory_limit=str(SMALL))
LIBLINEAR_SMALL = liblinear(3, cold="{text}", memory_limit=str(SMALL), most_repeats=1, may_fail=True)
SMALL_GROUP = Experiment("60 MB", (VW_SMALL, LIBLINEAR_SMALL, TRAIN_SMALL), data_sets=("documents",), measures=(
    Measure("LIBLINEAR -s 3, in 60 MB", "", (LIBLINEAR_SMALL,), ending),
    Measure("train / vw's one pass, in 60 MB", "times", (TRAIN_SMALL, VW_SMALL), walls_ratio, Bound(most=1)),
))

SUITE = Suite(
    (two_classes("hinge", 3, SGD, VW), two_classes("squared-hinge", 1), PASSES, choices("", SETS), AUTO_SLOW_DISK, PIPELINE,
     ONE_PASS_EACH, twentieth(), SLOW, SMALL_GROUP),
    overall=(
        Overall("LIBLINEAR / train, geometric mean", "times", tuple(map(against_liblinear, ("hinge", "squared-hinge"))), Bound(least=6)),
        Overall(f"{PASS_RATIO}, geometric mean", "times", (PASS_RATIO,), Bound(most=0.5)),
    ))
