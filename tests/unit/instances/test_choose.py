"""The choice of an editor from instance files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mcp_tools_nvim.instances.choose import Place, choose
from mcp_tools_nvim.instances.files import Instance
from mcp_tools_nvim.values import ToolError


def instance(root: Path | str, *, pid: int = 0, socket: str = "/run/nvim", focused: float = 0) -> Instance:
    return Instance(pid or os.getpid(), 1, "token", root=str(root), socket=socket, focused_at=focused)


def message_of(answer: Place | ToolError) -> str:
    assert isinstance(answer, ToolError)
    answer.message.encode()  # can be printed
    return answer.message


def test_the_nearest_root_above_the_directory_is_chosen(tmp_path: Path) -> None:
    below = tmp_path / "a" / "b"
    below.mkdir(parents=True)
    found = [instance(tmp_path / "a" / "." / "b" / "..", socket="near"), instance(tmp_path, socket="far")]
    chosen = choose(below, found)
    assert isinstance(chosen, Place)
    assert chosen.address == "near"


@pytest.mark.parametrize("root", ["", "\0", "\ud800", "/nowhere/" + "x/" * 5000])
def test_an_invalid_root_contains_nothing(tmp_path: Path, root: str) -> None:
    assert "open" in message_of(choose(tmp_path, [instance(root)]))


@pytest.mark.parametrize("pid", [-1, 2**70])
def test_an_invalid_process_id_is_not_running(tmp_path: Path, pid: int) -> None:
    assert "there are" not in message_of(choose(tmp_path, [instance(tmp_path, pid=pid)]))


@pytest.mark.parametrize("focused", [1e18, -1e18])
def test_an_invalid_focus_time_is_ignored_in_the_message(tmp_path: Path, focused: float) -> None:
    assert "/run/nvim" in message_of(choose(tmp_path, [instance("/elsewhere", focused=focused)]))


def test_a_directory_that_is_not_utf_8_is_found_and_printed_escaped(tmp_path: Path) -> None:
    directory = tmp_path / os.fsdecode(b"caf\xe9")
    directory.mkdir()
    assert isinstance(choose(directory, [instance(directory)]), Place)
    assert r"caf\udce9" in message_of(choose(directory, []))
    assert r"caf\udce9" in message_of(choose(tmp_path / "other", [instance(directory)]))


def test_of_several_editors_the_one_focused_last_is_chosen(tmp_path: Path) -> None:
    link = tmp_path / "a-longer-name-for-it"
    (tmp_path / "a").mkdir()
    link.symlink_to("a")
    found = [
        instance(tmp_path / "a", socket="old", focused=1),
        instance(tmp_path / "a", socket="new", focused=3),
        instance(link, socket="between", focused=2),
        instance(tmp_path, socket="above", focused=9),
    ]
    chosen = choose(link, found)
    assert isinstance(chosen, Place)
    assert chosen.address == "new"
