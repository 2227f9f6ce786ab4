"""An MCP client for any server: the SDK's, over stdio or HTTP, and how much of an answer a model reads.

Receives: how a server is started, or where it listens. Sends: the text of tool results.
Does not know about: which server it is.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from mcp import Client, MCPError, StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.types import TextContent

from tests.support.http import http_client


class FailedError(Exception):
    """A server gave no answer, or an error in its place."""


class Asker:
    """A connected client."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def ask(self, tool: str, seconds: float = 60, **arguments: Any) -> str:
        """Call a tool.

        Args:
            tool: its name.
            seconds: how long it may take.
            arguments: its own.

        Returns:
            The text that a model reads.

        Raises:
            FailedError: it failed, or took too long.
        """
        try:
            async with asyncio.timeout(seconds):
                result = await self._client.call_tool(tool, arguments)
        except TimeoutError:
            raise FailedError(f"{tool}: no answer within {seconds:g} s") from None
        except MCPError as error:
            raise FailedError(f"{tool}: {error}") from None
        text = "\n".join(part.text for part in result.content if isinstance(part, TextContent))
        if result.is_error:
            raise FailedError(f"{tool}: {text[:300]}")
        return text

    async def tools(self) -> set[str]:
        """Names of what it offers."""
        names: set[str] = set()
        cursor = None
        while True:
            page = await self._client.list_tools(cursor=cursor)
            names |= {tool.name for tool in page.tools}
            cursor = page.next_cursor
            if not cursor:
                return names


@contextlib.asynccontextmanager
async def over_stdio(command: list[str], env: dict[str, str], cwd: Path, log: Path) -> AsyncIterator[Asker]:
    """A server that is started here; what it logs goes to a file."""
    parameters = StdioServerParameters(command=command[0], args=command[1:], env=env, cwd=cwd)
    with log.open("w") as stream:
        async with Client(stdio_client(parameters, errlog=stream), mode="legacy") as client:
            yield Asker(client)


@contextlib.asynccontextmanager
async def over_http(url: str, headers: dict[str, str]) -> AsyncIterator[Asker]:
    """A server that listens."""
    async with (
        http_client(headers) as http,
        Client(streamable_http_client(url, http_client=http), mode="legacy") as client,
    ):
        yield Asker(client)


def language_server() -> list[str]:
    """The command that everybody is given."""
    return [str(Path(sys.executable).with_name("basedpyright-langserver")), "--stdio"]
