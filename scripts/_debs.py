"""Packages from the Debian archive of this machine's apt, unpacked outside of the system.

Trust: apt resolves a set from the suite's signed index (checked against Debian's keyring) and checks the
SHA-256 of each file; a locked set has its SHA-256 in the lock. apt does every download, with the proxies and
mirrors of the machine. Nothing needs root, and dpkg's database is not used.
"""

from __future__ import annotations

import contextlib
import fcntl
import getpass
import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

HELPER = Path("/usr/lib/apt/apt-helper")
KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "mcp-tools-nvim"
# What apt prints for each file of an installation: 'ADDRESS' FILE SIZE SHA256:HEX
PRINTED = re.compile(r"^'(?P<address>[^']+)' (?P<file>\S+) \d+ SHA256:(?P<sha256>[0-9a-f]{64})$")


class UnavailableError(Exception):
    """Something is not available here; the message has the reason and a solution."""


class Deb(NamedTuple):
    """One package file, named as in a lock: its path in the archive's pool, without a host."""

    sha256: str
    file: str
    path: str

    @property
    def name(self) -> str:
        """The package's name."""
        return self.file.split("_")[0]


def archive() -> str:
    """The address of the archive in this machine's apt configuration.

    Raises:
        UnavailableError: apt is missing, or has no Debian archive.
    """
    if not (shutil.which("apt-get") and shutil.which("dpkg-deb") and HELPER.exists()):
        raise UnavailableError("no apt here")
    form = ["--format", "$(REPO_URI) $(CODENAME)"]
    listing = run(["apt-get", "indextargets", *form, "Created-By: Packages", "Component: main"])
    for line in listing.splitlines():
        address, _, codename = line.partition(" ")
        if "-" not in codename:  # not the separate archives for security or point releases
            return address.rstrip("/")
    raise UnavailableError("apt's configuration names no archive with a `main` component")


def read_lock(path: Path) -> list[Deb]:
    """Reads a lock; lines that begin with # are comments."""
    lines = (line.split() for line in path.read_text().splitlines() if line and not line.startswith("#"))
    return [Deb(*fields) for fields in lines]


def write_lock(path: Path, debs: Iterable[Deb], title: str) -> None:
    """Writes a lock that `read_lock` reads."""
    path.write_text("".join([f"# {title}\n", *(f"{' '.join(deb)}\n" for deb in debs)]))


def fetch(debs: Iterable[Deb]) -> None:
    """Downloads every file of the set into the cache and checks it.

    Raises:
        UnavailableError: one is neither in the cache nor in the archive's pool.
    """
    missing = [deb for deb in debs if not is_whole(deb)]
    if not missing:
        return
    base = archive()
    pool().mkdir(parents=True, exist_ok=True)
    downloads = [part for d in missing for part in (f"{base}/{d.path}", str(cached(d)), f"SHA256:{d.sha256}")]
    run([str(HELPER), "-o", f"APT::Sandbox::User={getpass.getuser()}", "download-file", *downloads])
    for deb in missing:
        if not is_whole(deb):
            raise UnavailableError(f"{deb.file} did not arrive whole")


def resolve(suite: str, packages: list[str]) -> list[Deb]:
    """Resolves packages and all their dependencies in one suite, as if nothing were installed.

    Raises:
        UnavailableError: the suite is unreachable, signed by an unknown key, or incomplete.
    """
    base = archive()
    if not KEYRING.exists():
        raise UnavailableError(f"no {KEYRING.name} (package debian-archive-keyring)")
    options = private_apt(suite, base)
    # `apt-get update` succeeds on a failed download unless told otherwise.
    run(["apt-get", *options, "-q", "-o", "APT::Update::Error-Mode=any", "update"])
    printed = run(["apt-get", *options, "-qq", "-y", "--print-uris", "install", *packages])
    found = [match for match in map(PRINTED.match, printed.splitlines()) if match]
    debs = [Deb(m["sha256"], m["file"], m["address"].removeprefix(base + "/")) for m in found]
    if not debs:
        raise UnavailableError(f"apt named no files with SHA-256 for {' '.join(packages)} in {suite}")
    fetch(debs)
    return debs


def private_apt(suite: str, base: str) -> list[str]:
    """Options for separate sources and lists, and an empty package database."""
    architecture = run(["dpkg", "--print-architecture"]).strip()
    home = CACHE / f"apt-{suite}-{architecture}"
    (home / "lists" / "partial").mkdir(parents=True, exist_ok=True)
    (home / "archives" / "partial").mkdir(parents=True, exist_ok=True)
    (home / "status").write_text("")
    (home / "sources.list").write_text(f"deb [arch={architecture} signed-by={KEYRING}] {base} {suite} main\n")
    settings = {
        "Dir::Etc::SourceList": home / "sources.list",
        "Dir::Etc::SourceParts": "/dev/null",
        "Dir::Etc::Preferences": "/dev/null",
        "Dir::Etc::PreferencesParts": "/dev/null",
        "Dir::State": home,
        "Dir::State::Lists": home / "lists",
        "Dir::State::status": home / "status",
        "Dir::State::extended_states": home / "extended_states",
        "Dir::Log": home,
        "Dir::Cache": home,
        "Dir::Cache::archives": home / "archives",
        "APT::Architecture": architecture,
        "APT::Install-Recommends": 0,
        "APT::Sandbox::User": getpass.getuser(),
        "Acquire::Languages": "none",
        "Acquire::Retries": 3,
        "Acquire::http::Timeout": 30,
        "Acquire::ForceHash": "SHA256",
        "Acquire::AllowInsecureRepositories": 0,
        "Debug::NoLocking": 1,
    }
    return [part for key, value in settings.items() for part in ("-o", f"{key}={value}")]


def unpack(debs: Iterable[Deb], into: Path) -> None:
    """Unpacks fetched packages into one tree; maintainer scripts are not run."""
    for deb in debs:
        run(["dpkg-deb", "-x", str(cached(deb)), str(into)])


def pool() -> Path:
    """The directory of fetched files."""
    return CACHE / "archives"


def cached(deb: Deb) -> Path:
    """The path of a fetched file."""
    return pool() / deb.file


def is_whole(deb: Deb) -> bool:
    """Whether the file is in the cache with the right hash."""
    try:
        return hashlib.sha256(cached(deb).read_bytes()).hexdigest() == deb.sha256
    except FileNotFoundError:
        return False


@contextlib.contextmanager
def exclusive(path: Path) -> Iterator[None]:
    """Holds a lock file, so that concurrent runs wait for each other."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def run(command: list[str]) -> str:
    """Runs a program to its end and returns its output.

    Raises:
        UnavailableError: it failed or is missing; the message has its last lines.
    """
    environment = {**os.environ, "LC_ALL": "C.UTF-8"}
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, stdin=subprocess.DEVNULL, env=environment, timeout=300
        )
    except FileNotFoundError:
        raise UnavailableError(f"{command[0]} is not installed") from None
    except subprocess.TimeoutExpired:
        raise UnavailableError(f"{command[0]} did not end within 5 minutes") from None
    if done.returncode != 0:
        said = [
            line for line in (done.stderr + done.stdout).splitlines() if re.match(r"^(E|W|Err)[:0-9]", line)
        ]
        raise UnavailableError(
            " / ".join(said[-3:]) or f"{Path(command[0]).name} failed: {done.stderr.strip()[-300:]}"
        )
    return done.stdout
