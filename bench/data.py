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
from runner import RunFailed

QUICK_ROWS = 1000
RESCALE = Path(__file__).resolve().with_name("rescale.py")


@dataclass(frozen=True)
class Recipe:
    """A command that prints the text. {source} and {script} are files that must be there."""
    command: str
    source: str = ""  # below the folder of real data
    script: str = ""  # in tools/ beside that folder, or in it
    module: str = ""  # a Python module the command needs
    rescale: str = ""  # what rescale.py does to the text, if anything
    large: bool = False  # minutes a run: fewer of them, and none in a quick bench


def documents(rows: int, options: str) -> Recipe:
    return Recipe(f"{{linblock}} generate documents -o - --rows {rows} {options} -q")


def clusters(rows: int, options: str = "") -> Recipe:
    return Recipe(f"{{linblock}} generate clusters -o - --rows {rows} --features 54 {options} -q")


def real(source: str, **more) -> Recipe:
    return Recipe(f"{'xz' if source.endswith('.xz') else 'zstd'} -dcq {{source}}", source=source, **more)


def public(file: str, **more) -> Recipe:
    """A file of the LIBSVM data page, by its name there, compressed in whatever way or not (docs/data.md)."""
    return Recipe("{unpack} {source}", source=file, large=True, **more)


def splice(part: str, lengths_and_window: str, **more) -> Recipe:
    return Recipe(peers.DEBIAN_PYTHON + " {script} {source} " + lengths_and_window, source=f"splice/C_elegans_acc_{part}.fasta.bz2",
                  script="splice_expand.py", module="numpy", **more)


DOCUMENTS, CLASSES = "--features 1000000 --nonzeros 110", "--features 100000 --nonzeros 110 --classes 20"

# "NAME.test" is what a model of NAME is tested on.
RECIPES = {
    "documents": documents(320_000, DOCUMENTS),
    "documents.test": documents(20_000, DOCUMENTS + " --skip 320000"),  # the rows that follow; another seed has other classes
    "documents-many": documents(1_000_000, DOCUMENTS),
    "documents-some": documents(80_000, DOCUMENTS),
    "documents-long": documents(200_000, "--features 50000 --nonzeros 400"),  # primal.py says why
    "documents-20": documents(40_000, CLASSES),
    "documents-20.test": documents(10_000, CLASSES + " --skip 40000"),
    "clusters": clusters(2_000_000),
    "clusters.test": clusters(100_000, "--skip 2000000"),
    "clusters-10": clusters(200_000, "--classes 10"),
    "dense": Recipe("{linblock} generate dense -o - --rows 265000 --features 100 -q"),
    "20news": real("20news/20news.train.svm.zst"),
    "20news.test": real("20news/20news.test.svm.zst"),
    "20news-1": real("20news/20news.train.svm.zst", rescale="--positive 1"),  # the first group against the other 19
    "a9a": real("a9a/a9a.svm.xz"),
    "connect-4": real("connect-4/connect-4.svm.xz", rescale="--part train"),  # sorted by position: no part alone is like the rest
    "connect-4.test": real("connect-4/connect-4.svm.xz", rescale="--part test"),
    "connect-4-first": real("connect-4/connect-4.svm.xz", rescale="--positive 2"),  # who plays first wins, or not
    "connect-4-two": real("connect-4/connect-4.svm.xz", rescale="--positive 2 --part train"),  # the same, with a test
    "connect-4-two.test": real("connect-4/connect-4.svm.xz", rescale="--positive 2 --part test"),
    "ijcnn1": real("ijcnn1/ijcnn1.svm.xz"),
    "ijcnn1.test": real("ijcnn1/ijcnn1.t.svm.xz"),
    "imdb": real("imdb/imdb.train.svm.zst"),
    "imdb.test": real("imdb/imdb.test8000.svm.zst"),
    "kddcup99": real("kddcup99/kddcup99.svm.zst", rescale="--positive 1"),  # normal against all attacks
    "kddcup99.test": real("kddcup99/kddcup99.t.svm.zst", rescale="--positive 1"),
    "letter": real("letter/letter.scale.svm.xz"),
    "letter.test": real("letter/letter.scale.t.svm.xz"),
    "mnist": real("mnist/mnist.svm.zst", rescale="--positive 1 --divide 255"),  # the digit 1 against the others
    "mnist.test": real("mnist/mnist.t3000.svm.zst", rescale="--positive 1 --divide 255"),
    "mnist-digits": real("mnist/mnist.svm.zst", rescale="--divide 255"),  # all ten
    "mnist-digits.test": real("mnist/mnist.t3000.svm.zst", rescale="--divide 255"),
    "pendigits": real("pendigits/pendigits.svm.xz"),
    "pendigits.test": real("pendigits/pendigits.t.svm.xz"),
    "sector": real("sector/sector.scale.svm.xz"),
    "sector.test": real("sector/sector.t.scale.svm.xz"),
    "splice": splice("100000", "6 6 141"),
    "splice.test": splice("modsel", "6 6 141"),
    "splice-unit": splice("100000", "6 6 141", rescale="--unit-length"),
    "splice-unit.test": splice("modsel", "6 6 141", rescale="--unit-length"),
    "splice-large": splice("100000", "1 8 398", rescale="--unit-length", large=True),
    "splice-large.test": splice("modsel", "1 8 398 10000", rescale="--unit-length", large=True),
    "w8a": real("w8a/w8a.svm.xz"),
    # The papers' own, where somebody has them. Those without a test file of their own are split.
    "kddcup10": public("kddb"),
    "kddcup10.test": public("kddb.t"),
    "epsilon": public("epsilon_normalized"),
    "epsilon.test": public("epsilon_normalized.t"),
    "rcv1": public("rcv1_test.binary"),  # the larger one is trained on
    "rcv1.test": public("rcv1_train.binary"),
    **{f"{name}{ending}": public(file, rescale=f"--part {part}") for part, ending in (("train", ""), ("test", ".test")) for name, file in
       (("webspam", "webspam_wc_normalized_trigram.svm"), ("news20", "news20.binary"), ("real-sim", "real-sim"),
        ("covtype", "covtype.libsvm.binary.scale"), ("mnist8m", "mnist8m.scale"))},
}
UNPACK = {"": "cat", ".xz": "xz -dcq", ".bz2": "bzip2 -dcq", ".zst": "zstd -dcq", ".gz": "gzip -dcq"}


class Absent(Exception):
    """Why a data set cannot be had here: not an error, it is named and left out."""


def make(name: str, scratch: Path, real_data: Path | None, linblock: str, quick: bool) -> Path:
    """The text of a data set, made unless a complete one is there already. Throws Absent."""
    recipe = RECIPES[name]
    if quick and recipe.large:
        raise Absent("too large for a quick run")
    # The recipe is part of the name, so that text made by an older one is not taken for it.
    rows = QUICK_ROWS if quick else None
    digest = hashlib.sha256(repr((recipe, rows)).encode()).hexdigest()[:8]
    text = scratch / f"{name}-{digest}.svm"
    if not text.exists():
        write_text(pipeline_of(recipe, real_data, linblock), text, rows)
    return text


def for_vw(text: Path) -> Path:
    """The same rows as Vowpal Wabbit reads them: a bar between the label and the features."""
    return made_from(text, ".vw", ["sed", "s/ / | /", str(text)])


def changes_of(text: Path) -> dict[str, Path]:
    """For data that changes: its last tenth, the rows before that, and the ids of every tenth row."""
    with text.open("rb") as file:
        rows = sum(1 for _ in file)
    first, last = rows - rows // 10, rows // 10
    return {
        "first_rows": made_from(text, ".first.svm", ["head", "-n", str(first), str(text)]),
        "last_rows": made_from(text, ".last.svm", ["tail", "-n", str(last), str(text)]),
        "every_tenth": made_from(text, ".ids", ["seq", "0", "10", str(rows - 1)]),
    }


def made_from(text: Path, ending: str, command: list[str]) -> Path:
    """What the command prints, beside the text, made once."""
    made = text.with_suffix(ending)
    if not made.exists():
        write_text([command], made, rows=None)
    return made


def pipeline_of(recipe: Recipe, real_data: Path | None, linblock: str) -> list[list[str]]:
    rescale = [[sys.executable, str(RESCALE), *recipe.rescale.split()]] if recipe.rescale else []
    return [command_of(recipe, real_data, linblock), *rescale]


def command_of(recipe: Recipe, real_data: Path | None, linblock: str) -> list[str]:
    places = {"linblock": linblock}
    if recipe.source:
        if real_data is None:
            raise Absent("real data, and neither --data nor LINBLOCK_DATA names a folder")
        endings = UNPACK if "{unpack}" in recipe.command else ("",)
        places["source"] = first_of([recipe.source + ending for ending in endings], real_data)
        places["unpack"] = UNPACK.get(Path(places["source"]).suffix, UNPACK[""])
    if recipe.script:
        places["script"] = first_of([recipe.script], real_data.resolve().parent / "tools", real_data)
    program, *words = shlex.split(recipe.command.format(**{name: shlex.quote(value) if name != "unpack" else value for name, value in places.items()}))
    if shutil.which(program) is None:
        raise Absent(f"the program {program} is not here")
    if recipe.module and not peers.has_module(program, recipe.module):
        raise Absent(f"{program} has no module {recipe.module}")
    return [program, *words]


def first_of(names: Sequence[str], *folders: Path) -> str:
    for path in (folder / name for folder in folders for name in names):
        if path.exists():
            return str(path)
    raise Absent(f"no {names[0]} with the real data")


def write_text(pipeline: list[list[str]], text: Path, rows: int | None) -> None:
    """What the last command prints, or its first rows; under another name until it is complete, and on the disk before anything is timed
    beside it."""
    partial = text.with_suffix(".partial")
    partial.unlink(missing_ok=True)  # the commands of a bench that was killed may still write to it
    commands = " | ".join(map(shlex.join, pipeline))
    script = f"{commands} | head -n {rows}" if rows else f"set -o pipefail; {commands}"  # before head, all end by a broken pipe
    with partial.open("wb") as file:
        done = subprocess.run(["bash", "-c", script], stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.PIPE)
        os.fsync(file.fileno())
    if done.returncode or not partial.stat().st_size:
        partial.unlink()
        said = done.stderr.decode(errors="replace")
        raise RunFailed(["bash", "-c", script], f"exit code {done.returncode}, or nothing was printed", said)
    partial.rename(text)


def warm(text: Path) -> None:
    """Reads a file once, so that every program finds it in the page cache."""
    with text.open("rb", buffering=0) as file:
        while file.read(1 << 20):
            pass
