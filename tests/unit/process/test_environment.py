"""The environment: what is read, refused and removed."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import BinaryIO

import pytest

from mcp_tools_nvim.errors import ConfigurationError
from mcp_tools_nvim.process.environment import Environment, take

BASE = {"NVIM_LISTEN_ADDRESS": "/run/n.sock", "MCP_AUTH_TOKEN": "secret-1"}


def test_all_variables_are_read_and_typed() -> None:
    environ = BASE | {
        "MCP_PORT": "4711",
        "MCP_LOG_FILE": "/tmp/log",
        "MCP_TOOL_TIMEOUT": "0",
        "MCP_TOOLS_PORT_FALLBACK": "1",
        "MCP_TOOLS_INSTANCE_DIR": "/run/i",
        "MCP_TOOLS_HOST": "[::1]",
    }
    assert take(environ, False) == Environment(
        "/run/n.sock", "secret-1", False, 4711, "::1", "/tmp/log", 0, True, "/run/i"
    )


def test_only_address_and_token_are_required() -> None:
    read = take(dict(BASE), False)
    assert read == Environment("/run/n.sock", "secret-1")
    assert "secret-1" not in repr(read)


def test_token_and_address_are_removed_from_the_environment() -> None:
    """Even when the start fails."""
    environ = BASE | {"NVIM": "/run/n.sock", "PATH": "/bin", "MCP_PORT": "x"}
    with pytest.raises(ConfigurationError):
        take(environ, False)
    assert set(environ) == {"PATH", "MCP_PORT"}


def test_a_missing_token_is_created_on_a_terminal_only() -> None:
    environ = {"NVIM_LISTEN_ADDRESS": "x"}
    one, two = take(dict(environ), True), take(dict(environ), True)
    assert one.token_made
    assert len(one.token) == 64
    assert one.token != two.token
    with pytest.raises(ConfigurationError, match=r"^MCP_AUTH_TOKEN is not set: "):
        take(environ, False)


INVALID = {
    "NVIM_LISTEN_ADDRESS": [""],
    "MCP_AUTH_TOKEN": ["has space", "line\nbreak", "ümlaut"],
    "MCP_PORT": ["65536", "-1", "1_0", "٣"],
    "MCP_TOOL_TIMEOUT": ["5s", "-1"],
    "MCP_TOOLS_HOST": ["0.0.0.0", "192.168.0.1", "example.org"],
}


@pytest.mark.parametrize(("name", "value"), [(name, each) for name in INVALID for each in INVALID[name]])
def test_an_invalid_value_is_an_error_with_the_variable_and_advice(name: str, value: str) -> None:
    with pytest.raises(ConfigurationError, match=rf"^{name} .+: .+"):
        take(BASE | {name: value}, False)


STDIN = {"NVIM_LISTEN_ADDRESS": "x", "MCP_TOOLS_TOKEN_STDIN": "1"}


@contextlib.contextmanager
def stdin() -> Iterator[tuple[int, BinaryIO]]:
    """A pipe: the end to read, and the one to write."""
    read, write = os.pipe()
    with open(write, "wb", buffering=0) as writer:
        yield read, writer
    os.close(read)


def test_the_token_is_the_first_line_of_stdin() -> None:
    with stdin() as (read, writer):
        writer.write(b"secret-2\nmore")
        environ = STDIN | {"MCP_AUTH_TOKEN": "secret-1"}
        assert take(environ, False, read).token == "secret-2"
        assert not environ
        assert os.read(read, 1) == b""


@pytest.mark.parametrize("text", [b"", b"\n"])
def test_a_stdin_without_a_token_is_an_error(text: bytes) -> None:
    """Also on a terminal, and whatever the environment has."""
    for terminal in (False, True):
        with stdin() as (read, writer):
            writer.write(text)
            writer.close()
            with pytest.raises(ConfigurationError, match="stdin has no token"):
                take(STDIN | {"MCP_AUTH_TOKEN": "secret-1"}, terminal, read)


def test_waiting_for_stdin_has_a_limit() -> None:
    with stdin() as (read, _), pytest.raises(ConfigurationError, match="stdin has no token"):
        take(dict(STDIN), False, read, patience=0.05)


def test_every_port_and_loopback_host_is_accepted() -> None:
    for port in ("", "0", "1", "65535"):
        assert take(BASE | {"MCP_PORT": port}, False).port == int(port or 0)
    for host in ("localhost", "127.0.0.1", "127.0.0.2", "::1"):
        assert take(BASE | {"MCP_TOOLS_HOST": host}, False).host in ("127.0.0.1", "127.0.0.2", "::1")
