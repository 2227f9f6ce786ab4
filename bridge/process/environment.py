"""Environment variables → one frozen `Environment`; secrets leave `os.environ` before anything else runs.

Receives the environment; sends `Environment`, or a `ConfigurationError` with the variable and the remedy.
Does not know about: options of the plugin (those come with `hello`).
"""

from __future__ import annotations

import ipaddress
import re
import secrets
from collections.abc import MutableMapping
from dataclasses import dataclass, field

from ..errors import ConfigurationError

_PRIVATE = ("MCP_AUTH_TOKEN", "NVIM_LISTEN_ADDRESS", "NVIM")
"""What child processes of tools must not inherit."""
_TOKEN = re.compile(r"[A-Za-z0-9._~+/=-]+")


@dataclass(frozen=True, slots=True)
class Environment:
    """What the process was started with.

    Attributes:
        address: NVIM_LISTEN_ADDRESS, a path or `host:port`.
        token: MCP_AUTH_TOKEN, or a fresh one.
        token_made: the token is fresh, so somebody must be shown it.
        port: MCP_PORT; 0 = any.
        host: MCP_TOOLS_HOST; a loopback address.
        log_file: MCP_LOG_FILE.
        tool_timeout: MCP_TOOL_TIMEOUT in ms, 0 = no limit; None = what the plugin says.
        port_fallback: MCP_TOOLS_PORT_FALLBACK: a taken port is no error, the next free one is used.
        instance_dir: MCP_TOOLS_INSTANCE_DIR, the folder of instance files.
    """

    address: str
    token: str = field(repr=False)
    token_made: bool = False
    port: int = 0
    host: str = "127.0.0.1"
    log_file: str | None = None
    tool_timeout: int | None = None
    port_fallback: bool = False
    instance_dir: str | None = None


def take(environ: MutableMapping[str, str], terminal: bool) -> Environment:
    """Reads the environment and removes the private part of it.

    Args:
        environ: usually `os.environ`; changed.
        terminal: a person reads our output, so a token may be made and shown.

    Raises:
        ConfigurationError: something is missing or wrong.
    """
    private = {name: environ.pop(name, "") for name in _PRIVATE}
    address = private["NVIM_LISTEN_ADDRESS"]
    if not address:
        raise ConfigurationError(
            "NVIM_LISTEN_ADDRESS is not set: give it the editor's v:servername (:echo v:servername)"
        )
    token, made = private["MCP_AUTH_TOKEN"], False
    if not token:
        if not terminal:
            raise ConfigurationError(
                "MCP_AUTH_TOKEN is not set: give it a long random string, which clients send as bearer token"
            )
        token, made = secrets.token_hex(32), True
    elif not _TOKEN.fullmatch(token):
        raise ConfigurationError(
            "MCP_AUTH_TOKEN holds characters that no bearer token may have: use letters, digits and ._~+/=-"
        )
    return Environment(
        address=address,
        token=token,
        token_made=made,
        port=_number(environ, "MCP_PORT", 0, 65535, "a port from 1 to 65535, or 0 for any") or 0,
        host=_loopback(environ),
        log_file=environ.get("MCP_LOG_FILE") or None,
        tool_timeout=_number(environ, "MCP_TOOL_TIMEOUT", 0, 2**53, "milliseconds, or 0 for no limit"),
        port_fallback=environ.get("MCP_TOOLS_PORT_FALLBACK", "") not in ("", "0"),
        instance_dir=environ.get("MCP_TOOLS_INSTANCE_DIR") or None,
    )


def _number(environ: MutableMapping[str, str], name: str, least: int, most: int, wanted: str) -> int | None:
    text = environ.get(name, "").strip()
    if not text:
        return None
    # Not int(): that takes signs, underscores and digits of other scripts.
    if not re.fullmatch(r"[0-9]{1,16}", text) or not least <= int(text) <= most:
        raise ConfigurationError(f"{name} is {text!r}: it must be {wanted}")
    return int(text)


def _loopback(environ: MutableMapping[str, str]) -> str:
    host = environ.get("MCP_TOOLS_HOST", "").strip().strip("[]") or "127.0.0.1"
    if host == "localhost":
        return "127.0.0.1"
    try:
        if ipaddress.ip_address(host).is_loopback:
            return host
    except ValueError:
        pass
    raise ConfigurationError(
        f"MCP_TOOLS_HOST (option bridge.host) is {host!r}, which others could reach: use 127.0.0.1 or ::1"
    )
