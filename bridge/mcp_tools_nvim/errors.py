"""The exceptions of the bridge, and the error codes that a client may see.

BridgeError                 root: anything that the bridge raises on purpose
├── ConfigurationError      an environment variable is wrong; the text names it and says what to do (exit 1)
├── StartError              the start failed for another reason, such as a taken port (exit 1)
├── CommandError            a command of `mcp-tools` failed (cli/show.py)
├── ChangeError             a configuration file cannot be changed (client_config/change.py)
└── EditorError             a request to the editor failed
    ├── EditorGoneError     the channel is closed
    ├── NoAnswerError       a request was not answered before its deadline
    └── LuaError            the editor answered with an error (Lua threw, or an unknown method)

Errors of tools are not exceptions: they are `values.ToolError` values with a `Code`.
"""

from __future__ import annotations

from enum import StrEnum


class Code(StrEnum):
    """What went wrong with a call; lua/mcp-tools/errors.lua has the same list."""

    VALIDATION_ERROR = "validation_error"
    UNKNOWN_TOOL = "unknown_tool"
    NOT_FOUND = "not_found"
    TOOL_ERROR = "tool_error"
    EXECUTION_ERROR = "execution_error"
    INVALID_OUTPUT = "invalid_output"
    NOT_SERIALIZABLE = "not_serializable"
    TIMEOUT = "timeout"
    CANCELLED = "cancelled"
    ACCESS_DENIED = "access_denied"
    CAPABILITY_MISSING = "capability_missing"
    STALE = "stale"
    EDITOR_BLOCKED = "editor_blocked"
    EDITOR_GONE = "editor_gone"
    BUSY = "busy"
    TOO_LARGE = "too_large"
    RATE_LIMITED = "rate_limited"


class BridgeError(Exception):
    """Root of all errors that the bridge raises on purpose."""


class ConfigurationError(BridgeError):
    """An environment variable is missing or wrong; the text names it and says what to do."""


class StartError(BridgeError):
    """The bridge cannot start; the text says why and what to do."""


class EditorError(BridgeError):
    """A request to the editor failed."""


class EditorGoneError(EditorError):
    """The channel to the editor is closed."""


class NoAnswerError(EditorError):
    """The editor did not answer before the deadline of the request."""


class LuaError(EditorError):
    """The editor answered the request with an error."""
