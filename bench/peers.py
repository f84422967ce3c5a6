"""The programs linblock is compared with: found where they are installed, named where they are not."""
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

BENCH = Path(__file__).resolve().parent
DEBIAN_PYTHON = "/usr/bin/python3"  # where its python3-* packages are; another one may come first on the PATH
VENV = BENCH.parent / "build" / "peers"  # of packages that Debian does not have
VENV_PYTHON = str(VENV / "bin" / "python")
ROWS_IN_MEMORY = str(BENCH / "rows_in_memory.py")


@dataclass(frozen=True)
class Peer:
    words: tuple[str, ...]  # that start it
    package: str  # Debian's, or PyPI's for what runs in VENV
    modules: tuple[str, ...] = ()  # of Python, that it needs

    @property
    def from_pypi(self) -> bool:
        return self.words[0] == VENV_PYTHON


PEERS = {
    "liblinear-train": Peer(("liblinear-train",), "liblinear-tools"), "liblinear-predict": Peer(("liblinear-predict",), "liblinear-tools"),
    "scikit-learn": Peer((DEBIAN_PYTHON,), "python3-sklearn", ("sklearn",)),
    "liblinear": Peer((DEBIAN_PYTHON, ROWS_IN_MEMORY, "liblinear"), "liblinear4", ("sklearn",)),
    "liblinear-official": Peer((VENV_PYTHON, ROWS_IN_MEMORY, "liblinear-official"), "liblinear-official", ("liblinear", "sklearn")),
    "snapml": Peer((VENV_PYTHON, ROWS_IN_MEMORY, "snapml"), "snapml", ("snapml", "sklearn")),
    "vw": Peer((VENV_PYTHON, "-m", "vowpalwabbit"), "vowpalwabbit", ("vowpalwabbit",))}


def has_modules(python: str, modules: tuple[str, ...]) -> bool:
    look = f"import importlib.util, sys; sys.exit(not all(map(importlib.util.find_spec, {modules!r})))"
    return not modules or subprocess.run([python, "-c", look], stdin=subprocess.DEVNULL).returncode == 0


def version_of(peer: Peer) -> str:
    command = ([VENV_PYTHON, "-c", f"import importlib.metadata as m; print(m.version('{peer.package}'), end='')"] if peer.from_pypi else
               ["dpkg-query", "--show", "--showformat=${Version}", peer.package])
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return "of unknown version"


def is_here(peer: Peer) -> bool:
    return shutil.which(peer.words[0]) is not None and has_modules(peer.words[0], peer.modules)


def install(package: str) -> None:
    """From PyPI, with what rows_in_memory.py needs. What goes wrong is shown; the peer is absent then."""
    print(f"installing {package} into {VENV}", file=sys.stderr)
    pip = [VENV_PYTHON, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--retries", "1", package, "scikit-learn"]
    for command in ([DEBIAN_PYTHON, "-m", "venv", str(VENV)], pip):
        try:
            subprocess.run(command, stdin=subprocess.DEVNULL, stdout=sys.stderr, check=True)
        except (OSError, subprocess.CalledProcessError) as error:
            print(f"bench: {error}", file=sys.stderr)
            return


def find(names: set[str], may_install: bool) -> tuple[dict[str, tuple[str, ...]], list[str]]:
    """What starts each named peer, and a sentence about every one, present or absent."""
    found, sentences = {}, []
    for name, peer in PEERS.items():
        if name not in names:
            continue
        if peer.from_pypi and may_install and not is_here(peer):
            install(peer.package)
        if is_here(peer):
            found[name] = peer.words
            sentences.append(f"{name} {version_of(peer)}")
        else:
            where, why = ("PyPI", "could not be installed" if may_install else "a quick bench installs nothing") if peer.from_pypi else ("Debian", "not installed")
            sentences.append(f"absent: {name} ({why}; package {peer.package} of {where})")
    return found, sentences
