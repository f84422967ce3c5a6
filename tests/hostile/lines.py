"""Random command lines among precious files: documented exit codes, and nothing lost that is not linblock's to lose."""
import os
import re
import shlex

import harness
import zoo

TIMEOUT = 20
# Lines that work, from which random ones are made. OUT is drawn from names that exist and names that do not.
TEMPLATES = [
    "pack in/a.svm -o OUT --codec none", "pack in/bad.svm -o OUT --max-bad-rows 9 --rejects OUT",
    "pack in/a.svm in/b.svm -o OUT --weights weights", "info s", "info s --json", "verify s", "verify planted",
    "unpack s -o OUT", "unpack s -o OUT --weights OUT", "append s in/b.svm", "append planted in/b.svm",
    "append s in/bad.svm --max-bad-rows 9 --rejects OUT", "remove s --rows ids", "remove planted --rows ids",
    "append s in/b.svm --tag new", "remove s --row-range 1-3", "remove s --tag new", "snapshot s OUT", "snapshot planted OUT",
    "remove planted --segment 2", "compact planted", "transpose s", "transpose planted --force", "index c",
    "train s -o OUT --inner 2", "train in/a.svm -o OUT --inner 2", "train s -o OUT --inner 2 --checkpoint OUT",
    "train in/a.svm -o OUT --inner 2 --store OUT", "train s -o OUT --keep-state --inner 2",
    "train in/a.svm -o OUT --normalize", "train s -o OUT --trace OUT", "train c -o OUT --solver newton --test c",
    "train s -o OUT --solver primal --warm m", "train s -o OUT --inner 2 --warm m", "train s -o OUT --fresh --inner 2",
    "cv s --folds 2 --inner 2", "cv s --folds 2 --inner 2 --checkpoint OUT", "cv in/a.svm --folds 2 --fresh",
    "tune s --folds 2 --costs 0.1,1 -o OUT --inner 2", "tune s --folds 2 --costs 1 --inner 2 --checkpoint OUT --fresh",
    "predict m in/a.svm -o OUT", "predict m s -o OUT --scores", "predict old in/a.svm --probability -o OUT",
    "evaluate m in/b.svm --json", "report run.jsonl -o OUT", "generate documents -o OUT --rows 50",
    "generate clusters -o OUT --rows 50 --classes 3",
]
SIZES = ["16M", "64M", "4K", "0", "1", "-1", "1K", "999999999T", "18446744073709551616", "", "nan", "1.5M", "16m"]
NUMBERS = ["0", "1", "2", "3", "-1", "7", "100", "4294967296", "18446744073709551615", "99999999999999999999", "", "1e3",
           "nan", "0x10", "2.5", "1 ", "\u0663"]
REALS = ["0", "1", "0.5", "-1", "1e-10", "1e16", "1e-320", "1e308", "1e309", "nan", "inf", "-inf", "", "0.1", "x"]
WORDS = ["hinge", "squared-hinge", "logistic", "dual", "newton", "primal", "cmls", "indexed", "pegasos", "average",
         "subsample", "one-vs-rest", "crammer-singer", "recomposed", "fixed", "permuted", "sequential", "cyclic", "once",
         "online", "auto", "stored", "fast", "library", "converge", "block", "row", "none", "lz4", "zstd", "zlib",
         "balanced", "1=2", "-1=0", "1=nan", "7=1", "=", "1=", "0", "1", "2", "", "documents", "nonsense", "0.1,1", "1:8:2",
         "8:1:2", "1:1e300:1.0001", ",", "\u00e9", os.fsdecode(b"\xff")]
# Numbers of these options decide how much is written: large ones are legal, and slow.
SMALL = {"--rows", "--features", "--nonzeros", "--classes", "--folds", "--costs", "--skip", "--threads"}
FILE_TYPES = {"FILE", "INPUT", "STORE", "MODEL", "DIR", "TRACE"}
PLAIN_OUTPUTS = {"predict": ["-o"], "unpack": ["-o", "--weights"], "generate": ["-o"], "report": ["-o"],
                 "pack": ["--rejects"], "append": ["--rejects"], "train": ["--rejects"], "cv": ["--rejects"],
                 "tune": ["--rejects"]}
TRAINERS = {"train", "cv", "tune"}
STORE_WRITERS = TRAINERS | {"append", "remove", "compact", "transpose", "index"}
OPTION = re.compile(r"^  (?:-(\w),)?(--[\w-]+)(?: ([A-Z][A-Z=]*))?", re.M)


def trial(t):
    words = random_line(t)
    t.copy(t.bench.fixture("zoo", lambda folder: zoo.build(t.bench, folder)), "zoo")
    t.note("cd zoo")
    t.folder = t.folder / "zoo"
    zoo.plant(t, t.folder)
    before = harness.snapshot(t.folder)
    end = t.run(*words, tested=True, timeout=TIMEOUT)
    shown = shlex.join(word.encode("utf-8", "backslashreplace").decode() for word in words)
    shown = f"linblock {shown}"
    t.expect(not end.timed_out, f"{shown}: no end within {TIMEOUT} s")
    t.expect(end.code in {0, *harness.REFUSALS}, f"{shown}: {end.words()}")
    t.expect(end.code == 0 or end.err or not words, f"{shown}: exit code {end.code} without a word")
    check_files(t, words, shown, before, harness.snapshot(t.folder))


def random_line(t) -> list[str]:
    words = shlex.split(t.random.choice(TEMPLATES))
    words = [t.random.choice(zoo.OUTPUT_NAMES) if word == "OUT" else word for word in words]
    options = t.bench.once("options " + words[0], lambda: options_of(t.bench, words[0]))
    for _ in range(t.random.choice([0, 0, 0, 1, 1, 2, 3])):
        words = changed(t.random, words, options)
    if words and words[0] in TRAINERS and "--max-seconds" not in words:
        words += ["--max-seconds", "2"]  # hours of training would be no defect
    return words


def options_of(bench, command) -> list[tuple[str, str]]:
    """Names of a command's long options with the type of their value, from its help."""
    text = bench.must(bench.root, command, "--help").out.decode()
    return [(long, kind) for _, long, kind in OPTION.findall(text) if long != "--help"]


def changed(random, words, options) -> list[str]:
    kind = random.choice(["option", "option", "option", "option", "input", "drop", "twice", "odd option", "swap"])
    place = random.randrange(1, len(words)) if len(words) > 1 else 0
    if kind == "option":
        name, value = random.choice(options)
        return words + ([name, random_value(random, name, value)] if value else [name])
    if kind == "input":
        return words[:1] + [random.choice(zoo.INPUT_NAMES)] + words[2:]
    if kind == "drop":
        return words[:place] + words[place + 1:]
    if kind == "twice":
        return words + words[place:place + 1]
    if kind == "odd option":
        return words + [random.choice(["--", "-", "--nonsense", "-x", "--output=", "--json=1", "-oq", "--memory=16M", ""])]
    other = random.randrange(1, len(words)) if len(words) > 1 else 0
    words[place], words[other] = words[other], words[place]
    return words


def random_value(random, name, kind) -> str:
    if kind in FILE_TYPES:
        return random.choice(zoo.OUTPUT_NAMES if random.random() < 0.5 else zoo.INPUT_NAMES)
    if name in SMALL:
        return random.choice(["0", "1", "2", "3", "50", "-1", "", "nan", "2.5"])
    if kind == "SIZE":
        return random.choice(SIZES)
    if kind == "N" or kind == "M":
        return random.choice(NUMBERS + WORDS[:4])
    if kind in ("X", "B", "F", "S", "P", "FRACTION"):
        return random.choice(REALS + ["auto", "none"])
    return random.choice(WORDS)


def values_of(words, *names) -> list[str]:
    """Values of options, as they may be written: -o X, --output X, --output=X."""
    names = set(names) | ({"--output"} if "-o" in names else set())
    found = [words[i + 1] for i in range(len(words) - 1) if words[i] in names]
    return found + [word.split("=", 1)[1] for word in words if "=" in word and word.split("=", 1)[0] in names]


def shown_name(folder, name) -> str:
    """As a snapshot has it, symbolic links followed."""
    path = os.path.relpath(os.path.realpath(folder / name), os.path.realpath(folder))
    return os.fsencode(path).decode(errors="backslashreplace")


def may_change(t, words) -> tuple[set, set]:
    """Files that the command may write over, and folders of its own in which linblock's files may change."""
    command = words[0]
    outputs = {shown_name(t.folder, name) for name in values_of(words, *PLAIN_OUTPUTS.get(command, []))}
    read = {shown_name(t.folder, word) for i, word in enumerate(words[1:], 1)
            if i < 2 or words[i - 1] not in ("-o", "--output", "--rejects", "--trace")}
    if command == "unpack":
        read -= {shown_name(t.folder, name) for name in values_of(words, "--weights")}
    ours = {name + suffix for name in zoo.MODELS for suffix in ("", ".json", ".state")}
    inside = tuple(store + "/" for store in zoo.STORES) + ("kept.checkpoint/",)
    files = {name for name in outputs - read - ours if not name.startswith(inside)}
    # An empty file holds nothing that could be lost: mktemp makes one for a model, too.
    files |= {"in/empty.svm"} & ({shown_name(t.folder, name) for name in values_of(words, "-o", "--trace")} - read)
    folders = set()
    if command in TRAINERS:
        for name in values_of(words, "-o"):
            if name in zoo.MODELS:
                files |= {name, name + ".json", name + ".state"}
        files |= {"run.jsonl"} & {shown_name(t.folder, name) for name in values_of(words, "--trace")}
        folders |= {"kept.checkpoint"}
    if command in STORE_WRITERS:
        folders |= {shown_name(t.folder, word) for word in words[1:] if word}
        folders |= {shown_name(t.folder, word + ".linblock") for word in words[1:] if word and len(word) < 200}
    return files, folders & {*zoo.STORES, "kept.checkpoint"}


def check_files(t, words, shown, before, after):
    files, folders = may_change(t, words) if words else (set(), set())
    # An empty directory with the name of a checkpoint is what a killed run leaves, and goes.
    planted = set(zoo.LINKS) - set(zoo.LASTING_LINKS) | {f"{name}.checkpoint" for name in values_of(words, "-o")}  # they may go; what they lead to must stay
    for name in before:
        if before[name] == after.get(name) or name in files or name in planted:
            continue
        inside = any(name == folder or name.startswith(folder + "/") for folder in folders)
        if inside and name not in zoo.FOREIGN:
            continue
        what = "is gone" if name not in after else "has changed"
        t.expect(False, f"{shown}: '{name}' {what} (exit code {t.last.code})")
    for store in folders & set(zoo.STORES):
        if (t.folder / store / "MANIFEST").exists():
            whole = t.run("verify", store, "-q")
            t.expect(whole.code == 0, f"{shown}: the store '{store}' is no longer whole: {whole.words()}")
