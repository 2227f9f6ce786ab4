"""Lines of a server's output, and the id of a line beyond the limit."""

from __future__ import annotations

import json

import pytest

from mcp_tools_nvim.jsonrpc import TOO_LARGE
from mcp_tools_nvim.mounts.child_process import LineSplitter, LongLine

LIMIT = 2000


@pytest.mark.parametrize("size", [1, 7, 1 << 16])
def test_lines_are_split_however_the_data_arrives(size: int) -> None:
    data = b"one\n\ntwo\r\nthree"
    lines = LineSplitter(LIMIT)
    found = [line for at in range(0, len(data), size) for line in lines.feed(data[at : at + size])]
    assert found == [b"one", b"", b"two\r"]
    assert lines.feed(b"\n") == [b"three"]


@pytest.mark.parametrize("size", [LIMIT, LIMIT + 1])
@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("step", [100, 1 << 20])
def test_a_line_beyond_the_limit_is_answered_by_its_id(size: int, last: bool, step: int) -> None:
    text = "x" * (size - len(json.dumps({"id": 7, "result": ""})))
    message: dict[str, object] = {"result": text, "id": 7} if last else {"id": 7, "result": text}
    data = json.dumps(message).encode() + b"\nnext\n"
    lines = LineSplitter(LIMIT)
    line, after = [line for at in range(0, len(data), step) for line in lines.feed(data[at : at + step])]
    assert after == b"next"
    if size == LIMIT:
        assert json.loads(line) == message
        return
    assert isinstance(line, LongLine)
    assert (line.size, len(line) < LIMIT) == (size, True)
    answer = line.answer(LIMIT)
    error = answer.message.model_dump()
    assert (error["id"], error["error"]["code"]) == (7, TOO_LARGE)


def test_only_the_id_of_the_message_itself_is_used() -> None:
    filling = "x" * 3000
    for message, found in (
        ({"result": {"id": 1, "x": filling, "y": {"id": 2}}, "jsonrpc": "2.0", "id": 7}, 7),
        ({"jsonrpc": "2.0", "id": 7, "result": {"x": filling, "y": {"id": 2}}}, 7),
        ({"result": {"id": 1, "x": filling, "y": {"id": 2}}}, None),
    ):
        (line,) = LineSplitter(LIMIT).feed(json.dumps(message).encode() + b"\n")
        assert isinstance(line, LongLine)
        answer = line.answer(LIMIT)
        assert (answer.message.model_dump()["id"] if answer else None) == found


def test_a_long_notification_has_no_answer() -> None:
    (line,) = LineSplitter(10).feed(b'{"method": "x", "params": "............"}\n')
    assert isinstance(line, LongLine)
    assert line.answer(10) is None


def test_lines_for_display_are_cut() -> None:
    lines = LineSplitter(5, cut=True)
    for _ in range(1000):
        assert lines.feed(b"abcdefgh") == []
    assert lines.feed(b"\nshort\n") == [b"abcde", b"short"]
