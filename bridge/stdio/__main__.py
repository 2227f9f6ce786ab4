"""`python -m bridge.stdio`, as `acp_server{ transport = "stdio" }` has it.

The environment says where the bridge is: MCP_TOOLS_URL and MCP_TOOLS_TOKEN.
"""

from __future__ import annotations

import asyncio
import os
import sys

import aiohttp

from .relay import Relay

MAX_LINE = 64 * 1024 * 1024
"""Bytes; the bridge refuses larger messages itself."""


def write(line: str) -> None:
    """One message to the agent."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


async def main() -> None:
    """Relays until stdin ends."""
    reader = asyncio.StreamReader(limit=MAX_LINE)
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), sys.stdin
    )
    headers = {"Authorization": f"Bearer {os.environ['MCP_TOOLS_TOKEN']}"}
    limits = aiohttp.ClientTimeout(total=None)
    async with aiohttp.ClientSession(headers=headers, timeout=limits, trust_env=False) as http:
        relay = Relay(http, os.environ["MCP_TOOLS_URL"], write)
        while line := await reader.readline():
            if text := line.decode().strip():
                relay.take(text)
        await relay.close()


if __name__ == "__main__":
    asyncio.run(main())
