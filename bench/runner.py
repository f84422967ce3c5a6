"""Runs any program the same way, and says what it cost."""
import ctypes
import json
import os
import platform
import re
import shlex
import signal
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

PR_SET_PDEATHSIG = 1
PRCTL = ctypes.CDLL(None).prctl if platform.system() == "Linux" else lambda *_: None
SAID = 10  # lines of stderr that are kept


@dataclass(frozen=True)
class Run:
    command: list[str]
    wall_seconds: float
    cpu_seconds: float  # user and system, all threads
    # Never less than what this Python holds: Linux counts the memory a process had before exec.
    peak_memory_bytes: int
    bytes_read: int | None  # through read calls, from the page cache too; None where /proc does not tell
    disk_bytes_read: int
    stdout: str
    exit_code: int = 0  # a signal's number, negative, where one has ended it
    stderr: str = ""  # its end, of a program that failed
    trace: list[dict] = field(default_factory=list)  # of a program that wrote one: its passes

    @property
    def failed(self) -> bool:
        return self.exit_code != 0

    def ending(self) -> str:
        """How it ended, in words."""
        how = {0: "done", -signal.SIGKILL: "killed"}.get(self.exit_code) or (
            f"exit code {self.exit_code}" if self.exit_code > 0 else f"ended by signal {-self.exit_code}")
        return f"{how} after {self.wall_seconds:.3g} s at {self.peak_memory_bytes / 1e6:.0f} MB"

    def summary(self) -> dict:
        """The one JSON object that a program prints under --json; empty for other output."""
        try:
            value = json.loads(self.stdout)
        except ValueError:
            return {}
        return value if isinstance(value, dict) else {}


class Absent(Exception):
    """Why something cannot be had here: not an error, it is named and left out."""


class RunFailed(Exception):
    """Says which command failed, how, and the end of what it wrote to stderr."""

    def __init__(self, command: list[str], what: str, stderr: str = ""):
        lines = [f"{what}: {shlex.join(command)}", *("  " + line for line in stderr.splitlines()[-SAID:])]
        super().__init__("\n".join(lines))
        self.what = what


def run(command: list[str], groups: Sequence[Path] = ()) -> Run:
    """Runs a program to its end, good or bad, in control groups if any are given; throws RunFailed if it cannot be started."""
    def before() -> None:
        PRCTL(PR_SET_PDEATHSIG, signal.SIGKILL)  # a bench that is killed leaves nothing running behind
        for processes in groups:
            processes.write_text("0")

    with tempfile.TemporaryFile() as stdout, tempfile.TemporaryFile() as stderr:
        begin = time.perf_counter()
        try:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr, preexec_fn=before)
        except OSError as error:
            raise RunFailed(command, f"cannot start ({error.strerror})") from error
        try:
            # WNOWAIT leaves the ended process in /proc, so that its final count of bytes can still be read.
            os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        except BaseException:  # interrupted: leave nothing running behind
            process.kill()
            process.wait()
            raise
        wall = time.perf_counter() - begin
        counts = io_counts(process.pid)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        stdout.seek(0), stderr.seek(0)
        written, said = (file.read().decode(errors="replace") for file in (stdout, stderr))
    return Run(command, wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024, counts.get("rchar"),
               counts.get("read_bytes", usage.ru_inblock * 512), written, process.returncode,
               "\n".join(said.splitlines()[-SAID:]) if process.returncode else "")


def evict(path: Path) -> None:
    """Puts a file, or all files below a folder, out of the page cache, so that the next reader has to use the disk."""
    for file in filter(Path.is_file, path.rglob("*")) if path.is_dir() else [path]:
        descriptor = os.open(file, os.O_RDONLY)
        try:
            os.fsync(descriptor)  # what is not yet written cannot be put out
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(descriptor)


def read_trace(path: Path) -> list[dict]:
    """Without the blocks, which nothing is made of: of some runs there are hundreds of thousands."""
    with path.open() as lines:
        return [line for line in map(json.loads, lines) if line["event"] == "pass"]


def io_counts(process: int) -> dict[str, int]:
    try:
        lines = Path(f"/proc/{process}/io").read_text().splitlines()
    except OSError:  # not Linux, or not permitted
        return {}
    return {name: int(count) for name, count in (line.split(":") for line in lines)}


def machine() -> str:
    """What a reader needs to compare numbers, and nothing that names the computer."""
    cpu = Path("/proc/cpuinfo")
    models = re.findall(r"^model name\s*: (.+)$", cpu.read_text(), re.MULTILINE) if cpu.exists() else []
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / (1 << 30)
    return f"{(models or [platform.machine()])[0]}, {len(os.sched_getaffinity(0))} cores, {memory:.1f} GiB, {platform.system()} {platform.release().split('-')[0]}"


def commit_of(folder: Path) -> str:
    """The commit a folder stands at, marked when files differ from it; "unknown" outside of git."""
    def git(*words: str) -> str:
        return subprocess.run(["git", "-C", str(folder), *words], capture_output=True, text=True, check=True).stdout
    try:
        return git("rev-parse", "--short=12", "HEAD").strip() + ("-modified" if git("status", "--porcelain") else "")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
