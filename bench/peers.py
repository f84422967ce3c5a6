"""The programs linblock is compared with: found where they are installed, named where they are not."""
import shutil
import subprocess

DEBIAN_PYTHON = "/usr/bin/python3"  # where its python3-* packages are; another one may come first on the PATH
# By name: the program, its Debian package, and the Python module that it needs.
PEERS = {"liblinear-train": ("liblinear-train", "liblinear-tools", ""), "vw": ("vw", "vowpal-wabbit", ""),
         "scikit-learn": (DEBIAN_PYTHON, "python3-sklearn", "sklearn")}


def has_module(python: str, module: str) -> bool:
    look = f"import importlib.util, sys; sys.exit(importlib.util.find_spec('{module}') is None)"
    return subprocess.run([python, "-c", look], stdin=subprocess.DEVNULL).returncode == 0


def version_of(package: str) -> str:
    try:
        return subprocess.run(["dpkg-query", "--show", "--showformat=${Version}", package], capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return "of unknown version"


def find(names: set[str]) -> tuple[dict[str, str], list[str]]:
    """Where each named peer is, and a sentence about every one, present or absent."""
    paths, sentences = {}, []
    for name, (program, package, module) in PEERS.items():
        path = shutil.which(program) if name in names else None
        if path and (not module or has_module(path, module)):
            paths[name] = path
            sentences.append(f"{name} {version_of(package)}")
        elif name in names:
            sentences.append(f"{name} is absent (Debian package {package})")
    return paths, sentences
