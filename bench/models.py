"""Several models of the same rows: classes, folds and costs in one reading, against LIBLINEAR one after another; and a model again
after its rows have changed."""
import re
from collections.abc import Callable
from statistics import median

from experiments import Bound, Derived, Experiment, Measure, Program, Suite, median_wall, summaries
from measures import MEBIBYTE, bytes_ratio, each, gap_percent, passes_ratio, ratio, readings, tenth_of_peak, walls_ratio
from reached import passes_of
from runner import Run
from train import EVERYTHING, PACK, end_to_end, liblinear, train

FOLDS = 5
COSTS, COSTS_ASKED = tuple(2.0 ** power for power in range(-4, 6)), "0.0625:32:2"
ONE_READING_SETS = ("20news", "documents-20")
SMALL_TEXTS = ("letter", "pendigits")  # under 5 MB: starting the program counts there
LARGE_TEXTS = ("20news", "sector", "mnist-digits", "connect-4", "documents-20")
FOLD_SETS = ("imdb", "20news", "documents-some", "a9a")
STREAMED_FOLD_SETS = tuple(name for name in FOLD_SETS if name != "a9a")  # whose rows fit the least memory
CHANGING_SETS = ("documents", "imdb")
INFO = Program("info", "linblock", "info {store} --json", after=PACK.name)


# Rows in memory, or streamed: half of what they take, so that they are read each pass; beside it the program, a few chunks, and for each
# task its weights and duals. The memory has a name for each number of tasks.

def a_task_a_class(info: dict) -> int:
    return len(info["labels"]) if len(info["labels"]) > 2 else 1


TASKS = {
    "one_task": lambda info: 1,
    "classes": a_task_a_class,
    "folds": lambda info: FOLDS * a_task_a_class(info),
    # Folds of all costs, and a start for the model of all rows; what is known of held-out rows is less than another.
    "costs": lambda info: (len(COSTS) * FOLDS + 2) * a_task_a_class(info),
}


def streamed_memory(tasks: Callable[[dict], int]) -> Derived:
    def memory(run: Run, quick: bool) -> int:
        info = run.summary()
        return max(8 * MEBIBYTE + tasks(info) * (4 * info["features"] + 9 * info["rows"]) + info["bytes"] // 2, 16 * MEBIBYTE)

    return Derived(INFO.name, memory)


STREAMED_MEMORY = {name: streamed_memory(tasks) for name, tasks in TASKS.items()}
IN_MEMORY, STREAMED = {name: EVERYTHING for name in TASKS}, {name: f"{{{name}}}" for name in TASKS}
ROOMS = {"in memory": IN_MEMORY, "streamed": STREAMED}


def were_streamed(program: Program, memory: dict) -> tuple[Measure, ...]:
    return (Measure(f"readings of the store, {program.name}", "", (program, PACK), readings, Bound(least=2)),) if memory is STREAMED else ()


# All classes in one reading. The passes are fixed, so nothing is left to chance or to what was measured on the way.

THREE_PASSES = "--max-passes 3 --tolerance 1e-9 --inner 1 --cache-fraction 0 --trace {trace}"
bytes_of_passes = each(lambda run: sum(line["bytes"] for line in passes_of(run)))


def seconds_ratio(*parts: str):
    """Of all classes against as many tasks one after another."""
    def seconds(runs) -> float:
        return median(sum(run.summary()["seconds"][part] for part in parts) for run in runs)

    return lambda all_classes, one, info: [seconds(all_classes) / seconds(one) / a_task_a_class(info[0].summary())]


def classes(room: str) -> Experiment:
    memory = ROOMS[room]
    one = train(f"one task, one thread, {room}", "{store}", THREE_PASSES + " --positive 1", memory["one_task"], threads=1, after=PACK.name)
    several = train(f"all classes, two threads, {room}", "{store}", THREE_PASSES, memory["classes"], after=PACK.name)
    return Experiment(
        f"classes, {room}", (one, several), data_sets=ONE_READING_SETS, before=(PACK, INFO), derived=STREAMED_MEMORY, measures=(
            Measure(f"bytes read, 20 classes / one, {room}", "times", (several, one), bytes_ratio, Bound(most=1.05)),
            Measure(f"the same without certificates, {room}", "times", (several, one), ratio(bytes_of_passes)),
            *(Measure(f"{what}, 20 classes / 20 of one, {room}", "times", (several, one, INFO), seconds_ratio(*parts), Bound(most=0.5))
              for what, parts in (("solving", ("solve",)), ("a pass", ("solve", "wait")))),
            *were_streamed(one, memory),
        ))


# Text to a model of all classes.

def half_of_peak(run: Run, quick: bool) -> int:
    """Crammer and Singer's method needs the weights of all classes at once: on documents these alone are more than a tenth."""
    return max(tenth_of_peak(run, quick), run.peak_memory_bytes // (2 * MEBIBYTE) * MEBIBYTE)


def text_to_classes(name: str, solver: int, options: str, memory: Callable = tenth_of_peak) -> Experiment:
    data_sets = LARGE_TEXTS + SMALL_TEXTS
    return end_to_end(name, solver, f"{options} --max-passes 200", data_sets, dict.fromkeys(LARGE_TEXTS, Bound(least=3)),
                      dict.fromkeys(data_sets, Bound(most=0.3)), memory)


# Folds and costs.

def liblinear_folds(cost: float, **more_of_program) -> Program:
    return liblinear(1, f"-c {cost:g} -v {FOLDS}", model="", **more_of_program)


def percent_of_folds(runs) -> float:
    return float(re.search(r"Cross Validation Accuracy = (\S+)%", runs[0].stdout)[1])


def most_points_apart(ours, *theirs):
    """Of all costs, and either way: folds that leak into training would look better."""
    summary = ours[0].summary()
    found = [line["accuracy"] for line in summary.get("costs", [summary])]
    return [max(abs(100 * one - percent_of_folds(runs)) for one, runs in zip(found, theirs, strict=True))]


def walls_of_all_ratio(ours, *theirs):
    return [sum(map(median_wall, theirs)) / median_wall(ours)]


CV, TUNE = "cv", f"tune --costs {COSTS_ASKED}"


def several(name: str, what: str, command: str, memory: object = EVERYTHING, **more_of_program) -> Program:
    """cv or tune. Text is packed anew each time, into the folder beside it."""
    return Program(
        name, "linblock", f"{command} {what} --folds {FOLDS} --loss squared-hinge --memory {memory} --threads 2 --fresh -q --json",
        makes="{text}.linblock" if what == "{text}" else "", **more_of_program)


def folds_from_text(name: str, command: str, theirs: tuple[Program, ...], theirs_named: str) -> Experiment:
    ours = several(name, "{text}", command)
    return Experiment(name, (*theirs, ours), data_sets=FOLD_SETS, measures=(
        Measure(f"{theirs_named} / {name}", "times", (ours, *theirs), walls_of_all_ratio, Bound(least=5)),
        Measure(f"accuracies apart at most, {name}", "points", (ours, *theirs), most_points_apart, Bound(most=0.5)),
    ))


def bytes_of_folds(room: str, data_sets: tuple[str, ...]) -> Experiment:
    memory, once = ROOMS[room], {"most_repeats": 1, "after": PACK.name}  # bytes are counted, not timed
    one = train(f"train, {room}", "{store}", "--loss squared-hinge", memory["classes"], **once)
    cv = several(f"cv, {room}", "{store}", CV, memory["folds"], **once)
    tune = several(f"tune, {room}", "{store}", TUNE, memory["costs"], **once)
    return Experiment(
        f"bytes of cv and tune, {room}", (cv, tune, one), data_sets=data_sets, before=(PACK, INFO), derived=STREAMED_MEMORY, measures=(
            Measure(f"bytes read, cv / train, {room}", "times", (cv, one), bytes_ratio, Bound(most=1.5)),
            Measure(f"bytes read, tune of ten costs / train, {room}", "times", (tune, one), bytes_ratio, Bound(most=4)),
            *were_streamed(one, memory),
        ))


# A model again, after its rows have changed.

FIRST_MODEL = "{model}-first"
PACK_FIRST_ROWS = Program(PACK.name, "linblock", PACK.arguments.replace("{text}", "{first_rows}"), makes=PACK.makes)
APPEND = Program("append", "linblock", "append {store} {last_rows} -q --json", after="first model", changes="{store}")
REMOVE = Program("remove", "linblock", "remove {store} --rows {every_tenth} -q --json", after="first model", changes="{store}")


def warm_start(packing: Program, change: Program, room: str) -> Experiment:
    memory, once = ROOMS[room]["one_task"], {"most_repeats": 1, "after": change.name}  # passes are counted, not timed
    first = train("first model", "{store}", "--tolerance 1e-3 --keep-state", memory, model=FIRST_MODEL, after=packing.name)
    after = f"after {change.name}, {room}"
    cold = train(f"cold, {after}", "{store}", "--tolerance 1e-3", memory, **once)
    warm = train(f"warm, {after}", "{store}", f"--tolerance 1e-3 --warm {FIRST_MODEL}", memory, **once)
    return Experiment(
        f"warm start {after}", (cold, warm), data_sets=CHANGING_SETS, before=(packing, INFO, first, change), derived=STREAMED_MEMORY,
        measures=(
            Measure(f"passes to 0.1%, {cold.name}", "", (cold,), summaries("passes")),
            Measure(f"passes, warm / cold, {after}", "times", (warm, cold), passes_ratio, Bound(most=0.5)),
            Measure(f"certified gap, {warm.name}", "%", (warm,), gap_percent, Bound(most=0.1)),
            *were_streamed(cold, ROOMS[room]),
        ))


SUITE = Suite((
    *map(classes, ROOMS),
    text_to_classes("squared-hinge", 1, "--loss squared-hinge"),
    text_to_classes("hinge", 3, "--loss hinge"),
    text_to_classes("crammer-singer", 4, "--multiclass crammer-singer", half_of_peak),
    folds_from_text("cv", CV, (liblinear_folds(1),), "LIBLINEAR -v 5"),
    folds_from_text("tune", TUNE, tuple(liblinear_folds(cost, most_repeats=1) for cost in COSTS), "LIBLINEAR -v 5 of ten costs"),
    *(bytes_of_folds(room, data_sets) for room, data_sets in zip(ROOMS, (FOLD_SETS, STREAMED_FOLD_SETS))),
    *(warm_start(packing, change, room) for packing, change in ((PACK_FIRST_ROWS, APPEND), (PACK, REMOVE)) for room in ROOMS),
))
