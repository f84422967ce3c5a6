"""Forged fields with right checksums: refused or harmless, but never a crash, a hang or memory without bound."""
import json
import os
import random
import shlex
import signal

import forgery
import harness
import manifests

TIMEOUT, TIMEOUT_WITH_ASAN = 20, 60
MOST_KILOBYTES = 300_000
ADDRESS_SPACE = 4 << 30
TRAINING = "--max-passes 3 --memory 16M --checkpoint-seconds 0"
READERS = [
    "info s --json", "verify s", "unpack s -o out.txt --weights out.weights", "predict m s", "evaluate m s",
    f"train s -o t --solver dual {TRAINING}", f"train s -o t --solver newton {TRAINING}",
    f"train s -o t --solver primal {TRAINING}", f"train s -o t --solver primal --loss logistic {TRAINING}",
    f"train s -o t --solver indexed --loss hinge {TRAINING}", f"train s -o t --inner 2 --warm m {TRAINING}",
    f"train s -o t --solver indexed --truncate none {TRAINING}", f"train s -o t --inner 2 --truncate 1 {TRAINING}",
    f"cv s --folds 2 {TRAINING}",
]
WRITERS = [
    "append s more.svm --memory 16M", "remove s --rows ids", "remove s --segment 2", "compact s --memory 16M",
    "transpose s --force --memory 16M", "index s --force --memory 16M", "transpose s", "index s",
]
# Runs that are interrupted, and what resumes them.
LONG = "--tolerance 1e-16 --cost 1000 --memory 16M --checkpoint-seconds 0.02 --max-passes 1000000"
RUNS = {
    "dual": "train s -o k --inner 2", "fixed": "train s -o k --inner 2 --schedule fixed --blocks 3",
    "newton": "train s -o k --solver newton", "primal": "train s -o k --solver primal",
    "logistic": "train s -o k --solver primal --loss logistic", "cmls": "train s -o k --solver cmls",
    "indexed": "train s -o k --solver indexed --loss hinge", "crammer": "train s -o k --multiclass crammer-singer",
    "truncated": "train s -o k --inner 2 --truncate 1", "pegasos": "train s -o k --solver pegasos --loss hinge",
    "cv": "cv s --inner 2 --folds 3", "tune": "tune s --inner 2 --folds 2 --costs 1,1000",
    "kept": "train s -o k --inner 2 --keep-state",
}
MODELS = ["predict m more.svm", "predict m more.svm --probability", "evaluate m more.svm", "predict m s --scores",
          f"train s -o t --solver newton --warm m {TRAINING}", f"train s -o m --inner 2 --warm m {TRAINING}"]


def trial(t):
    material = t.bench.fixture("forged", lambda folder: build(t.bench, folder))
    kind = t.random.choice(["manifest"] * 5 + ["store"] * 5 + ["checkpoint"] * 4 + ["state", "model", "metadata"])
    for name in ("s", "m", "m.json", "m.state", "more.svm", "ids"):
        t.copy(material / name)
    said, lines = FORGERS[kind](t, material)
    t.note(f"# forged {kind}: {said}; the forged files are in work/ or made by the trial itself")
    refused = 0
    for line in lines:
        refused += check(t, f"{kind} {said}", line) == harness.DAMAGED
        if kind == "manifest" and refused >= 2:
            break  # it is refused when the store is opened, by all commands alike


def forge_manifest(t, material):
    """No lie comes twice before most have come once."""
    lies = t.bench.once("lies", lambda: shuffled(t.bench.seed, forgery.all_lies(material / "s")))
    said = forgery.forge_manifest(t.folder / "s", lies[t.number % len(lies)])
    return said, t.random.sample(READERS, 6) + t.random.sample(WRITERS, 2)


def shuffled(seed, items):
    return random.Random(seed).sample(items, len(items))


def forge_store(t, material):
    said = forgery.forge_store(t.random, t.folder / "s")
    return said, t.random.sample(READERS, 4) + t.random.sample(WRITERS, 2)


def forge_checkpoint(t, material):
    run = t.random.choice(sorted(RUNS))
    source = t.bench.fixture("killed " + run, lambda folder: interrupt(t.bench, material, folder, RUNS[run]))
    for path in sorted(source.iterdir()):
        t.copy(path)
    snapshots = [path for path in t.folder.glob("*.checkpoint/*")
                 if path.read_bytes()[:8] == manifests.SNAPSHOT_MAGIC]
    if not snapshots:
        return "nothing: no checkpoint was left", []
    said = forgery.forge_snapshot(t.random, t.random.choice(sorted(snapshots)))
    return f"of {run}: {said}", [resuming(RUNS[run])]


def forge_state(t, material):
    said = forgery.forge_snapshot(t.random, t.folder / "m.state")
    if t.random.random() < 0.5:
        t.must("append", "s", "more.svm", "-q")
    return said, [f"train s -o t --inner 2 --cost 10 --warm m --keep-state {TRAINING}"]


def forge_model(t, material):
    text = (t.folder / "m").read_text().split(" ")
    place = t.random.randrange(min(12, len(text)) if t.random.random() < 0.5 else len(text))
    old = text[place]
    text[place] = t.random.choice(["0", "-1", "nan", "1e999", str(2**32), str(2**62), "", "x" * 300000, old + " " + old])
    t.write("m", " ".join(text).encode())
    return f"word {place}: {old[:20]!r} -> {text[place][:20]!r}", t.random.sample(MODELS, 4)


def forge_metadata(t, material):
    value = json.loads((t.folder / "m.json").read_bytes())
    said = forgery.forge_json(t.random, value)
    t.write("m.json", json.dumps(value).encode())
    return said, t.random.sample(MODELS, 4)


FORGERS = {"manifest": forge_manifest, "store": forge_store, "checkpoint": forge_checkpoint, "state": forge_state,
           "model": forge_model, "metadata": forge_metadata}


def check(t, forged, line) -> int:
    asan = t.programs.asan
    how = {"timeout": TIMEOUT_WITH_ASAN} if asan else {"timeout": TIMEOUT, "address_space": ADDRESS_SPACE}
    end = t.run(*shlex.split(line), program=asan, **how)
    where = f"{forged}; linblock {line}"
    t.expect(not end.timed_out, f"{where}: no end within {how['timeout']} s")
    t.expect(not any(word in end.err for word in harness.SANITIZER_WORDS), f"{where}: {sanitizer_line(end.err)}")
    t.expect(end.code == 0 or end.code in harness.REFUSALS, f"{where}: {end.words()}")
    t.expect(asan or end.peak_kilobytes < MOST_KILOBYTES, f"{where}: {end.peak_kilobytes} KB of memory")
    return end.code


def sanitizer_line(err: bytes) -> str:
    lines = err.decode(errors="replace").splitlines()
    bad = [line for line in lines if "ERROR:" in line or "runtime error:" in line or line.lstrip().startswith("#")]
    return " ".join(bad[:6])[:600]


def build(bench, folder):
    """A store with two segments, removed rows, weights, three labels, frequent features, columns and an index."""
    def run(line):
        bench.must(folder, *shlex.split(line))

    run("generate documents -o a.svm --rows 300 --features 400 --nonzeros 10 --classes 3 --noise 0.1")
    run("generate documents -o more.svm --rows 60 --skip 300 --features 400 --nonzeros 10 --classes 3")
    (folder / "weights").write_text("".join(f"{1 + row % 3}\n" for row in range(300)))
    (folder / "weights.more").write_text("0.5\n" * 60)
    (folder / "ids").write_text("3\n77\n")
    (folder / "ids.first").write_text("5\n8\n310\n")
    run("pack a.svm -o s --weights weights --codec none --chunk-bytes 4K --memory 16M")
    run("append s more.svm --weights weights.more")
    run("remove s --rows ids.first")
    run("transpose s --memory 16M")
    run("index s --memory 16M --tree-rows 120 --page-bytes 4K")
    run(f"train s -o m --inner 2 --cost 10 --keep-state {TRAINING}")


def interrupt(bench, material, folder, line):
    """What an interrupted run leaves: its checkpoint, beside the store that it read."""
    work = folder / "work"
    work.mkdir()
    for name in ("s", "m"):
        os.symlink(material / name, work / name)
    words = trimmed(shlex.split(f"{line} {LONG}"))
    for seconds in (0.15, 0.4, 1.5):
        harness.execute([bench.programs.linblock, *words], cwd=work, send=(seconds, signal.SIGINT))
        found = [path for path in work.iterdir() if path.name.endswith(".checkpoint")]
        if found:
            break
    for path in found:
        path.rename(folder / path.name)
    os.unlink(work / "s")
    os.unlink(work / "m")
    for path in work.iterdir():
        path.unlink()
    work.rmdir()


def trimmed(words):
    """tune chooses the cost itself."""
    if words[0] != "tune":
        return words
    place = words.index("--cost")
    return words[:place] + words[place + 2:]


def resuming(line):
    return shlex.join(trimmed(shlex.split(f"{line} {LONG} --max-seconds 0.3 --json")))
