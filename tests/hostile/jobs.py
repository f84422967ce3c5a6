"""The commands that write, with small inputs: what the campaigns kill, harm and interrupt."""
import dataclasses
import os
import pathlib
import shlex
import shutil

import harness
import manifests

ROWS = 600
CHUNKS = "--codec none --chunk-bytes 4K"
PACKING = f"{CHUNKS} --memory 16M"
TRAINING = "--memory 16M --threads 2 --checkpoint-seconds 0 --max-passes 12 --tolerance 1e-4"
STREAMING = "--memory 16M --threads 2 --checkpoint-seconds 0.05 --max-passes 4 --tolerance 1e-4"


@dataclasses.dataclass(frozen=True)
class Job:
    name: str
    line: str
    needs: tuple  # fixtures to copy; "a=b" copies a under the name b
    done: object = None  # folder -> bool, for commands that cannot be repeated once they are committed
    after: tuple = ()  # commands that must clean up whatever is left over
    models: tuple = ()  # models that are the old or the new one at every moment
    stores: tuple = ()  # and stores
    slow: bool = False
    delicate: bool = False  # several files change together

    @property
    def words(self):
        return shlex.split(self.line)


def rows_of(store):
    return manifests.read(store)["rows"]


def is_store(name):
    return lambda folder: (folder / name / "MANIFEST").exists()


def rows_changed(name, rows):
    return lambda folder: rows_of(folder / name) != rows


def few_segments(name):
    return lambda folder: len(manifests.read(folder / name)["segments"]) < 2


def has_tag(name, tag, wanted):
    return lambda folder: (tag in [one["tag"] for one in manifests.read(folder / name).get("tags", [])]) == wanted


def train(name, options, needs=("s",), data="s", training=TRAINING, **more):
    return Job(name, f"train {data} -o m {training} {options}", needs, models=("m",), **more)


JOBS = [
    Job("pack", f"pack a.svm -o made {PACKING} --threads 2", ("a.svm",), done=is_store("made"), stores=("made",)),
    Job("append", "append s more.svm --memory 16M", ("s", "more.svm"), done=rows_changed("s", ROWS),
        after=("compact s",), stores=("s",)),
    Job("append to an index", "append i more.svm --memory 16M", ("i", "more.svm"), done=rows_changed("i", ROWS),
        after=("index i --memory 16M", "compact i"), stores=("i",)),
    Job("remove rows", "remove s --rows ids", ("s", "ids"), done=rows_changed("s", ROWS), after=("compact s",),
        stores=("s",)),
    Job("remove a segment", "remove grown --segment 2", ("grown",), done=few_segments("grown"),
        after=("compact grown",), stores=("grown",)),
    Job("append with a tag", "append tagged more.svm --tag new --memory 16M", ("tagged", "more.svm"),
        done=has_tag("tagged", "new", True), after=("compact tagged",), stores=("tagged",)),
    Job("remove a tag", "remove tagged --tag old --threads 2", ("tagged",), done=has_tag("tagged", "old", False),
        after=("compact tagged",), stores=("tagged",)),
    Job("snapshot", "snapshot grown made", ("grown",), done=is_store("made"), stores=("grown", "made")),
    Job("compact", "compact grown --memory 16M --threads 2", ("grown",), stores=("grown",)),
    Job("transpose", "transpose s --memory 16M --threads 2", ("s",), stores=("s",)),
    Job("transpose again", "transpose grown --memory 16M", ("grown",), stores=("grown",)),
    Job("index", "index c --threads 2 --tree-rows 300 --page-bytes 4K --memory 16M", ("c",), stores=("c",)),
    Job("index many", "index dots --threads 2 --tree-rows 300 --page-bytes 4K --memory 16M", ("dots",), slow=True),
    Job("index again", "index grown --memory 16M --threads 2", ("grown",), stores=("grown",)),
    train("text", f"--inner 2 {CHUNKS}", ("a.svm",), "a.svm", delicate=True),
    train("changed text", f"--inner 2 {CHUNKS}", ("changed/a.svm", "changed/a.svm.linblock"), "a.svm",
          delicate=True),
    train("text with columns", f"--solver primal {CHUNKS}", ("a.svm",), "a.svm"),
    train("over an older model", "--inner 2 --loss hinge --calibrate 0.3", ("s", "old=m", "old.json=m.json"),
          delicate=True),
    train("dual", "--inner 2"),
    train("logistic", "--inner 2 --loss logistic --bias 1"),
    train("newton", "--solver newton"),
    train("free bias", "--solver newton --free-bias --loss hinge"),
    train("primal", "--solver primal"),
    train("cmls", "--solver cmls"),
    train("indexed", "--solver indexed --loss hinge", ("c",), "c"),
    train("pegasos", "--solver pegasos --loss hinge"),
    train("average", "--solver average"),
    train("subsample", "--solver subsample"),
    train("one-vs-rest", "--inner 2", ("c",), "c"),
    train("crammer-singer", "--multiclass crammer-singer", ("c",), "c"),
    train("softmax", "--multiclass softmax --free-bias", ("c",), "c"),
    train("truncated dual", "--inner 2 --truncate 1"),
    train("truncated newton", "--solver newton --truncate 1"),
    train("keep a state", "--inner 2 --keep-state"),
    train("replace a state", "--inner 2 --keep-state", ("grown", "warm=m", "warm.json=m.json", "warm.state=m.state"),
          "grown", delicate=True),
    train("warm", "--inner 2 --warm warm --keep-state", ("grown", "warm", "warm.json", "warm.state"), "grown"),
    train("warm newton", "--solver newton --warm warm", ("grown", "warm", "warm.json"), "grown"),
    Job("cv", f"cv s --folds 3 --inner 2 --json {TRAINING}", ("s",)),
    Job("tune", f"tune c --folds 2 --costs 0.1,1 --inner 2 --json {TRAINING}", ("c",)),
    Job("tune to a model", f"tune s -o m --folds 2 --costs 0.1,1 --inner 2 --json {TRAINING}", ("s",), models=("m",)),
    train("streamed dual", "--inner 2", ("big",), "big", STREAMING, slow=True),
    train("streamed newton", "--solver newton --loss logistic", ("big",), "big", STREAMING, slow=True),
    train("streamed columns", "--solver primal", ("big",), "big", STREAMING, slow=True),
    train("streamed text", "--inner 2 --codec none", ("big.svm",), "big.svm", STREAMING, slow=True),
]

WRITERS = [
    Job("predict", "predict old a.svm -o out.txt --probability --memory 16M", ("old", "old.json", "a.svm", "out.txt")),
    Job("unpack", "unpack s -o out.txt", ("s", "out.txt")),
    Job("generate", "generate documents -o out.txt --rows 300 -q", ("out.txt",)),
]


def build_inputs(bench, folder: pathlib.Path):
    """The fixtures that `needs` names."""
    def run(line):
        bench.must(folder, *shlex.split(line), timeout=300)

    run(f"generate documents -o a.svm --rows {ROWS} --features 900 --nonzeros 12 --noise 0.1")
    run(f"generate documents -o more.svm --rows 150 --skip {ROWS} --features 900 --nonzeros 12 --noise 0.1")
    run("generate clusters -o c.svm --rows 900 --features 4 --classes 3 --noise 0.05")
    run("generate documents -o big.svm --rows 12000 --features 20000 --nonzeros 60 --noise 0.05")
    run("generate clusters -o dots.svm --rows 30000 --features 8 --classes 3")
    run(f"pack dots.svm -o dots {PACKING}")
    (folder / "ids").write_text("1\n5\n17\n402\n")
    (folder / "out.txt").write_text("an older file\n")
    run(f"pack a.svm -o s {PACKING}")
    run(f"pack c.svm -o c {PACKING}")
    run("pack big.svm -o big --codec none --memory 16M")
    shutil.copytree(folder / "s", folder / "i")
    run("index i --memory 16M")
    shutil.copytree(folder / "s", folder / "grown")
    run(f"train s -o warm --inner 2 --keep-state {TRAINING}")
    run(f"train s -o old --inner 2 --loss hinge --cost 0.001 --calibrate 0.4 {TRAINING}")
    for line in ("transpose grown", "index grown --memory 16M", "append grown more.svm", "remove grown --rows ids"):
        run(line)
    run(f"pack a.svm -o tagged --tag first {PACKING}")
    run("append tagged more.svm --tag old --memory 16M")
    run("compact tagged --memory 16M")  # so that rows leave by their ids
    build_changed_text(bench, folder)


def build_changed_text(bench, folder: pathlib.Path):
    """A text that is newer than the store that train made of it."""
    changed = folder / "changed"
    changed.mkdir()
    shutil.copy2(folder / "more.svm", changed / "a.svm")
    bench.must(changed, *shlex.split(f"train a.svm -o m --inner 2 {CHUNKS} {TRAINING}"))
    shutil.copy2(folder / "a.svm", changed / "a.svm")
    os.utime(changed / "a.svm", (2_000_000_000, 2_000_000_000))


def inputs(bench) -> pathlib.Path:
    return bench.fixture("inputs", lambda folder: build_inputs(bench, folder))


@dataclasses.dataclass
class Reference:
    """What a job leaves when nothing harms it."""
    files: dict
    out: bytes
    seconds: float
    before: dict  # predictions and rows of what was there before, by name
    after: dict
    code: int


def prepare(trial, job: Job):
    for need in job.needs:
        source, _, name = need.partition("=")
        trial.copy(inputs(trial.bench) / source, name or pathlib.PurePath(source).name)


def results(folder: pathlib.Path) -> dict:
    """A snapshot without what depends on the clock."""
    found = harness.snapshot(folder)
    for name in list(found):
        path = folder / name
        if path.name in ("BUILT", "LOCK"):  # seconds, and the name of a holder that was killed
            del found[name]
        elif path.suffix == ".json" and path.is_file():
            found[name] = ("json", harness.json_facts(path.read_bytes()))
    return found


def answers(trial, job: Job) -> dict:
    """What a reader makes of the job's models and stores; None where there is none, text where one is refused."""
    found = {}
    for model in job.models:
        found[model] = None
        if (trial.folder / model).exists():
            probe = str(inputs(trial.bench) / "more.svm")
            outcomes = [trial.run("predict", model, probe, option, "-q") for option in ("--scores", "--probability")]
            found[model] = [(one.code, one.out) for one in outcomes]
    for store in job.stores:
        found[store] = None
        if (trial.folder / store / "MANIFEST").exists():
            verified, rows = trial.run("verify", store, "-q"), trial.run("unpack", store, "-q")
            trial.expect(verified.code == 0, f"the store '{store}' must be whole: {verified.words()}")
            found[store] = [(rows.code, rows.out)]
    return found


def reference(bench, job: Job) -> Reference:
    def build():
        trial = bench.trial("reference", JOBS.index(job) if job in JOBS else len(JOBS) + WRITERS.index(job))
        prepare(trial, job)
        before = answers(trial, job)
        done = trial.must(*job.words, timeout=120)
        after = answers(trial, job)
        for line in job.after:
            trial.must(*shlex.split(line))
        made = Reference(results(trial.folder), done.out, done.seconds, before, after, done.code)
        trial.forget()
        return made
    return bench.once("reference " + job.name, build)


def old_or_new(trial, job: Job, want: Reference):
    """No reader may ever see a mixture."""
    found = answers(trial, job)
    for name, answer in found.items():
        trial.expect(answer in (want.before[name], want.after[name]),
                     f"'{name}' is neither the old nor the new one")


def is_done(trial, job: Job) -> bool:
    return job.done is not None and job.done(trial.folder)


def finish(trial, job: Job, want: Reference):
    """The same command again, unharmed, must end as a run that nothing ever harmed."""
    if not is_done(trial, job):
        again = trial.run(*job.words, tested=True, timeout=120, log="again, unharmed")
        trial.expect(again.code == 0, f"{job.name}: the same command again must succeed: {again.words()}")
        if "--json" in job.words:
            trial.expect(harness.json_facts(again.out) == harness.json_facts(want.out),
                         f"{job.name}: the summary differs from that of an unharmed run")
    for line in job.after:
        trial.must(*shlex.split(line))
    wrong = harness.differences(want.files, results(trial.folder))
    trial.expect(not wrong, f"{job.name}: compared with an unharmed run, " + ", ".join(wrong[:6]))
