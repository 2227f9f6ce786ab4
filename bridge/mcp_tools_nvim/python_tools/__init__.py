"""The public names for modules with tools written in Python."""

from __future__ import annotations

from .context import AsyncContext, Cancelled, Context
from .decorator import Annotations, mcp_tool
from .errors import ToolError
from .results import Block, Result, audio, image, resource, resource_link, text

__all__ = [
    "Annotations",
    "AsyncContext",
    "Block",
    "Cancelled",
    "Context",
    "Result",
    "ToolError",
    "audio",
    "image",
    "mcp_tool",
    "resource",
    "resource_link",
    "text",
]
