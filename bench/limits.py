"""A program held to a small memory or a slow disk, by control groups of our own (version 1 or 2), removed afterwards."""
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path("/sys/fs/cgroup")


class Unavailable(Exception):
    """This machine does not let us set a limit."""


@dataclass(frozen=True)
class Limits:
    memory_bytes: int = 0  # 0: none; what the page cache holds for the program counts too
    disk_bytes_per_second: int = 0  # 0: none; reads only

    def settings(self, disk: str) -> list[tuple[str, tuple[str, str, str], tuple[str, str, str]]]:
        """What is limited; then (controller, file, content) for version 1, and for version 2."""
        memory, rate = str(self.memory_bytes), str(self.disk_bytes_per_second)
        wanted = []
        if self.memory_bytes:
            wanted.append(("memory", ("memory", "memory.limit_in_bytes", memory), ("", "memory.max", memory)))
        if self.disk_bytes_per_second:
            wanted.append(("disk", ("blkio", "blkio.throttle.read_bps_device", f"{disk} {rate}"), ("", "io.max", f"{disk} rbps={rate}")))
        return wanted


@contextmanager
def groups(limits: Limits, folder: Path) -> Iterator[list[Path]]:
    """Groups that hold `limits` (of the disk: the one under `folder`). A process joins by writing 0 to each path."""
    made: list[Path] = []
    try:
        for what, *versions in limits.settings(disk_of(folder)):
            if not any(limited(ROOT / controller / f"linblock-bench-{os.getpid()}", file, content, made)
                       for controller, file, content in versions):
                raise Unavailable(f"no control group for the {what} can be made here")
        yield [group / "cgroup.procs" for group in made]
    finally:
        for group in made:
            remove(group)


def limited(group: Path, file: str, content: str, made: list[Path]) -> bool:
    try:
        if group not in made:
            group.mkdir()
            made.append(group)
        # Where no such controller is, the file would be made, and mean nothing.
        if (group / file).exists():
            (group / file).write_text(content)
            return True
    except OSError:
        pass
    return False


def remove(group: Path) -> None:
    for _ in range(200):  # a process that has just ended may still be on its way out
        try:
            group.rmdir()
            return
        except OSError:
            time.sleep(0.01)


def disk_of(folder: Path) -> str:
    """The numbers of the whole disk: a partition cannot be limited."""
    device = folder.stat().st_dev
    entry = Path(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}")
    disk = entry.resolve().parent if (entry / "partition").exists() else entry
    try:
        return (disk / "dev").read_text().strip()
    except OSError:  # a network or memory file system: limiting it will fail, and say so
        return f"{os.major(device)}:{os.minor(device)}"
