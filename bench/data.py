"""The data sets of the benches: how each is made, once, as svmlight text in the scratch folder."""
import hashlib
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import peers
from runner import Absent, RunFailed

QUICK_ROWS = 1000
RESCALE = Path(__file__).resolve().with_name("rescale.py")
TABLES = shlex.join([sys.executable, str(Path(__file__).resolve().with_name("tables.py"))])


@dataclass(frozen=True)
class Recipe:
    """A command that prints the text. {source} and {script} are files that must be there."""
    command: str
    source: str = ""  # below the folder of real data
    script: str = ""  # in tools/ beside that folder, or in it
    module: str = ""  # a Python module the command needs
    rescale: str = ""  # what rescale.py does to the text, if anything
    large: bool = False  # minutes a run: fewer of them, and none in a quick bench


def generated(kind: str, rows: int, options: str = "") -> Recipe:
    return Recipe(f"{{linblock}} generate {kind} -o - --rows {rows} {options} -q")


def tested(name: str, train: Recipe, test: Recipe) -> dict[str, Recipe]:
    """"NAME.test" is what a model of NAME is tested on."""
    return {name: train, f"{name}.test": test}


def real(name: str, train: str, test: str = "", rescale: str = "", large: bool = False) -> dict[str, Recipe]:
    """Without a test file every fifth row is one: some are sorted, so that no part alone is like the rest."""
    parts = ((train, rescale), (test, rescale)) if test else ((train, f"{rescale} --part train"), (train, f"{rescale} --part test"))
    return tested(name, *(Recipe("{unpack} {source}", source=file, rescale=change.strip(), large=large) for file, change in parts))


def splice(name: str, lengths_and_window: str, test_rows: str = "", **more: object) -> dict[str, Recipe]:
    return tested(name, *(Recipe(f"{peers.DEBIAN_PYTHON} {{script}} {{source}} {lengths_and_window} {rows}", source=f"splice/C_elegans_acc_{part}.fasta.bz2",
                                 script="splice_expand.py", module="numpy", **more) for part, rows in (("100000", ""), ("modsel", test_rows))))


DOCUMENTS, CLASSES = "--features 1000000 --nonzeros 110", "--features 100000 --nonzeros 110 --classes 20"
NEWS, MNIST, CONNECT = ("20news/20news.train.svm", "20news/20news.test.svm"), ("mnist/mnist.svm", "mnist/mnist.t3000.svm"), "connect-4/connect-4.svm"
CLUSTERS, UNIT = "--features 54", "--unit-length"

RECIPES = {
    # Tested on the rows that follow: another seed has other classes.
    **tested("documents", generated("documents", 320_000, DOCUMENTS), generated("documents", 20_000, DOCUMENTS + " --skip 320000")),
    **tested("documents-some", generated("documents", 80_000, DOCUMENTS), generated("documents", 20_000, DOCUMENTS + " --skip 320000")),
    **tested("documents-20", generated("documents", 40_000, CLASSES), generated("documents", 10_000, CLASSES + " --skip 40000")),
    **tested("clusters", generated("clusters", 500_000, CLUSTERS), generated("clusters", 100_000, CLUSTERS + " --skip 500000")),
    "documents-many": generated("documents", 1_000_000, DOCUMENTS),
    "documents-long": generated("documents", 200_000, "--features 50000 --nonzeros 400"),
    "dense": generated("dense", 265_000, "--features 100"),
    "scales": Recipe(f"{TABLES} scales 200000"),  # a table that nobody has scaled
    "counts": Recipe(f"{TABLES} counts 50000"),  # of words, not normalized
    **real("20news", *NEWS),
    **real("20news-1", *NEWS, "--positive 1"),  # the first group against the other 19
    **real("a9a", "a9a/a9a.svm", "a9a/a9a.t.svm"),
    **real("connect-4", CONNECT),
    **real("connect-4-two", CONNECT, rescale="--positive 2"),  # who plays first wins, or not
    **real("ijcnn1", "ijcnn1/ijcnn1.svm", "ijcnn1/ijcnn1.t.svm"),
    **real("imdb", "imdb/imdb.train.svm", "imdb/imdb.test8000.svm"),
    **real("kddcup99", "kddcup99/kddcup99.svm", "kddcup99/kddcup99.t.svm", "--positive 1"),  # normal against all attacks
    **real("letter", "letter/letter.scale.svm", "letter/letter.scale.t.svm"),
    **real("mnist", *MNIST, "--positive 1 --divide 255"),  # the digit 1 against the others
    **real("mnist-digits", *MNIST, "--divide 255"),  # all ten
    **real("mnist-raw", *MNIST, "--positive 1"),
    **real("pendigits", "pendigits/pendigits.svm", "pendigits/pendigits.t.svm"),
    **real("sector", "sector/sector.scale.svm", "sector/sector.t.scale.svm"),
    **real("w8a", "w8a/w8a.svm", "w8a/w8a.t.svm"),
    **splice("splice", "6 6 141"),
    **splice("splice-unit", "6 6 141", rescale=UNIT),
    **splice("splice-large", "1 8 398", "10000", rescale=UNIT, large=True),
    # The papers' own, by their names on the LIBSVM data page, where somebody has them (docs/data.md); of rcv1 the larger file is trained on.
    **{name: recipe for files in (("webspam", "webspam_wc_normalized_trigram.svm"), ("kddcup10", "kddb", "kddb.t"), ("news20", "news20.binary"),
                                  ("epsilon", "epsilon_normalized", "epsilon_normalized.t"), ("rcv1", "rcv1_test.binary", "rcv1_train.binary"),
                                  ("real-sim", "real-sim"), ("covtype", "covtype.libsvm.binary.scale"), ("mnist8m", "mnist8m.scale", "", "--positive 1"))
       for name, recipe in real(*files, large=True).items()},
}
UNPACK = {"": "cat", ".xz": "xz -dcq", ".bz2": "bzip2 -dcq", ".zst": "zstd -dcq", ".gz": "gzip -dcq"}
# Other forms of a text, by the place that programs ask for: how its file ends, and what makes it.
FORMS = {
    "vw_text": (".vw", "sed 's/ / | /' {text}"),  # Vowpal Wabbit has a bar between the label and the features
    "sorted": (".sorted.svm", "sort -s -n -k1,1 {text}"),  # by label
    "first_rows": (".first.svm", "head -n -$(($(wc -l <{text}) / 10)) {text}"),  # for data that changes
    "last_rows": (".last.svm", "tail -n $(($(wc -l <{text}) / 10)) {text}"),
    "every_tenth": (".ids", "seq 0 10 $(($(wc -l <{text}) - 1))"),
}


def make(name: str, scratch: Path, real_data: Path | None, linblock: str, quick: bool) -> Path:
    """The text of a data set, made unless a complete one is there already. Throws Absent."""
    recipe = RECIPES[name]
    if quick and recipe.large:
        raise Absent("too large for a quick run")
    # The recipe is part of the name, so that text made by an older one is not taken for it.
    rows = QUICK_ROWS if quick else None
    text = scratch / f"{name}-{hashlib.sha256(repr((recipe, rows)).encode()).hexdigest()[:8]}.svm"
    if not text.exists():
        script = script_of(recipe, real_data, linblock)
        write_text(f"{script} | head -n {rows}" if rows else f"set -o pipefail; {script}", text)  # before head, all end by a broken pipe
    return text


def form_of(text: Path, form: str) -> Path:
    """Beside the text, made once."""
    ending, script = FORMS[form]
    made = text.with_suffix(ending)
    if not made.exists():
        write_text(script.format(text=shlex.quote(str(text))), made)
    return made


def script_of(recipe: Recipe, real_data: Path | None, linblock: str) -> str:
    places = {"linblock": linblock}
    if recipe.source:
        if real_data is None:
            raise Absent("real data, and neither --data nor LINBLOCK_DATA names a folder")
        places["source"] = first_of([recipe.source + ending for ending in UNPACK], real_data)
    if recipe.script:
        places["script"] = first_of([recipe.script], real_data.resolve().parent / "tools", real_data)
    unpack = UNPACK.get(Path(places.get("source", "")).suffix, UNPACK[""])
    script = recipe.command.format(unpack=unpack, **{name: shlex.quote(path) for name, path in places.items()})
    program = shlex.split(script)[0]
    if shutil.which(program) is None:
        raise Absent(f"the program {program} is not here")
    if not peers.has_modules(program, (recipe.module,) * bool(recipe.module)):
        raise Absent(f"{program} has no module {recipe.module}")
    return script + (f" | {shlex.join([sys.executable, str(RESCALE)])} {recipe.rescale}" if recipe.rescale else "")


def first_of(names: Sequence[str], *folders: Path) -> str:
    for path in (folder / name for folder in folders for name in names):
        if path.exists():
            return str(path)
    raise Absent(f"no {names[0]} with the real data")


def write_text(script: str, text: Path) -> None:
    """What it prints; under another name until it is complete, and on the disk before anything is timed beside it."""
    print(f"making {text.name}", file=sys.stderr)
    partial = text.with_suffix(".partial")
    partial.unlink(missing_ok=True)  # the commands of a bench that was killed may still write to it
    with partial.open("wb") as file:
        done = subprocess.run(["bash", "-c", script], stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.PIPE)
        os.fsync(file.fileno())
    if done.returncode or not partial.stat().st_size:
        partial.unlink()
        raise RunFailed(["bash", "-c", script], f"exit code {done.returncode}, or nothing was printed", done.stderr.decode(errors="replace"))
    partial.rename(text)
