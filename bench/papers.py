"""The experiments of the three papers, by their figures and tables. A curve is made of runs that end after 1, 2, 4 ... passes, so that each
point is a certified objective and a tested model. Every claim is judged from the runs: it agrees, differs, or cannot be tested here."""
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from experiments import Claim, Derived, Experiment, Figure, Measure, Program, Suite, summaries
from indexed import INDEX, memory_for_rows
from measures import MEBIBYTE, each, walls
from primal import HINGE, LOGISTIC, SQUARED_HINGE, TRANSPOSE
from runner import Run
from train import EVERYTHING, PACK, SGD, SLOW_DISK, SLOW_DISK_SLACK, VW, more, rows_tenth, test, train

BLOCKS, COLUMNS, INDEXED = "block minimization", "primal coordinate descent", "indexed"
PASSES = (1, 2, 4, 8, 16)
SATISFIED = 0.5  # points of accuracy


def names(programs: Sequence[Program]) -> tuple[str, ...]:
    return tuple(program.name for program in programs)


# A point of a curve.

def seconds(run: Run) -> float:
    """Of training: certificates and tests are ours to make."""
    spent = run.summary()["seconds"]
    return spent["solve"] + spent["wait"]


def megabytes(run: Run) -> float:
    return run.summary()["bytes_read"] / 1e6


def objective_of(run: Run) -> float:
    found = run.summary()
    return found["truncated"]["objective"] if found.get("truncated") else found["primal"]


def test_error(run: Run) -> float:
    return 100 * (1 - run.summary()["test"]["accuracy"])


def above_best(run: Run, everything: Sequence[Run]) -> float:
    best = min(map(objective_of, everything))
    return objective_of(run) / best - 1


def error_above_best(run: Run, everything: Sequence[Run]) -> float:
    return max(0.0, test_error(run) - min(map(test_error, everything)))


def curves(name: str, sets: tuple[str, ...], methods: Mapping[str, str], options: str, figures: Mapping[str, tuple], claims: Sequence[Claim] = (),
           passes: Sequence[int] = PASSES, before: tuple[Program, ...] = (), memory: object = "{memory}",
           derived: Mapping[str, Derived] | None = None, tolerance: float = 1e-9, **limits) -> Experiment:
    """`figures`: by the name in the paper, what goes across and what upward."""
    after = before[-1].name if before else PACK.name
    programs = {method: tuple(
        train(f"{name}: {method}, {count}", "{store}", f"{options} {words} --max-passes {count} --tolerance {tolerance} --max-seconds 60 --test {{test}}",
              memory, most_repeats=1, after=after, **limits) for count in passes) for method, words in methods.items()}
    lines = {method: names(several) for method, several in programs.items()}
    return Experiment(
        name, sum(programs.values(), ()), data_sets=sets, before=(PACK, *before), measures=(),
        derived=derived or {"memory": Derived(PACK.name, rows_tenth), "group": Derived(PACK.name, more(rows_tenth, SLOW_DISK_SLACK))},
        figures=tuple(Figure(title, *axes, lines) for title, axes in figures.items()),
        claims=tuple(replace(claim, programs=tuple(lines[method] for method in claim.programs)) for claim in claims))


SECONDS, READ = ("seconds of training", lambda run, _: seconds(run)), ("megabytes read", lambda run, _: megabytes(run))
OBJECTIVE, ERROR = ("objective above the best", above_best), ("points of test error above the best", error_above_best)


# Judges: they are given, for each method that a claim names, its runs in the order of their passes.

def at(level: float, value: Callable[[Run, Sequence[Run]], float], runs: Sequence[Run], everything: Sequence[Run], x=seconds) -> float:
    for run in runs:
        if value(run, everything) <= level:
            return x(run)
    return float("inf")


def in_words(number: float, unit: str) -> str:
    return "never" if number == float("inf") else f"{number:.3g} {unit}"


def sooner(level: float, value=above_best, x=seconds, unit: str = "s", slack: float = 1.0) -> Callable:
    """The first method is there before each of the others."""
    def judge(*methods: Sequence[Run]) -> tuple[bool, str]:
        everything = [run for runs in methods for run in runs]
        times = [at(level, value, runs, everything, x) for runs in methods]
        if all(time == float("inf") for time in times):
            times = [value(runs[-1], everything) for runs in methods]  # none: who is nearer
            return times[0] <= slack * min(times[1:]), "at the end " + " against ".join(f"{time:.3g}" for time in times)
        return times[0] <= slack * min(times[1:]), " against ".join(in_words(time, unit) for time in times)

    return judge


def at_the_end(value: Callable[[Run], float], unit: str, slack: float = 0.0) -> Callable:
    """The first method's last value is no more than the others'."""
    def judge(*methods: Sequence[Run]) -> tuple[bool, str]:
        values = [value(runs[-1]) for runs in methods]
        return values[0] <= min(values[1:]) + slack, " against ".join(f"{one:.4g}{unit}" for one in values)

    return judge


def satisfied_after(count: int) -> Callable:
    def judge(*methods: Sequence[Run]) -> tuple[bool, str]:
        everything = [run for runs in methods for run in runs]
        needed = [at(SATISFIED, error_above_best, runs, everything, x=lambda run: run.summary()["passes"]) for runs in methods]
        return max(needed) <= count, "passes: " + ", ".join(in_words(one, "").strip() for one in needed)

    return judge


# Block minimization.

FIXED = "--solver dual --schedule fixed --blocks 20 --cache-fraction 0"
BLOCK_L = {f"BLOCK-L-{rounds}": f"{FIXED} --inner {rounds}" for rounds in (1, 10, 20)} | {"BLOCK-L-D": f"{FIXED} --inner converge"}
BLOCK_P = {"BLOCK-P-B": "--solver pegasos --step block", "BLOCK-P-I": "--solver pegasos --step row"}
BLOCK_SETS = ("imdb", "splice-unit", "kddcup99", "webspam", "kddcup10", "epsilon")  # the last three where they are at hand
FIGURES_2_3 = curves(
    "figures 2 and 3", BLOCK_SETS, BLOCK_L | BLOCK_P | {"recomposed": "--solver dual"}, f"--loss {HINGE} --cost 1",
    {"Figure 2": (SECONDS, OBJECTIVE), "Figure 3": (SECONDS, ERROR), "Figure 2 by bytes": (READ, OBJECTIVE)}, claims=(
        Claim(BLOCKS, "Figure 2", "BLOCK-L-* are faster than BLOCK-P-* in most cases", ("BLOCK-L-10", "BLOCK-P-B", "BLOCK-P-I"), sooner(0.1),
              if_not="within 10% Pegasos may be first; nearer to the optimum it never is"),
        Claim(BLOCKS, "Figure 2", "BLOCK-P-B converges very slowly", ("BLOCK-P-I", "BLOCK-P-B"), at_the_end(objective_of, "")),
        Claim(BLOCKS, "Figure 2", "reading is expensive: more rounds over a block need fewer bytes", ("BLOCK-L-10", "BLOCK-L-1"),
              sooner(0.01, x=megabytes, unit="MB")),
        Claim(BLOCKS, "Figure 3", "all but BLOCK-P-B need about four passes to half a point of the best accuracy", (*BLOCK_L, "BLOCK-P-I"),
              satisfied_after(4)),
        Claim("beyond the papers", "recomposed", "blocks drawn anew, with rows kept, are faster than every fixed setting",
              ("recomposed", *BLOCK_L), sooner(0.01),
              if_not="with few features one round over a block hardly moves the weights that all rows share"),
    ))
FIGURE_4 = curves(
    "figure 4", ("imdb", "splice-unit"), {order: f"{FIXED} --inner converge --block-order {order}" for order in ("permuted", "sequential")},
    f"--loss {HINGE}", {"Figure 4": (SECONDS, OBJECTIVE)}, claims=(
        Claim(BLOCKS, "Figure 4", "a random order of the blocks helps slightly", ("permuted", "sequential"), sooner(0.01, slack=1.05)),))
FIGURE_5 = curves(
    "figure 5", ("imdb", "splice-unit"), {f"{count} blocks": f"--solver dual --schedule fixed --cache-fraction 0 --inner converge --blocks {count}"
                                          for count in (20, 60, 200)}, f"--loss {HINGE}", {"Figure 5": (SECONDS, OBJECTIVE)}, claims=(
        Claim(BLOCKS, "Figure 5", "fewer and larger blocks are faster", ("20 blocks", "60 blocks", "200 blocks"), sooner(0.01),
              if_not="blocks come from the page cache and a new one costs nothing, where the paper's disk had to seek"),))


def compression() -> Experiment:
    """Section 8.2.3: ten passes of BLOCK-L-D, from the page cache and from a disk of 100 MB/s."""
    codecs = ("none", "zstd")
    packs = tuple(Program(f"pack, {codec}", "linblock", f"pack {{text}} -o {{store}}-{codec} --memory 256M --codec {codec} --threads 2 -q --json",
                          makes=f"{{store}}-{codec}") for codec in codecs)

    def ten(codec: str, disk: str, **limits) -> Program:
        return train(f"ten passes, {codec}{disk}", f"{{store}}-{codec}", f"--loss {HINGE} {FIXED} --inner converge --max-passes 10 --tolerance 1e-9",
                     most_repeats=1, after=f"pack, {codec}", **limits)

    fast = [ten(codec, "") for codec in codecs]
    slow = [ten(codec, ", 100 MB/s", cold=f"{{store}}-{codec}", memory_limit="{group}", disk_limit=SLOW_DISK) for codec in codecs]

    def saves(plain: Sequence[Run], compressed: Sequence[Run]) -> tuple[bool, str]:
        return compressed[0].wall_seconds < plain[0].wall_seconds, f"{compressed[0].wall_seconds:.3g} s against {plain[0].wall_seconds:.3g} s"

    def costs(plain: Sequence[Run], compressed: Sequence[Run]) -> tuple[bool, str]:
        holds, words = saves(plain, compressed)
        return not holds, words

    return Experiment(
        "section 8.2.3", (*fast, *slow), data_sets=("imdb", "splice-unit"), before=(PACK, *packs),
        measures=tuple(Measure(program.name, "s", (program,), walls) for program in (*fast, *slow)),
        derived={"memory": Derived(PACK.name, rows_tenth), "group": Derived(PACK.name, more(rows_tenth, SLOW_DISK_SLACK))}, claims=(
            Claim(BLOCKS, "section 8.2.3", "compression saves time on a disk of 100 MB/s", tuple((one.name,) for one in slow), saves),
            Claim(BLOCKS, "section 8.2.3", "on a fast disk it may even be slower", tuple((one.name,) for one in fast), costs)))


def share(part: int) -> Callable[[Run, bool], int]:
    """Memory in which so small a part of the rows fits."""
    def memory(run: Run, quick: bool) -> int:
        packed = run.summary()
        return packed["nonzeros"] * 8 // part + 12 * packed["features"] + 9 * packed["rows"] + 12 * MEBIBYTE

    return memory


PARTS = (40, 20, 10, 5, 2)
SUBSAMPLES = tuple(train(f"a {part}th fits", "{store}", f"--loss {HINGE} --solver subsample --test {{test}}", f"{{part_{part}}}", most_repeats=1,
                         after=PACK.name) for part in PARTS)
ALL_ROWS = train("all rows", "{store}", f"--loss {HINGE} --test {{test}}", most_repeats=1, after=PACK.name)
FIGURE_6 = Experiment(
    "figure 6", (*SUBSAMPLES, ALL_ROWS), data_sets=BLOCK_SETS, before=(PACK,),
    derived={"memory": Derived(PACK.name, rows_tenth)} | {f"part_{part}": Derived(PACK.name, share(part)) for part in PARTS},
    measures=tuple(Measure(f"test error, {program.name}", "%", (program,), each(test_error)) for program in (*SUBSAMPLES, ALL_ROWS)), claims=(
        Claim(BLOCKS, "Figure 6", "a part of the rows that fits is not as good as all of them", ((ALL_ROWS.name,), *((one.name,) for one in SUBSAMPLES)),
              at_the_end(test_error, "%")),))


def table_3() -> Experiment:
    """With the cost that five-fold cross-validation chooses."""
    tune = Program("tune", "linblock", f"tune {{store}} --folds 5 --loss {HINGE} --costs 0.25:16:4 --memory {EVERYTHING} -q --json", after=PACK.name)
    ways = {"BLOCK-L-10": BLOCK_L["BLOCK-L-10"], "AvgBlock": "--solver average", "recomposed": "--solver dual"}
    programs = {(way, count): train(f"{way}, {count} passes", "{text}", f"--loss {HINGE} --cost {{cost}} {words} --max-passes {count} --tolerance 1e-9 "
                                    "--codec none --test {test}", most_repeats=1, after=tune.name, store="{store}-text")
                for way, words in ways.items() for count in ((1,) if way == "AvgBlock" else (1, 10))}
    sgd = test(SGD.makes, SGD)
    others = (replace(SGD, most_repeats=1), replace(VW, most_repeats=1))

    def better(ours: Sequence[Run], theirs: Sequence[Run]) -> tuple[bool, str]:
        pair = 100 * ours[0].summary()["test"]["accuracy"], 100 * theirs[0].summary()["accuracy"]
        return pair[0] >= pair[1] - 0.05, f"{pair[0]:.2f}% against {pair[1]:.2f}%"

    def almost_final(first: Sequence[Run], tenth: Sequence[Run]) -> tuple[bool, str]:
        return test_error(first[0]) - test_error(tenth[0]) < 2, f"error {test_error(first[0]):.2f}% and {test_error(tenth[0]):.2f}%"

    ten, one = programs["BLOCK-L-10", 10].name, programs["BLOCK-L-10", 1].name
    average = programs["AvgBlock", 1].name
    return Experiment(
        "table III", (*others, *programs.values()), data_sets=("imdb", "splice-unit"), before=(PACK, tune), after=(sgd,),
        derived={"memory": Derived(PACK.name, rows_tenth), "cost": Derived(tune.name, lambda run, quick: run.summary()["best_cost"])}, measures=(
            Measure("best cost", "", (tune,), summaries("best_cost")),
            *(Measure(f"{program.name}, from text", "s", (program,), walls) for program in (*others, *programs.values())),
            *(Measure(f"test error, {program.name}", "%", (program,), each(test_error)) for program in programs.values()),
            Measure("test error, SGDClassifier", "%", (sgd,), each(lambda run: 100 * (1 - run.summary()["accuracy"]))),
        ), claims=(
            Claim(BLOCKS, "Table III", "one pass of BLOCK-L-10 gives a reasonably good model", ((one,), (ten,)), almost_final),
            Claim(BLOCKS, "Table III, Figure 7", "BLOCK-L-10 ends with better accuracy than an online method (SGD here)", ((ten,), (sgd.name,)), better),
            Claim(BLOCKS, "Table III", "BLOCK-L-10 is slightly better than AvgBlock", ((ten,), (average,)), at_the_end(test_error, "%", slack=0.05)),
        ))


SIZES = (1, 2, 4, 8)


def figure_1() -> Experiment:
    """LIBLINEAR where the data grow beyond a memory limit, and ours with a quarter of that; this is also how we grow."""
    limit = 192 * MEBIBYTE
    makes = {size: Program(f"generate, {size}", "linblock", f"generate documents -o {{generated}}-{size} --rows {{rows_{size}}} --features 200000 -q",
                           makes=f"{{generated}}-{size}") for size in SIZES}
    theirs = {size: Program(f"LIBLINEAR, {size}", "liblinear-train", f"-s 3 {{generated}}-{size} {{model}}", makes="{model}", may_fail=True,
                            memory_limit=str(limit), most_repeats=1, after=makes[size].name) for size in SIZES}
    ours = {size: Program(f"train, {size}", "linblock", f"train {{generated}}-{size} -o {{model}} --loss hinge --memory {limit // 4} --store {{store}} "
                          "--codec none --fresh -q --json", makes="{model} {store} {model}.checkpoint", memory_limit=str(limit), most_repeats=1,
                          after=makes[size].name) for size in SIZES}

    def grows(*programs: Sequence[Run]) -> tuple[bool, str]:
        endings = [runs[0].ending() for runs in programs]
        return endings[0] != endings[-1], "; ".join(endings)

    return Experiment(
        "figure 1", (*theirs.values(), *ours.values()), before=tuple(makes.values()),
        derived={}, rows=(40_000, 1_000), measures=(
            *(Measure(f"{program.name} times the rows", "", (program,), each(Run.ending)) for program in theirs.values()),
            *(Measure(f"{program.name} times the rows", "s", (program,), walls) for program in ours.values()),
        ), claims=(Claim(BLOCKS, "Figure 1", "beyond the memory LIBLINEAR's time grows rapidly (here there is no swap: it is killed)",
                         tuple((program.name,) for program in theirs.values()), grows),))


# Primal coordinate descent: everything in memory, one thread.

COLUMN_SETS = ("imdb", "news20", "real-sim", "rcv1")
DESCENTS = {"CDPER": "--solver primal --order permuted", "CD": "--solver primal --order cyclic", "CDPERONE": "--solver primal --order once",
            "online": "--solver primal --order online", "CMLS": "--solver cmls --order cyclic", "CMLSPER": "--solver cmls --order permuted"}
FIGURES_1_TO_4 = curves(
    "figures 1, 3 and 4", COLUMN_SETS, DESCENTS | {"TRON": "--solver newton", "Pegasos": "--solver pegasos"}, f"--loss {SQUARED_HINGE} --cost 1",
    {"Figures 1 and 4": (SECONDS, OBJECTIVE), "Figure 3": (SECONDS, ERROR)}, passes=(*PASSES, 32), before=(TRANSPOSE,), memory=EVERYTHING, threads=1,
    claims=(
        Claim(COLUMNS, "Figure 1, Table 2", "CDPER is faster than TRON to 1%", ("CDPER", "TRON"), sooner(0.01)),
        Claim(COLUMNS, "Figure 1", "CDPER converges faster than CMLS", ("CDPER", "CMLS"), sooner(0.01)),
        Claim(COLUMNS, "section 5.2", "Pegasos is slow in the end", ("CDPER", "Pegasos"), sooner(1e-3)),
        Claim(COLUMNS, "section 5.2", "TRON is faster in the end", ("TRON", "CDPER"), sooner(1e-4),
              if_not="columns in memory and rare line searches keep a pass of CDPER cheap down to 0.01%"),
        Claim(COLUMNS, "section 5.2", "one feature at random each time is like CDPER", ("online", "CDPER"), sooner(0.01, slack=1.5),
              if_not="a pass of draws leaves out a third of the features, and columns are not read in order"),
        Claim(COLUMNS, "Figure 4", "CDPER converges faster than CDPERONE and CD", ("CDPER", "CDPERONE", "CD"),
              sooner(0.01, x=lambda run: run.summary()["passes"], unit="passes")),
        Claim(COLUMNS, "Figure 4", "permuting does not improve CMLS much", ("CMLS", "CMLSPER"), sooner(0.01, slack=1.5)),
    ))
LOGISTIC_6_2 = curves(
    "section 6.2", COLUMN_SETS, {"CDPER": DESCENTS["CDPER"], "TRON-LR": "--solver newton"}, f"--loss {LOGISTIC} --cost 1",
    {"section 6.2": (SECONDS, OBJECTIVE)}, before=(TRANSPOSE,), memory=EVERYTHING, threads=1, claims=(
        Claim(COLUMNS, "section 6.2", "with logistic loss TRON is faster than coordinate descent", ("TRON-LR", "CDPER"), sooner(0.01),
              if_not="the exponentials that made coordinate descent slow are kept, or made by faster code, here"),))


# Indexed block coordinate descent, s = 1; its steps are smaller than a pass.

def tenth(run: Run, quick: bool) -> int:
    packed = run.summary()
    return max(memory_for_rows(packed) + 10 * packed["rows"] + 80 * packed["features"] + 12 * MEBIBYTE, 64 * MEBIBYTE if quick else 0)


def against_batch(name: str, figure: str, loss: str, batch: str, ours: str, memory: object) -> Experiment:
    """The batch solver's passes are many times longer than the steps of the index."""
    methods = {"convex": f"--solver {batch}", "batch": f"--solver {batch} --truncate 1", "indexed": f"--solver indexed {ours}",
               "online": "--solver pegasos"}
    return curves(
        name, ("kddcup99", "mnist", "ijcnn1", "covtype", "mnist8m"), methods, f"--loss {loss} --cost 1", {figure: (SECONDS, ("test error", lambda run, _: test_error(run)))},
        passes=(3, 10, 30, 100, 300), before=(INDEX,), memory=memory, derived={"memory": Derived(PACK.name, tenth)}, tolerance=1e-3, claims=(
            Claim(INDEXED, figure, "the index ends as accurate as the batch solver", ("indexed", "batch"), at_the_end(test_error, "%", slack=0.2)),
            Claim(INDEXED, figure, "the index is faster than the batch solver", ("indexed", "batch"), sooner(0.01)),
            Claim(INDEXED, figure, "online training ends less accurate", ("indexed", "online"), at_the_end(test_error, "%"))))


NOT_HERE = (
    Claim(BLOCKS, "Table I, II", "the papers' own sets, with their sizes and splitting times", why_not="yahoo-korea is not public; with the public "
          "files of docs/data.md in --data the same experiments run on webspam, kddcup10 and epsilon"),
    Claim(BLOCKS, "Figure 4", "without random assignment, rows sorted by label converge very slowly", why_not="rows in the order of the text are "
          "one bucket, of which no fixed blocks can be made; packing assigns at random unless told not to"),
    Claim(BLOCKS, "Figure 7", "Vowpal Wabbit's curve", why_not="judged with SGDClassifier where vw is absent"),
    Claim(COLUMNS, "Table 1", "six document sets", why_not="astro-physic, yahoo-japan and yahoo-korea are not public; imdb and 20news stand in"),
    Claim(COLUMNS, "Tables 2 and 3, Figure 2", "seconds to 1%, best costs, gradients", why_not="measured by `./run bench primal`"),
    Claim(INDEXED, "Tables 1 and 2, Figure 7", "the index's size and time; support vectors by s", why_not="measured by `./run bench indexed`"),
    Claim(INDEXED, "Figure 5 on PAMAP and mnist8m", "in 400 MB and 2 GB", why_not="mnist, kddcup99 and ijcnn1 in a tenth of their memory stand in"),
)

SUITE = Suite(
    (figure_1(), FIGURES_2_3, FIGURE_4, FIGURE_5, compression(), FIGURE_6, table_3(), FIGURES_1_TO_4, LOGISTIC_6_2,
     against_batch("figure 2", "Figure 2", HINGE, "dual", "", EVERYTHING),
     against_batch("figure 3", "Figure 3", SQUARED_HINGE, "dual", "", EVERYTHING),
     against_batch("figure 4, newton", "Figure 4", SQUARED_HINGE, "newton", "--block-solver newton", EVERYTHING),
     against_batch("figure 5, a tenth", "Figure 5", HINGE, "dual", "", "{memory}")),
    claims=NOT_HERE)
