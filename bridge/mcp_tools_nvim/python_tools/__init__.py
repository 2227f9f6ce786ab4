"""Tools written in Python: what a module of tools imports.

Receives: functions marked by `mcp_tool`.
Sends: nothing; the marks are read by scan/ (definitions) and modules.py (calls).
Does not know about: Neovim, MCP, the bridge. Importing it is cheap: a host imports it before its first
answer.
"""

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
