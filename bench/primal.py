"""Primal methods: coordinate descent over features, CMLS and Newton's, against each other, against the dual method and against
LIBLINEAR; and which of them is chosen."""
from collections.abc import Sequence
from dataclasses import replace
from statistics import median

from experiments import Bound, Derived, Experiment, Measure, NotReached, Program, Suite, median_wall, summaries
from reached import (gradient_pass, liblinear_near, liblinear_norm, liblinear_seconds, near_pass, passes_of, seconds_until)
from runner import Run
from train import (EVERYTHING, GROUP_SLACK, LIBLINEAR_MODEL, MEBIBYTE, PACK, accuracy, gap_percent, objective, peak_over_budget, test,
                   train, walls_ratio)

SQUARED_HINGE, HINGE, LOGISTIC = "squared-hinge", "hinge", "logistic"
PAPER_SETS = ("imdb", "20news-1", "splice", "w8a", "a9a", "documents")
NEWTON_SETS = (*PAPER_SETS, "kddcup99", "mnist")
CHOICE_SETS = ("a9a", "w8a", "ijcnn1", "kddcup99", "mnist", "connect-4-first", "imdb", "20news-1", "documents", "splice")
TEXT_STORE = "{store}-text"  # {store} stays for those that begin with it
MOST_DOUBT = 0.1  # percent of the optimum
LIMIT = "--max-seconds 120"  # for methods that may be slow where they are not at home


# Programs.

TRANSPOSE = Program("transpose", "linblock", "transpose {store} --memory 1G --threads 2 --codec none -q --json", after=PACK.name, changes="{store}")


def from_store(name: str, loss: str, options: str, threads: int = 1, **more) -> Program:
    more.setdefault("memory", EVERYTHING)
    more.setdefault("after", PACK.name)
    return train(name, "{store}", f"--loss {loss} --cost 1 {options} --trace {{trace}}", threads=threads, **more)


def over_columns(name: str, loss: str, solver: str, order: str, options: str, **more) -> Program:
    return from_store(name, loss, f"--solver {solver} --order {order} {options}", after=TRANSPOSE.name, **more)


def liblinear(solver: int, options: str = "") -> Program:
    name = " ".join(f"LIBLINEAR -s {solver} {options}".split())
    return Program(name, "liblinear-train", f"-s {solver} -c 1 {options} {{text}} {LIBLINEAR_MODEL}", makes=LIBLINEAR_MODEL,
                   preload="iteration_clock")


def references(loss: str) -> tuple[Program, Program]:
    """What is certified by one or the other leaves no doubt about the optimum: where one is slow, the other is not."""
    return (from_store(f"reference by newton, {loss}", loss, f"--solver newton --tolerance 1e-8 --max-passes 100000 {LIMIT}", threads=2),
            from_store(f"reference by dual, {loss}", loss, "--solver dual --tolerance 1e-5 --max-passes 100000 --max-seconds 60", threads=2))


def names(programs: Sequence[Program]) -> tuple[str, ...]:
    return tuple(program.name for program in programs)


def percent_of_doubt(*runs_of_references):
    """How much of the best objective known might still be gained."""
    certified = [runs[0].summary() for runs in runs_of_references]
    return [100 * (min(one["primal"] for one in certified) / max(one["dual"] for one in certified) - 1)]


def optimum_of(runs_of_references: Sequence[Sequence[Run]]) -> float:
    doubt = percent_of_doubt(*runs_of_references)[0]
    if doubt > MOST_DOUBT:
        raise NotReached(f"an optimum that is known to {MOST_DOUBT}%")
    return min(runs[0].summary()["primal"] for runs in runs_of_references)


def doubt_of(best: Sequence[Program], loss: str) -> Measure:
    return Measure(f"the optimum is known to, {loss}", "%", names(best), percent_of_doubt, Bound(most=MOST_DOUBT))


# Seconds to 1% of the optimum: Table 2, and the same for logistic loss (section 6.2). One thread, everything in memory.

def seconds_to_near(runs, *known):
    """Without certificates: the objective is known after each pass."""
    return [seconds_until(run, near_pass(run, optimum_of(known)), certificates=False) for run in runs]


def seconds_to_certified_near(runs, *known):
    return [seconds_until(run, near_pass(run, optimum_of(known), certified=True), certificates=True) for run in runs]


def liblinear_seconds_to_near(runs, *known):
    return [liblinear_near(run, optimum_of(known)) for run in runs]


def liblinear_seconds_of_training(runs):
    return list(map(liblinear_seconds, runs))


def percent_above_optimum(scored, *known):
    return [100 * (scored[0].summary()["objective"] / optimum_of(known) - 1)]


def seconds_ratio(above, below, *known):
    return [median(seconds_to_near(above, *known)) / median(seconds_to_near(below, *known))]


def table(name: str, loss: str, newton_of_liblinear: int, dual_of_liblinear: int, cmls: bool) -> Experiment:
    def descent(of: str, solver: str, order: str) -> Program:
        return over_columns(f"{of}, {loss}", loss, solver, order, f"--tolerance 0.01 {LIMIT}")

    best = references(loss)
    known = names(best)
    cdper, cd = descent("CDPER", "primal", "permuted"), descent("CD", "primal", "cyclic")
    newton = from_store(f"TRON, {loss}", loss, "--solver newton --tolerance 0.01")
    slow = tuple(replace(descent(of, "cmls", order), most_repeats=2)
                 for of, order in (("CMLS", "cyclic"), ("CMLSPER", "permuted")) if cmls)
    dual = from_store(f"dual, {loss}", loss, f"--solver dual --tolerance 0.01 {LIMIT}")
    # Where its own tolerance would stop it before 1%, it goes on.
    their_newton, their_dual = liblinear(newton_of_liblinear, "-e 0.0001"), liblinear(dual_of_liblinear)
    scored = objective(LIBLINEAR_MODEL, their_dual, loss)
    ours = (newton, cd, *slow, cdper)
    return Experiment(
        name, (their_newton, their_dual, dual, *ours), data_sets=PAPER_SETS, before=(PACK, TRANSPOSE, *best), after=(scored,), measures=(
            doubt_of(best, loss),
            *(Measure(f"to 1%, {program.name}", "s", (program.name, *known), seconds_to_near) for program in ours),
            Measure(f"to 1%, {dual.name}, certified", "s", (dual.name, *known), seconds_to_certified_near),
            Measure(f"to 1%, {their_newton.name}", "s", (their_newton.name, *known), liblinear_seconds_to_near),
            Measure(f"trained, {their_dual.name}", "s", (their_dual.name,), liblinear_seconds_of_training),
            Measure(f"above the optimum, {their_dual.name}", "%", (scored.name, *known), percent_above_optimum, Bound(most=1)),
            Measure(f"TRON / CDPER, {loss}", "times", (newton.name, cdper.name, *known), seconds_ratio),
        ))


# Newton's method against LIBLINEAR's: to the gradient that LIBLINEAR stops at, and from text to a model.

def training_ratio(theirs, ours):
    """Of training alone, to LIBLINEAR's last gradient."""
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
    def from_text(name: str, tolerance: str) -> Program:
        return train(f"{name}, {loss}", "{text}", f"--loss {loss} --cost 1 --solver newton --tolerance {tolerance} --trace {{trace}}",
                     EVERYTHING, store=TEXT_STORE)

    theirs = liblinear(solver)
    tight = from_store(f"newton from the store, {loss}", loss, "--solver newton --tolerance 1e-8", threads=2)
    same, usual = from_text("text to the same gradient", "{same_gap}"), from_text("text to a certified 1%", "0.01")
    against = f"LIBLINEAR -s {solver} / newton"
    return Experiment(
        f"newton against LIBLINEAR, {loss}", (theirs, tight, usual, same), data_sets=NEWTON_SETS, before=(PACK,),
        derived={"same_gap": Derived(tight.name, gap_at_gradient, beside=theirs.name)}, measures=(
            Measure(f"{against}, training alone, same gradient", "times", (theirs.name, tight.name), training_ratio,
                    Bound(least=1.5) if judged else None),
            Measure(f"{against}, from text, same gradient", "times", (theirs.name, same.name), walls_ratio,
                    Bound(least=4) if judged else None),
            Measure(f"{against}, from text, certified 1%", "times", (theirs.name, usual.name), walls_ratio),
            Measure(f"gradient reached / LIBLINEAR's, {loss}", "", (same.name, theirs.name), least_norms_ratio,
                    Bound(most=1) if judged else None),
        ))


# Figure 4: passes to 1%, for every order. They are counted, not timed.

def passes_to_near(runs, *known):
    return [near_pass(run, optimum_of(known))["pass"] for run in runs]


def percent_of_full_steps(runs):
    return [100 * run.summary()["full_steps"] for run in runs]


def orders() -> Experiment:
    ways = [("primal", order) for order in ("permuted", "once", "cyclic", "online")] + [("cmls", "cyclic"), ("cmls", "permuted")]
    programs = tuple(replace(over_columns(f"{solver}, {order}", SQUARED_HINGE, solver, order, f"--tolerance 0.01 {LIMIT}"), most_repeats=1)
                     for solver, order in reversed(ways))
    best, permuted = references(SQUARED_HINGE), programs[-1]
    known = names(best)
    return Experiment("figure 4", programs, data_sets=PAPER_SETS, before=(PACK, TRANSPOSE, *best), measures=(
        *(Measure(f"passes to 1%, {program.name}", "", (program.name, *known), passes_to_near) for program in reversed(programs)),
        Measure(f"full Newton steps, {permuted.name}", "%", (permuted.name,), percent_of_full_steps),
    ))


# Table 3: the cost by five-fold cross-validation, then accuracy on rows that none has seen.

LOSSES = {SQUARED_HINGE: 1, HINGE: 3, LOGISTIC: 0}  # and LIBLINEAR's solver for it


def costs_to_try(run: Run, quick: bool) -> str:
    return "0.25:4:4" if quick else "0.0625:64:2"


def best_cost(run: Run, quick: bool) -> float:
    return run.summary()["best_cost"]


def points_between(*tested):
    """Of the best and the worst."""
    found = [accuracy(runs)[0] for runs in tested]
    return [max(found) - min(found)]


def at_best_cost(loss: str, solver: int) -> tuple[Program, Program, Program]:
    """The search, LIBLINEAR's model and ours."""
    tune = Program(f"tune, {loss}", "linblock",
                   f"tune {{store}} --folds 5 --costs {{costs}} --loss {loss} --memory {EVERYTHING} --threads 2 --fresh -q --json", after=PACK.name)
    cost, model = f"{{cost_{solver}}}", f"{{model}}-{solver}"
    theirs = Program(f"LIBLINEAR -s {solver}, best cost", "liblinear-train", f"-s {solver} -c {cost} {{text}} {model}-liblinear",
                     makes=f"{model}-liblinear", most_repeats=1, after=tune.name)
    ours = train(f"train, {loss}, best cost", "{store}", f"--loss {loss} --cost {cost}", EVERYTHING, model=model, most_repeats=1,
                 after=tune.name)
    return tune, theirs, ours


def accuracies() -> Experiment:
    programs = {loss: at_best_cost(loss, solver) for loss, solver in LOSSES.items()}
    tests = {loss: (test(f"{{model}}-{LOSSES[loss]}-liblinear", theirs), test(f"{{model}}-{LOSSES[loss]}", ours))
             for loss, (_, theirs, ours) in programs.items()}
    tunes, all_theirs, all_ours = zip(*programs.values())
    derived = {f"cost_{solver}": Derived(tune.name, best_cost) for solver, tune in zip(LOSSES.values(), tunes)}
    return Experiment(
        "table 3", (*all_theirs, *all_ours), data_sets=("imdb", "20news"), before=(PACK, *tunes), after=sum(tests.values(), ()),
        derived=derived | {"costs": Derived(PACK.name, costs_to_try)}, measures=(
            *(Measure(f"best cost, {loss}", "", (tune.name,), summaries("best_cost")) for loss, tune in zip(LOSSES, tunes)),
            *(Measure(f"test accuracy, {loss}", "%", (ours.name,), accuracy) for loss, (_, ours) in tests.items()),
            *(Measure(f"apart from LIBLINEAR -s {LOSSES[loss]}", "points", (ours.name, theirs.name), points_between, Bound(most=0.5))
              for loss, (theirs, ours) in tests.items()),
            Measure("apart, the three losses", "points", tuple(ours.name for _, ours in tests.values()), points_between, Bound(most=0.5)),
        ))


# Columns twenty times the memory. What stays in memory beside them is 12 bytes a feature, 10 a row and the program; columns are
# 5.2 a nonzero. So a twentieth of the columns is 0.26 bytes a nonzero, and rows need many nonzeros to leave most of it to columns: with
# the 110 of the other documents the rows alone would take a third of it, and a million features as much. These have 360 a row and 1400
# a feature: 72 million nonzeros in 373 MB, of whose twentieth, 18 MB, rows and features take 3 and the program 6.

FIVE_PASSES = "--max-passes 5 --tolerance 1e-9"


def twentieth_of_columns(run: Run, quick: bool) -> int:
    return max(run.summary()["bytes"] // (20 * MEBIBYTE), 64 if quick else 16) * MEBIBYTE


def group_of_columns(run: Run, quick: bool) -> int:
    return twentieth_of_columns(run, quick) + GROUP_SLACK


def columns_read(runs, columns):
    return [run.summary()["bytes_read"] / columns[0].summary()["bytes"] for run in runs]


def beyond_memory() -> Experiment:
    def five(name: str, **more) -> Program:
        return replace(over_columns(name, SQUARED_HINGE, "primal", "permuted", FIVE_PASSES, threads=2, **more), most_repeats=2)

    roomy = five("five passes from cold columns, memory for all", cold="{store}")
    tight = five("five passes from cold columns, a twentieth", memory="{memory}", memory_limit="{group}", cold="{store}")
    return Experiment(
        "beyond memory", (roomy, tight), data_sets=("documents-long",), before=(PACK, TRANSPOSE), derived={
            "memory": Derived(TRANSPOSE.name, twentieth_of_columns), "group": Derived(TRANSPOSE.name, group_of_columns)}, measures=(
            Measure("a twentieth / memory for all, five passes", "times", (tight.name, roomy.name), walls_ratio, Bound(most=1.5)),
            Measure("peak / a twentieth, columns", "", (tight.name,), peak_over_budget, Bound(most=1)),
            Measure("readings of the columns, a twentieth", "", (tight.name, TRANSPOSE.name), columns_read, Bound(least=5)),
        ))


# Where the logistic loss has its exponentials from, on a set whose values are all 1.

def seconds_of_passes(runs):
    return [line["solve_seconds"] for run in runs for line in passes_of(run)]


def passes_ratio(above, below):
    return [median(seconds_of_passes(above)) / median(seconds_of_passes(below))]


def exponentials() -> Experiment:
    library, fast, stored = (
        over_columns(f"exponentials: {way}", LOGISTIC, "primal", "permuted", f"{FIVE_PASSES} --exponential {way}")
        for way in ("library", "fast", "stored"))
    return Experiment("exponentials", (library, fast, stored), data_sets=("splice",), before=(PACK, TRANSPOSE), measures=(
        *(Measure(f"a pass, {program.name}", "s", (program.name,), seconds_of_passes) for program in (library, fast, stored)),
        Measure("a pass, stored / library", "times", (stored.name, library.name), passes_ratio, Bound(most=0.5)),
        Measure("a pass, fast / library", "times", (fast.name, library.name), passes_ratio),
        Measure("full Newton steps, logistic", "%", (stored.name,), percent_of_full_steps),
    ))


# The method that is chosen, against each that could have been. Columns are there already.

TO_CERTIFIED = f"--tolerance 0.01 {LIMIT}"


def solver_chosen(runs):
    return [run.summary()["solver"] for run in runs]


def chosen_over_best(chosen, *others):
    """Of those that reached 1%; what was chosen has also been run by its name, so noise alone may make this less than 1."""
    walls = [median_wall(runs) for runs in others if max(gap_percent(runs)) <= 1]
    if not walls:
        raise NotReached("a certified 1% by no method")
    return [median_wall(chosen) / min(walls)]


def default_choice(loss: str, solvers: tuple[str, ...]) -> Experiment:
    def by(solver: str) -> Program:
        name = f"{solver}, {loss}"
        if solver == "primal":
            return over_columns(name, loss, solver, "permuted", TO_CERTIFIED, threads=2)
        return from_store(name, loss, f"--solver {solver} {TO_CERTIFIED}", threads=2)

    chosen = from_store(f"default, {loss}", loss, TO_CERTIFIED, threads=2)
    others = tuple(map(by, solvers))
    return Experiment(f"default choice, {loss}", (*others, chosen), data_sets=CHOICE_SETS, before=(PACK, TRANSPOSE), measures=(
        Measure(f"chosen, {loss}", "", (chosen.name,), solver_chosen),
        Measure(f"default / best, {loss}", "times", (chosen.name, *names(others)), chosen_over_best, Bound(most=1.3)),
        *(Measure(f"certified gap, {program.name}", "%", (program.name,), gap_percent) for program in (*others, chosen)),
    ))


SUITE = Suite((
    table("table 2", SQUARED_HINGE, newton_of_liblinear=2, dual_of_liblinear=1, cmls=True),
    table("table 2 with logistic loss", LOGISTIC, newton_of_liblinear=0, dual_of_liblinear=7, cmls=False),
    newton_against(SQUARED_HINGE, 2, judged=True),
    newton_against(LOGISTIC, 0, judged=False),
    orders(),
    accuracies(),
    beyond_memory(),
    exponentials(),
    default_choice(SQUARED_HINGE, ("dual", "newton", "primal")),
    default_choice(LOGISTIC, ("dual", "newton")),
))
