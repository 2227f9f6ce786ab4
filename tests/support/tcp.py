"""HTTP as bytes, for requests that no HTTP library sends."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from typing import Any

from .bridge import Bridge
from .raw import BOTH


@dataclass(frozen=True)
class Answer:
    status: int
    head: str
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


def request(
    bridge: Bridge, body: bytes = b"", *extra: str, line: str = "POST /mcp HTTP/1.1", **fields: Any
) -> bytes:
    """A request as bytes.

    Args:
        bridge: has the token.
        body: the body.
        extra: raw header lines.
        line: the request line.
        fields: changes of valid header fields, `_` for `-`; None removes one.
    """
    valid: dict[str, Any] = {
        "Host": f"127.0.0.1:{bridge.port}",
        "Authorization": f"Bearer {bridge.token}",
        "Accept": BOTH,
        "Content-Type": "application/json",
        "Content-Length": len(body),
    }
    valid |= {name.replace("_", "-"): value for name, value in fields.items()}
    lines = [line, *(f"{name}: {value}" for name, value in valid.items() if value is not None), *extra]
    return "\r\n".join(lines).encode("utf-8", "surrogateescape") + b"\r\n\r\n" + body


def ping(session: str | None, id_: Any = 1) -> tuple[bytes, str]:
    """Body and header line of a ping."""
    body = json.dumps({"jsonrpc": "2.0", "id": id_, "method": "ping"}).encode()
    return body, f"Mcp-Session-Id: {session}"


async def talk(
    bridge: Bridge, *parts: bytes, answers: int | None = None, seconds: float = 3.0
) -> list[Answer]:
    """Sends the parts one by one and reads `answers` responses, or all until the bridge closes."""
    async with asyncio.timeout(seconds):
        reader, writer = await asyncio.open_connection("127.0.0.1", bridge.port)
        try:
            for part in parts:
                writer.write(part)
                await writer.drain()
                await asyncio.sleep(0)
            found: list[Answer] = []
            while answers is None or len(found) < answers:
                answer = await read(reader)
                if answer is None:
                    break
                found.append(answer)
            return found
        finally:
            writer.close()


async def read(reader: asyncio.StreamReader) -> Answer | None:
    """The next response; None at the end."""
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    except (asyncio.IncompleteReadError, ConnectionError):
        return None
    length = 0
    for line in head.split("\r\n")[1:]:
        name, _, value = line.partition(":")
        if name.lower() == "content-length":
            length = int(value)
    return Answer(int(head.split(" ", 2)[1]), head, await reader.readexactly(length))
