"""The Neovims of development: those that the tests run on, and the one that `make run` starts."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
DEPS = (HERE.parent / ".deps").resolve()
RECORD = DEPS / "nvims.json"
# The oldest that is supported, the one that every test runs on, and the newest: ways to get each, best first.
SOURCES: dict[str, list[list[str]]] = {
    "0.11": [["pypi"]],
    "0.10": [["trixie"]],
    "0.12": [["--frozen", "--lock", str(HERE / "nvim-sid.lock"), "sid"], ["sid"], ["forky"]],
}
REQUIRED = "0.11"
OLDEST = (0, 10)
RETRY_AFTER = 3600  # seconds; an archive that was out of reach is not asked again by every run


def obtain(minor: str) -> tuple[str | None, str]:
    """Have one Neovim installed.

    Returns:
        The program's path or None, and why there is none.
    """
    named = os.environ.get("NVIM_" + minor.replace(".", "_"))
    if named:
        return named, ""
    prefix = DEPS / f"nvim-{minor}"
    reasons = []
    for source in SOURCES[minor]:
        command = [sys.executable, str(HERE / "get-nvim"), *source, str(prefix)]
        done = subprocess.run(command, stderr=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL)
        if done.returncode == 0:
            return str(prefix / "bin" / "nvim"), ""
        said = done.stderr.strip().splitlines() or [f"get-nvim ended with exit code {done.returncode}"]
        reasons.append(said[-1].removeprefix("get-nvim: "))
    return None, "; ".join(reasons)


def install() -> dict[str, dict[str, str]]:
    """Have every wanted Neovim that can be had, and record which these are."""
    record: dict[str, dict[str, str]] = {"found": {}, "missing": recently_missing()}
    wanted = [minor for minor in SOURCES if minor not in record["missing"]]
    with ThreadPoolExecutor() as pool:
        for minor, (path, reason) in zip(wanted, pool.map(obtain, wanted), strict=True):
            if path:
                record["found"][minor] = path
            else:
                record["missing"][minor] = reason
    if not RECORD.exists() or read() != record or record["missing"].keys() & set(wanted):
        RECORD.write_text(json.dumps(record, indent=2) + "\n")
    return record


def recently_missing() -> dict[str, str]:
    """Those that could not be had a short while ago; required ones are always tried again."""
    if not RECORD.exists() or time.time() - RECORD.stat().st_mtime > RETRY_AFTER:
        return {}
    return {minor: reason for minor, reason in read()["missing"].items() if minor not in required()}


def required() -> set[str]:
    """Those without which a test run fails."""
    return {REQUIRED, *filter(None, os.environ.get("REQUIRE_NVIM", "").split(","))}


def read() -> dict[str, dict[str, str]]:
    """The record of the last installation."""
    record: dict[str, dict[str, str]] = json.loads(RECORD.read_text())
    return record


def program() -> str:
    """The Neovim for `make demo`, `make run` and `make trace`: the user's own, else the pinned one."""
    own = shutil.which("nvim")
    if own and version(own) >= OLDEST:
        return own
    if not (DEPS / f"nvim-{REQUIRED}").exists():
        print(f"  Downloading Neovim {REQUIRED}", file=sys.stderr, flush=True)
    pinned, why = obtain(REQUIRED)
    if pinned is None:
        sys.exit(f"Neovim 0.10 or newer is not on PATH, and the pinned one cannot be had: {why}")
    return pinned


def version(path: str) -> tuple[int, ...]:
    """Major and minor number of a Neovim; empty when it does not run."""
    unlogged = {**os.environ, "NVIM_LOG_FILE": os.devnull}
    try:
        done = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=20, env=unlogged)
    except (OSError, subprocess.TimeoutExpired):
        return ()
    found = re.match(r"NVIM v(\d+)\.(\d+)", done.stdout)
    return (int(found[1]), int(found[2])) if found else ()


if __name__ == "__main__":
    program()
