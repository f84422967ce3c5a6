"""Truncated losses and an index over the rows: the same answer as without one, what is read on the way to it, what the index costs, and
where it is worth building."""
from collections.abc import Callable, Sequence
from dataclasses import replace
from statistics import median

from experiments import Bound, Derived, Experiment, Measure, NotReached, Program, Suite, median_wall
from measures import MEBIBYTE, accuracy, bytes_ratio, ratio, walls, walls_ratio
from primal import HINGE, LIMIT, SQUARED_HINGE
from reached import near
from runner import Run
from train import EVERYTHING, PACK, objective, test, train

SHIFTED = "kddcup99"  # what it is tested on has attacks that it cannot learn: errors depend on luck
SETS = (SHIFTED, "mnist", "ijcnn1", "connect-4-two", "clusters")
TEXTS = ("imdb", "documents")  # where an index is expected to be of no use
LOSSES = (HINGE, SQUARED_HINGE)
TRUNCATIONS = (0, 0.25, 0.5, 1, 2, 3)
TRUNCATED, CLOSELY = "--truncate 1", f"--tolerance 0.001 {LIMIT}"
CACHE = 0.4  # of the memory for rows, with fixed blocks: more leaves too little for a block
FIXED = f"--solver dual {TRUNCATED} --schedule fixed --inner 10 --cache-fraction {CACHE}"
DEFAULT = f"--solver dual {TRUNCATED}"
INDEXED = f"--solver indexed {TRUNCATED}"
READS_LESS, FASTER, FASTER_IN_MEMORY = "reads less to 1%, {}", "faster to 1%, {}", f"faster in memory, {HINGE}"


# Programs.

INDEX = Program("index", "linblock", "index {store} -q --json", makes="{store}/index", changes="{store}", after=PACK.name)


def with_memory_for_all(name: str, loss: str, options: str, after: Program = PACK, **more) -> Program:
    return train(name, "{store}", f"--loss {loss} --cost 1 {options}", EVERYTHING, after=after.name, **more)


# The same answer as without an index. Models are judged by what neither solver is part of.

def pairwise(value: Callable[[Run, Run], object]) -> Callable[..., list]:
    """Of the first half of the programs against the second, seed by seed."""
    def values(*runs: Sequence[Run]) -> list:
        half = len(runs) // 2
        return [value(ours[0], batch[0]) for ours, batch in zip(runs[:half], runs[half:])]

    return values


def error(run: Run) -> float:
    return 100 - accuracy([run])[0]


def errors(*tested: Sequence[Run]) -> list[float]:
    return [error(runs[0]) for runs in tested]


def ratio_of(key: str) -> Callable[..., list]:
    return pairwise(lambda ours, batch: ours.summary()[key] / batch.summary()[key])


# A batch that ran out of time is no reference.
ends = pairwise(lambda ours, batch: f"{ours.summary()['termination']} / {batch.summary()['termination']}")


def same_answer(loss: str, solver: str, data_sets: tuple[str, ...], seeds: tuple[int, ...]) -> Experiment:
    of = f"{loss}, {solver}"
    models = {}  # ours, then those of the batch
    for name, way, after in (("indexed", f"{INDEXED} --block-solver {solver}", INDEX), ("batch", f"--solver {solver} {TRUNCATED}", PACK)):
        for seed in seeds:
            model, options = f"{{model}}-{name}-{seed}", f"{way} {CLOSELY} --seed {seed}"
            models[model] = with_memory_for_all(f"{name}, {of}, seed {seed}", loss, options, after, model=model, most_repeats=1)
    programs = tuple(models.values())
    scored = tuple(objective(model, program, loss, truncate=1) for model, program in models.items())
    tested = tuple(test(model, program) for model, program in models.items())
    return Experiment(
        f"same answer, {of}, seeds {len(seeds)}", programs[::-1], data_sets=data_sets, before=(PACK, INDEX), after=scored + tested,
        measures=(
            Measure(f"truncated objective, indexed / batch, {of}", "", scored, ratio_of("objective"), Bound(most=1.01)),
            Measure(f"test error, indexed, {of}", "%", tested[:len(seeds)], errors),
            Measure(f"test error, batch, {of}", "%", tested[len(seeds):], errors),
            Measure(f"test errors apart, {of}", "points", tested, pairwise(lambda a, b: abs(error(a) - error(b))), Bound(most=0.2)),
            Measure(f"support vectors, indexed / batch, {of}", "", programs, ratio_of("support_vectors")),
            Measure(f"ended, indexed / batch, {of}", "", programs, ends),
        ))


# Figure 7: how many support vectors, by where the loss is cut. All by the batch solver, so that nothing else differs.

def support_vectors(loss: str) -> Experiment:
    ways = {"convex": ""} | {f"s={s}": f"--truncate {s}" for s in TRUNCATIONS}
    models = {way: f"{{model}}-{way}" for way in ways}
    trained = {way: with_memory_for_all(f"{way}, {loss}", loss, f"--solver dual {options} {CLOSELY}", model=models[way], most_repeats=1)
               for way, options in ways.items()}
    tested = tuple(test(models[way], program) for way, program in trained.items())

    def listed(*runs: Sequence[Run]) -> list[str]:
        found = pairwise(lambda model, judged: f"{model.summary()['support_vectors']} ({error(judged):.2f}%)")(*runs)
        return [f"{way}: {one}" for way, one in zip(ways, found)]

    all_trained, both = tuple(trained.values()), (trained["s=1"], trained["convex"])
    scored = tuple(objective(models[way], trained[way], loss, truncate=1) for way in ("s=1", "convex"))
    return Experiment(f"support vectors, {loss}", all_trained, data_sets=SETS, before=(PACK,), after=tested + scored, measures=(
        Measure(f"support vectors (test error), {loss}", "", all_trained + tested, listed),
        Measure(f"support vectors, s=1 / convex, {loss}", "", both, ratio_of("support_vectors"), {"clusters": Bound(most=1)}),
        # Above 1: the outer loop has ended in a local optimum that is worse than not to truncate at all.
        Measure(f"truncated objective, s=1 / convex model, {loss}", "", scored, ratio_of("objective"), Bound(most=1)),
    ))


# Bytes and seconds to 1% of the final objective, the better of the indexed method's and of fixed blocks'. What does not change the
# comparison is given on top of the memory for rows: the program, and for each task what it keeps of rows and features.

def chunk_bytes(run: Run, quick: bool) -> int:
    """So small that a few of them are little of a tenth."""
    return min(max(run.summary()["bytes"] // 640 // 4096 * 4096, 8192), 256 << 10)


def memory_for_rows(packed: dict) -> int:
    """A tenth of the packed rows, or where that is more, what fixed blocks need: the store has up to 64, and a nonzero takes about
    13 bytes in a block, a row 20."""
    return max(packed["bytes"] // 10, int((13 * packed["nonzeros"] + 20 * packed["rows"]) / 64 / (1 - CACHE)))


def in_a_tenth(tasks: int) -> dict[str, Derived]:
    def memory(run: Run, quick: bool) -> int:
        packed = run.summary()
        kept = tasks * (10 * packed["rows"] + 80 * packed["features"])
        return max(memory_for_rows(packed) + kept + 7 * MEBIBYTE, 64 * MEBIBYTE if quick else 0)

    return {"chunk_bytes": Derived(PACK.name, chunk_bytes), "memory": Derived(PACK_SMALL.name, memory)}


PACK_SMALL = Program("pack in small chunks", "linblock", PACK.arguments + " --chunk-bytes {chunk_bytes}", makes=PACK.makes, after=PACK.name)
INDEX_SMALL = replace(INDEX, after=PACK_SMALL.name)


def point_near(run: Run, *ends_of: Sequence[Run]) -> dict:
    """The first look at the objective, of those that truncated_progress takes, that is within 1% of the best end."""
    final = min(runs[0].summary()["points"][-1]["objective"] for runs in ends_of)
    for point in run.summary()["points"]:
        if near(point["objective"], final):
            return point
    raise NotReached("within 1% of the final objective at no time")


def to_near(key: str) -> Callable[..., list]:
    return lambda runs, *ends_of: [point_near(run, *ends_of)[key] for run in runs]


bytes_to_near, seconds_to_near = to_near("bytes_read"), to_near("seconds")


def readings_to_near(runs, packed, *ends_of):
    return [bytes_read / packed[0].summary()["bytes"] for bytes_read in bytes_to_near(runs, *ends_of)]


def ends_ratio(above, below):
    return [above[0].summary()["points"][-1]["objective"] / below[0].summary()["points"][-1]["objective"]]


def better(taken: float) -> str:
    """In words, from what the index takes against the default."""
    return f"index, {1 / taken:.2g} times" if taken < 1 else f"default, {taken:.2g} times"


def reads_less(*runs):
    return [better(ratio(bytes_to_near)(*runs)[0])]


def is_faster(indexed, default, built, *ends_of):
    """The index counts in the second word: for whoever trains but once."""
    ours, theirs = (median(seconds_to_near(runs, *ends_of)) for runs in (indexed, default))
    return [f"{better(ours / theirs)}; built for this: {better((ours + median_wall(built)) / theirs)}"]


def progress(method: str, loss: str, after: Program) -> Program:
    return Program(f"{method}, {loss}", "truncated_progress",
                   f"{{store}} {method} --loss {loss} {TRUNCATED} --memory {{memory}} --tolerance 0.001 --max-seconds 300"
                   + (f" --cache-fraction {CACHE}" if method == "fixed" else ""), most_repeats=2, after=after.name)


def until_near(loss: str) -> Experiment:
    fixed, default = progress("fixed", loss, PACK_SMALL), progress("recomposed", loss, PACK_SMALL)
    ours = progress("indexed", loss, INDEX_SMALL)
    methods, ends_of = (fixed, default, ours), (ours, fixed)
    half = {name: Bound(most=0.5) for name in (SHIFTED, "clusters")}
    return Experiment(f"bytes, {loss}", methods, data_sets=SETS, before=(PACK, PACK_SMALL, INDEX_SMALL), derived=in_a_tenth(1), measures=(
        *(Measure(f"readings to 1%, {one.name}", "", (one, PACK_SMALL, *ends_of), readings_to_near) for one in methods),
        *(Measure(f"to 1%, {one.name}", "s", (one, *ends_of), seconds_to_near) for one in methods),
        Measure(f"bytes to 1%, indexed / fixed, {loss}", "", (ours, fixed, *ends_of), ratio(bytes_to_near), half),
        Measure(f"bytes to 1%, indexed / recomposed, {loss}", "", (ours, default, *ends_of), ratio(bytes_to_near)),
        Measure(f"final objective, indexed / fixed, {loss}", "", (ours, fixed), ends_ratio, Bound(most=1.01)),
        index_size(INDEX_SMALL, PACK_SMALL, f", {loss}"),
        Measure(READS_LESS.format(loss), "", (ours, default, *ends_of), reads_less),
        Measure(FASTER.format(loss), "", (ours, default, INDEX_SMALL, *ends_of), is_faster),
    ))


# The index itself.

def build_rate(built, packed):
    return [packed[0].summary()["nonzeros"] / run.wall_seconds / 1e6 for run in built]


def index_over_packed(built, packed):
    return [built[0].summary()["bytes"] / packed[0].summary()["bytes"]]


def index_size(index: Program, pack: Program, end: str = "") -> Measure:
    return Measure(f"index / packed rows{end}", "", (index, pack), index_over_packed, Bound(most=1.3))


THE_INDEX = Experiment("index", (INDEX,), data_sets=(*SETS, "dense", *TEXTS), before=(PACK,), measures=(
    Measure("index built at", "M nonzeros/s", (INDEX, PACK), build_rate, Bound(least=10)),
    Measure("index built in", "s", (INDEX,), walls),
    index_size(INDEX, PACK),
))


# Ten classes: one index for all of them, and it is built each time.

def with_build_ratio(other, built, indexed):
    return [median_wall(other) / (median_wall(built) + median_wall(indexed))]


def ten_models() -> Experiment:
    fixed, default, ours = (
        train(f"{name}, ten classes", "{store}", f"--loss {HINGE} --cost 1 {options} {LIMIT}", after=after.name)
        for name, options, after in (("fixed", FIXED, PACK_SMALL), ("default", DEFAULT, PACK_SMALL), ("indexed", INDEXED, INDEX_SMALL)))
    return Experiment(
        "ten models", (fixed, default, INDEX_SMALL, ours), data_sets=("mnist-digits", "clusters-10"), before=(PACK, PACK_SMALL),
        derived=in_a_tenth(10), measures=tuple(
            measure for one in (fixed, default) for measure in (
                Measure(f"{one.name} / index and indexed", "times", (one, INDEX_SMALL, ours), with_build_ratio),
                Measure(f"bytes read, {ours.name} / {one.name}", "", (ours, one), bytes_ratio))))


# Where there is memory for everything, documents among them.

def in_memory() -> Experiment:
    default = with_memory_for_all("default, in memory", HINGE, f"{DEFAULT} {LIMIT}")
    ours = with_memory_for_all("indexed, in memory", HINGE, f"{INDEXED} {LIMIT}", INDEX)
    return Experiment("in memory", (default, ours), data_sets=(*SETS, *TEXTS), before=(PACK, INDEX), measures=(
        Measure(FASTER_IN_MEMORY, "", (ours, default), lambda *runs: [better(walls_ratio(*runs)[0])]),
    ))


SUITE = Suite(
    (*(same_answer(loss, solver, data_sets, seeds)
       for loss, solver in ((HINGE, "dual"), (SQUARED_HINGE, "dual"), (SQUARED_HINGE, "newton"))
       for data_sets, seeds in (((SHIFTED,), (1, 2, 3, 4, 5)), (SETS[1:], (1,)))),
     *map(support_vectors, LOSSES), *map(until_near, LOSSES), THE_INDEX, ten_models(), in_memory()),
    closing=(*(words.format(loss) for words in (READS_LESS, FASTER) for loss in LOSSES), FASTER_IN_MEMORY))
