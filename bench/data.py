"""The data sets of the benches: how each is made, once, as svmlight text in the scratch folder."""
import hashlib
import itertools
import os
import shlex
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

import peers
from runner import RunFailed

QUICK_ROWS = 2000


@dataclass(frozen=True)
class Recipe:
    """A command that prints the text. {source} and {script} are files that must be there."""
    command: str
    source: str = ""  # below the folder of real data
    script: str = ""  # in tools/ beside that folder, or in it
    module: str = ""  # a Python module the command needs


RECIPES = {
    "documents": Recipe("{linblock} generate documents -o - --rows 320000 --features 1000000 --nonzeros 110 -q"),
    "dense": Recipe("{linblock} generate dense -o - --rows 265000 --features 100 -q"),
    "imdb": Recipe("zstd -dcq {source}", source="imdb/imdb.train.svm.zst"),
    "splice": Recipe(
        peers.DEBIAN_PYTHON + " {script} {source} 6 6 141",
        source="splice/C_elegans_acc_100000.fasta.bz2",
        script="splice_expand.py",
        module="numpy",
    ),
}


class Absent(Exception):
    """Why a data set cannot be had here: not an error, it is named and left out."""


def make(name: str, scratch: Path, real_data: Path | None, linblock: str, quick: bool) -> Path:
    """The text of a data set, made unless a complete one is there already. Throws Absent."""
    recipe = RECIPES[name]
    # The recipe is part of the name, so that text made by an older one is not taken for it.
    rows = QUICK_ROWS if quick else None
    digest = hashlib.sha256(repr((recipe, rows)).encode()).hexdigest()[:8]
    text = scratch / f"{name}-{digest}.svm"
    if not text.exists():
        write_text(command_of(recipe, real_data, linblock), text, rows)
    return text


def command_of(recipe: Recipe, real_data: Path | None, linblock: str) -> list[str]:
    places = {"linblock": linblock}
    if recipe.source:
        if real_data is None:
            raise Absent("real data, and neither --data nor LINBLOCK_DATA names a folder")
        places["source"] = first_of(recipe.source, real_data)
    if recipe.script:
        places["script"] = first_of(recipe.script, real_data.resolve().parent / "tools", real_data)
    program, *words = [word.format(**places) for word in shlex.split(recipe.command)]
    if shutil.which(program) is None:
        raise Absent(f"the program {program} is not here")
    if recipe.module and not peers.has_module(program, recipe.module):
        raise Absent(f"{program} has no module {recipe.module}")
    return [program, *words]


def first_of(name: str, *folders: Path) -> str:
    for folder in folders:
        if (folder / name).exists():
            return str(folder / name)
    raise Absent(f"no {name} with the real data")


def write_text(command: list[str], text: Path, rows: int | None) -> None:
    """Under another name until it is complete, and on the disk before anything is timed beside it."""
    partial = text.with_suffix(".partial")
    try:
        with partial.open("wb") as file:
            print_into(file, command, rows)
            file.flush()
            os.fsync(file.fileno())
        partial.rename(text)
    finally:
        partial.unlink(missing_ok=True)


def print_into(file, command: list[str], rows: int | None) -> None:
    with tempfile.TemporaryFile() as stderr:
        if rows is None:
            code = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=file, stderr=stderr).returncode
        else:
            code = print_first_rows(file, command, rows, stderr)
        if code != 0:
            stderr.seek(0)
            raise RunFailed(command, f"exit code {code}", stderr.read().decode(errors="replace"))


def print_first_rows(file, command: list[str], rows: int, stderr) -> int:
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=stderr) as process:
        file.writelines(itertools.islice(process.stdout, rows))
        more = process.stdout.readline()
        if more:
            process.kill()
        code = process.wait()
    return 0 if more else code  # without more rows it ended by itself, perhaps badly


def warm(text: Path) -> None:
    """Reads a file once, so that every program finds it in the page cache."""
    with text.open("rb", buffering=0) as file:
        while file.read(1 << 20):
            pass
