"""The plugin's own Python environment, built as a build step builds it."""

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
UV_CACHE = os.environ.get("UV_CACHE_DIR") or str(
    Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "uv"
)
"""The person's own, read before the tests have folders of their own: what is there is not fetched again."""
PERSON = os.path.expanduser("~")
"""Where the person's settings for package indexes are."""
TOOLS = ("make", "sh", "git", "uname", "env", "mkdir", "rm", "cat")
"""Other programs that a build step or a plugin manager may start."""


def lock_hash(root: Path = ROOT) -> str:
    """What the stamp of a current environment holds."""
    return hashlib.sha256((root / LOCK.name).read_bytes()).hexdigest()


def folder(data: Path) -> Path:
    """Where the environment is below XDG_DATA_HOME."""
    return data / "nvim" / "mcp-tools" / "venv"


def path_with(place: Path, *, uv: bool) -> str:
    """A PATH that holds one Python and, if wanted, `uv`, and nothing else that could build an environment."""
    place.mkdir()
    (place / "python3").symlink_to(sys.executable)
    if uv:
        (place / "uv").symlink_to(UV)
    for name in TOOLS:
        if found := shutil.which(name):
            (place / name).symlink_to(found)
    return str(place)


def variables(path: str) -> dict[str, str]:
    """Environment variables for building."""
    return {"PATH": path, "UV_CACHE_DIR": UV_CACHE, "UV_LINK_MODE": "copy", "HOME": PERSON}


def make_install(data: Path, path: str, *, timeout: int = 240_000) -> subprocess.CompletedProcess[str]:
    """Run `make install` in this checkout; at most `timeout` ms."""
    # `make test` may be what runs this; a person's make knows nothing of it.
    inherited = {
        name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")
    }
    return processes.run(
        ["make", "install"],
        cwd=ROOT,
        env={**inherited, **variables(path), "XDG_DATA_HOME": str(data)},
        timeout=timeout / 1000,
    )


def pretend(home: Home, stamp: str, *, flags: str = "") -> Path:
    """An environment as if it had been built, for the lock with the hash `stamp`; `flags` are Python's."""
    place = folder(home.make("data"))
    python = place / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(
        f'#!/bin/sh\nexec {sys.executable} {flags} "$@"\n'
    )  # a link alone would not find the packages
    python.chmod(0o755)
    (place / STAMP).write_text(stamp + "\n")
    return place


def wheel(folder: Path, name: str, version: str, needs: str = "") -> Path:
    """A package of one module that holds a number."""
    module, info = f"mcpt_{name}", f"mcpt_{name}-{version}.dist-info"
    requires = f"Requires-Dist: {needs}\n" if needs else ""
    files = {
        f"{module}.py": "VALUE = 42\n",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: mcpt-{name}\nVersion: {version}\n{requires}",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    folder.mkdir(exist_ok=True)
    path = folder / f"mcpt_{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for file, text in files.items():
            archive.writestr(file, text)
        record = "".join(f"{file},,\n" for file in [*files, f"{info}/RECORD"])
        archive.writestr(f"{info}/RECORD", record)
    return path
