"""Truncated losses and an index over the rows: the same answer as without one, what is read on the way to it, what the index costs, and
where it is worth building. s = 1, and n = 1000 as in the paper."""
from dataclasses import replace

from commands import EVERYTHING, HINGE, INDEX, INDEXED, LIMIT, MEBIBYTE, PACK, SHORTLY, SQUARED_HINGE, evaluate, train
from papers import curve_lines, programs_of
from program import Bound, Claim, Experiment, Figure, Measure, Program, from_run
from runner import Run
from values import Line, Value, apart, last, of, reach, together, wall

SETS = ("kddcup99", "mnist", "ijcnn1", "connect-4-two", "clusters")
TEXTS = ("imdb", "documents")  # where an index is expected to be of no use
CACHE = 0.4  # of the memory for rows, with fixed blocks: more leaves too little for a block
CUT, STEPS = "--truncate 1", (10, 30, 100, 1000)  # the steps of an index are smaller than a pass


# Figures 2 to 4, and 6: memory for everything.

def against_batch(name: str, where: str, loss: str, batch: str, ours: str = "", cost: float = 1, sets: tuple[str, ...] = (*SETS[:4], "covtype", "mnist8m")) -> Experiment:
    methods = {"convex": f"--solver {batch}", "batch": f"--solver {batch} {CUT}", "indexed": f"--solver indexed {CUT} {ours}", "online": "--solver pegasos"}
    lines = curve_lines(methods, f"--loss {loss} --cost {cost} --tolerance 1e-3", {"indexed": STEPS, "convex": (1, 10, 100), "online": (1, 10)},
                        memory=EVERYTHING, usual=(3, 10, 30, 100, 1000))
    indexed, other = lines["indexed"], lines["batch"]
    both = (indexed, other)
    errors = tuple(last(line, "error") for line in (*both, lines["online"]))
    return Experiment(
        "papers indexed", name, f"{loss} loss, C = {cost:g}: LIBLINEAR's convex problem, the batch solver of the truncated one, the indexed method and Pegasos, with memory for "
        "everything.", programs_of(lines), data_sets=sets, before=(PACK, INDEX), figures=(Figure(where, tuple(lines.values()), upward="error"),), measures=(
            Measure("truncated objective, indexed / batch", "", last(indexed, "objective") / last(other, "objective"), Bound(most=1.01)),
            *(Measure(f"test error, {line.name}", "%", last(line, "error")) for line in lines.values()),
            Measure("test errors apart", "points", apart(*errors[:2]), Bound(most=0.2)),
            Measure("support vectors, indexed / batch", "", of(indexed.programs[-1], "support_vectors") / of(other.programs[-1], "support_vectors")),
            *(Measure(f"to 1% of the best end, {line.name}", "s", reach(line, both)) for line in both),
            Measure("ended, batch", "", of(other.programs[-1], "termination"))),
        claims=(Claim(INDEXED, where, "the index ends as accurate as the batch solver", errors[:2], "%", margin=0.2, even=True),
                Claim(INDEXED, where, "the index is faster than the batch solver", tuple(reach(line, both) for line in both),
                      if_not="a pass over rows in memory costs less than looking for the rows that matter, where many do"),
                Claim(INDEXED, where, "online training ends less accurate", errors[::2], "%",
                      if_not="the test rows are not like the training rows (kddcup99), or a rough model is as good on them")))


# Figure 5: memory a tenth of the packed rows, or what fixed blocks need where that is more; on top what each method needs alike of rows and features.

def chunk_bytes(run: Run, quick: bool) -> int:
    """So small that a few of them are little of a tenth."""
    return min(max(run.summary()["bytes"] // 640 // 4096 * 4096, 8192), 256 << 10)


def tenth() -> dict:
    def memory(run: Run, quick: bool) -> int:
        packed = run.summary()
        rows = max(packed["bytes"] // 10, int((13 * packed["nonzeros"] + 20 * packed["rows"]) / 64 / (1 - CACHE)))
        return max(rows + (10 * packed["rows"] + 80 * packed["features"]) + 12 * MEBIBYTE, 64 * MEBIBYTE if quick else 0)

    return {"chunk_bytes": from_run(PACK, chunk_bytes), "memory": from_run(PACK_SMALL, memory)}


PACK_SMALL = replace(PACK, name="pack in small chunks", arguments=PACK.arguments + " --chunk-bytes {chunk_bytes}")
IN_A_TENTH = {"CDBLOCK with cache": f"--solver dual {CUT} --schedule fixed --inner 10 --cache-fraction {CACHE}", "recomposed": f"--solver dual {CUT}",
              "indexed": f"--solver indexed {CUT}"}


def figure_5(loss: str, sets: tuple[str, ...]) -> Experiment:
    name = f"indexed: figure 5, {loss}"
    lines = curve_lines(IN_A_TENTH | {"online": "--solver pegasos"}, f"--loss {loss} --cost 1 --tolerance 1e-3", {"indexed": STEPS, "online": (1, 10)},
                        usual=(1, 2, 4, 8, 16, 32))
    fixed, recomposed, ours, online = lines.values()
    among = (fixed, ours)

    def megabytes(line: Line) -> Value:
        return reach(line, among, across="megabytes")

    return Experiment(
        "papers indexed", name, f"{loss} loss in a tenth of the memory: readings until the truncated objective is within 1% of the best end; an index is built beforehand.",
        programs_of(lines), data_sets=sets, before=(PACK, PACK_SMALL, INDEX), derived=tenth(), figures=(
            Figure("Figure 5", tuple(lines.values()), upward="error"), Figure("bytes", (fixed, recomposed, ours), across="megabytes")), measures=(
            *(Measure(f"readings to 1%, {line.name}", "", megabytes(line) / of(PACK_SMALL, "bytes") * 1e6) for line in (fixed, recomposed, ours)),
            *(Measure(f"to 1%, {line.name}", "s", reach(line, among)) for line in (fixed, recomposed, ours)),
            Measure("bytes to 1%, indexed / CDBLOCK", "", megabytes(ours) / megabytes(fixed), Bound(most=0.5), ("kddcup99", "clusters")),
            Measure("final objective, indexed / CDBLOCK", "", last(ours, "objective") / last(fixed, "objective"), Bound(most=1.01))),
        claims=(Claim(INDEXED, "Figure 5", "in a tenth of the memory the index ends as accurate as CDBLOCK, or more so", (last(ours, "error"), last(fixed, "error")), "%", margin=0.1, even=True),
                Claim(INDEXED, "Figure 5", "and it is faster", (reach(ours, among), reach(fixed, among)),
                      if_not="half of the rows matter to connect-4 and many to ijcnn1: they do not fit a tenth of the memory, and go through files"),
                Claim(INDEXED, "Figure 5", "online training ends less accurate", (last(ours, "error"), last(online, "error")), "%",
                      if_not="the test rows are not like the training rows (kddcup99), or a rough model is as good on them")))


# Figure 7: support vectors by where the loss is cut, all by the batch solver, so that nothing else differs.

def figure_7(loss: str) -> Experiment:
    ways = {"none": ""} | {f"{s:g}": f"--truncate {s:g}" for s in (0, 0.25, 0.5, 1, 2, 3)}
    trained = {way: train(f"s = {way}", "{store}", f"--loss {loss} --cost 1 --solver dual {options} --tolerance 0.001 {SHORTLY}", EVERYTHING, model=f"{{model}}-{way}",
                          most_repeats=1) for way, options in ways.items()}
    tested = {way: evaluate(f"{{model}}-{way}", program) for way, program in trained.items()}
    count = {way: of(program, "support_vectors") for way, program in trained.items()}
    return Experiment("papers indexed", f"indexed: figure 7, {loss}", "Support vectors and test error by s: the loss is cut at 1 + s.", tuple(trained.values()), data_sets=SETS[:4],
                      before=(PACK,), after=tuple(tested.values()), measures=tuple(
        Measure(f"s = {way}", "support vectors (test error)", together(lambda number, right: f"{number:.0f} ({100 - 100 * right:.2f}%)", count[way], of(tested[way], "accuracy")))
        for way in ways), claims=(Claim(INDEXED, "Figure 7", "truncated losses have fewer support vectors", (count["1"], count["none"]), ""),))


# Table 2: the index itself.

def table_2() -> Experiment:
    return Experiment("papers indexed", "indexed: table 2", "What an index takes, beside the packed rows.", (INDEX,), data_sets=(*SETS, "dense", *TEXTS), before=(PACK,), measures=(
        Measure("rows", "M", of(PACK, "rows") / 1e6), Measure("packed rows", "MB", of(PACK, "bytes") / 1e6), Measure("built at", "M nonzeros/s",
                                                                of(PACK, "nonzeros") / wall(INDEX) / 1e6, Bound(least=10)), Measure("built in", "s", wall(INDEX)),
        Measure("index / packed rows", "", of(INDEX, "bytes") / of(PACK, "bytes"), Bound(most=1.3))))


def linear() -> Experiment:
    made = {size: (Program(f"generate {size}", "linblock", f"generate clusters -o {{generated}}-{size} --rows {{rows_{size}}} --features 54 -q", makes=f"{{generated}}-{size}"),
                   Program(f"pack {size}", "linblock", PACK.arguments.format(text=f"{{generated}}-{size}", store=f"{{store}}-{size}"), makes=f"{{store}}-{size}")) for size in (1, 8)}
    one, eight = (Program(f"index {size}", "linblock", f"index {{store}}-{size} -q --json", makes=f"{{store}}-{size}/index") for size in made)
    more = (wall(eight) / wall(one), of(eight, "bytes") / of(one, "bytes"))
    return Experiment("papers indexed", "indexed: table 2, growth", "The index of 50,000 rows of clusters, and of eight times as many.", (one, eight), rows=(50_000, 1_000),
                      before=sum(made.values(), ()), measures=(Measure("time", "times", more[0]), Measure("bytes", "times", more[1])), claims=(
        Claim(INDEXED, "Table 2", "building time is linear in the size of the data", more[:1], "times for 8 times the rows", most=12),
        Claim(INDEXED, "Table 2", "and so is the index's size", more[1:], "times for 8 times the rows", most=9)))


def texts() -> Experiment:
    default, ours = (train(name, "{store}", f"--loss {HINGE} --cost 1 {IN_A_TENTH[name]} {LIMIT}", EVERYTHING, most_repeats=1) for name in ("recomposed", "indexed"))
    return Experiment("indexed", "on text", "To a certified 1% with memory for all, where an index is expected to be of no use.", (default, ours), data_sets=TEXTS, before=(PACK, INDEX),
                      measures=(Measure("indexed / default", "times", wall(ours) / wall(default)),))


EXPERIMENTS = (
    against_batch("indexed: figure 2", "Figure 2", HINGE, "dual"), against_batch("indexed: figure 3", "Figure 3", SQUARED_HINGE, "dual"),
    against_batch("indexed: figure 4", "Figure 4", SQUARED_HINGE, "newton", "--block-solver newton"),
    *(against_batch(f"indexed: figure 6, C = {cost:g}", "Figure 6", HINGE, "dual", cost=cost, sets=SETS[:1]) for cost in (0.01, 0.1, 10, 100)),
    figure_5(HINGE, (*SETS, "mnist8m")), figure_5(SQUARED_HINGE, (*SETS[:2], SETS[4], "mnist8m")), figure_7(HINGE), figure_7(SQUARED_HINGE), table_2(), linear(), texts())
