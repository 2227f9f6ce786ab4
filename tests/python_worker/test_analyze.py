"""The bundled tool analyze_python."""

from __future__ import annotations

from typing import Any

import pytest

from mcp_tools_nvim.python_tools import ToolError
from mcp_tools_nvim.python_tools.bundled.analyze_python import analyze_python
from tests.support.bridge import Bridge, start
from tests.support.nvim import Spawn
from tests.support.python_worker import caller

SOURCE = '''"""A module."""
import os
from . import sibling as s
from typing import Any


# A comment.
class Shape(Base, metaclass=Meta):
    """A shape."""

    @property
    def area(self) -> float:
        return 1.0

    def _hidden(self):
        def inner(x): return x
        return inner


async def decide(a: int, /, b, *rest, c=1, **more) -> Any:
    """Decides."""
    if a and b or c:
        for item in rest:
            while item:
                pass
    elif a:
        try:
            return [x for x in rest if x if a]
        except (ValueError, TypeError):
            return 1 if a else 2
    match a:
        case 1:
            return 1
        case _:
            return None
'''


def analyze(source: str, **options: Any) -> dict[str, Any]:
    return analyze_python(source, "a.py", **{"min_complexity": 1, "offset": 0, "limit": 100} | options)


def test_imports_classes_and_functions_are_listed_with_metrics() -> None:
    found = analyze(SOURCE)

    assert found["imports"] == [
        {"module": "os", "line": 2},
        {"module": ".", "names": ["sibling"], "line": 3},
        {"module": "typing", "names": ["Any"], "line": 4},
    ]
    assert [(c["name"], c["bases"], c["methods"], c["docstring"]) for c in found["classes"]] == [
        ("Shape", ["Base"], 2, True)
    ]
    functions = {f["name"]: f for f in found["functions"]}
    assert list(functions) == ["Shape.area", "Shape._hidden", "Shape._hidden.inner", "decide"]
    decide = functions["decide"]
    assert decide["arguments"] == ["a", "b", "*rest", "c", "**more"]
    # if, and, or, for, while, elif, except, if-else, comprehension with two ifs, one case
    assert decide["complexity"] == 13
    assert decide["nesting"] == 3
    assert (decide["async"], decide["annotated"], decide["docstring"]) == (True, False, True)
    assert functions["Shape.area"]["annotated"] is True
    assert functions["Shape.area"]["decorators"] == ["property"]
    assert found["lines"] == {"total": 35, "code": 28, "blank": 6, "comments": 1}
    assert found["summary"] == {
        "classes": 1,
        "functions": 4,
        "complexity_mean": 4.0,
        "complexity_max": 13,
        "annotated_functions": 1,
        "docstring_coverage": 0.75,
    }


def test_limits_report_what_is_omitted() -> None:
    source = "\n".join(f"import m{n}\ndef f{n}(): pass" for n in range(10))

    found = analyze(source, limit=4, offset=4)
    assert [f["name"] for f in found["functions"]] == ["f4", "f5", "f6", "f7"]
    assert (found["next_offset"], found["matching_functions"], found["cut"]) == (8, 10, ["imports"])
    assert "next_offset" not in analyze(source, limit=4, offset=8)
    assert [f["name"] for f in analyze(SOURCE, min_complexity=2)["functions"]] == ["decide"]


@pytest.mark.parametrize("source", ["def f(:\n", "x = '\0'", "x = " + "(" * 500 + ")" * 500])
def test_a_syntax_error_names_the_file(source: str) -> None:
    with pytest.raises(ToolError, match=r"a\.py"):
        analyze(source)


@pytest.mark.slow
async def test_unsaved_text_is_read_and_other_files_need_approval(spawn_nvim: Spawn) -> None:
    bridge: Bridge = await start(spawn_nvim, setup="{ tools = { 'analyze_python' } }")
    cwd = bridge.nvim.home.path / "cwd"
    (cwd / ".git").mkdir()
    (cwd / "a.py").write_text("def on_disk(): pass\n")
    (cwd / "large.py").write_text("#" * (3 * 1024 * 1024))
    outside = bridge.nvim.home.path / "b.py"
    outside.write_text("def outside(): pass\n")
    async with caller(bridge, "mcp") as tools:
        first = (await tools.call("analyze_python", path="a.py")).value
        assert first.splitlines() == [
            "a.py: 1 lines (1 code, 0 comments), 0 classes, 1 function, "
            "complexity mean 1, maximum 1, docstrings 0%",
            "1 function",
            "1-1: on_disk(): complexity 1, nesting 0, no type hints, no docstring",
        ]
        edit = "vim.cmd.edit('a.py'); vim.api.nvim_buf_set_lines(0, 0, -1, false, ...)"
        await bridge.nvim.lua(edit, ["def unsaved(): pass"])
        for args in ({"path": "a.py"}, {"bufnr": 0}):
            answer = (await tools.call("analyze_python", **args)).value
            assert ": unsaved():" in answer
        codes = {}
        for name, args in {
            "missing": {"path": "none.py"},
            "large": {"path": "large.py"},
            "outside": {"path": str(outside)},
            "neither": {},
        }.items():
            error = (await tools.call("analyze_python", **args)).fault
            codes[name] = error["code"]
        assert codes == {
            "missing": "not_found",
            "large": "too_large",
            "outside": "access_denied",
            "neither": "validation_error",
        }
        await bridge.nvim.lua(
            "probe.config.setup({ approval = { default = 'allow', tools = { analyze_python = 'allow' } } })"
        )
        allowed = (await tools.call("analyze_python", path=str(outside))).value
        assert ": outside():" in allowed
