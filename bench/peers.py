"""The programs linblock is compared with: found where they are installed, named where they are not."""
import shutil
import subprocess
from dataclasses import dataclass

# Debian's own python3, where its python3-* packages are; another one may come first on the PATH.
DEBIAN_PYTHON = "/usr/bin/python3"


@dataclass(frozen=True)
class Peer:
    name: str
    package: str  # of Debian
    program: str
    module: str = ""  # for a peer that is a Python module of `program`

    def path(self) -> str | None:
        found = shutil.which(self.program)
        return found if found and (not self.module or has_module(found, self.module)) else None

    def version(self) -> str:
        try:
            query = ["dpkg-query", "--show", "--showformat=${Version}", self.package]
            return subprocess.run(query, capture_output=True, text=True, check=True).stdout
        except (OSError, subprocess.CalledProcessError):
            return "of unknown version"


PEERS = (
    Peer("liblinear-train", package="liblinear-tools", program="liblinear-train"),
    Peer("liblinear-predict", package="liblinear-tools", program="liblinear-predict"),
    Peer("vw", package="vowpal-wabbit", program="vw"),
    Peer("scikit-learn", package="python3-sklearn", program=DEBIAN_PYTHON, module="sklearn"),
)
NAMES = frozenset(peer.name for peer in PEERS)


def has_module(python: str, module: str) -> bool:
    look = f"import importlib.util, sys; sys.exit(importlib.util.find_spec('{module}') is None)"
    return subprocess.run([python, "-c", look], stdin=subprocess.DEVNULL).returncode == 0


def find(names: set[str]) -> tuple[dict[str, str], list[str]]:
    """Where each named peer is, and a sentence about every one, present or absent."""
    paths, sentences = {}, []
    for peer in PEERS:
        if peer.name not in names:
            continue
        if path := peer.path():
            paths[peer.name] = path
            sentences.append(f"{peer.name} {peer.version()}")
        else:
            sentences.append(f"{peer.name} is absent (Debian package {peer.package})")
    return paths, sentences
