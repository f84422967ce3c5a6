"""Several models of the same rows: classes, folds and costs in one reading, against LIBLINEAR one after another; and a model again
after its rows have changed."""
import re
from collections.abc import Callable

from experiments import Bound, Derived, Experiment, Measure, Program, Suite, median_wall
from runner import Run
from store import MEBIBYTE
from train import (EVERYTHING, LIBLINEAR_MODEL, PACK, gap_percent, passes, peak_over_budget, tenth_of_peak, train, walls_ratio)

FOLDS = 5
COSTS = tuple(2.0 ** power for power in range(-4, 6))
COSTS_ASKED = "0.0625:32:2"
ONE_READING_SETS = ("20news", "documents-20")
SMALL_TEXTS = ("letter", "pendigits")  # under 5 MB: starting the program counts there
LARGE_TEXTS = ("20news", "sector", "mnist-digits", "connect-4", "documents-20")
FOLD_SETS = ("imdb", "20news", "documents-some", "a9a")
STREAMED_FOLD_SETS = tuple(name for name in FOLD_SETS if name != "a9a")  # whose rows fit the least memory
CHANGING_SETS = ("documents", "imdb")
IN_MEMORY, STREAMED = "in memory", "streamed"


# What is given to programs.

def one_task(info: dict) -> int:
    return 1


def a_task_a_class(info: dict) -> int:
    return len(info["labels"]) if len(info["labels"]) > 2 else 1


def tasks_of_folds(info: dict) -> int:
    return FOLDS * a_task_a_class(info)


def tasks_of_costs(info: dict) -> int:
    """Folds of ten costs, and a start for the model of all rows; what is known of held-out rows is less than another."""
    return 10 * tasks_of_folds(info) + 2 * a_task_a_class(info)


def streamed_memory(tasks: Callable[[dict], int]) -> Derived:
    """Half of what the rows take, so that they are read each pass; beside it the program, a few chunks, and for each task its
    weights and duals."""
    def memory(run: Run, quick: bool) -> int:
        info = run.summary()
        return max(8 * MEBIBYTE + tasks(info) * (4 * info["features"] + 9 * info["rows"]) + info["bytes"] // 2, 16 * MEBIBYTE)

    return Derived(INFO.name, memory)


# What is measured.

def bytes_ratio(above, below):
    return [above[0].summary()["bytes_read"] / below[0].summary()["bytes_read"]]


def bytes_of_passes_ratio(above, below):
    """Certificates left out."""
    def bytes_of_passes(run: Run) -> int:
        return sum(line["bytes"] for line in run.trace if line["event"] == "pass")

    return [bytes_of_passes(above[0]) / bytes_of_passes(below[0])]


def seconds_ratio(*parts: str):
    """Of all classes against as many tasks one after another."""
    def seconds(run: Run) -> float:
        return sum(run.summary()["seconds"][part] for part in parts)

    def ratio(all_classes, one, info):
        count = a_task_a_class(info[0].summary())
        return [seconds(several) / (count * seconds(single)) for several, single in zip(all_classes, one)]

    return ratio


def passes_ratio(warm, cold):
    return [warm[0].summary()["passes"] / cold[0].summary()["passes"]]


def passes_said(runs):
    return [run.summary()["passes"] for run in runs]


def percent_predicted(runs):
    counts = [re.search(r"\((\d+)/(\d+)\)", run.stdout) for run in runs]
    return [100 * int(count[1]) / int(count[2]) for count in counts]


def points_lost(ours, theirs):
    return [percent_predicted(theirs)[0] - percent_predicted(ours)[0]]


def percent_of_folds(run: Run) -> float:
    return float(re.search(r"Cross Validation Accuracy = (\S+)%", run.stdout)[1])


def points_apart(ours, theirs):
    """Either way: folds that leak into training would look better."""
    return [abs(100 * ours[0].summary()["accuracy"] - percent_of_folds(theirs[0]))]


def most_points_apart(tuned, *theirs):
    """Of all costs."""
    ours = {line["cost"]: 100 * line["accuracy"] for line in tuned[0].summary()["costs"]}
    return [max(abs(ours[cost] - percent_of_folds(runs[0])) for cost, runs in zip(COSTS, theirs))]


def walls_of_all_ratio(tuned, *theirs):
    return [sum(map(median_wall, theirs)) / median_wall(tuned)]


# All classes in one reading. The passes are fixed, so nothing is left to chance or to what was measured on the way.

INFO = Program("info", "linblock", "info {store} --json", after=PACK.name)
THREE_PASSES = "--max-passes 3 --tolerance 1e-9 --inner 1 --cache-fraction 0 --trace {trace}"


def classes(room: str, one_memory: object, all_memory: object) -> Experiment:
    one = train(f"one task, one thread, {room}", "{store}", THREE_PASSES + " --positive 1", one_memory, threads=1, after=PACK.name)
    several = train(f"all classes, two threads, {room}", "{store}", THREE_PASSES, all_memory, after=PACK.name)
    both = (several.name, one.name)
    return Experiment(
        f"classes, {room}", (one, several), data_sets=ONE_READING_SETS, before=(PACK, INFO),
        derived={"one_memory": streamed_memory(one_task), "all_memory": streamed_memory(a_task_a_class)}, measures=(
            Measure(f"bytes read, 20 classes / one, {room}", "times", both, bytes_ratio, Bound(most=1.05)),
            Measure(f"the same without certificates, {room}", "times", both, bytes_of_passes_ratio),
            Measure(f"solving, 20 classes / 20 of one, {room}", "times", (*both, INFO.name), seconds_ratio("solve"), Bound(most=0.5)),
            Measure(f"a pass, 20 classes / 20 of one, {room}", "times", (*both, INFO.name), seconds_ratio("solve", "wait"),
                    Bound(most=0.5)),
            *readings(one, room),
        ))


def readings(program: Program, room: str) -> tuple[Measure, ...]:
    """That rows were streamed where they should have been."""
    asked = Bound(least=2) if room == STREAMED else None
    return Measure(f"readings of the store, {program.name}", "", (program.name, PACK.name), passes, asked),


# Text to a model of all classes.

def half_of_peak(run: Run, quick: bool) -> int:
    """Crammer and Singer's method needs the weights of all classes at once: on documents these alone are more than a tenth."""
    return max(tenth_of_peak(run, quick), run.peak_memory_bytes // (2 * MEBIBYTE) * MEBIBYTE)


def text_to_classes(name: str, solver: int, options: str) -> Experiment:
    liblinear = Program(f"LIBLINEAR -s {solver}", "liblinear-train", f"-s {solver} {{text}} {LIBLINEAR_MODEL}", makes=LIBLINEAR_MODEL)
    ours = train(f"train, {name}", "{text}", f"{options} --cost 1 --max-passes 200")
    theirs_tested, ours_tested = test(LIBLINEAR_MODEL, liblinear), test("{model}", ours)
    return Experiment(
        f"text to classes, {name}", (liblinear, ours), data_sets=LARGE_TEXTS + SMALL_TEXTS, after=(theirs_tested, ours_tested),
        derived={"memory": Derived(liblinear.name, half_of_peak if solver == 4 else tenth_of_peak)}, measures=(
            Measure(f"LIBLINEAR / train, {name}", "times", (liblinear.name, ours.name), walls_ratio,
                    {data_set: Bound(least=3) for data_set in LARGE_TEXTS}),
            Measure(f"peak / --memory, {name}", "", (ours.name,), peak_over_budget, Bound(most=1)),
            Measure(f"certified gap, {name}", "%", (ours.name,), gap_percent),
            Measure(f"test accuracy, {name}", "%", (ours_tested.name,), percent_predicted),
            Measure(f"test accuracy lost to LIBLINEAR, {name}", "points", (ours_tested.name, theirs_tested.name), points_lost,
                    Bound(most=0.3)),
        ))


def test(model: str, of: Program) -> Program:
    """One judge for both models."""
    return Program(f"accuracy of {of.name}", "liblinear-predict", f"{{test}} {model} /dev/null", after=of.name)


# Folds and costs.

def liblinear_folds(cost: float, **more_of_program) -> Program:
    return Program(f"LIBLINEAR -v {FOLDS} -c {cost:g}", "liblinear-train", f"-s 1 -c {cost:g} -v {FOLDS} {{text}}", **more_of_program)


def several(name: str, what: str, command: str, memory: object = EVERYTHING, **more_of_program) -> Program:
    """cv or tune. Text is packed anew each time, into the folder beside it."""
    return Program(name, "linblock", f"{command} {what} --folds {FOLDS} --loss squared-hinge --memory {memory} --threads 2 --fresh -q --json",
                   makes="{text}.linblock" if what == "{text}" else "", **more_of_program)


CV, TUNE = "cv", f"tune --costs {COSTS_ASKED}"

FOLDS_OF_LIBLINEAR = liblinear_folds(1)
CV_FROM_TEXT = several("cv", "{text}", CV)
CROSS_VALIDATION = Experiment("cv", (FOLDS_OF_LIBLINEAR, CV_FROM_TEXT), data_sets=FOLD_SETS, measures=(
    Measure("LIBLINEAR -v 5 / cv", "times", (FOLDS_OF_LIBLINEAR.name, CV_FROM_TEXT.name), walls_ratio, Bound(least=5)),
    Measure("accuracies apart, cv", "points", (CV_FROM_TEXT.name, FOLDS_OF_LIBLINEAR.name), points_apart, Bound(most=0.5)),
))

COSTS_OF_LIBLINEAR = tuple(liblinear_folds(cost, most_repeats=1) for cost in COSTS)  # minutes each
TUNE_FROM_TEXT = several("tune", "{text}", TUNE)
TUNE_AND_COSTS = (TUNE_FROM_TEXT.name, *(program.name for program in COSTS_OF_LIBLINEAR))
CHOICE_OF_COST = Experiment("tune", (*COSTS_OF_LIBLINEAR, TUNE_FROM_TEXT), data_sets=FOLD_SETS, measures=(
    Measure("LIBLINEAR -v 5 of ten costs / tune", "times", TUNE_AND_COSTS, walls_of_all_ratio, Bound(least=5)),
    Measure("accuracies apart at most, tune", "points", TUNE_AND_COSTS, most_points_apart, Bound(most=0.5)),
))


def bytes_of_folds(room: str, data_sets: tuple[str, ...], one_memory: object, folds_memory: object,
                   costs_memory: object) -> Experiment:
    once = {"most_repeats": 1, "after": PACK.name}  # bytes are counted, not timed
    one = train(f"train, {room}", "{store}", "--loss squared-hinge", one_memory, **once)
    cv = several(f"cv, {room}", "{store}", CV, folds_memory, **once)
    tune = several(f"tune, {room}", "{store}", TUNE, costs_memory, **once)
    return Experiment(
        f"bytes of cv and tune, {room}", (cv, tune, one), data_sets=data_sets, before=(PACK, INFO),
        derived={"one_memory": streamed_memory(a_task_a_class), "folds_memory": streamed_memory(tasks_of_folds),
                 "costs_memory": streamed_memory(tasks_of_costs)}, measures=(
            Measure(f"bytes read, cv / train, {room}", "times", (cv.name, one.name), bytes_ratio, Bound(most=1.5)),
            Measure(f"bytes read, tune of ten costs / train, {room}", "times", (tune.name, one.name), bytes_ratio, Bound(most=4)),
            *readings(one, room),
        ))


# A model again, after its rows have changed.

FIRST_MODEL = "{model}-first"
PACK_FIRST_ROWS = Program(PACK.name, "linblock", PACK.arguments.replace("{text}", "{first_rows}"), makes=PACK.makes)
APPEND = Program("append", "linblock", "append {store} {last_rows} -q --json", after="first model", changes="{store}")
REMOVE = Program("remove", "linblock", "remove {store} --rows {every_tenth} -q --json", after="first model", changes="{store}")


def warm_start(packing: Program, change: Program, room: str, memory: object) -> Experiment:
    first = train("first model", "{store}", "--tolerance 1e-3 --keep-state", memory, model=FIRST_MODEL, after=packing.name)
    once = {"most_repeats": 1, "after": change.name}  # passes are counted, not timed
    after = f"after {change.name}, {room}"
    cold = train(f"cold, {after}", "{store}", "--tolerance 1e-3", memory, **once)
    warm = train(f"warm, {after}", "{store}", f"--tolerance 1e-3 --warm {FIRST_MODEL}", memory, **once)
    return Experiment(
        f"warm start {after}", (cold, warm), data_sets=CHANGING_SETS, before=(packing, INFO, first, change),
        derived={"one_memory": streamed_memory(one_task)}, measures=(
            Measure(f"passes to 0.1%, {cold.name}", "", (cold.name,), passes_said),
            Measure(f"passes, warm / cold, {after}", "times", (warm.name, cold.name), passes_ratio, Bound(most=0.5)),
            Measure(f"certified gap, {warm.name}", "%", (warm.name,), gap_percent, Bound(most=0.1)),
            *readings(cold, room),
        ))


SUITE = Suite((
    classes(IN_MEMORY, EVERYTHING, EVERYTHING),
    classes(STREAMED, "{one_memory}", "{all_memory}"),
    text_to_classes("squared-hinge", 1, "--loss squared-hinge"),
    text_to_classes("hinge", 3, "--loss hinge"),
    text_to_classes("crammer-singer", 4, "--multiclass crammer-singer"),
    CROSS_VALIDATION,
    CHOICE_OF_COST,
    bytes_of_folds(IN_MEMORY, FOLD_SETS, EVERYTHING, EVERYTHING, EVERYTHING),
    bytes_of_folds(STREAMED, STREAMED_FOLD_SETS, "{one_memory}", "{folds_memory}", "{costs_memory}"),
    *(warm_start(packing, change, room, memory)
      for packing, change in ((PACK_FIRST_ROWS, APPEND), (PACK, REMOVE))
      for room, memory in ((IN_MEMORY, EVERYTHING), (STREAMED, "{one_memory}"))),
))
