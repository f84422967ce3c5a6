"""Truncated losses and an index over the rows: the same answer as without one, what is read on the way to it, what the index costs, and
where it is worth building."""
from collections.abc import Callable, Sequence
from dataclasses import replace
from statistics import median

from experiments import Bound, Derived, Experiment, Measure, NotReached, Program, Suite, median_wall, summaries
from models import bytes_ratio
from primal import HINGE, LIMIT, SQUARED_HINGE, names
from reached import near
from runner import Run
from train import EVERYTHING, MEBIBYTE, PACK, accuracy, objective, test, train, walls_ratio

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


def with_memory_for_all(name: str, loss: str, options: str, **more) -> Program:
    more.setdefault("after", PACK.name)
    return train(name, "{store}", f"--loss {loss} --cost 1 {options}", EVERYTHING, **more)


def once(*words: str, **more) -> Program:
    """What it finds is looked at, not how long it takes."""
    return with_memory_for_all(*words, most_repeats=1, **more)


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


def ends(*runs: Sequence[Run]) -> list[str]:
    """A batch that ran out of time is no reference."""
    return pairwise(lambda ours, batch: f"{ours.summary()['termination']} / {batch.summary()['termination']}")(*runs)


def same_answer(loss: str, solver: str, data_sets: tuple[str, ...], seeds: tuple[int, ...]) -> Experiment:
    of = f"{loss}, {solver}"

    def trained(name: str, options: str, **more) -> tuple[Program, ...]:
        return tuple(once(f"{name}, {of}, seed {seed}", loss, f"{options} {CLOSELY} --seed {seed}",
                          model=f"{{model}}-{name}-{seed}", **more) for seed in seeds)

    batch = trained("batch", f"--solver {solver} {TRUNCATED}")
    ours = trained("indexed", f"{INDEXED} --block-solver {solver}", after=INDEX.name)
    models = {program: f"{{model}}-{name}-{seed}" for name, programs in (("indexed", ours), ("batch", batch))
              for program, seed in zip(programs, seeds)}
    scored = [objective(model, program, loss, truncate=1) for program, model in models.items()]
    tested = [test(model, program) for program, model in models.items()]
    both = names(models)
    return Experiment(f"same answer, {of}, seeds {len(seeds)}", (*batch, *ours), data_sets=data_sets, before=(PACK, INDEX),
                      after=(*scored, *tested), measures=(
        Measure(f"truncated objective, indexed / batch, {of}", "", names(scored), ratio_of("objective"), Bound(most=1.01)),
        Measure(f"test error, indexed, {of}", "%", names(tested[:len(seeds)]), errors),
        Measure(f"test error, batch, {of}", "%", names(tested[len(seeds):]), errors),
        Measure(f"test errors apart, {of}", "points", names(tested), pairwise(lambda a, b: abs(error(a) - error(b))), Bound(most=0.2)),
        Measure(f"support vectors, indexed / batch, {of}", "", both, ratio_of("support_vectors")),
        Measure(f"ended, indexed / batch, {of}", "", both, ends),
    ))


# Figure 7: how many support vectors, by where the loss is cut. All by the batch solver, so that nothing else differs.

def support_vectors(loss: str) -> Experiment:
    ways = {"convex": ""} | {f"s={s}": f"--truncate {s}" for s in TRUNCATIONS}
    models = {way: f"{{model}}-{way}" for way in ways}
    trained = {way: once(f"{way}, {loss}", loss, f"--solver dual {options} {CLOSELY}", model=models[way])
               for way, options in ways.items()}
    tested = [test(models[way], program) for way, program in trained.items()]

    def listed(*runs: Sequence[Run]) -> list[str]:
        found = pairwise(lambda model, judged: f"{model.summary()['support_vectors']} ({error(judged):.2f}%)")(*runs)
        return [f"{way}: {one}" for way, one in zip(ways, found)]

    all_trained, both = tuple(trained.values()), ("s=1", "convex")
    scored = [objective(models[way], trained[way], loss, truncate=1) for way in both]
    return Experiment(f"support vectors, {loss}", all_trained, data_sets=SETS, before=(PACK,), after=(*tested, *scored), measures=(
        Measure(f"support vectors (test error), {loss}", "", names(all_trained) + names(tested), listed),
        Measure(f"support vectors, s=1 / convex, {loss}", "", names(trained[way] for way in both), ratio_of("support_vectors"),
                {"clusters": Bound(most=1)}),
        # Above 1: the outer loop has ended in a local optimum that is worse than not to truncate at all.
        Measure(f"truncated objective, s=1 / convex model, {loss}", "", names(scored), ratio_of("objective"), Bound(most=1)),
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


def tenth(tasks: int) -> Derived:
    def memory(run: Run, quick: bool) -> int:
        packed = run.summary()
        kept = tasks * (10 * packed["rows"] + 80 * packed["features"])
        return max(memory_for_rows(packed) + kept + 7 * MEBIBYTE, 64 * MEBIBYTE if quick else 0)

    return Derived(PACK_SMALL.name, memory)


PACK_SMALL = Program("pack in small chunks", "linblock", PACK.arguments + " --chunk-bytes {chunk_bytes}", makes=PACK.makes, after=PACK.name)
IN_A_TENTH = {"chunk_bytes": Derived(PACK.name, chunk_bytes), "memory": tenth(1)}
INDEX_SMALL = replace(INDEX, after=PACK_SMALL.name)


def point_near(run: Run, *ends_of: Sequence[Run]) -> dict:
    """The first look at the objective, of those that truncated_progress takes, that is within 1% of the best end."""
    final = min(runs[0].summary()["points"][-1]["objective"] for runs in ends_of)
    for point in run.summary()["points"]:
        if near(point["objective"], final):
            return point
    raise NotReached("within 1% of the final objective at no time")


def bytes_at(point: dict) -> int:
    return point["bytes_read"]


def bytes_without_certificates(point: dict) -> int:
    return point["bytes_read"] - point["certify_bytes"]


def seconds_at(point: dict) -> float:
    return point["seconds"]


def to_near(what: Callable[[dict], float]):
    return lambda runs, *ends_of: [what(point_near(run, *ends_of)) for run in runs]


def readings_to_near(runs, packed, *ends_of):
    return [bytes_at(point_near(run, *ends_of)) / packed[0].summary()["bytes"] for run in runs]


def ratio_to_near(what: Callable[[dict], float]):
    return lambda above, below, *ends_of: [median(to_near(what)(above, *ends_of)) / median(to_near(what)(below, *ends_of))]


def ends_ratio(above, below):
    return [above[0].summary()["points"][-1]["objective"] / below[0].summary()["points"][-1]["objective"]]


def better(ratio: float) -> list[str]:
    """In words, from what the index takes against the default."""
    return [f"index, {1 / ratio:.2g} times" if ratio < 1 else f"default, {ratio:.2g} times"]


def reads_less(*runs):
    return better(ratio_to_near(bytes_at)(*runs)[0])


def is_faster(indexed, default, built, *ends_of):
    """The index counts in the second word: for whoever trains but once."""
    def seconds(runs):
        return median(to_near(seconds_at)(runs, *ends_of))

    once_built = better(seconds(indexed) / seconds(default))
    return [f"{once_built[0]}; built for this: {better((seconds(indexed) + median_wall(built)) / seconds(default))[0]}"]


def rows_over_packed(packed):
    return [memory_for_rows(packed[0].summary()) / packed[0].summary()["bytes"]]


def progress(method: str, loss: str, after: Program) -> Program:
    return Program(f"{method}, {loss}", "truncated_progress",
                   f"{{store}} {method} --loss {loss} {TRUNCATED} --memory {{memory}} --tolerance 0.001 --max-seconds 300"
                   + (f" --cache-fraction {CACHE}" if method == "fixed" else ""), most_repeats=2, after=after.name)


def until_near(loss: str) -> Experiment:
    fixed, default = progress("fixed", loss, PACK_SMALL), progress("recomposed", loss, PACK_SMALL)
    ours = progress("indexed", loss, INDEX_SMALL)
    methods, ends_of = (fixed, default, ours), (ours.name, fixed.name)

    def against(other: Program) -> tuple[str, ...]:
        return (ours.name, other.name, *ends_of)

    half = {name: Bound(most=0.5) for name in (SHIFTED, "clusters")}
    return Experiment(f"bytes, {loss}", methods, data_sets=SETS, before=(PACK, PACK_SMALL, INDEX_SMALL), derived=IN_A_TENTH, measures=(
        Measure(f"memory for rows / packed rows, {loss}", "", (PACK_SMALL.name,), rows_over_packed),
        *(Measure(f"readings to 1%, {one.name}", "", (one.name, PACK_SMALL.name, *ends_of), readings_to_near) for one in methods),
        *(Measure(f"to 1%, {one.name}", "s", (one.name, *ends_of), to_near(seconds_at)) for one in methods),
        Measure(f"bytes to 1%, indexed / fixed, {loss}", "", against(fixed), ratio_to_near(bytes_at), half),
        Measure(f"the same without certificates, {loss}", "", against(fixed), ratio_to_near(bytes_without_certificates)),
        Measure(f"bytes to 1%, indexed / recomposed, {loss}", "", against(default), ratio_to_near(bytes_at)),
        Measure(f"final objective, indexed / fixed, {loss}", "", (ours.name, fixed.name), ends_ratio, Bound(most=1.01)),
        Measure(f"final objective, indexed / recomposed, {loss}", "", (ours.name, default.name), ends_ratio),
        *index_measures(INDEX_SMALL, PACK_SMALL, f", {loss}"),
        Measure(READS_LESS.format(loss), "", against(default), reads_less),
        Measure(FASTER.format(loss), "", (ours.name, default.name, INDEX_SMALL.name, *ends_of), is_faster),
    ))


# The index itself.

def build_rate(built, packed):
    return [packed[0].summary()["nonzeros"] / run.wall_seconds / 1e6 for run in built]


def index_over_packed(built, packed):
    return [built[0].summary()["bytes"] / packed[0].summary()["bytes"]]


def walls(runs):
    return [run.wall_seconds for run in runs]


def index_measures(index: Program, pack: Program, ending: str = "") -> tuple[Measure, ...]:
    return (Measure(f"index built in{ending}", "s", (index.name,), walls),
            Measure(f"index / packed rows{ending}", "", (index.name, pack.name), index_over_packed, Bound(most=1.3)))


THE_INDEX = Experiment("index", (INDEX,), data_sets=(*SETS, "dense", *TEXTS), before=(PACK,), measures=(
    Measure("index built at", "M nonzeros/s", (INDEX.name, PACK.name), build_rate, Bound(least=10)),
    *index_measures(INDEX, PACK),
    Measure("trees", "", (INDEX.name,), summaries("trees")),
    Measure("contrast", "", (INDEX.name,), summaries("contrast")),
))


# Ten classes: one index for all of them, and it is built each time.

def with_build_ratio(other, built, indexed):
    return [median_wall(other) / (median_wall(built) + median_wall(indexed))]


def ten_models() -> Experiment:
    def all_classes(name: str, options: str, after: Program = PACK_SMALL) -> Program:
        return train(f"{name}, ten classes", "{store}", f"--loss {HINGE} --cost 1 {options} {LIMIT}", after=after.name)

    fixed, default = all_classes("fixed", FIXED), all_classes("default", DEFAULT)
    ours = all_classes("indexed", INDEXED, INDEX_SMALL)
    return Experiment(
        "ten models", (fixed, default, INDEX_SMALL, ours), data_sets=("mnist-digits", "clusters-10"), before=(PACK, PACK_SMALL),
        derived={"chunk_bytes": IN_A_TENTH["chunk_bytes"], "memory": tenth(10)}, measures=(
            *(Measure(f"{one.name} / index and indexed", "times", (one.name, INDEX_SMALL.name, ours.name), with_build_ratio)
              for one in (fixed, default)),
            *(Measure(f"bytes read, {ours.name} / {one.name}", "", (ours.name, one.name), bytes_ratio) for one in (fixed, default)),
            Measure("ended, ten classes", "", (ours.name, fixed.name), ends),
        ))


# Where there is memory for everything, documents among them.

def faster_in_memory(indexed, default):
    return better(walls_ratio(indexed, default)[0])


def in_memory() -> Experiment:
    default = with_memory_for_all("default, in memory", HINGE, f"{DEFAULT} {LIMIT}")
    ours = with_memory_for_all("indexed, in memory", HINGE, f"{INDEXED} {LIMIT}", after=INDEX.name)
    return Experiment("in memory", (default, ours), data_sets=(*SETS, *TEXTS), before=(PACK, INDEX), measures=(
        Measure(FASTER_IN_MEMORY, "", (ours.name, default.name), faster_in_memory),
        Measure("ended, in memory", "", (ours.name, default.name), ends),
    ))


SUITE = Suite(
    (*(same_answer(loss, solver, data_sets, seeds)
       for loss, solver in ((HINGE, "dual"), (SQUARED_HINGE, "dual"), (SQUARED_HINGE, "newton"))
       for data_sets, seeds in (((SHIFTED,), (1, 2, 3, 4, 5)), (SETS[1:], (1,)))),
     *map(support_vectors, LOSSES), *map(until_near, LOSSES), THE_INDEX, ten_models(), in_memory()),
    closing=(*(words.format(loss) for words in (READS_LESS, FASTER) for loss in LOSSES), FASTER_IN_MEMORY))
