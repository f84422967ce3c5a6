"""Several models of the same rows: classes, folds and costs in one reading, against LIBLINEAR one after another; and a model again
after its rows have changed."""
import re
from collections.abc import Callable
from dataclasses import replace

from anchors import best, plain, settings
from commands import EVERYTHING, HINGE, MEBIBYTE, PACK, SQUARED_HINGE, liblinear, train
from headline import end_to_end
from program import Bound, Experiment, Measure, Program, from_run
from runner import Run
from values import of, percent, readings, together, wall

FOLDS = 5
COSTS, COSTS_ASKED = tuple(2.0 ** power for power in range(-4, 6)), "0.0625:32:2"
TEXTS = ("20news", "sector", "mnist-digits", "connect-4", "documents-20", "letter", "pendigits")  # the last two are under 5 MB: starting the program counts there
FOLD_SETS = ("imdb", "20news", "a9a", "documents-some")
INFO = Program("info", "linblock", "info {store} --json")


def classes_of(info: dict) -> int:
    return len(info["labels"]) if len(info["labels"]) > 2 else 1


def streamed_memory(tasks: Callable[[dict], int]) -> Callable:
    """Half of what the rows take, so that they are read each pass; beside it the program, a few chunks, and for each task its weights and duals."""
    def memory(run: Run, quick: bool) -> int:
        info = run.summary()
        return max(8 * MEBIBYTE + tasks(info) * (4 * info["features"] + 9 * info["rows"]) + info["bytes"] // 2, 16 * MEBIBYTE)

    return from_run(INFO, memory)


# The memory has a name for each number of tasks: folds of all costs need a start for the model of all rows too.
STREAMED = {"one_task": streamed_memory(lambda info: 1), "classes": streamed_memory(classes_of), "folds": streamed_memory(lambda info: FOLDS * classes_of(info)),
            "costs": streamed_memory(lambda info: (len(COSTS) * FOLDS + 2) * classes_of(info))}
ROOMS = {"in memory": dict.fromkeys(STREAMED, EVERYTHING), "streamed": {name: f"{{{name}}}" for name in STREAMED}}


def classes(room: str) -> Experiment:
    """The passes are fixed, so nothing is left to chance or to what was measured on the way."""
    passes = "--max-passes 3 --tolerance 1e-9 --inner 1 --cache-fraction 0 --trace {trace}"
    one = train("one task, one thread", "{store}", passes + " --positive 1", ROOMS[room]["one_task"], threads=1)
    several = train("all classes, two threads", "{store}", passes, ROOMS[room]["classes"])

    def seconds(*parts: str):
        return lambda run: sum(run.summary()["seconds"][part] for part in parts)

    read = {"": "bytes_read", ", without certificates": lambda run: sum(line["bytes"] for line in run.trace)}
    return Experiment("models", f"classes, {room}", "Three passes for all 20 classes at once against three for one of them.", (one, several), data_sets=("20news", "documents-20"),
                      before=(PACK, INFO), derived=STREAMED, measures=(
        *(Measure(f"bytes read, 20 classes / one{words}", "times", of(several, what) / of(one, what), Bound(most=1.05)) for words, what in read.items()),
        *(Measure(f"{what}, 20 classes / 20 times one", "times", of(several, seconds(*parts)) / of(one, seconds(*parts)) / of(INFO, lambda run: classes_of(run.summary())),
                  Bound(most=0.5)) for what, parts in (("solving", ("solve",)), ("a pass", ("solve", "wait")))),
        Measure("readings, one task", "", readings(one, PACK))))


def several_folds(name: str, command: str, what: str, memory: object = EVERYTHING) -> Program:
    """cv or tune. Text is packed anew each time, into the folder beside it."""
    return Program(name, "linblock", f"{command} {what} --folds {FOLDS} --loss squared-hinge --memory {memory} --threads 2 --fresh -q --json",
                   makes="{text}.linblock" if what == "{text}" else "")


COMMANDS = {"cv": (1.0,), f"tune --costs {COSTS_ASKED}": COSTS}


def folds_from_text(command: str, costs: tuple[float, ...]) -> Experiment:
    name = command.split()[0]
    ours = several_folds(name, command, "{text}")
    before, derived = settings(SQUARED_HINGE, ("liblinear",))
    theirs = tuple(liblinear(f"-s {{solver}} -e {{tolerance}} -c {cost:g} -v {FOLDS}", "", f"LIBLINEAR, C = {cost:g}") for cost in costs)

    def found(number: int):
        return of(ours, lambda run: 100 * run.summary().get("costs", [run.summary()])[number]["accuracy"])

    said = [of(one, lambda run: float(re.search(r"Cross Validation Accuracy = (\S+)%", run.stdout)[1])) for one in theirs]
    apart = [together(lambda a, b: abs(a - b), found(number), value) for number, value in enumerate(said)]  # folds that leak would look better
    return Experiment("models", name, f"Five folds of {len(costs)} cost{'s' * (len(costs) > 1)} from text, against `liblinear-train -v 5` for one after another, "
                      "with the solver and the tolerance that are the fastest within 1% for C = 1.", (*theirs, ours), data_sets=FOLD_SETS if len(costs) == 1 else FOLD_SETS[::2],
                      before=before, derived=derived, repeats=5, measures=(
        Measure("solver:tolerance", "", of(before[-1], "setting")),
        Measure(f"LIBLINEAR / {name}", "times", together(lambda *walls: sum(walls), *map(wall, theirs)) / wall(ours), Bound(least=5), mean=True),
        Measure("accuracies apart at most", "points", together(max, *apart, *apart[:1]), Bound(most=0.5))))


def bytes_of_folds(room: str, sets: tuple[str, ...]) -> Experiment:
    one = train("train", "{store}", "--loss squared-hinge", ROOMS[room]["classes"], most_repeats=1)
    cv, tune = (several_folds(command.split()[0], command, "{store}", ROOMS[room][tasks]) for command, tasks in zip(COMMANDS, ("folds", "costs")))
    return Experiment("models", f"bytes of cv and tune, {room}", "What five folds, and five of ten costs, read against one training.", (cv, tune, one), data_sets=sets,
                      before=(PACK, INFO), derived=STREAMED, repeats=1, measures=(
        Measure("cv / train", "times", of(cv, "bytes_read") / of(one, "bytes_read"), Bound(most=1.5)),
        Measure("tune / train", "times", of(tune, "bytes_read") / of(one, "bytes_read"), Bound(most=4)), Measure("readings, train", "", readings(one, PACK))))


def warm_start(change: str, packing: Program, changing: str, room: str) -> Experiment:
    memory, near = ROOMS[room]["one_task"], "--tolerance 1e-3"
    first = train("first model", "{store}", f"{near} --keep-state", memory, model="{model}-first")
    changed = Program(change, "linblock", f"{change} {{store}} {changing} -q --json")
    cold, warm = (train(name, "{store}", f"{near}{options}", memory, most_repeats=1) for name, options in (("cold", ""), ("warm", " --warm {model}-first")))
    return Experiment("models", f"warm start after {change}, {room}", "A model of the rows before; then passes to a certified 0.1% from its state, and from nothing.", (cold, warm),
                      data_sets=("documents", "imdb"), before=(packing, INFO, first, changed), derived=STREAMED, measures=(
        Measure("passes, cold", "", of(cold, "passes")), Measure("passes, warm / cold", "times", of(warm, "passes") / of(cold, "passes"), Bound(most=0.5)),
        Measure("certified gap, warm", "%", percent(warm, "certified_gap"), Bound(most=0.1))))


FIRST_ROWS = replace(PACK, arguments=PACK.arguments.replace("{text}", "{first_rows}"))
EXPERIMENTS = (
    *map(classes, ROOMS),
    *(end_to_end("models", f"classes, {loss}", best(loss), f"--loss {loss} --max-passes 200", TEXTS, 0.3, repeats=1) for loss in (SQUARED_HINGE, HINGE)),
    # Which needs the weights of all classes at once.
    end_to_end("models", "classes, crammer-singer", plain("-s 4"), "--multiclass crammer-singer --max-passes 200", TEXTS, 0.3, 2, repeats=1),
    *(folds_from_text(command, costs) for command, costs in COMMANDS.items()),
    *(bytes_of_folds(room, sets) for room, sets in zip(ROOMS, (FOLD_SETS, FOLD_SETS[:2]))),  # the rows of a9a fit the least memory
    *(warm_start(*change, room) for change in (("append", FIRST_ROWS, "{last_rows}"), ("remove", PACK, "--rows {every_tenth}")) for room in ROOMS),
)
