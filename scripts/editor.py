"""Which Neovim `make demo` and `make run` take: the person's own when it is new enough, else the pinned one.

Receives: PATH. Sends: the path of a program. Does not know about: what is done with it.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys

import nvims

OLDEST = (0, 10)


def program() -> str:
    """The Neovim to start."""
    own = shutil.which("nvim")
    if own and version(own) >= OLDEST:
        return own
    pinned, why = nvims.obtain(nvims.REQUIRED)
    if pinned is None:
        sys.exit(f"Neovim 0.10 or newer is not on PATH, and the pinned one cannot be had: {why}")
    return pinned


def version(path: str) -> tuple[int, ...]:
    """Major and minor number of a Neovim; empty when it does not run."""
    try:
        done = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return ()
    found = re.match(r"NVIM v(\d+)\.(\d+)", done.stdout)
    return (int(found[1]), int(found[2])) if found else ()
