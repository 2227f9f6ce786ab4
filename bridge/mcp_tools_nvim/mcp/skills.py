"""The skills extension (SEP-2640): one skill, which explains when to use which tool."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import mcp_types as types
from mcp import MCPError
from mcp.server.lowlevel import Server

from .. import jsonrpc
from .dispatch import RequestContext
from .pages import NOT_CACHEABLE

NAME = "nvim-tools"
EXTENSION = "io.modelcontextprotocol/skills"
URI = f"skill://{NAME}/SKILL.md"

_DESCRIPTION = (
    "Use the user's running Neovim: unsaved text, language servers, diagnostics, tests, debugger, undo"
    " history, questions to the user"
)


class GetParams(types.RequestParams):
    """Parameters of `skills/get`."""

    uri: str


class Skills:
    """`skills/list` and `skills/get`.

    Args:
        instructions: the text of the skill.
    """

    def __init__(self, instructions: str) -> None:
        text = f"---\nname: {NAME}\ndescription: {json.dumps(_DESCRIPTION)}\n---\n\n{instructions}\n"
        content = text.encode(errors="replace")  # the project's name may not be UTF-8
        self.text = content.decode()
        digest = f"sha256:{hashlib.sha256(content).hexdigest()}"
        self._entry = {
            "uri": URI,
            "frontmatter": {"name": NAME, "description": _DESCRIPTION},
            "resources": [{"uri": URI, "digest": digest, "size": len(content)}],
        }

    def install(self, server: Server[Any]) -> None:
        """Adds the methods to a server."""
        server.add_request_handler("skills/list", types.PaginatedRequestParams, self._list)
        server.add_request_handler("skills/get", GetParams, self._get)

    async def _list(self, context: RequestContext, params: types.PaginatedRequestParams) -> dict[str, Any]:
        return NOT_CACHEABLE | {"skills": [self._entry]}

    async def _get(self, context: RequestContext, params: GetParams) -> dict[str, Any]:
        if params.uri != URI:
            raise MCPError(jsonrpc.INVALID_PARAMS, f"uri: unknown skill; the only one is {URI}")
        return NOT_CACHEABLE | {"skill": self._entry}

    def read(self) -> dict[str, Any]:
        """Returns the content of the skill for `resources/read`."""
        return NOT_CACHEABLE | {"contents": [{"uri": URI, "mimeType": "text/markdown", "text": self.text}]}
