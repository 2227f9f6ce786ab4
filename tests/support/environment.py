"""The Python environment of the plugin, built like a plugin manager builds it."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

from . import processes
from .nvim import ROOT, Home

LOCK = ROOT / "requirements.lock"
STAMP = ".lock-hash"
UV = Path(sys.executable).with_name("uv")
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser()
UV_CACHE = os.environ.get("UV_CACHE_DIR") or str(CACHE / "uv")
"""The cache of the user, so that packages are not downloaded again."""
USER_HOME = os.path.expanduser("~")
"""Has the user's settings for package indexes."""
TOOLS = ("make", "sh", "git", "uname", "env", "mkdir", "rm", "cat")
"""Other programs that a build step or a plugin manager may start."""


def lock_hash(root: Path = ROOT) -> str:
    """The stamp of an up-to-date environment."""
    return hashlib.sha256((root / LOCK.name).read_bytes()).hexdigest()


def directory(data: Path) -> Path:
    """The directory of the environment in XDG_DATA_HOME."""
    return data / "nvim" / "mcp-tools" / "venv"


def path_with(target: Path, *, uv: bool) -> str:
    """A PATH with one Python, optionally `uv`, and nothing else that can build an environment."""
    target.mkdir()
    (target / "python3").symlink_to(sys.executable)
    if uv:
        (target / "uv").symlink_to(UV)
    for name in TOOLS:
        if found := shutil.which(name):
            (target / name).symlink_to(found)
    return str(target)


def variables(path: str) -> dict[str, str]:
    """Environment variables for building."""
    return {"PATH": path, "UV_CACHE_DIR": UV_CACHE, "UV_LINK_MODE": "copy", "HOME": USER_HOME}


def make_install(data: Path, path: str, *, timeout: int = 240_000) -> subprocess.CompletedProcess[str]:
    """Runs `make install` in this checkout; `timeout` in ms."""
    # Without the variables of `make test`, which may run this.
    nested = ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")
    inherited = {name: value for name, value in os.environ.items() if name not in nested}
    return processes.run(
        ["make", "install"],
        cwd=ROOT,
        env={**inherited, **variables(path), "XDG_DATA_HOME": str(data)},
        timeout=timeout / 1000,
    )


def pretend(home: Home, stamp: str, *, flags: str = "") -> Path:
    """Creates an environment that looks built for the lock with the hash `stamp`; `flags` are Python's."""
    built = directory(home.make("data"))
    python = built / "bin" / "python"
    python.parent.mkdir(parents=True)
    # A link would not find the packages.
    python.write_text(f'#!/bin/sh\nexec {sys.executable} {flags} "$@"\n')
    python.chmod(0o755)
    (built / STAMP).write_text(stamp + "\n")
    return built


def wheel(directory: Path, name: str, version: str, needs: str = "") -> Path:
    """Creates a package of one module with a number."""
    module, info = f"mcpt_{name}", f"mcpt_{name}-{version}.dist-info"
    requires = f"Requires-Dist: {needs}\n" if needs else ""
    files = {
        f"{module}.py": "VALUE = 42\n",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: mcpt-{name}\nVersion: {version}\n{requires}",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    directory.mkdir(exist_ok=True)
    path = directory / f"mcpt_{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for file, text in files.items():
            archive.writestr(file, text)
        record = "".join(f"{file},,\n" for file in [*files, f"{info}/RECORD"])
        archive.writestr(f"{info}/RECORD", record)
    return path
