"""What a terminal shows becomes a picture: text, place and colour of everything."""

from __future__ import annotations

import importlib
import re
import xml.etree.ElementTree as ElementTree
from types import ModuleType

import pytest

from tests.support.nvim import ROOT


@pytest.fixture
def svg(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    return importlib.import_module("_terminal_svg")


def test_text_and_colours(svg: ModuleType) -> None:
    """What stands apart is a text of its own; a style goes on over the end of a line."""
    lines = ["a\x1b[1;31m b    <c>", "d\x1b[22;39m\x1b[38;2;1;2;3;48;5;16me\x1b[0mf", "字\x1b[7mg"]
    picture = ElementTree.fromstring(svg.draw(lines, 10, "A & B"))
    ns = "{http://www.w3.org/2000/svg}"
    found = {
        str(text.text): (round((float(text.get("x", "")) - svg.MARGIN) / svg.CELL), text.get("fill"))
        for text in picture.iter(f"{ns}text")
    }
    red, paper = svg.BASE[1], svg.PAPER
    assert found == {
        "a": (0, None),
        "b": (2, red),
        "<c>": (7, red),
        "d": (0, red),
        "e": (1, "#010203"),
        "f": (2, None),
        "字": (0, None),
        "g": (2, paper),
    }
    assert [each.get("fill") for each in picture.iter(f"{ns}rect")] == [paper, "#000000", svg.INK]
    bold = [text.text for text in picture.iter(f"{ns}text") if text.get("font-weight")]
    assert bold == ["b", "<c>", "d"]


def test_pictures_of_the_readme() -> None:
    """They are there, small, and show no folder of the machine that they were taken on."""
    found = re.findall(r"\]\((\S+\.svg)\)", (ROOT / "README.md").read_text())
    assert ".github/assistant.svg" in found
    for name in found:
        text = (ROOT / name).read_text()
        assert len(text) < 60_000
        assert not re.search(r"/(home|root|work|Users)/|mcpt-", text)
