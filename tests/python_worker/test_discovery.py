"""Modules with Python tools are found, scanned, cached and trusted."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.bridge import INIT
from tests.support.nvim import Nvim, Spawn
from tests.support.python_worker import Caller, is_alive, worker_status
from tests.support.results import eventually

Editor = Spawn

LIST = """
local tools = probe.registry():list('tools')
return vim.tbl_map(function(tool) return tool.name end, tools)
"""
HEALTH = """
vim.cmd('silent checkhealth mcp-tools')
return table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), '\\n')
"""
FAILURES = """
local found = {}
for _, failure in ipairs(probe.discovery.failures()) do
  found[vim.fs.basename(failure.source)] = failure.error
end
return found
"""
SCANNED = """
probe.core.get()
if not _G.started then
  _G.started = true
  probe.discovery.refresh(probe.registry(), 'python', function()
    _G.scanned = true
  end)
end
return _G.scanned
"""
REVISION = "return probe.registry().revisions.tools"
READ_ANY = "return probe.is_loaded('python_reader')"
TOOL = '''
from mcp_tools_nvim.python_tools import mcp_tool

@mcp_tool(annotations={{"read_only": True}})
def {name}() -> str:
    """Returns a text."""
    return "{says}"
'''
STARTS = """
import os, subprocess
program = subprocess.Popen(["sleep", "600"])
open("{marker}", "w").write(str(program.pid))
os.write(2, b"x" * 5_000_000)
"""
MARKS = """
import enum, functools
from typing import Annotated, Literal, TypedDict
from mcp_tools_nvim.python_tools import mcp_tool
from pydantic import AfterValidator

READ = {"read_only": True}
Color = enum.Enum("Color", {"RED": "red"})
Tree = TypedDict("Tree", {"kids": list["Tree"]})
Upper = Annotated[str, AfterValidator(str.upper)]

@mcp_tool
def good():
    "Good."

@mcp_tool(annotations=READ)
def odd(tree: Tree, lit: Literal[Color.RED], by: dict[int, str], raw: bytes = b"\\xff", up: Upper = "a"):
    "Has unusual hints and defaults."
    return [type(tree).__name__, type(lit).__name__, type(next(iter(by))).__name__, type(raw).__name__, up]

@functools.cache
@mcp_tool
def cached():
    "Below a decorator."

class K:
    @mcp_tool
    def method(self):
        "Of a class."

@mcp_tool(name="twice", annotations=READ)
def first():
    "The first."
    return "first"

@mcp_tool(name="twice", annotations=READ)
def second():
    "The second."

@mcp_tool(annotations={"x": object()})
def unwritable():
    "Has annotations that are not JSON."
"""


BAD_ONES = '''
from __future__ import annotations
from mcp_tools_nvim import python_tools
from mcp_tools_nvim.python_tools import mcp_tool

@mcp_tool(annotations={"read_only": True})
def before() -> str:
    """The first tool."""
    return __doc__ or "none"

@mcp_tool
def steps():
    """Is a generator."""
    yield 1

@python_tools.mcp_tool
def stars(*args: int) -> None:
    """Has unnamed arguments."""

@mcp_tool
def defaults(x: int = nowhere) -> None:
    """Has an undefined default."""

@mcp_tool
def hints(x: Nowhere) -> None:
    """Has an undefined hint."""

"""No docstring of the module."""

@mcp_tool(annotations={"read_only": True})
async def after() -> str:
    """The last tool."""
    return "after"
'''


@pytest.fixture
def plugin(tmp_path: Path) -> Path:
    """The directory of a plugin on the runtimepath."""
    (tmp_path / "plugin" / "mcp_tools").mkdir(parents=True)
    (tmp_path / "plugin" / "python3").mkdir()
    return tmp_path / "plugin"


@pytest.fixture
def editor(spawn_nvim: Editor, plugin: Path) -> Editor:
    """Starts a Neovim whose runtimepath has the plugin."""

    async def begin(setup: str = "{}", init: str = "", **options: Any) -> Nvim:
        paths = f"vim.opt.runtimepath:append([[{plugin}]])\n{init}"
        text = INIT.format(python=sys.executable, setup=setup, init=paths)
        return await spawn_nvim(init_lua=text, **options)

    return begin


def project_of(home: Any) -> Path:
    """A project with a directory for modules."""
    project: Path = home.make("cwd")
    for path in (project / ".git", project / "mcp_tools", home.make("state") / "nvim"):
        path.mkdir(exist_ok=True)
    return project


TRUST = "vim.cmd.edit(...); vim.cmd.trust()"


def write(plugin: Path, file: str, name: str, says: str = "hello") -> Path:
    path = plugin / file
    path.write_text(TOOL.format(name=name, says=says))
    return path


async def tools_of(nvim: Nvim) -> list[str]:
    """The registered tools after a scan."""
    await nvim.wait_for(SCANNED, timeout=40_000)
    return await nvim.lua(LIST)


async def refresh(nvim: Nvim) -> list[str]:
    """The registered tools after another scan."""
    code = "probe.discovery.refresh(probe.registry(), 'python', function() _G.scanned = true end)"
    await nvim.lua(f"_G.scanned = false {code}")
    await nvim.wait_for("return _G.scanned", timeout=40_000)
    return await nvim.lua(LIST)


async def scans(nvim: Nvim, code: str, *args: Any) -> None:
    """Runs Lua, and waits for the scan that follows."""
    await nvim.lua("_G.scanned = false probe.discovery.on_scan(function() _G.scanned = true end)")
    await nvim.lua(code, *args)
    await nvim.wait_for("return _G.scanned", timeout=20_000)


def trap(path: Path, proof: Path) -> None:
    """Lets a module write a file when it is run."""
    path.write_text(f"open({str(proof)!r}, 'w')\n" + path.read_text())


async def test_cached_tools_are_listed_without_a_process(editor: Editor, plugin: Path) -> None:
    """The worker starts with the first call."""
    write(plugin, "mcp_tools/one.py", "one")
    first = await editor()
    assert await tools_of(first) == ["one"]

    second = await editor()
    assert await second.lua(LIST) == ["one"]
    assert await second.lua(READ_ANY) is False
    assert (await worker_status(second))["state"] == "none"
    assert (await Caller(second, None).call("one")).value == "hello"
    assert (await worker_status(second))["state"] == "ready"
    assert await second.lua(READ_ANY) is False


@pytest.mark.slow
async def test_a_changed_or_deleted_file_is_scanned_again(editor: Editor, plugin: Path) -> None:
    write(plugin, "mcp_tools/one.py", "one")
    write(plugin, "mcp_tools/two.py", "two")
    first = await editor()
    assert await tools_of(first) == ["one", "two"]
    write(plugin, "mcp_tools/one.py", "renamed")
    (plugin / "mcp_tools" / "two.py").unlink()

    assert await refresh(first) == ["renamed"]
    second = await editor()
    assert await tools_of(second) == ["renamed"]


@pytest.mark.slow
async def test_with_a_cache_lifetime_of_0_every_file_is_scanned_again(editor: Editor, plugin: Path) -> None:
    """Cached tools are listed until then, and unchanged tools are not announced."""
    write(plugin, "mcp_tools/one.py", "one")
    await tools_of(await editor())

    second = await editor(env={"MCP_TOOLS_CACHE_TTL": "0"})
    assert await second.lua(LIST) == ["one"]
    assert await second.lua(READ_ANY) is True

    await refresh(second)
    revision = await second.lua(REVISION)
    assert await refresh(second) == ["one"]
    assert await second.lua(REVISION) == revision, "clients list all tools again, though none has changed"


@pytest.mark.slow
async def test_a_module_that_fails_is_reported_and_the_others_work(editor: Editor, plugin: Path) -> None:
    tools = plugin / "mcp_tools"
    write(plugin, "mcp_tools/good.py", "good")
    two = "@mcp_tool\ndef silent(): ...\n@mcp_tool\ndef spoken():\n    '''Says.'''\n"
    wrong = {
        "broken.py": ("def f(:\n", "invalid syntax"),
        "raises.py": ("raise ValueError('not today')\n", "ValueError: not today"),
        "exits.py": ("import sys; sys.exit(3)\n", "SystemExit: 3"),
        "dies.py": ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)\n", "importing it failed"),
        "lacks.py": ("import no_such_module\n", "No module named 'no_such_module'"),
        "silent.py": (f"from mcp_tools_nvim.python_tools import mcp_tool\n{two}", "tool 'silent': add a doc"),
        "twin.py": (TOOL.format(name="good", says=""), "tool 'good': name: it is taken by"),
    }
    for name, (text, _) in wrong.items():
        (tools / name).write_text(text)
    write(plugin, "mcp_tools/_private.py", "private")

    nvim = await editor()
    assert await tools_of(nvim) == ["good", "spoken"]
    failures = await nvim.lua(FAILURES)
    assert set(failures) == set(wrong)
    report = await nvim.lua(HEALTH)
    for name, (_, words) in wrong.items():
        assert words in failures[name], failures[name]
        assert name in report
        assert words in report
    assert "modules: 8, tools: 2" in report
    assert "the worker is not running" in report
    said = await nvim.lua("return vim.fn.execute('messages')")
    pattern = r"\n\[mcp-tools\] broken\.py:1: .*\(and 5 more such files: :checkhealth mcp-tools\)"
    assert re.fullmatch(pattern, said)


async def test_an_invalid_function_is_reported_and_other_tools_work(editor: Editor, plugin: Path) -> None:
    (plugin / "mcp_tools" / "marks.py").write_text(MARKS)
    (plugin / "mcp_tools" / "mixed.py").write_text(BAD_ONES)
    nvim = await editor()
    assert await tools_of(nvim) == ["after", "before", "good", "odd", "twice"]
    tools = Caller(nvim, None)
    for name, result in (("before", "none"), ("after", "after"), ("twice", "first")):
        assert (await tools.call(name)).value == result
    odd = await tools.call("odd", tree={"kids": [{"kids": []}]}, lit="red", by={"1": "a"})
    assert odd.value == ["dict", "Color", "int", "bytes", "A"]
    found = await nvim.lua("return vim.tbl_map(function(f) return f.error end, probe.discovery.failures())")
    for words in (
        "cached: @mcp_tool must be above",
        "K.method: a method",
        "second() is not the first",
        "tool 'unwritable': Object of type object",
        "line 11: tool 'steps': TypeError: steps: a generator",
        "line 16: tool 'stars': TypeError: stars: *args",
        "line 20: tool 'defaults': NameError: name 'nowhere'",
        "line 24: tool 'hints': name 'Nowhere' is not defined",
    ):
        assert any(words in fault for fault in found), found


@pytest.mark.slow
async def test_writing_a_broken_file_notifies_once_with_file_and_line(editor: Editor, plugin: Path) -> None:
    path = write(plugin, "mcp_tools/one.py", "one")
    broken = write(plugin, "mcp_tools/silent.py", "silent").with_name("broken.py")
    broken.write_text("def nobody_has_this_open(:\n")
    nvim = await editor(init="_G.notified = {}; vim.notify = function(text) table.insert(notified, text) end")
    await tools_of(nvim)
    await nvim.lua("vim.cmd.edit(...)", str(path))

    async def notified(*lines: str) -> list[str]:
        await nvim.lua("_G.notified = {}; vim.api.nvim_buf_set_lines(0, 0, -1, false, ...)", lines)
        await scans(nvim, "vim.cmd.write()")
        await nvim.lua("vim.wait(0)")  # runs what is scheduled
        return await nvim.lua("return notified")

    good = TOOL.format(name="one", says="x").splitlines()
    assert await notified(*good, "def f(:") == [f"[mcp-tools] {path}:8: SyntaxError: invalid syntax"]
    assert await notified(*good, "", "def f(:") == [f"[mcp-tools] {path}:9: SyntaxError: invalid syntax"]
    assert "one" in await nvim.lua(LIST)
    assert await notified(*good) == []
    raises = await notified(*good, "raise LookupError('no', 1)")
    assert raises == [f"[mcp-tools] {path}:8: LookupError: ('no', 1)"]
    both = ("@mcp_tool", "def two(): ...", "@mcp_tool", "def three(): ...")
    wrong = "tool 'two': add a docstring or description="
    notification = f"[mcp-tools] {path}:8: {wrong} (and 1 more: :checkhealth mcp-tools)"
    assert await notified(*good, *both) == [notification]


@pytest.mark.slow
async def test_a_module_that_fails_is_reported_once_per_editor(editor: Editor, plugin: Path) -> None:
    write(plugin, "mcp_tools/one.py", "one")
    lacks = plugin / "mcp_tools" / "lacks.py"
    lacks.write_text("import os\nimport no_such_module\n")
    line = f"[mcp-tools] lacks.py:2: No module named 'no_such_module' (in {lacks.parent})"
    init = "_G.notified = {}; vim.notify = function(text) table.insert(notified, text) end"
    for _ in range(2):
        nvim = await editor(init=init)
        assert await tools_of(nvim) == ["one"]
        await nvim.wait_for("return #notified > 0")
        lacks.touch()
        await refresh(nvim)
        await nvim.lua("vim.wait(0)")  # runs what is scheduled
        assert await nvim.lua("return notified") == [line]
    lacks.with_name("worse.py").write_text("def f(:\n")
    nvim = await editor(init=init)
    await tools_of(nvim)
    await nvim.wait_for("return #notified > 0")
    assert await nvim.lua("return notified") == [f"{line} (and 1 more such file: :checkhealth mcp-tools)"]

    await nvim.lua("vim.cmd('McpTools call stats')")
    shown = await nvim.wait_for("""
      local buffer = vim.fn.bufnr('mcp-tools://call stats')
      local text = table.concat(vim.api.nvim_buf_get_lines(buffer, 0, -1, false), '\\n')
      return text:find('unknown_tool', 1, true) and text
    """)
    assert f"not loaded: {lacks}: line 2: ModuleNotFoundError" in shown
    assert f"not loaded: {lacks.with_name('worse.py')}: line 1: SyntaxError" in shown


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "timeout", "failure"),
    [
        ("import threading; threading.Event().wait()\n", 2_000, "did not exit within 2 s"),
        ("while True: print('x' * 1_000_000)\n", 15_000, "signal"),
    ],
    ids=["import", "output"],
)
async def test_a_module_without_end_is_killed_and_the_next_is_scanned(
    editor: Editor, plugin: Path, text: str, timeout: int, failure: str
) -> None:
    """A module that prints too much is killed before its timeout."""
    (plugin / "mcp_tools" / "endless.py").write_text(text)
    write(plugin, "mcp_tools/later.py", "later")

    nvim = await editor(init=f"probe.python_reader.TIMEOUT = {timeout}")
    assert await tools_of(nvim) == ["later"]
    assert failure in (await nvim.lua(FAILURES))["endless.py"]


@pytest.mark.slow
async def test_processes_started_by_imports_are_killed(editor: Editor, plugin: Path, tmp_path: Path) -> None:
    (plugin / "mcp_tools" / "starts.py").write_text(STARTS.format(marker=tmp_path / "pid"))
    write(plugin, "mcp_tools/later.py", "later")

    assert await tools_of(await editor()) == ["later"]
    pid = int((tmp_path / "pid").read_text())
    await eventually(lambda: not is_alive(pid))


@pytest.mark.slow
async def test_configured_modules_are_found_in_directories_of_plugins(editor: Editor, plugin: Path) -> None:
    """Private and invalid names are refused."""
    package = plugin / "python3" / "my_package"
    package.mkdir()
    (package / "__init__.py").write_text("from .inner import inner\n")
    write(package, "inner.py", "inner")
    modules = "'my_package', 'my_package._hidden', 'nowhere', 'os;x'"
    nvim = await editor(f"{{ python = {{ modules = {{ {modules} }} }} }}")

    assert await tools_of(nvim) == ["inner"]
    assert (await Caller(nvim, None).call("inner")).value == "hello"
    failures = await nvim.lua(FAILURES)
    assert "private" in failures["module:my_package._hidden"]
    assert "No module named 'nowhere'" in failures["module:nowhere"]
    assert "not a valid module name" in failures["module:os;x"]


@pytest.mark.slow
async def test_a_call_runs_the_code_that_was_written_last(editor: Editor, plugin: Path) -> None:
    path = write(plugin, "mcp_tools/one.py", "one", "before")
    nvim = await editor()
    await tools_of(nvim)
    tools = Caller(nvim, None)
    assert (await tools.call("one")).value == "before"
    path.write_text(path.read_text().replace("before", "after"))
    await nvim.lua("vim.cmd.edit(...); vim.api.nvim_buf_set_lines(0, -1, -1, false, {'# more'})", str(path))
    await scans(nvim, "vim.cmd.write()")
    assert (await tools.call("one")).value == "after"

    lines = TOOL.format(name="new", says="new").splitlines()
    await nvim.lua("vim.api.nvim_buf_set_lines(0, 0, -1, false, ...)", lines)
    await scans(nvim, "vim.cmd.write(...)", str(plugin / "mcp_tools" / "new.py"))
    assert (await tools.call("new")).value == "new"


@pytest.mark.slow
async def test_a_file_of_a_project_is_loaded_only_while_it_is_trusted(editor: Editor, home: Any) -> None:
    """And its tools need approval."""
    project = project_of(home)
    proof = project / "it_ran"
    path = write(project, "mcp_tools/evil.py", "evil")
    trap(path, proof)
    add = f"vim.opt.runtimepath:append([[{project}]])"

    nvim = await editor(init=add)
    assert await tools_of(nvim) == []
    assert ":trust" in (await nvim.lua(FAILURES))["evil.py"]
    assert not proof.exists()

    await nvim.lua(TRUST, str(path))
    assert await refresh(nvim) == ["evil"]
    assert proof.exists()
    assert (await Caller(nvim, None).call("evil")).fault["code"] == "access_denied"

    proof.unlink()
    path.write_text(path.read_text() + "# changed\n")
    await nvim.lua("probe.config.setup({ approval = { tools = { evil = 'allow' } } })")
    error = (await Caller(nvim, None).call("evil")).fault
    assert "has changed since it was trusted" in error["message"]
    assert await refresh(nvim) == []
    assert not proof.exists()
    os.utime(path)
    assert await tools_of(await editor(init=add)) == []
    assert not proof.exists()


@pytest.mark.slow
async def test_a_file_trusted_again_is_registered_again(editor: Editor, home: Any) -> None:
    """In this editor and in the next one."""
    project = project_of(home)
    path = write(project, "mcp_tools/own.py", "own")
    add = f"vim.opt.runtimepath:append([[{project}]])"
    distrust = "vim.cmd.edit(...); vim.cmd.trust('++remove')"

    nvim = await editor(init=add)
    await nvim.lua(TRUST, str(path))
    assert await tools_of(nvim) == ["own"]
    for _ in range(2):
        await nvim.lua(distrust, str(path))
        assert await refresh(nvim) == []
        await nvim.lua(TRUST, str(path))
        assert await refresh(nvim) == ["own"]
    await nvim.lua(distrust, str(path))
    await nvim.stop()
    nvim = await editor(init=add)
    assert await tools_of(nvim) == []
    await nvim.lua(TRUST, str(path))
    assert await refresh(nvim) == ["own"]


@pytest.mark.slow
@pytest.mark.parametrize("what", ["file", "directory"])
async def test_a_link_in_a_project_needs_trust_like_a_file(editor: Editor, home: Any, what: str) -> None:
    project, elsewhere = project_of(home), home.make("elsewhere")
    proof = elsewhere / "it_ran"
    (elsewhere / "mcp_tools").mkdir()
    real = write(elsewhere, "mcp_tools/evil.py", "evil")
    trap(real, proof)
    if what == "file":
        (project / "mcp_tools" / "evil.py").symlink_to(real)
    else:
        (project / "mcp_tools").rmdir()
        (project / "mcp_tools").symlink_to(real.parent)
    nvim = await editor(init=f"vim.opt.runtimepath:append([[{project}]])")
    assert await tools_of(nvim) == []
    assert ":trust" in (await nvim.lua(FAILURES))["evil.py"]
    assert not proof.exists()

    await nvim.lua(TRUST, str(project / "mcp_tools" / "evil.py"))
    assert await refresh(nvim) == ["evil"]
    assert (await Caller(nvim, None).call("evil")).fault["code"] == "access_denied"


@pytest.mark.slow
async def test_a_link_keeps_the_trust_of_its_target(editor: Editor, home: Any, plugin: Path) -> None:
    project = project_of(home)
    real = write(plugin, "mcp_tools/mine.py", "mine")
    (project / "mcp_tools" / "mine.py").symlink_to(real)
    nvim = await editor(init=f"vim.opt.runtimepath:prepend([[{project}]])")
    assert await tools_of(nvim) == ["mine"]
    assert (await Caller(nvim, None).call("mine")).error is None
