"""What all campaigns share: run a program under limits, look at folders, and keep what failed."""
import base64
import dataclasses
import hashlib
import json
import os
import pathlib
import random
import resource
import select
import shlex
import shutil
import signal
import subprocess
import tempfile
import time

# Exit codes that docs/cli.md lists. 70 is a defect of linblock, a negative code is a signal.
DONE, USAGE, INPUT, DAMAGED, IO, MEMORY, INTERRUPTED = 0, 2, 3, 4, 5, 6, 130
REFUSALS = {USAGE, INPUT, DAMAGED, IO, MEMORY}
SANITIZER_WORDS = (b"ERROR: AddressSanitizer", b"runtime error:", b"ERROR: LeakSanitizer")
SMALL_FILE = 1 << 16


class Failed(Exception):
    """A promise of linblock that a trial found broken."""


@dataclasses.dataclass
class Outcome:
    code: int  # negative: the signal that ended the program
    out: bytes
    err: bytes
    seconds: float
    peak_kilobytes: int
    timed_out: bool

    def words(self) -> str:
        """How the program ended, for people."""
        end = "no end before the time limit" if self.timed_out else f"exit code {self.code}"
        said = self.err.decode(errors="replace").strip().splitlines()
        return f"{end} ({' / '.join(said[:4])[:400]})" if said else end


@dataclasses.dataclass(frozen=True)
class Programs:
    linblock: str
    asan: str | None = None
    hooked: str | None = None
    strace: bool = False
    broken: str | None = None  # LINBLOCK_HOOK for the command under test: a deliberately broken build


def clean_environment(**more) -> dict:
    """The caller's environment without hooks, so that only the command under test is ever harmed."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("LINBLOCK_")}
    kept["ASAN_OPTIONS"] = "exitcode=99:detect_leaks=0:abort_on_error=0"
    kept["UBSAN_OPTIONS"] = "halt_on_error=1:exitcode=99:print_stacktrace=1"
    return {**kept, "NO_COLOR": "1", **more}


def execute(words, *, cwd, env=None, stdin=None, out=None, err=None, closed=(), timeout=60, send=None,
            address_space=None) -> Outcome:
    """Run a command to its end. `send` is (seconds, signal); `closed` lists descriptors that it begins without."""

    def prepare():
        if address_space:
            resource.setrlimit(resource.RLIMIT_AS, (address_space, address_space))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        for descriptor in closed:
            os.close(descriptor)

    with tempfile.TemporaryFile() as kept_out, tempfile.TemporaryFile() as kept_err:
        begin = time.monotonic()
        child = subprocess.Popen(words, cwd=cwd, env=env or clean_environment(), stdin=stdin or subprocess.DEVNULL,
                                 stdout=out or kept_out, stderr=err or kept_err, start_new_session=True,
                                 preexec_fn=prepare)
        descriptor = os.pidfd_open(child.pid)
        waiter = select.poll()
        waiter.register(descriptor, select.POLLIN)

        def ended_by(moment) -> bool:
            return bool(waiter.poll(max(0, moment - time.monotonic()) * 1000))

        try:
            if send and not ended_by(begin + send[0]):
                os.kill(child.pid, send[1])
                begin = time.monotonic()  # the limit counts from the signal on
            timed_out = not ended_by(begin + timeout)
        except BaseException:
            os.killpg(child.pid, signal.SIGKILL)
            raise
        if timed_out:
            os.killpg(child.pid, signal.SIGKILL)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        os.close(descriptor)
        seconds = time.monotonic() - begin
        kept_out.seek(0)
        kept_err.seek(0)
        return Outcome(child.returncode, kept_out.read(), kept_err.read(), seconds, usage.ru_maxrss, timed_out)


def digest(path: pathlib.Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]


def snapshot(folder: pathlib.Path) -> dict:
    """Name -> kind and contents of everything below a folder. Symbolic links are not followed."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = os.fsencode(path.relative_to(folder)).decode(errors="backslashreplace")
        if path.is_symlink():
            found[name] = ("link", os.readlink(path))
        elif path.is_dir():
            found[name] = ("folder", "")
        else:
            found[name] = ("file", digest(path))
    return found


def differences(before: dict, after: dict) -> list[str]:
    """What is missing, new or changed in `after`, one sentence each."""
    said = [f"'{name}' is missing" for name in before if name not in after]
    said += [f"'{name}' is new" for name in after if name not in before]
    said += [f"'{name}' has changed" for name in before if name in after and before[name] != after[name]]
    return said


# What differs between two equal runs: times, and how often a resumed run read the data.
VARYING = {"seconds", "bytes_read", "peak_memory_bytes", "build_seconds"}


def without_times(value):
    if isinstance(value, dict):
        return {key: without_times(item) for key, item in value.items() if key not in VARYING}
    if isinstance(value, list):
        return [without_times(item) for item in value]
    return value


def json_facts(text: bytes) -> str:
    """Of a JSON object, what must be the same in two equal runs."""
    return json.dumps(without_times(json.loads(text)), sort_keys=True)


class Bench:
    """What a worker keeps from trial to trial: its folder, the programs, and inputs that are made once."""

    def __init__(self, programs: Programs, seed: int, root: pathlib.Path, keep: pathlib.Path):
        self.programs, self.seed, self.root, self.keep = programs, seed, root, keep
        self.made = {}

    def once(self, key: str, make):
        """make() the first time, and what it returned from then on."""
        if key not in self.made:
            self.made[key] = make()
        return self.made[key]

    def fixture(self, name: str, make) -> pathlib.Path:
        """A folder that make(folder) fills once. Trials copy from it and never change it."""
        def build():
            folder = self.root / "fixtures" / name
            folder.mkdir(parents=True)
            make(folder)
            return folder
        return self.once("fixture " + name, build)

    def must(self, folder: pathlib.Path, *words, **how) -> Outcome:
        """A command that prepares something; it is not under test, and has to work."""
        outcome = execute([self.programs.linblock, *words], cwd=folder, **how)
        if outcome.code != 0:
            raise Failed(f"preparing a trial: linblock {shlex.join(words)}: {outcome.words()}")
        return outcome

    def trial(self, campaign: str, number: int) -> "Trial":
        return Trial(self, campaign, number)


class Trial:
    """One experiment in a folder of its own. All its choices come from `random`, so it can be repeated."""

    def __init__(self, bench: Bench, campaign: str, number: int):
        self.bench, self.programs = bench, bench.programs
        self.campaign, self.number = campaign, number
        self.random = random.Random(f"{bench.seed}/{campaign}/{number}")
        self.home = bench.root / f"{campaign}-{number}"
        self.folder = self.home / "work"
        shutil.rmtree(self.home, ignore_errors=True)
        self.folder.mkdir(parents=True)
        self.script = []
        self.copied = {}
        self.last = None

    def note(self, line: str):
        self.script.append(line)

    def copy(self, source: pathlib.Path, name: str | None = None):
        """Copy a fixture into the trial's folder, times included."""
        name = name or source.name
        kept = f"{len(self.copied)}-{name}"
        self.copied[kept] = source
        self.note(f"cp -a \"$here\"/fixtures/{shlex.quote(kept)} {shlex.quote(name)}")
        target = self.folder / name
        if source.is_dir():
            shutil.copytree(source, target, symlinks=True)
        else:
            shutil.copy2(source, target)

    def write(self, name: str, data: bytes):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        if len(data) <= SMALL_FILE:
            text = base64.b64encode(data).decode()
            self.note(f"mkdir -p {shlex.quote(str(pathlib.PurePath(name).parent))}; "
                      f"base64 -d >{shlex.quote(name)} <<<'{text}'")

    def run(self, *words, program=None, wrapper=(), tested=False, env=None, log=None, **how) -> Outcome:
        """Run linblock in the trial's folder; `tested` applies the deliberate break, where there is one."""
        extra = dict(env or {})
        if tested and self.programs.broken:
            extra["LINBLOCK_HOOK"] = self.programs.broken
        command = [*wrapper, program or self.programs.linblock, *words]
        sent = how.get("send")
        shown = [*[f"{key}={value}" for key, value in extra.items()]]
        if sent:
            shown += ["timeout", "-s", signal.Signals(sent[1]).name[3:], f"{sent[0]:.6f}"]
        shown = ["env", *shown] if extra else shown
        line = " ".join([*map(shlex.quote, [*shown, *wrapper]), '"$linblock"', *(quoted(word) for word in words)])
        self.note(line + (f"  # {log}" if log else ""))
        self.last = execute(command, cwd=self.folder, env=clean_environment(**extra), **how)
        return self.last

    def must(self, *words, **how) -> Outcome:
        outcome = self.run(*words, **how)
        self.expect(outcome.code == DONE, f"linblock {shlex.join(words)} must succeed: {outcome.words()}")
        return outcome

    def expect(self, holds, why: str):
        if not holds:
            raise Failed(why)

    def keep(self, why: str) -> pathlib.Path:
        """Everything that a person needs to look into a failure."""
        place = self.bench.keep / f"{self.campaign}-{self.number}"
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        shutil.copytree(self.folder, place / "work", symlinks=True)
        for name, source in self.copied.items():
            target = place / "fixtures" / name
            target.parent.mkdir(exist_ok=True)
            shutil.copytree(source, target, symlinks=True) if source.is_dir() else shutil.copy2(source, target)
        head = ["#!/usr/bin/env bash", f"# {why}".replace("\n", " "),
                f"# again: soak.py --only {self.campaign} --trial {self.number} --seed {self.bench.seed}",
                'linblock=${LINBLOCK:-' + self.programs.linblock + '}', 'here=$(cd "$(dirname "$0")" && pwd)',
                'cd "$(mktemp -d)" && pwd']
        (place / "commands.sh").write_text("\n".join(head + self.script) + "\n", errors="surrogateescape")
        (place / "why").write_text(why + "\n", errors="backslashreplace")
        if self.last:
            (place / "stdout").write_bytes(self.last.out)
            (place / "stderr").write_bytes(self.last.err)
        return place

    def forget(self):
        shutil.rmtree(self.home, ignore_errors=True)


def quoted(word) -> str:
    return shlex.quote(os.fsdecode(word))
