"""LIBLINEAR at its best for a data set and a loss: of its solvers and tolerances the fastest that ends within 1% of the optimum, of 2.50 and
Debian's 2.3.0 the faster. Which that is is looked for once. Snap ML likewise."""
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from commands import EVERYTHING, LOGISTIC, PACK, liblinear, train
from program import Bound, Measure, Program, from_run
from runner import Run
from values import Value, least, of, percent, wall

NAMES = {"liblinear": "LIBLINEAR 2.3.0", "liblinear-official": "LIBLINEAR 2.50", "snapml": "Snap ML"}
ONE_ITERATION = "3:1e6"  # a setting so loose that LIBLINEAR stops after one
LOAD = Program("LIBLINEAR's reader", "liblinear-train", "-s 3 -e 1e6 {text} {model}-load", makes="{model}-load", says="#iter = 1\n")


@dataclass(frozen=True)
class Anchor:
    program: Program  # Debian's, from text to a model
    text: Value  # seconds from text to a model
    training: Value | None = None  # with rows in memory
    before: tuple[Program, ...] = ()  # of it, PACK is the first
    others: tuple[Program, ...] = ()  # that run in turn with it
    derived: Mapping[str, Callable] = field(default_factory=dict)
    measures: tuple[Measure, ...] = ()
    snap_ml: Value | None = None


def plain(options: str) -> Anchor:
    """With its default tolerance: where one solver does the work, or the rows are too many to look for the best."""
    program = liblinear(options)
    return Anchor(program, wall(program))


def optima(run: Run, quick: bool) -> str:
    """Of each classifier, in the order of the labels."""
    found = run.summary()
    return ",".join(f"{task['primal']:.9g}" for task in sorted(found.get("tasks", [found]), key=lambda task: task.get("label", 0)))


def settings(loss: str, peers: tuple[str, ...]) -> tuple[tuple[Program, ...], dict[str, Callable]]:
    """Programs that find the best setting of each peer, from a packed store, and where it is put: {setting_PEER}, for Debian's program {solver} and {tolerance}."""
    optimum = train(f"the optimum, {loss}", "{store}", f"--loss {loss} --cost 1 --tolerance 1e-4 --max-seconds 300", EVERYTHING, model="{model}-optimum", kept=True)
    searches = {peer: Program(f"best setting, {NAMES[peer]}", peer, f"{{text}} {loss} {{optimum}}", kept=True) for peer in peers}
    found = {f"setting_{peer}": from_run(search, lambda run, quick: run.summary()["setting"]) for peer, search in searches.items()}
    words = {word: from_run(searches["liblinear"], lambda run, quick, at=at: run.summary()["setting"].split(":")[at]) for at, word in enumerate(("solver", "tolerance"))}
    return (PACK, optimum, *searches.values()), {"optimum": from_run(optimum, optima)} | found | words


def best(loss: str) -> Anchor:
    peers = tuple(NAMES) if loss == LOGISTIC else tuple(NAMES)[:2]  # what Snap ML does not share is left out: its SVM
    before, derived = settings(loss, peers)
    program = liblinear("-s {solver} -e {tolerance}", name="LIBLINEAR 2.3.0")
    alone = {peer: Program(f"{NAMES[peer]}, rows in memory", peer, f"{{text}} {loss} {{optimum}} {{setting_{peer}}} {ONE_ITERATION if peer == 'liblinear' else ''}")
             for peer in peers}
    seconds = {peer: of(one, "seconds") for peer, one in alone.items()}
    loading = wall(LOAD) - of(alone["liblinear"], lambda run: run.summary()["tried"][1]["seconds"])
    return Anchor(program, least(wall(program), loading + seconds["liblinear-official"]), least(seconds["liblinear"], seconds["liblinear-official"]), before,
                  (LOAD, *alone.values()), derived, (
        *(measure for peer, one in alone.items() for measure in (
            Measure(f"{NAMES[peer]}, {'epochs' if peer == 'snapml' else 'solver:tolerance'}", "", of(one, "setting")),
            Measure(f"{NAMES[peer]}, above the optimum", "%", percent(one, "above"), Bound(most=1)), Measure(f"{NAMES[peer]}, rows in memory", "s", seconds[peer]))),
        Measure("LIBLINEAR's reader", "s", loading), Measure("LIBLINEAR 2.3.0, from text", "s", wall(program)),
        Measure("the optimum is known to", "%", percent(before[1], "certified_gap"))), seconds.get("snapml"))
