"""Training: what reading, memory and the disk cost."""
import itertools
from collections.abc import Mapping
from statistics import median

from commands import (EVERYTHING, GROUP_SLACK, HINGE, IN_A_TENTH, LIMIT, PACK, SLOW_DISK, SLOWLY, part_of_bytes, train)
from program import Bound, Experiment, Measure, Program
from runner import Run
from values import of, over_best, peak_over_budget, percent, readings, wall

SETS = ("documents", "imdb", "splice-unit", "kddcup99", "mnist")
TEXTS = ("documents", "imdb")  # whose stores the page cache of a small group does not hold


def schedules() -> Experiment:
    near = f"--loss {HINGE} --tolerance 0.001 {LIMIT} --inner 10"
    fixed = train("fixed blocks", "{store}", f"{near} --schedule fixed --cache-fraction 0", most_repeats=1)
    ours = train("recomposed with kept rows", "{store}", f"{near} --schedule recomposed --cache-fraction 0.5", most_repeats=1)
    return Experiment("train", "passes", "How often a store is read until 0.1% is certified, rows ten times the memory, ten rounds a block; a gap above 0.1% says that "
                      "time ran out.", (fixed, ours), data_sets=SETS, before=(PACK,), derived=IN_A_TENTH, measures=(
        *(Measure(f"readings, {one.name}", "", readings(one, PACK)) for one in (fixed, ours)), Measure("gap, fixed blocks", "%", percent(fixed, "certified_gap")),
        Measure("gap, recomposed", "%", percent(ours, "certified_gap"), Bound(most=0.1)),
        Measure("recomposed / fixed", "", readings(ours, PACK) / readings(fixed, PACK), Bound(most=1 / 3))))


def settings(name: str, sets: tuple[str, ...], **limits: object) -> Experiment:
    tried = tuple(train(f"inner {inner}, cache {cache}", "{store}", f"--loss {HINGE} {LIMIT} --inner {inner} --cache-fraction {cache}", most_repeats=1, **limits)
                  for inner, cache in itertools.product((1, 3, 10), (0, 0.3, 0.6)))
    auto = train("auto", "{store}", f"--loss {HINGE} --inner auto", most_repeats=1, **limits)
    return Experiment("train", name, "Settings chosen by measuring on the way, against the best of nine that were tried, rows ten times the memory.", (*tried, auto),
                      (Measure("auto / best setting", "times", over_best(auto, *tried), Bound(most=1.3)),), sets, before=(PACK,), derived=IN_A_TENTH)


def pipeline() -> Experiment:
    streamed = train("streamed", "{store}", f"--loss {HINGE} --trace {{trace}}")

    def slower(run: Run) -> float:
        """A pass's wall time is what the solver worked and what it waited."""
        return median((line["wait_seconds"] + line["solve_seconds"]) / max(line["read_seconds"] + line["decode_seconds"], line["solve_seconds"])
                      for line in run.trace)

    return Experiment("train", "pipeline", "Reading while solving: a pass against the slower of its two sides, rows ten times the memory.", (streamed,),
                      (Measure("a pass / its slower side", "times", of(streamed, slower), Bound(most=1.2)),), SETS, before=(PACK,), derived=IN_A_TENTH)


def in_a_twentieth(bench: str, name: str, says: str, sets: tuple[str, ...], packed: Program, sources: Mapping[str, tuple[str, float]]) -> Experiment:
    """From each source with its options, and how many times as long as with memory for all it may take."""
    pairs = {source: tuple(train(f"from cold {source}, {room}", f"{{{source}}}", options, memory, cold=f"{{{source}}}", most_repeats=2, **group) for room, memory, group in (
        ("memory for all", EVERYTHING, {}), ("a twentieth", "{memory}", {"memory_limit": "{group}"}))) for source, (options, _) in sources.items()}
    return Experiment(bench, name, f"{says}, in a twentieth of what they take and a control group that leaves the page cache nothing; against memory for all.",
                      sum(pairs.values(), ()), data_sets=sets, before=(PACK, packed) if packed is not PACK else (PACK,),
                      derived={"memory": part_of_bytes(packed, 20), "group": part_of_bytes(packed, 20, GROUP_SLACK)},
                      measures=tuple(measure for source, (roomy, tight) in pairs.items() for measure in (
                          Measure(f"a twentieth / memory for all, {source}", "times", wall(tight) / wall(roomy), Bound(most=sources[source][1])),
                          Measure(f"peak / --memory, {source}", "", peak_over_budget(tight), Bound(most=1)), Measure("readings", "", readings(tight, packed)))))


def slow_disk() -> Experiment:
    slow = train("from a slow disk", "{store}", f"--loss {HINGE}", **SLOWLY)
    return Experiment("train", "slow disk", "A cold store on a disk of 100 MB/s, in a small control group.", (slow,), data_sets=TEXTS, before=(PACK,), derived=IN_A_TENTH, measures=(
        Measure("readings", "", readings(slow, PACK)),
        Measure("time / bytes read at 100 MB/s", "times", wall(slow) / of(slow, "bytes_read") * SLOW_DISK, Bound(most=1.3))))


EXPERIMENTS = (schedules(), settings("auto", SETS[1:]), settings("auto, cold, 100 MB/s", TEXTS[1:], **SLOWLY), pipeline(),
               in_a_twentieth("train", "a twentieth", "From cold text and from a cold store", ("documents-many",), PACK, {
                   "text": (f"--loss {HINGE}", 1.5), "store": (f"--loss {HINGE}", 3)}), slow_disk())
