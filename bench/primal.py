"""Primal methods: coordinate descent over features, CMLS and Newton's, against each other, against the dual method and against
LIBLINEAR; and which of them is chosen."""
from collections.abc import Mapping
from dataclasses import replace

from anchors import optima
from commands import COLUMNS, EVERYTHING, HINGE, LIMIT, LOGISTIC, PACK, SHORTLY, SQUARED_HINGE, TRANSPOSE, evaluate, liblinear, train
from program import Bound, Claim, Experiment, Figure, Measure, Program, from_run
from train import in_a_twentieth
from values import (Line, apart, ends, last, of, over_best, percent, reach, together, traced, wall)

SETS = ("imdb", "20news-1", "documents-some", "w8a", "a9a", "news20", "real-sim", "rcv1")
CHOICE_SETS = ("a9a", "w8a", "ijcnn1", "kddcup99", "mnist", "connect-4-two", "imdb", "20news-1", "documents", "splice")
DESCENTS = {"CDPER": "--solver primal --order permuted", "CD": "--solver primal --order cyclic"}
OTHERS = {"CDPERONE": "--solver primal --order once", "CD, online": "--solver primal --order online", "CMLS": "--solver cmls --order cyclic",
          "CMLSPER": "--solver cmls --order permuted"}
TRON = {"TRON": "--solver newton"}


def alone(name: str, loss: str, options: str, **more: object) -> Program:
    """One thread, and memory for everything."""
    return train(name, "{store}", f"--loss {loss} --cost 1 {options}", EVERYTHING, threads=1, **more)


# Tables and figures of the paper: seconds of training, from the trace of one run of each method.

def curves(name: str, loss: str, methods: Mapping[str, str], newton: int, dual: int, pegasos: bool = False) -> tuple[Experiment, dict[str, Line]]:
    lines = {method: traced(method, *(alone(method + name, loss, f"{options} --tolerance 1e-4 {SHORTLY} --trace {{trace}}{test}", most_repeats=1)
                                      for name, test in (("", ""), (", tested", " --test {test}")))) for method, options in methods.items()}
    if pegasos:
        lines["Pegasos"] = ends("Pegasos", [alone(f"Pegasos, {count}", loss, f"--solver pegasos --max-passes {count} --tolerance 1e-9 {SHORTLY} --test {{test}}",
                                                  most_repeats=1) for count in (1, 4, 16)])
    best = ends("reference", [alone("reference", loss, f"--solver dual --tolerance 1e-5 --max-passes 100000 {LIMIT}", most_repeats=1)])
    certified = alone("dual", loss, f"--solver dual --tolerance 0.01 {LIMIT}", most_repeats=1)
    theirs = tuple(Program(f"LIBLINEAR -s {solver}", "liblinear", f"{{text}} {loss} {{optimum}} {setting}", most_repeats=1)
                   for solver, setting in ((newton, f"{newton}:0.01"), (dual, f"{dual}:0.1")))  # its defaults
    among = (*lines.values(), best)
    return Experiment(
        "papers primal", name, f"Seconds of training to 1% of the optimum, {loss} loss, one thread, everything in memory; loading is left out, and so are certificates, "
        "but for the dual method, which does not know its objective without one. The optimum is the least objective known.",
        tuple(program for line in among for program in line.programs) + (*theirs, certified), data_sets=SETS, before=(PACK, TRANSPOSE),
        derived={"optimum": from_run(best.programs[0], optima)},
        figures=(Figure("objective", tuple(lines.values())), Figure("test error", tuple(lines.values()), upward="error")), measures=(
            Measure("the optimum is known to", "%", percent(best.programs[0], "certified_gap"), Bound(most=0.1)),
            *(Measure(f"to 1%, {line.name}", "s", reach(line, among)) for line in lines.values()),
            Measure("to a certified 1%, dual", "s", together(lambda a, b: a + b, of(certified, "seconds.solve"), of(certified, "seconds.certify"))),
            *(measure for one in theirs for measure in (
                Measure(f"training, {one.name}", "s", of(one, "seconds")), Measure(f"then above the optimum, {one.name}", "%", percent(one, "above")))),
            *(Measure(f"passes to 1%, {line.name}", "", reach(line, among, across="passes")) for line in lines.values() if line.name not in ("TRON", "Pegasos")),
            Measure("full Newton steps, CDPER", "%", percent(lines["CDPER"].programs[0], "full_steps")))), lines


def squared_hinge() -> Experiment:
    experiment, lines = curves("columns: table 2, figures 1 to 4", SQUARED_HINGE, DESCENTS | OTHERS | TRON, 2, 1, pegasos=True)
    everything = tuple(lines.values())

    def sooner(where: str, says: str, *methods: str, level: float = 0.01, across: str = "seconds", **more: object) -> Claim:
        return Claim(COLUMNS, where, says, tuple(reach(lines[method], everything, level, across) for method in methods), "s" if across == "seconds" else across, **more)

    return replace(experiment, claims=(
        sooner("Table 2, Figure 1", "CDPER is faster than TRON to 1%", "CDPER", "TRON",
               if_not="with few features, or with as few rows as 20news has, a few Newton steps are enough, and ours take two loops over the rows each"),
        sooner("Figure 1", "CDPER converges faster than CMLS", "CDPER", "CMLS"),
        sooner("section 5.2", "Pegasos is slow in the end", "CDPER", "Pegasos", level=1e-3),
        sooner("section 5.2", "TRON is faster in the end", "TRON", "CDPER", level=1e-4,
               if_not="columns in memory and rare line searches keep a pass of CDPER cheap down to 0.01%"),
        sooner("section 5.2", "one feature at random each time is like CDPER", "CD, online", "CDPER", slack=1.5, even=True,
               if_not="a pass of draws leaves out a third of the features, and columns are not read in order"),
        sooner("section 6.1, Figure 4", "CDPER needs fewer passes than CDPERONE and CD", "CDPER", "CDPERONE", "CD", across="passes",
               if_not="with a few hundred features every order is about as good"),
        sooner("Figure 4", "permuting does not improve CMLS much", "CMLS", "CMLSPER", slack=1.5, even=True,
               if_not="neighbors in 20news's order of features occur together, so that a cyclic order is the worst there is"),
        Claim(COLUMNS, "section 5.2", "almost every step is a full Newton step (99.997% on rcv1)", (
            of(lines["CDPER"].programs[0], lambda run: 100 - 100 * run.summary()["full_steps"]),), "% are not", most=1),
        Claim(COLUMNS, "Figure 3", "CDPER is as accurate as any in the end", tuple(last(lines[method], "error") for method in ("CDPER", "TRON", "CMLS")), "%", margin=0.3, even=True)))


def logistic() -> Experiment:
    experiment, lines = curves("columns: section 6.2", LOGISTIC, DESCENTS | TRON, 0, 7)
    return replace(experiment, claims=(Claim(
        COLUMNS, "section 6.2", "with logistic loss TRON is faster than coordinate descent", tuple(reach(lines[one], tuple(lines.values())) for one in ("TRON", "CDPER")),
        if_not="the exponentials that made coordinate descent slow are kept, or made by faster code, here"),))


# Table 3: the cost by five-fold cross-validation, then accuracy on rows that none has seen.

def table_3() -> Experiment:
    tunes, trained, judges, measures, derived = [], [], {}, [], {}
    for loss, solver in {SQUARED_HINGE: 1, HINGE: 3, LOGISTIC: 0}.items():
        tune = Program(f"tune, {loss}", "linblock", f"tune {{store}} --folds 5 --costs 0.25:16:2 --loss {loss} --memory {EVERYTHING} --threads 2 --fresh -q --json")
        cost, model = f"{{cost_{solver}}}", f"{{model}}-{solver}"
        theirs = liblinear(f"-s {solver} -c {cost}", f"{model}-liblinear", f"LIBLINEAR -s {solver}", most_repeats=1)
        ours = train(f"linblock, {loss}", "{store}", f"--loss {loss} --cost {cost}", EVERYTHING, model=model, most_repeats=1)
        judges[loss] = evaluate(model, ours), evaluate(f"{model}-liblinear", theirs)
        tunes, trained = [*tunes, tune], [*trained, theirs, ours]
        derived[f"cost_{solver}"] = from_run(tune, lambda run, quick: run.summary()["best_cost"])
        measures += [Measure(f"best cost, {loss}", "", of(tune, "best_cost")), Measure(f"test accuracy, {loss}", "%", percent(judges[loss][0], "accuracy")),
                     Measure(f"apart from LIBLINEAR -s {solver}", "points", apart(*(percent(judge, "accuracy") for judge in judges[loss])), Bound(most=0.5))]
    losses = apart(*(percent(ours, "accuracy") for ours, _ in judges.values()))
    return Experiment("papers primal", "columns: table 3", "The best cost by five-fold cross-validation, then accuracy on rows that none has seen.", tuple(trained),
                      (*measures, Measure("apart, the three losses", "points", losses, Bound(most=0.5))), ("imdb", "20news"), before=(PACK, *tunes),
                      after=sum(judges.values(), ()), derived=derived, claims=(
                          Claim(COLUMNS, "Table 3", "the losses end with similar accuracy", (losses,), "points apart", most=0.5),))


def default_choice(loss: str, solvers: tuple[str, ...]) -> Experiment:
    chosen, *others = (train(solver or "default", "{store}", f"--loss {loss} --cost 1 --tolerance 0.01 {LIMIT}{solver and ' --solver ' + solver}", EVERYTHING, most_repeats=1)
                       for solver in ("", *solvers))
    return Experiment("primal", f"default choice, {loss}", "The method that is chosen, to a certified 1% from a store with columns, against each that could have been.",
                      (*others, chosen), data_sets=CHOICE_SETS, before=(PACK, TRANSPOSE), measures=(
        Measure("chosen", "", of(chosen, "solver")), *(Measure(one.name, "s", wall(one)) for one in others),
        Measure("default / best", "times", over_best(chosen, *others), Bound(most=1.3))))


EXPERIMENTS = (squared_hinge(), logistic(), table_3(), 
               in_a_twentieth("primal", "beyond memory", "Five passes of `--solver primal` over cold columns", ("documents-long",), TRANSPOSE, {
                   "store": (f"--loss {SQUARED_HINGE} {DESCENTS['CDPER']} --max-passes 5 --tolerance 1e-9", 1.5)}),
               default_choice(SQUARED_HINGE, ("dual", "newton", "primal")), default_choice(LOGISTIC, ("dual", "newton")))
