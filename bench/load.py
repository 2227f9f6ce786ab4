"""Load by wrk, whose own cost is small beside what it measures.

wrk comes from PATH, else from the Debian archive of this machine's apt, unpacked into `.deps/wrk` (no root).
Each answer is checked for what it must hold; a single wrong one ends the run.
"""

from __future__ import annotations

import asyncio
import json
import math
import os
import platform
import shutil
import sys
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
TARGET = ROOT / ".deps" / "wrk"

sys.path.insert(0, str(ROOT / "scripts"))
import _debs  # noqa: E402

from tests.support import processes  # noqa: E402


class BenchError(Exception):
    """Something did not run as it must for its number to mean anything."""


@dataclass(frozen=True)
class Endpoint:
    """What to send where.

    Attributes:
        url: address of a POST.
        headers: besides the session's.
        before: the body up to the request id.
        after: the rest of it.
        expect: a text that every answer holds.
        sessions: ids, used in turn; empty = no session header.
        size: least bytes of an answer.
    """

    url: str
    headers: dict[str, str]
    before: str
    after: str
    expect: str
    sessions: list[str] = field(default_factory=list)
    size: int = 1


@dataclass(frozen=True)
class Sample:
    """One stretch of load.

    Attributes:
        p50: ms, of the calls as they were.
        p99: the same.
        rate: answers per second.
        count: of answers.
        p99_at_rate: ms, as wrk estimates it for clients that would keep to a rate.
    """

    p50: float
    p99: float
    rate: float
    count: int
    p99_at_rate: float = math.nan


def wrk() -> tuple[list[str], dict[str, str]]:
    """The command and what it needs in its environment.

    Raises:
        BenchError: there is none to be had.
    """
    own = shutil.which("wrk")
    if own:
        return [own], {}
    lock = HERE / "wrk.lock"
    stamp = TARGET / ".stamp"
    if not stamp.exists() or stamp.read_text() != lock.read_text():
        try:
            unpack(_debs.read_lock(lock))
        except _debs.UnavailableError as error:
            raise BenchError(f"wrk cannot be had ({error}): put it on PATH") from error
        stamp.write_text(lock.read_text())
    libraries = ":".join(str(folder) for folder in TARGET.glob("usr/lib/*-linux-gnu"))
    return [str(TARGET / "usr/bin/wrk")], {"LD_LIBRARY_PATH": libraries}


def unpack(pinned: list[_debs.Deb]) -> None:
    """Fetch and unpack the pinned packages; where they do not fit or are gone, what apt names instead."""
    names = [deb.name for deb in pinned]
    try:
        if platform.machine() != "x86_64":
            raise _debs.UnavailableError("pinned for another processor")
        _debs.fetch(pinned)
    except _debs.UnavailableError:
        pinned = [deb for deb in _debs.resolve("bookworm", ["wrk"]) if deb.name in names]
    _debs.unpack(pinned, TARGET)


def lua(value: object) -> str:
    """A Lua literal."""
    if isinstance(value, dict):
        return "{" + ",".join(f"[{lua(k)}]={lua(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "{" + ",".join(map(lua, value)) + "}"
    if isinstance(value, str):
        return '"' + "".join(c if c.isalnum() or c in " -_./:," else f"\\{ord(c):03d}" for c in value) + '"'
    return json.dumps(value)


async def run(endpoint: Endpoint, seconds: float, clients: int = 1) -> Sample:
    """Send calls for a while.

    Args:
        endpoint: what to send.
        seconds: for how long; wrk counts whole ones, so a part of one is cut by the caller's patience.
        clients: connections, each with one call at a time.

    Raises:
        BenchError: an answer was not the expected one.
    """
    command, extra = wrk()
    with TemporaryDirectory(prefix="mcpt-wrk-") as folder:
        spec = Path(folder) / "spec.lua"
        values = {
            "headers": {"Content-Type": "application/json", **endpoint.headers},
            "sessions": endpoint.sessions or [""],
            "before": endpoint.before,
            "after": endpoint.after,
            "expect": endpoint.expect,
            "size": endpoint.size,
        }
        spec.write_text(f"return {lua(values)}\n")
        process = await processes.start(
            *command,
            *(f"-t{clients}", f"-c{clients}", f"-d{max(1, round(seconds))}s", "--timeout", "20s"),
            *("-s", str(HERE / "wrk.lua"), endpoint.url, "--", str(spec)),
            env={**os.environ, **extra},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        output = (await process.communicate())[0].decode(errors="replace")
    lines = {line.partition(" ")[0]: line.partition(" ")[2] for line in output.splitlines()}
    if "RESULT" not in lines:
        raise BenchError(f"wrk failed: {output.strip()[-400:]}")
    count, duration, p50, p99, at_rate, wrong, broken = map(int, lines["RESULT"].split())
    if wrong or broken or not count:
        what = f"{wrong} wrong and {broken} broken answers of {count}"
        raise BenchError(f"{endpoint.url}: {what}: {lines.get('FAULT', '')}")
    return Sample(p50 / 1000, p99 / 1000, count / duration * 1e6, count, at_rate / 1000)
