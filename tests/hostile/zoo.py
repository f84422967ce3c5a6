"""Files that a careless or unlucky person may have lying around, and what linblock may do to each of them."""
import gzip
import os
import pathlib
import shutil
import signal

import harness
import jobs

ODD_NAME = os.fsdecode(b"in/not\xffutf8.svm")
SPACED_NAME = "in/two words.svm"
LINES_NAME = "in/two\nlines.svm"
TEXT_INPUTS = ["in/a.svm", "in/b.svm", ODD_NAME, SPACED_NAME, LINES_NAME, "in/a.svm.gz", "in/bad.svm", "in/empty.svm"]
STORES = ["s", "c", "in/a.svm.linblock", "planted"]
MODELS = ["m", "old", "foreign.model"]
FOREIGN = ["n.new", "n.json", "n.state", "n.json.new", "n.checkpoint/notes.txt", "m.new", "home/letter.txt",
           "home/photos/cat.jpg", "home/STATE", "victim", "in/a.svm.linblock/diary.txt", "s/notes.txt", "s.cv.checkpoint/mine",
           "made.partial/mine", "made2", "made3.linblock/mine", "page.html"]
LINKS = {"link": "victim", "planted/MANIFEST.new": "../victim", "planted/segment-000003.rows": "../victim",
         "planted/segment-000003.directory": "../victim", "m.json.new": "victim", "m.state.new": "victim",
         "k.checkpoint/STATE.new": "../victim", "in/a.svm.linblock/SOURCE.new": "../../victim", "k.new": "victim",
         "planted/removed-000001": "../victim", "planted/columns/MANIFEST.new": "../../victim",
         "link.store": "s", "planted/LOCK": "../victim", "null": "/dev/null"}
# Always there. Devices by way of a link: a command that replaces what it is told to write destroys the link alone.
LASTING_LINKS = ["link", "link.store", "null"]
SIDE_INPUTS = ["weights", "ids", "run.jsonl"]
OUTPUT_NAMES = (["fresh", "n", "k", "made", "made2", "made3", "home", "home/new", ".", "", "missing/x", "null", "in", "s/MANIFEST", "s/segment-000001.rows", "s/LOCK", "s/FEATURES", "m.json", "m.state",
                 "s/new", "n.checkpoint", "n.checkpoint/STATE", "kept.checkpoint/STATE", "kept.checkpoint", "old.json",
                 "in/a.svm.linblock/SOURCE", "s.cv.checkpoint", "x" * 300, "planted/MANIFEST.new", "k.checkpoint"]
                + TEXT_INPUTS + STORES + MODELS + FOREIGN + list(LINKS) + SIDE_INPUTS)
INPUT_NAMES = (TEXT_INPUTS * 3 + STORES * 3 + MODELS + SIDE_INPUTS + ["link", "link.store", "missing", "", "null",
               "home", "s/MANIFEST", "s/columns", "c/index", "victim", "-", "n.json", "kept.checkpoint/STATE"])


def build(bench, folder: pathlib.Path):
    inputs = jobs.inputs(bench)
    for name in ("in", "n.checkpoint", "home/photos", "s.cv.checkpoint", "made.partial", "made3.linblock",
                 "k.checkpoint"):
        (folder / name).mkdir(parents=True)
    for store in ("s", "c"):
        shutil.copytree(inputs / store, folder / store)
    for model in ("old", "old.json"):
        shutil.copy2(inputs / model, folder / model)
    for suffix in ("", ".json", ".state"):
        shutil.copy2(inputs / ("warm" + suffix), folder / ("m" + suffix))
    write_texts(inputs, folder)
    bench.must(folder, "train", "in/a.svm", "-o", "kept", "--inner", "2", "--codec", "none")
    bench.must(folder, "train", "s", "-o", "kept", "--inner", "2", "--trace", "run.jsonl")
    shutil.copytree(folder / "s", folder / "planted")
    bench.must(folder, "transpose", "planted")
    bench.must(folder, "append", "planted", "in/b.svm")
    leave_checkpoint(bench, folder)
    for name in FOREIGN:
        (folder / name).write_text(f"somebody's own {name}\n")
    (folder / "foreign.model").write_text(
        "solver_type L2R_L2LOSS_SVC\nnr_class 2\nlabel 1 -1\nnr_feature 3\nbias -1\nw\n0.5 \n-1 \n2 \n")
    for name in LASTING_LINKS:
        os.symlink(LINKS[name], folder / name)


def plant(trial, folder: pathlib.Path):
    """Some of the links at names that linblock uses for its temporary files, all of which lead to the victim."""
    for name, target in LINKS.items():
        if name in LASTING_LINKS or trial.random.random() < 0.5:
            continue
        (folder / name).unlink(missing_ok=True)
        os.symlink(target, folder / name)
        trial.note(f"ln -sf {target} {name}")


def write_texts(inputs, folder):
    rows = (inputs / "a.svm").read_bytes().splitlines(keepends=True)
    for name in ("in/a.svm", ODD_NAME, SPACED_NAME, LINES_NAME):
        (folder / name).write_bytes(b"".join(rows[:200]))
    (folder / "in/b.svm").write_bytes(b"".join(rows[200:260]))
    (folder / "in/a.svm.gz").write_bytes(gzip.compress(b"".join(rows[:50])))
    (folder / "in/bad.svm").write_bytes(b"1 1:0.5\n-1 3:1 2:1\n\xff\xfe\n1 nan\n")
    (folder / "in/empty.svm").write_bytes(b"")
    (folder / "weights").write_text("1\n" * 200)
    (folder / "ids").write_text("1\n5\n")


def leave_checkpoint(bench, folder):
    """Of a run that was interrupted: its checkpoint is linblock's, and may be taken up or deleted."""
    for seconds in (0.2, 1, 3):
        harness.execute([bench.programs.linblock, "train", "s", "-o", "kept", "--inner", "2", "--max-passes", "1000000",
                         "--tolerance", "1e-16", "--cost", "1000"], cwd=folder, send=(seconds, signal.SIGINT))
        if (folder / "kept.checkpoint").exists():
            return
