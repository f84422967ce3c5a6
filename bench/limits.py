"""A program held to a small memory or a slow disk, by control groups of our own (version 1 or 2), removed afterwards."""
import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path

from runner import Absent

ROOT = Path("/sys/fs/cgroup")


@contextlib.contextmanager
def groups(memory: int, rate: int, folder: Path) -> Iterator[list[Path]]:
    """For so many bytes, the page cache's for the program among them, and so many a second read from the disk under `folder`; 0: as many as
    there are. A process joins by writing 0 to each path."""
    disk = disk_of(folder)
    # What is limited, and its controller, file and content in version 1 and in version 2.
    wanted = [("memory", ("memory", "memory.limit_in_bytes", str(memory)), ("", "memory.max", str(memory)))] if memory else []
    wanted += [("disk", ("blkio", "blkio.throttle.read_bps_device", f"{disk} {rate}"), ("", "io.max", f"{disk} rbps={rate}"))] if rate else []
    made: list[Path] = []
    try:
        for what, *versions in wanted:
            if not any(limited(ROOT / controller / f"linblock-bench-{os.getpid()}", file, content, made) for controller, file, content in versions):
                raise Absent(f"no control group for the {what} can be made here")
        yield [group / "cgroup.procs" for group in made]
    finally:
        for group in made:
            remove(group)


def limited(group: Path, file: str, content: str, made: list[Path]) -> bool:
    with contextlib.suppress(OSError):
        if group not in made:
            group.mkdir()
            made.append(group)
        # Where no such controller is, the file would be made, and mean nothing.
        if (group / file).exists():
            (group / file).write_text(content)
            return True
    return False


def remove(group: Path) -> None:
    for _ in range(200):  # a process that has just ended may still be on its way out
        with contextlib.suppress(OSError):
            return group.rmdir()
        time.sleep(0.01)


def disk_of(folder: Path) -> str:
    """The numbers of the whole disk: a partition cannot be limited."""
    device = folder.stat().st_dev
    entry = Path(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}")
    disk = (entry.resolve().parent if (entry / "partition").exists() else entry) / "dev"
    # Of a network or memory file system there is none: limiting it will fail, and say so.
    return disk.read_text().strip() if disk.exists() else f"{os.major(device)}:{os.minor(device)}"
