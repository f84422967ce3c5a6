"""Primal methods: coordinate descent over features, CMLS and Newton's, against each other, against the dual method and against
LIBLINEAR; and which of them is chosen."""
from collections.abc import Sequence
from dataclasses import replace
from statistics import median

from experiments import Bound, Derived, Experiment, Measure, NotReached, Program, Suite, summaries
from measures import accuracy, between, each, more, over_best, peak_over_budget, percent, ratio, readings, twentieth_of_store, walls_ratio
from reached import gradient_pass, liblinear_near, liblinear_norm, liblinear_seconds, near_pass, passes_of, seconds_until
from runner import Run
from train import EVERYTHING, GROUP_SLACK, LIBLINEAR_MODEL, PACK, liblinear, objective, test, train

SQUARED_HINGE, HINGE, LOGISTIC = "squared-hinge", "hinge", "logistic"
PAPER_SETS = ("imdb", "20news-1", "splice", "w8a", "a9a", "documents")
NEWTON_SETS = (*PAPER_SETS, "kddcup99", "mnist")
CHOICE_SETS = ("a9a", "w8a", "ijcnn1", "kddcup99", "mnist", "connect-4-first", "imdb", "20news-1", "documents", "splice")
MOST_DOUBT = 0.1  # percent of the optimum
LIMIT = "--max-seconds {limit}"  # for methods that may be slow where they are not at home
TO_NEAR = f"--tolerance 0.01 {LIMIT}"


# Programs.

TRANSPOSE = Program("transpose", "linblock", "transpose {store} --memory 1G --threads 2 --codec none -q --json", after=PACK.name,
                    changes="{store}")


def from_store(name: str, loss: str, options: str, threads: int = 1, memory: object = EVERYTHING, after: Program = PACK,
               **more_of_program) -> Program:
    return train(name, "{store}", f"--loss {loss} --cost 1 {options} --trace {{trace}}", memory, threads, after=after.name,
                 **more_of_program)


def over_columns(name: str, loss: str, solver: str, order: str, options: str, **more_of_program) -> Program:
    return from_store(name, loss, f"--solver {solver} --order {order} {options}", after=TRANSPOSE, **more_of_program)


def timed_liblinear(solver: int, options: str = "") -> Program:
    return liblinear(solver, options, preload="iteration_clock")


# The optimum.

def references(loss: str) -> tuple[Program, Program]:
    """What is certified by one or the other leaves no doubt about the optimum: where one is slow, the other is not."""
    return (from_store(f"reference by newton, {loss}", loss, f"--solver newton --tolerance 1e-8 --max-passes 100000 {LIMIT}", threads=2),
            from_store(f"reference by dual, {loss}", loss, f"--solver dual --tolerance 1e-5 --max-passes 100000 {LIMIT}", threads=2))


def percent_of_doubt(*runs_of_references):
    """How much of the best objective known might still be gained."""
    certified = [runs[0].summary() for runs in runs_of_references]
    return [100 * (min(one["primal"] for one in certified) / max(one["dual"] for one in certified) - 1)]


def optimum_of(runs_of_references: Sequence[Sequence[Run]]) -> float:
    if percent_of_doubt(*runs_of_references)[0] > MOST_DOUBT:
        raise NotReached(f"an optimum that is known to {MOST_DOUBT}%")
    return min(runs[0].summary()["primal"] for runs in runs_of_references)


# Seconds to 1% of the optimum: Table 2, and the same for logistic loss (section 6.2). One thread, everything in memory.

def seconds_to_near(runs, *known):
    """Without certificates: the objective is known after each pass."""
    return [seconds_until(run, near_pass(run, optimum_of(known)), certificates=False) for run in runs]


def seconds_to_certified_near(runs, *known):
    return [seconds_until(run, near_pass(run, optimum_of(known), certified=True), certificates=True) for run in runs]


def liblinear_seconds_to_near(runs, *known):
    return [liblinear_near(run, optimum_of(known)) for run in runs]


def passes_to_near(runs, *known):
    return [near_pass(run, optimum_of(known))["pass"] for run in runs]


def percent_above_optimum(scored, *known):
    return [100 * (scored[0].summary()["objective"] / optimum_of(known) - 1)]


def descent(of: str, loss: str, solver: str, order: str, **more_of_program) -> Program:
    return over_columns(f"{of}, {loss}", loss, solver, order, TO_NEAR, **more_of_program)


def table(name: str, loss: str, newton_of_liblinear: int, dual_of_liblinear: int, others: tuple[Program, ...] = ()) -> Experiment:
    best = references(loss)
    cd, cdper = descent("CD", loss, "primal", "cyclic"), descent("CDPER", loss, "primal", "permuted")
    newton = from_store(f"TRON, {loss}", loss, f"--solver newton {TO_NEAR}")
    dual = from_store(f"dual, {loss}", loss, f"--solver dual {TO_NEAR}")
    # Where its own tolerance would stop it before 1%, it goes on.
    their_newton, their_dual = timed_liblinear(newton_of_liblinear, "-e 0.0001"), timed_liblinear(dual_of_liblinear)
    scored = objective(LIBLINEAR_MODEL, their_dual, loss)
    descents = (*others, cd, cdper)
    return Experiment(
        name, (their_newton, their_dual, dual, newton, *descents), data_sets=PAPER_SETS, before=(PACK, TRANSPOSE, *best), after=(scored,),
        measures=(
            Measure(f"the optimum is known to, {loss}", "%", best, percent_of_doubt, Bound(most=MOST_DOUBT)),
            *(Measure(f"to 1%, {program.name}", "s", (program, *best), seconds_to_near) for program in (newton, *descents)),
            Measure(f"to 1%, {dual.name}, certified", "s", (dual, *best), seconds_to_certified_near),
            Measure(f"to 1%, {their_newton.name}", "s", (their_newton, *best), liblinear_seconds_to_near),
            Measure(f"trained, {their_dual.name}", "s", (their_dual,), each(liblinear_seconds)),
            Measure(f"above the optimum, {their_dual.name}", "%", (scored, *best), percent_above_optimum, Bound(most=1)),
            Measure(f"TRON / CDPER, {loss}", "times", (newton, cdper, *best), ratio(seconds_to_near)),
            # Figure 4, and section 5.2.
            *(Measure(f"passes to 1%, {program.name}", "", (program, *best), passes_to_near) for program in descents),
            Measure(f"full Newton steps, {loss}", "%", (cdper,), percent("full_steps")),
        ))


def orders_and_cmls() -> tuple[Program, ...]:
    """What squared hinge loss alone is compared with."""
    ways = {"CMLS": ("cmls", "cyclic"), "CMLSPER": ("cmls", "permuted"), "CD once permuted": ("primal", "once"),
            "CD online": ("primal", "online")}
    return tuple(descent(of, SQUARED_HINGE, *way, most_repeats=2) for of, way in ways.items())


# Newton's method against LIBLINEAR's: to the gradient that LIBLINEAR stops at, training alone and from text to a model.

def training_ratio(theirs, ours):
    to_gradient = [seconds_until(run, gradient_pass(run, liblinear_norm(theirs[0])), certificates=False) for run in ours]
    return [median(map(liblinear_seconds, theirs)) / median(to_gradient)]


def gap_at_gradient(ours: Run, theirs: Run, quick: bool) -> float:
    """A tolerance that ends our run in the very pass that reaches LIBLINEAR's last gradient."""
    gap = gradient_pass(ours, liblinear_norm(theirs))["gap"]
    return 1 if gap is None else 1.0001 * gap


def least_norms_ratio(ours, theirs):
    """Before weights are rounded to be saved."""
    return [min(line["gradient_norm"] for line in passes_of(ours[-1])) / liblinear_norm(theirs[-1])]


def newton_against(loss: str, solver: int, judged: bool) -> Experiment:
    theirs = timed_liblinear(solver)
    tight = from_store(f"newton from the store, {loss}", loss, f"--solver newton --tolerance 1e-8 {LIMIT}", threads=2)
    same = train(f"text to the same gradient, {loss}", "{text}",  # into another store: the one above begins with {store}
                 f"--loss {loss} --cost 1 --solver newton --tolerance {{same_gap}} --trace {{trace}}", EVERYTHING, store="{store}-text")
    against = f"LIBLINEAR -s {solver} / newton"
    return Experiment(
        f"newton against LIBLINEAR, {loss}", (theirs, tight, same), data_sets=NEWTON_SETS, before=(PACK,),
        derived={"same_gap": Derived(tight.name, gap_at_gradient, beside=theirs.name)}, measures=tuple(
            Measure(name, unit, programs, values, bound if judged else None) for name, unit, programs, values, bound in (
                (f"{against}, training alone, same gradient", "times", (theirs, tight), training_ratio, Bound(least=1.5)),
                (f"{against}, from text, same gradient", "times", (theirs, same), walls_ratio, Bound(least=4)),
                (f"gradient reached / LIBLINEAR's, {loss}", "", (same, theirs), least_norms_ratio, Bound(most=1)))))


# Table 3: the cost by five-fold cross-validation, then accuracy on rows that none has seen.

LOSSES = {SQUARED_HINGE: 1, HINGE: 3, LOGISTIC: 0}  # and LIBLINEAR's solver for it


def costs_to_try(run: Run, quick: bool) -> str:
    return "0.25:4:4" if quick else "0.0625:64:2"


def best_cost(run: Run, quick: bool) -> float:
    return run.summary()["best_cost"]


def accuracies() -> Experiment:
    tunes, trained, tested, measures, derived = [], [], [], [], {"costs": Derived(PACK.name, costs_to_try)}
    for loss, solver in LOSSES.items():
        tune = Program(f"tune, {loss}", "linblock", f"tune {{store}} --folds 5 --costs {{costs}} --loss {loss} --memory {EVERYTHING} "
                       "--threads 2 --fresh -q --json", after=PACK.name)
        cost, model = f"{{cost_{solver}}}", f"{{model}}-{solver}"
        once = {"most_repeats": 1, "after": tune.name}
        theirs = replace(liblinear(solver, f"-c {cost}", f"{model}-liblinear", **once), name=f"LIBLINEAR -s {solver}, best cost")
        ours = train(f"train, {loss}, best cost", "{store}", f"--loss {loss} --cost {cost}", EVERYTHING, model=model, **once)
        both = test(model, ours), test(f"{model}-liblinear", theirs)
        tunes, trained, tested = [*tunes, tune], [*trained, theirs, ours], [*tested, *both]
        derived[f"cost_{solver}"] = Derived(tune.name, best_cost)
        measures += [Measure(f"best cost, {loss}", "", (tune,), summaries("best_cost")),
                     Measure(f"test accuracy, {loss}", "%", both[:1], accuracy),
                     Measure(f"apart from LIBLINEAR -s {solver}", "points", both, between(accuracy), Bound(most=0.5))]
    measures.append(Measure("apart, the three losses", "points", tuple(tested[::2]), between(accuracy), Bound(most=0.5)))
    return Experiment("table 3", tuple(trained), tuple(measures), data_sets=("imdb", "20news"), before=(PACK, *tunes), after=tuple(tested),
                      derived=derived)


# Columns twenty times the memory. What stays in memory beside them is 12 bytes a feature, 10 a row and the program; columns are
# 5.2 a nonzero. So a twentieth of the columns is 0.26 bytes a nonzero, and rows need many nonzeros to leave most of it to columns: with
# the 110 of the other documents the rows alone would take a third of it, and a million features as much. These have 360 a row and 1400
# a feature: 72 million nonzeros in 373 MB, of whose twentieth, 18 MB, rows and features take 3 and the program 6.

FIVE_PASSES = "--max-passes 5 --tolerance 1e-9"


def beyond_memory() -> Experiment:
    roomy, tight = (
        over_columns(f"five passes from cold columns, {room}", SQUARED_HINGE, "primal", "permuted", FIVE_PASSES, threads=2, cold="{store}",
                     most_repeats=2, **held)
        for room, held in (("memory for all", {}), ("a twentieth", {"memory": "{memory}", "memory_limit": "{group}"})))
    return Experiment(
        "beyond memory", (roomy, tight), data_sets=("documents-long",), before=(PACK, TRANSPOSE), derived={
            "memory": Derived(TRANSPOSE.name, twentieth_of_store),
            "group": Derived(TRANSPOSE.name, more(twentieth_of_store, GROUP_SLACK))}, measures=(
            Measure("a twentieth / memory for all, five passes", "times", (tight, roomy), walls_ratio, Bound(most=1.5)),
            Measure("peak / a twentieth, columns", "", (tight,), peak_over_budget, Bound(most=1)),
            Measure("readings of the columns, a twentieth", "", (tight, TRANSPOSE), readings, Bound(least=5)),
        ))


# Where the logistic loss has its exponentials from, on a set whose values are all 1.

def seconds_of_passes(runs):
    return [line["solve_seconds"] for run in runs for line in passes_of(run)]


def exponentials() -> Experiment:
    library, stored = (over_columns(f"exponentials: {way}", LOGISTIC, "primal", "permuted", f"{FIVE_PASSES} --exponential {way}")
                       for way in ("library", "stored"))
    return Experiment("exponentials", (library, stored), data_sets=("splice",), before=(PACK, TRANSPOSE), measures=(
        Measure("a pass, stored / library", "times", (stored, library), ratio(seconds_of_passes), Bound(most=0.5)),
    ))


# The method that is chosen, against each that could have been. Columns are there already.

def default_choice(loss: str, solvers: dict[str, Program]) -> Experiment:
    chosen = from_store(f"default, {loss}", loss, TO_NEAR, threads=2)
    others = tuple(from_store(f"{solver}, {loss}", loss, f"--solver {solver} {TO_NEAR}", threads=2, after=after)
                   for solver, after in solvers.items())
    return Experiment(f"default choice, {loss}", (*others, chosen), data_sets=CHOICE_SETS, before=(PACK, TRANSPOSE), measures=(
        Measure(f"chosen, {loss}", "", (chosen,), summaries("solver")),
        Measure(f"default / best, {loss}", "times", (chosen, *others), over_best, Bound(most=1.3)),
    ))


SUITE = Suite((
    table("table 2 and figure 4", SQUARED_HINGE, newton_of_liblinear=2, dual_of_liblinear=1, others=orders_and_cmls()),
    table("table 2 with logistic loss", LOGISTIC, newton_of_liblinear=0, dual_of_liblinear=7),
    newton_against(SQUARED_HINGE, 2, judged=True),
    newton_against(LOGISTIC, 0, judged=False),
    accuracies(),
    beyond_memory(),
    exponentials(),
    default_choice(SQUARED_HINGE, {"dual": PACK, "newton": PACK, "primal": TRANSPOSE}),
    default_choice(LOGISTIC, {"dual": PACK, "newton": PACK}),
))
