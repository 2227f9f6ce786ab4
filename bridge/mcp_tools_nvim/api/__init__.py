"""Calls tools of a running Neovim from Python: `call_tool("buffer_list")`.

A result is `{"ok": True, "text": …, "structured": …, "content": […]}`: the text, the data (None when the tool
returns text), and both as the content blocks that an AI client gets. A failure is `{"ok": False, "error":
{"code": …, "message": …}}`, with `errors` (a list of `{"field", "message"}`) for invalid arguments;
`:h mcp-tools-errors` lists the codes. Only misuse raises: TypeError or ValueError for invalid parameters,
RuntimeError for a closed client, ImportError without the package msgpack.

The Neovim is the one that `socket` names, else the one that this program runs in ($NVIM), else
$NVIM_LISTEN_ADDRESS, else the one that has the project of the working directory open; among several of those
the last focused one.
"""

from __future__ import annotations

from .client import AsyncClient, Client, call_tool, call_tool_async

__all__ = ["AsyncClient", "Client", "call_tool", "call_tool_async"]
