"""Installing the peers from package registries, as bench/serena.lock and bench/npm pin them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import _npm

from tests.support import processes

HERE = Path(__file__).resolve().parent.parent
ROOT = HERE.parent
SERENA = ROOT / ".deps" / "serena"
NPM = ROOT / ".deps" / "bench-npm"
SECONDS = 300


def serena() -> str | None:
    """Installs Serena unless it is installed.

    Returns:
        The reason of a failure, or None.
    """
    script = ROOT / "scripts" / "install-env"
    lock = ["--lock", str(HERE / "serena.lock"), "--imports", "serena"]
    tools = Path(sys.executable).parent  # has `uv`, which is faster than pip
    env = {**os.environ, "PATH": f"{tools}{os.pathsep}{os.environ.get('PATH', '')}"}
    try:
        done = processes.run([sys.executable, script, "--dir", SERENA, *lock], env=env, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return f"not within {SECONDS} s"
    return None if done.returncode == 0 else "what bench/serena.lock pins could not be installed"


def cclsp() -> str | None:
    """Installs cclsp unless it is installed.

    Returns:
        The reason of a failure, or None.
    """
    try:
        _npm.install(HERE / "npm", NPM)
    except (OSError, subprocess.CalledProcessError):
        return "what bench/npm/package-lock.json pins could not be installed"
    return None
