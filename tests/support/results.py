"""Text and error of a tool result of the Python SDK's client."""

from __future__ import annotations

from typing import Any


def text_of(result: Any) -> str:
    return "".join(block.text for block in result.content if block.type == "text")


def error_of(result: Any) -> dict[str, Any]:
    """The error of a failed call, which must also be its text."""
    assert result.is_error, result
    content: dict[str, Any] = result.structured_content
    assert text_of(result) == f"Error: {content['message']}"
    return content
