"""The programs that several experiments start, and the memory that they are given."""
from collections.abc import Callable

from program import Program, from_run
from runner import Run

MEBIBYTE = 1 << 20
EVERYTHING = 4 << 30  # memory for all rows of any set
SLOW_DISK = 100_000_000  # bytes a second
SLOW_DISK_SLACK = 16 * MEBIBYTE  # so little beside the budget that the page cache cannot hold the store
GROUP_SLACK = 32 * MEBIBYTE
SQUARED_HINGE, HINGE, LOGISTIC = "squared-hinge", "hinge", "logistic"
BLOCKS, COLUMNS, INDEXED = "block minimization", "primal coordinate descent", "indexed block coordinate descent"  # the papers
LIMIT, SHORTLY = "--max-seconds {limit}", "--max-seconds {short}"  # for what may be slow where it is not at home
LIBLINEAR_MODEL, SGD_MODEL = "{model}-liblinear", "{model}-sgd"

PACK = Program("pack", "linblock", "pack {text} -o {store} --memory 256M --codec none --threads 2 -q --json", makes="{store}")
TRANSPOSE = Program("transpose", "linblock", "transpose {store} --memory 1G --threads 2 --codec none -q --json")
INDEX = Program("index", "linblock", "index {store} -q --json", makes="{store}/index")
SGD = Program("SGDClassifier", "scikit-learn", "{bench}/sgd.py {text} " + SGD_MODEL, makes=SGD_MODEL, most_repeats=1)
VW = Program("vw, one pass", "vw", "--loss_function hinge --quiet --data {vw_text} --final_regressor {model}-vw", makes="{model}-vw")


def train(name: str, what: str, options: str = "", memory: object = "{memory}", threads: int = 2, model: str = "{model}",
          store: str = "{store}", **more: object) -> Program:
    """`what` is text, packed into `store` anew each time, or {store} or one beside it."""
    options, packed = (options, "") if what.startswith("{store}") else (f"--store {store} {options}", store)
    return Program(name, "linblock", f"train {what} -o {model} --memory {memory} --threads {threads} --fresh -q --json {options}",
                   makes=f"{model} {model}.checkpoint {packed}", **more)


def liblinear(options: str, model: str = LIBLINEAR_MODEL, name: str = "", **more: object) -> Program:
    return Program(name or f"LIBLINEAR {options}", "liblinear-train", f"{options} {{text}} {model}", makes=model, **more)


def generate(options: str, to: str = "{generated}", name: str = "generate") -> Program:
    return Program(name, "linblock", f"generate documents -o {to} {options} -q", makes=to)


def evaluate(model: str, of: Program) -> Program:
    """One judge for all models."""
    return Program(f"accuracy of {of.name}", "linblock", f"evaluate {model} {{test}} --json")


# Memory, from what an earlier program says. Little data has as many features as much data has, so it needs more than its share.

def at_least(wanted: float, quick: bool) -> int:
    return max(int(wanted) // MEBIBYTE, 64 if quick else 16) * MEBIBYTE


def part_of_peak(program: Program, part: int = 10) -> Callable:
    return from_run(program, lambda run, quick: at_least(run.peak_memory_bytes / part, quick))


def part_of_bytes(program: Program, part: int, slack: int = 0) -> Callable:
    return from_run(program, lambda run, quick: at_least(run.summary()["bytes"] / part, quick) + slack)


def part_of_rows(part: int, slack: int = 0) -> Callable:
    """For rows that part of the decoded data, at 8 bytes a nonzero; beside it what every setting needs alike: a float weight and a
    double for the certificate a feature, the duals, a few chunks and the program itself."""
    def memory(run: Run, quick: bool) -> int:
        packed = run.summary()
        return packed["nonzeros"] * 8 // part + 12 * packed["features"] + 9 * packed["rows"] + 12 * MEBIBYTE + slack

    return from_run(PACK, memory)


IN_A_TENTH = {"memory": part_of_rows(10), "group": part_of_rows(10, SLOW_DISK_SLACK)}
SLOWLY = {"cold": "{store}", "memory_limit": "{group}", "disk_limit": SLOW_DISK}
