#!/usr/bin/env python3
"""A new method is one folder and one word in the list.

usage: add_method_test.py --commands build/dev/compile_commands.json     compiles the list and the new method alone
       add_method_test.py --build FOLDER                                 builds the program there, and uses the method

A copy of the tree gets a method `copycat`: pegasos under another name, in a folder of its own, with one include and one
word in solve/methods.h. The whole form takes minutes: `./run extend`.
"""
import argparse
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]


def add_method(tree: pathlib.Path):
    """All that a stranger would touch: two new files, and solve/methods.h."""
    folder = tree / "src/solve/copycat"
    folder.mkdir(exist_ok=True)
    for suffix in (".h", ".cc"):
        text = (tree / f"src/solve/baselines/pegasos{suffix}").read_text()
        text = text.replace("solve/baselines/pegasos.h", "solve/copycat/copycat.h")
        text = re.sub(r"\bPegasos\b", "Copycat", text).replace('"pegasos"', '"copycat"')
        text = re.sub(r"\bStepRows\b", "CopycatRows", text)
        (folder / f"copycat{suffix}").write_text(text)
    methods = tree / "src/solve/methods.h"
    text = methods.read_text()
    text = text.replace('#include "solve/columns/cmls.h"', '#include "solve/columns/cmls.h"\n#include "solve/copycat/copycat.h"')
    text, count = re.subn(r"(using Methods =\s*List<[^>]*)>", r"\1, Copycat>", text)
    assert count == 1 and "copycat" in text
    methods.write_text(text)


def copy_tree(to: pathlib.Path):
    """Without git: a machine that only builds may not have it."""
    files = [ROOT / "CMakeLists.txt", ROOT / "CMakePresets.json"]
    for folder in ("src", "apps", "bench"):
        files += [file for file in (ROOT / folder).rglob("*") if file.is_file() and "__pycache__" not in file.parts]
    for source in files:
        target = to / source.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        if not target.exists() or target.read_bytes() != source.read_bytes():
            shutil.copy2(source, target)


def check(ok, what):
    print(("ok " if ok else "FAILED ") + what)
    if not ok:
        sys.exit(1)


def compile_alone(tree: pathlib.Path, commands: pathlib.Path):
    entry = next(e for e in json.loads(commands.read_text()) if e["file"].endswith("src/solve/methods.cc"))
    words = [w for w in shlex.split(entry["command"].replace(str(ROOT), str(tree))) if w not in ("ccache",)]
    words = words[: words.index("-o")] + ["-fsyntax-only"]
    words = [w for w in words if not w.startswith(("-MD", "-MT", "-MF"))]
    for source in ("src/solve/methods.cc", "src/solve/solve.cc", "src/solve/copycat/copycat.cc"):
        done = subprocess.run([w for w in words if not w.endswith((".o", ".d"))] + [str(tree / source)], capture_output=True,
                              text=True)
        check(done.returncode == 0, f"{source} compiles{chr(10) + done.stderr[-3000:] if done.returncode else ''}")


def use(program: pathlib.Path):
    with tempfile.TemporaryDirectory() as folder:
        def call(*words, expect=0):
            done = subprocess.run([program, *words], cwd=folder, capture_output=True, text=True)
            check(done.returncode == expect, f"{' '.join(words)}: exit {done.returncode}\n{done.stderr[-500:]}"
                  if done.returncode != expect else " ".join(words))
            return done.stdout + done.stderr

        call("generate", "documents", "-o", "x.svm", "--rows", "2000", "--features", "300", "--nonzeros", "10")
        check("copycat" in call("train", "--help"), "it is in --help")
        plan = call("train", "x.svm", "-o", "m", "--loss", "hinge", "--solver", "copycat", "--dry-run")
        check("copycat" in plan and "weights" in plan, "it has a plan")
        refusal = call("train", "x.svm", "-o", "m", "--loss", "logistic", "--solver", "copycat", expect=2)
        check("copycat needs a loss that is zero beyond the margin" in refusal, "it refuses a loss")
        cv = call("cv", "x.svm", "--loss", "hinge", "--solver", "copycat", "--max-passes", "3", "--json")
        check('"solver":"copycat"' in cv.replace(" ", ""), "it is in cv")
        # A checkpoint: stopped at once, it resumes, and the option is part of the run's identity.
        long = ["train", "x.svm", "-o", "m", "--loss", "hinge", "--solver", "copycat", "--checkpoint-seconds", "0"]
        train = [*long, "--max-passes", "40"]
        running = subprocess.Popen([program, *long, "--max-passes", "100000"], cwd=folder, stderr=subprocess.PIPE, text=True)
        for line in running.stderr:
            if "pass" in line and "3 " in line:
                break
        running.terminate()
        running.wait()
        check(running.returncode == 130, "it stops with a checkpoint")
        check("step: row then, 7 now" in call(*train, "--step", "7", expect=2), "its options are part of a run's identity")
        check("checkpoint" in call(*train), "it resumes from a checkpoint")


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--commands", type=pathlib.Path)
    options.add_argument("--build", type=pathlib.Path)
    given = options.parse_args()
    if given.commands:
        with tempfile.TemporaryDirectory() as folder:
            tree = pathlib.Path(folder) / "tree"
            copy_tree(tree)
            add_method(tree)
            compile_alone(tree, given.commands)
    if given.build:
        tree = given.build / "tree"
        copy_tree(tree)
        add_method(tree)
        subprocess.run(["cmake", "-S", tree, "-B", given.build / "build", "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
                        "-DLINBLOCK_TESTS=OFF", "-DLINBLOCK_STATIC=ON"], check=True, stdout=subprocess.DEVNULL)
        subprocess.run(["cmake", "--build", given.build / "build", "--target", "linblock"], check=True,
                       stdout=subprocess.DEVNULL)
        use((given.build / "build/linblock").resolve())
    print("passed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
