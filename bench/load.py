"""Load by wrk, whose own cost is small.

wrk is on PATH, or is unpacked from the Debian archive of this machine's apt into `.deps/wrk` (no root).
Every answer is checked; a wrong one ends the run.
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
    """A measurement is invalid."""


@dataclass(frozen=True)
class Endpoint:
    """Requests to a URL.

    Attributes:
        url: address of a POST.
        headers: without that of the session.
        before: the body up to the request id.
        after: the body after the request id.
        expect: a text in every answer.
        sessions: ids, used in turn; empty: no session header.
        size: minimum bytes of an answer.
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
        p50: ms.
        p99: ms.
        rate: answers per second.
        count: number of answers.
        p99_at_rate: ms, wrk's estimate for clients with a constant rate.
    """

    p50: float
    p99: float
    rate: float
    count: int
    p99_at_rate: float = math.nan


def wrk() -> tuple[list[str], dict[str, str]]:
    """The command and its environment.

    Raises:
        BenchError: wrk is not available.
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
    """Fetches and unpacks the pinned packages, or those of apt if the pinned ones are not available."""
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
    """Sends calls for a while.

    Args:
        endpoint: what to send.
        seconds: duration; wrk counts whole seconds.
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
