"""The import name, in processes of its own: a test run has the package under its folder's name already."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.support import processes

START = Path(__file__).resolve().parents[2] / "bridge" / "start.py"
PROVIDE = f"import runpy, sys; runpy.run_path({str(START)!r})\n"


def python(code: str, *path: Path) -> str:
    """What an isolated Python prints for `code`, with folders on its path."""
    paths = "".join(f"sys.path.append({str(each)!r})\n" for each in path)
    command = [sys.executable, "-I", "-c", f"import sys\n{paths}{code}"]
    done = processes.run(command, timeout=30, cwd="/")
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_both_names_are_one_package() -> None:
    """What is imported by the name of before is the same object, at every depth, in any order."""
    code = (
        PROVIDE + "import bridge.client.connection, mcp_tools_nvim.client.connection as own, bridge\n"
        "from bridge.python_tools import mcp_tool\n"
        "import sys\nassert sys.modules['bridge.client.connection'] is own\n"
        "from mcp_tools_nvim import python_tools\n"
        "import mcp_tools_nvim\n"
        "print(bridge is mcp_tools_nvim, bridge.client.connection is own, end=' ')\n"
        "print(python_tools.mcp_tool is mcp_tool)\n"
        "print(own.__name__, own.__spec__.name, own.__package__)"
    )
    names = "mcp_tools_nvim.client.connection mcp_tools_nvim.client.connection mcp_tools_nvim.client"
    assert python(code) == f"True True True\n{names}"


def test_a_persons_own_package_is_not_shadowed(tmp_path: Path) -> None:
    """A package `bridge` of somebody else stays theirs; ours has its name beside it."""
    (tmp_path / "bridge").mkdir()
    (tmp_path / "bridge" / "__init__.py").write_text("whose = 'mine'\n")
    code = PROVIDE + "import bridge\nimport mcp_tools_nvim.errors as own\nprint(bridge.whose, own.__name__)"
    assert python(code, tmp_path) == "mine mcp_tools_nvim.errors"


def test_what_is_not_there_is_named() -> None:
    """A module that neither name has is an ordinary error of import."""
    code = PROVIDE + "try:\n    import bridge.nothing\nexcept ModuleNotFoundError as error:\n    print(error)"
    assert "nothing" in python(code)


def test_nothing_of_the_checkout_is_lent() -> None:
    """The folders beside the package cannot be imported."""
    code = PROVIDE + "import importlib.util\nprint(importlib.util.find_spec('tests'), len(sys.path))"
    plain = python("print(None, len(sys.path))")
    assert python(code) == plain


def test_processes_of_tools_have_the_name(tmp_path: Path) -> None:
    """A worker that `multiprocessing` starts afresh finds the package, too."""
    (tmp_path / "work.py").write_text(
        "from mcp_tools_nvim.python_tools import mcp_tool\n"
        "def name(_):\n    return mcp_tool.__module__\n"
        "def main(*arguments):\n"
        "    from multiprocessing import get_context\n"
        "    with get_context('spawn').Pool(1) as pool:\n"
        "        print(*arguments, *pool.map(name, [0]))\n"
    )
    # As the editor starts a part of the package, but that the part is this one.
    runner = tmp_path / "runner.py"
    runner.write_text(
        f"import sys, runpy\nsys.path.append({str(tmp_path)!r})\nrunpy.run_path({str(START)!r})\n"
        "if __name__ == '__main__':\n    import work\n    work.main('here')\n"
    )
    done = processes.run([sys.executable, "-I", runner], timeout=50, cwd=tmp_path)
    assert done.stdout.strip() == "here mcp_tools_nvim.python_tools.decorator", done.stderr
