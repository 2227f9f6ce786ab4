"""Reads the environment variables of the bridge; removes secrets from `os.environ`."""

from __future__ import annotations

import ipaddress
import os
import re
import secrets
import threading
from collections.abc import MutableMapping
from dataclasses import dataclass, field

from ..errors import ConfigurationError

_PRIVATE = ("MCP_AUTH_TOKEN", "MCP_TOOLS_LAUNCH", "NVIM_LISTEN_ADDRESS", "NVIM")
"""Variables that child processes must not inherit."""
_TOKEN = re.compile(r"[A-Za-z0-9._~+/=-]+")
_STDIN_PATIENCE = 10.0
"""Seconds to wait for the token; Neovim waits longer than that."""
_STDIN_BYTES = 4096


@dataclass(frozen=True, slots=True)
class Environment:
    """The configuration from environment variables.

    Attributes:
        address: NVIM_LISTEN_ADDRESS, a path or `host:port`.
        token: first line of stdin with MCP_TOOLS_TOKEN_STDIN, else MCP_AUTH_TOKEN or a generated one.
        token_made: the token was generated and must be shown to the user.
        port: MCP_PORT; 0 = any.
        host: MCP_TOOLS_HOST; a loopback address.
        log_file: MCP_LOG_FILE.
        tool_timeout: MCP_TOOL_TIMEOUT in ms, 0 = no limit; None = the plugin's option.
        port_fallback: MCP_TOOLS_PORT_FALLBACK: use the next free port if the wanted one is taken.
        instance_dir: MCP_TOOLS_INSTANCE_DIR, the directory of instance files.
        launch: MCP_TOOLS_LAUNCH, Neovim's id for the process that it started.
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
    launch: str = ""


def take(
    environ: MutableMapping[str, str], terminal: bool, stdin: int = 0, patience: float = _STDIN_PATIENCE
) -> Environment:
    """Reads the environment and removes its private variables.

    Args:
        environ: usually `os.environ`; it is changed.
        terminal: the output is a terminal, so a token may be generated and shown.
        stdin: descriptor of the token if MCP_TOOLS_TOKEN_STDIN is set; empty afterwards.
        patience: seconds to wait for the token.

    Raises:
        ConfigurationError: a variable is missing or not valid.
    """
    private = {name: environ.pop(name, "") for name in _PRIVATE}
    address = private["NVIM_LISTEN_ADDRESS"]
    if not address:
        raise ConfigurationError(
            "NVIM_LISTEN_ADDRESS is not set: set it to Neovim's v:servername (:echo v:servername)"
        )
    token, made = private["MCP_AUTH_TOKEN"], False
    if environ.pop("MCP_TOOLS_TOKEN_STDIN", "") not in ("", "0"):
        token = _first_line(stdin, patience)
        if not token:
            raise ConfigurationError(
                "MCP_TOOLS_TOKEN_STDIN is set but stdin has no token: "
                "the command of bridge.command must pass its stdin to the bridge"
            )
    elif not token:
        if not terminal:
            raise ConfigurationError(
                "MCP_AUTH_TOKEN is not set: set it to a long random string, the bearer token of clients"
            )
        token, made = secrets.token_hex(32), True
    if not _TOKEN.fullmatch(token):
        raise ConfigurationError(
            "MCP_AUTH_TOKEN contains invalid characters: use letters, digits and ._~+/=-"
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
        launch=private["MCP_TOOLS_LAUNCH"],
    )


def _first_line(descriptor: int, patience: float) -> str:
    """Returns the first line of a descriptor, which is then replaced by an empty file; "" after a timeout."""
    chunks: list[bytes] = []

    def read() -> None:
        try:
            while b"\n" not in b"".join(chunks) and (chunk := os.read(descriptor, _STDIN_BYTES)):
                chunks.append(chunk)
        except OSError:
            pass  # closed

    # Only a thread can time out on every system; a writer that sends nothing must not block the start.
    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    reader.join(patience)
    line, newline, _ = b"".join(chunks).partition(b"\n")
    if not newline:
        return ""
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, descriptor)
    os.close(nothing)
    return line.strip().decode("ascii", "replace")


def _number(environ: MutableMapping[str, str], name: str, least: int, most: int, wanted: str) -> int | None:
    text = environ.get(name, "").strip()
    if not text:
        return None
    # int() alone would accept signs, underscores and digits of other scripts.
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
        f"MCP_TOOLS_HOST (option bridge.host) is {host!r}, not a loopback address: use 127.0.0.1 or ::1"
    )
