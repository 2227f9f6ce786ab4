"""Which editor is meant, from the notes of several."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mcp_tools_nvim.instances.choose import Place, choose
from mcp_tools_nvim.instances.files import Instance
from mcp_tools_nvim.values import ToolError


def instance(root: Path | str, *, pid: int = 0, socket: str = "/run/nvim", focused: float = 0) -> Instance:
    return Instance(pid or os.getpid(), 1, "token", root=str(root), socket=socket, focused_at=focused)


def said(answer: Place | ToolError) -> str:
    assert isinstance(answer, ToolError)
    answer.message.encode()  # it can be printed
    return answer.message


def test_the_nearest(tmp_path: Path) -> None:
    """The root that is the nearest above counts, however it is written."""
    below = tmp_path / "a" / "b"
    below.mkdir(parents=True)
    found = [instance(tmp_path / "a" / "." / "b" / "..", socket="near"), instance(tmp_path, socket="far")]
    chosen = choose(below, found)
    assert isinstance(chosen, Place)
    assert chosen.address == "near"


@pytest.mark.parametrize("root", ["", "\0", "\ud800", "/nowhere/" + "x/" * 5000])
def test_roots_that_are_none(tmp_path: Path, root: str) -> None:
    """They hold nothing, and are told without a fault."""
    assert "open" in said(choose(tmp_path, [instance(root)]))


@pytest.mark.parametrize("pid", [-1, 2**70])
def test_processes_that_are_none(tmp_path: Path, pid: int) -> None:
    """Their editors are gone."""
    assert "there are" not in said(choose(tmp_path, [instance(tmp_path, pid=pid)]))


@pytest.mark.parametrize("focused", [1e18, -1e18])
def test_times_beyond_the_calendar(tmp_path: Path, focused: float) -> None:
    """An editor is told by what is known of it."""
    assert "/run/nvim" in said(choose(tmp_path, [instance("/elsewhere", focused=focused)]))


def test_names_that_are_no_text(tmp_path: Path) -> None:
    """A folder that is not UTF-8 is found, and told in a form that can be printed."""
    folder = tmp_path / os.fsdecode(b"caf\xe9")
    folder.mkdir()
    assert isinstance(choose(folder, [instance(folder)]), Place)
    assert r"caf\udce9" in said(choose(folder, []))
    assert r"caf\udce9" in said(choose(tmp_path / "other", [instance(folder)]))


def test_several_in_one_project(tmp_path: Path) -> None:
    """The one that the person last looked at, however its folder is written."""
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
