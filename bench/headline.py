"""What a stranger asks first: text to a certified 1% against every peer; more rows, less memory, one thread or two."""
from experiments import Bound, Derived, Experiment, Measure, Program, Suite, summaries
from measures import accuracy, gap_percent, peak_over_budget, readings, walls, walls_ratio
from runner import Run
from train import MEBIBYTE, PACK, SGD, SGD_MODEL, VW, liblinear, tenth_of_peak, test, train

SETS = ("documents", "imdb", "splice-unit", "kddcup99", "mnist")
PARTS = (2, 5, 10, 20, 40)  # of the packed rows


def against_peers() -> Experiment:
    theirs, ours = liblinear(3), train("linblock", "{text}", "--loss hinge --cost 1 --tolerance 0.01")
    peers = (theirs, SGD, VW)
    tested = {theirs: test("{model}-liblinear", theirs), SGD: test(SGD_MODEL, SGD), ours: test("{model}", ours)}
    return Experiment("headline", (*peers, ours), data_sets=SETS, after=tuple(tested.values()), derived={"memory": Derived(theirs.name, tenth_of_peak)},
                      measures=(
        *(Measure(f"{program.name}, from text", "s", (program,), walls) for program in (*peers, ours)),
        *(Measure(f"test accuracy, {program.name}", "%", (judge,), accuracy) for program, judge in tested.items()),
        *(Measure(f"{program.name} / linblock", "times", (program, ours), walls_ratio) for program in peers),
        Measure("peak / --memory, a tenth of LIBLINEAR's", "", (ours,), peak_over_budget, Bound(most=1)),
        Measure("certified gap", "%", (ours,), gap_percent, Bound(most=1)),
    ))


def part_of_rows(part: int):
    """So much of the packed rows; what each run needs alike comes on top."""
    def memory(run: Run, quick: bool) -> int:
        packed = run.summary()
        return packed["bytes"] // part + 12 * packed["features"] + 9 * packed["rows"] + 12 * MEBIBYTE

    return memory


def less_memory() -> Experiment:
    budgets = {f"1/{part}": f"{{part_{part}}}" for part in PARTS} | {"everything": 4 << 30}
    programs = [train(f"memory for {name} of the rows", "{store}", "--loss hinge --tolerance 0.01", memory, after=PACK.name)
                for name, memory in budgets.items()]
    return Experiment("memory", tuple(programs), data_sets=("documents", "kddcup99"), before=(PACK,),
                      derived={f"part_{part}": Derived(PACK.name, part_of_rows(part)) for part in PARTS}, measures=(
        *(Measure(f"seconds, {program.name}", "s", (program,), walls) for program in programs),
        *(Measure(f"readings, {program.name}", "", (program, PACK), readings) for program in programs),
    ))


def threads() -> Experiment:
    one, two = (train(f"threads {count}", "{text}", "--loss hinge --tolerance 0.01", 256 * MEBIBYTE, threads=count) for count in (1, 2))
    return Experiment("threads", (one, two), data_sets=("documents", "imdb"), measures=(
        Measure("one thread / two, from text", "times", (one, two), walls_ratio),))


def growth() -> Experiment:
    makes = {size: Program(f"generate, {size}", "linblock", f"generate documents -o {{generated}}-{size} --rows {{rows_{size}}} --features 200000 -q",
                           makes=f"{{generated}}-{size}") for size in (1, 2, 4, 8)}
    ours = {size: train(f"{size} times the rows", f"{{generated}}-{size}", "--loss hinge --tolerance 0.01", 64 * MEBIBYTE, after=made.name)
            for size, made in makes.items()}
    return Experiment("growth", tuple(ours.values()), before=tuple(makes.values()), rows=(100_000, 1_000), measures=tuple(
        measure for program in ours.values() for measure in (
            Measure(f"seconds, {program.name}", "s", (program,), walls),
            Measure(f"passes, {program.name}", "", (program,), summaries("passes")),
            Measure(f"peak / --memory, {program.name}", "", (program,), peak_over_budget, Bound(most=1)))))


SUITE = Suite((against_peers(), less_memory(), threads(), growth()))
