"""The list of errors in the help: every code and every text of the sources has a cause and a cure there."""

from __future__ import annotations

import copy
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from bridge.errors import Code
from tests.support import processes
from tests.support.nvim import ROOT

SCRIPTS = ROOT / "scripts"
HELP = ROOT / "doc" / "mcp-tools.txt"
sys.path.insert(0, str(SCRIPTS))
import _errors  # noqa: E402
import _luacats  # noqa: E402
import _messages  # noqa: E402


def lua_texts(nvim_program: Path, folder: Path) -> list[dict[str, str]]:
    """What the scanner finds below a folder of Lua sources."""
    script = folder / "scan.lua"
    script.write_text(
        f"local messages = dofile([[{SCRIPTS / '_messages.lua'}]])\n"
        f"io.stdout:write(vim.json.encode(messages.find(vim.env.FOLDER)))"
    )
    done = processes.run(
        [nvim_program, "-u", "NONE", "-i", "NONE", "-n", "-l", str(script)],
        env={"FOLDER": str(folder if (folder / "command").exists() else ROOT / "lua" / "mcp-tools")},
    )
    assert done.returncode == 0, done.stderr
    return list(json.loads(done.stdout))


def codes() -> list[str]:
    """The codes as the Lua side has them."""
    file = _luacats.parse((ROOT / "lua" / "mcp-tools" / "errors.lua").read_text())
    return [code for code, _ in file.aliases["mcp-tools.ErrorCode"]]


@pytest.fixture(scope="module")
def listed() -> dict[str, Any]:
    """The list as it is."""
    return _errors.read()


def test_the_list_is_that_of_the_code(nvim_program: Path, tmp_path: Path, listed: dict[str, Any]) -> None:
    """Every code and text has one entry, every entry is of a code or text; both sides have the same codes."""
    found = [*lua_texts(nvim_program, tmp_path), *_messages.find(ROOT)]
    assert len(found) > 100
    assert _errors.faults(listed, codes(), found) == []
    assert sorted(codes()) == sorted(Code)


def test_every_entry_is_in_the_help(listed: dict[str, Any]) -> None:
    """The chapter has every code and every text, whole but for its line breaks."""
    words = " ".join(HELP.read_text().split())
    for code in codes():
        assert f"*mcp-tools-error-{code}*" in words
    for group in listed["group"]:
        for entry in group["error"]:
            for text in entry["texts"]:
                assert " ".join(_errors.text_shown(text).split()) in words


def test_a_difference_is_told(listed: dict[str, Any]) -> None:
    """What is only in the sources, only in the list, in it twice, or without a cure is named."""
    shown = [entry["texts"] for group in listed["group"] for entry in group["error"]]
    found = [{"text": text, "file": "x.lua"} for texts in shown for text in texts]
    changed = copy.deepcopy(listed)
    changed["group"][0]["error"][0]["texts"] = ["told by nobody", shown[1][0]]
    changed["codes"]["timeout"]["cure"] = ""

    faults = _errors.faults(changed, ["quite_new", *(code for code in codes() if code != "busy")], found)

    assert faults == [
        "code quite_new has no entry",
        "no source has the text: told by nobody",
        "there is no code busy",
        "timeout: say cause and cure",
        f"two entries have the text: {shown[1][0]}",
        f"x.lua: no entry has the text: {shown[0][0]}",
    ]


SOURCE = r"""
local text = 'the %s is %d %% full'
local function f(x)
  if x then
    return notify.error(text:format('glass', 3))
  end
  notify.warn(('no %s here'):format(x) .. (x and ', or there' or ''), 'look')
  require('mcp-tools.notify').once('key', 'error', x.message or 'it\'s late')
  notify.once('key', 'info', 'all is well')
  notify.error(x.message)
  return { message = "it's over", advice = 'go' }, { message = 'no advice' }
end
"""


def test_texts_are_found_in_lua(nvim_program: Path, tmp_path: Path) -> None:
    """A text is found where it is put together; one that only passes through, and good news, are none."""
    folder = tmp_path / "command"
    folder.mkdir()
    (folder / "one.lua").write_text(SOURCE)
    texts = {each["text"] for each in lua_texts(nvim_program, tmp_path)}
    assert texts == {
        "the … is … % full",
        "no … here, or there",
        "no … here",
        "it's late",
        "it's over",
    }


def test_texts_are_found_in_python(tmp_path: Path) -> None:
    """Texts of the exceptions that people read are found, also of a variable."""
    for folder in ("bridge", "scripts"):
        (tmp_path / folder).mkdir()
    (tmp_path / "scripts" / "install-env").write_text("def f(a):\n    raise InstallError(f'{a} is gone')\n")
    (tmp_path / "bridge" / "a.py").write_text(
        "def f(a):\n"
        "    text = f'port {a}'\n"
        "    if a:\n"
        "        raise StartError(text + ' is taken')\n"
        "    elif a is None:\n"
        "        return refusal(401, 'no token')\n"
        "    raise ValueError('of nobody')\n"
    )
    assert sorted(_messages.find(tmp_path), key=str) == [
        {"file": "bridge/a.py", "text": "401 no token"},
        {"file": "bridge/a.py", "text": "port … is taken"},
        {"file": "scripts/install-env", "text": "… is gone"},
    ]
