"""Messages of an LSP client: frames, and invalid messages."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest

from mcp_tools_nvim.relay import lsp
from mcp_tools_nvim.relay.bridge_client import Missing
from mcp_tools_nvim.relay.lsp import EndOfMessagesError, LanguageServer, read_body


def test_other_headers_of_a_message_are_ignored() -> None:
    stream = io.BytesIO(
        b"Content-Length: 2\r\n\r\n{}content-length:3\r\nContent-Type: application/vscode-jsonrpc\r\n\r\n[1]"
    )
    assert [read_body(stream), read_body(stream)] == [b"{}", b"[1]"]
    with pytest.raises(EndOfMessagesError) as raised:
        read_body(stream)
    assert not raised.value.args


@pytest.mark.parametrize(
    "data",
    [
        b"\r\n{}",
        b"Content-Length: many\r\n\r\n{}",
        b"Content-Length: -1\r\n\r\n{}",
        b"Content-Length: 99999999999\r\n\r\n{}",
        b"x" * (lsp.MAX_HEADER + 1) + b"\r\n\r\n{}",
    ],
)
def test_an_invalid_header_ends_the_messages(data: bytes) -> None:
    with pytest.raises(EndOfMessagesError, match="Content-Length"):
        read_body(io.BytesIO(data))


@pytest.mark.parametrize("data", [b"", b"Content-Length: 2", b"Content-Length: 5\r\n\r\n{}"])
def test_a_truncated_message_is_the_end(data: bytes) -> None:
    with pytest.raises(EndOfMessagesError) as raised:
        read_body(io.BytesIO(data))
    assert not raised.value.args


def test_an_invalid_body_is_answered_and_the_next_one_is_read() -> None:
    written: list[dict[str, Any]] = []

    def write(data: bytes) -> None:
        written.append(json.loads(data.partition(b"\r\n\r\n")[2]))

    server = LanguageServer(lambda: Missing("nobody"), write, lambda: None)
    assert all(server.on_body(body) for body in (b"{", b"[" * 100_000, b"\xff", b'{"id": NaN}'))
    assert [one["error"]["code"] for one in written] == [-32700] * 4
    ignored = ("[]", "1", '{"id": 1, "result": null}', '{"method": 7}', '{"method": "$/x", "params": []}')
    for body in ignored:
        assert server.on_body(body.encode())
    assert len(written) == 4
    assert server.on_body(b'{"id": {"a": 1}, "method": "shutdown"}')
    assert written[4]["error"]["code"] == lsp.NOT_INITIALIZED
    assert not server.on_body(b'{"method": "exit"}')
    server.pump.close()
