"""Text and error of a tool result of the Python SDK's client."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from typing import Any


async def eventually(check: Callable[[], Any], seconds: float = 15.0) -> Any:
    """Waits until `check`, which may be asynchronous, is truthy; bounded."""
    async with asyncio.timeout(seconds):
        while True:
            value = check()
            if value := await value if inspect.isawaitable(value) else value:
                return value
            await asyncio.sleep(0.01)


def text_of(result: Any) -> str:
    return "".join(block.text for block in result.content if block.type == "text")


def error_of(result: Any) -> dict[str, Any]:
    """The error of a failed call, which must also be its text."""
    assert result.is_error, result
    content: dict[str, Any] = result.structured_content
    assert text_of(result) == f"Error: {content['message']}"
    return content
