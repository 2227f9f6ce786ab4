"""Real agents find the editor, get the selection, and propose edits that are decided there.

They use a scripted model on loopback. Their cases name what they cannot do.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support import agents, processes
from tests.support import bridge as support
from tests.support import model as models
from tests.support import terminal as terminals
from tests.support.model import Model, Step
from tests.support.nvim import Home, Nvim, Spawn
from tests.support.results import eventually
from tests.support.terminal import Terminal

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240), terminals.needed]  # the first installs the agents

OLD = "line one\nline two\nline three\n"
PATIENCE = 30_000  # ms; an agent that starts has much to load
TYPED = 0.3  # s; a faster Enter counts as a part of pasted text
STILL = 1.5  # s for an agent to end its turn
SETTLED = 0.7  # s until an agent uses a new connection, and in which it withdraws no review
READ_FIRST = 0.5  # s; an answer to a new review may be meant for the one before

SESSION = "return vim.iter(probe.sessions.sessions()):any(function(session) return session.open end)"
REVIEWS = "return probe.review.count() == ..."
REVIEW_IDS = "return vim.tbl_map(function(review) return review.id end, probe.review.list())"
FOUND = "local one = probe.agents.status()[1] return one and one.state == 'on' and #one.files > 0"
PID = "return probe.current.reported.hello.pid"
CHANGES = "return #probe.changes.list() == ..."
EDIT = "return probe.review.current():rewrite(1, ...)"

Write = Callable[[Model, Path, str], list[Step]]


@dataclass(frozen=True)
class Case:
    """One agent.

    Attributes:
        name: of the agent.
        write: the model's steps to write a text into a file.
        busy: texts on the screen until its turn is over.
        selected: its text for a selection; Gemini CLI counts files, and Qwen Code shows nothing.
        cwd: its working directory in the project.
        editable: it uses the user's changes of a proposal. Copilot CLI writes its own text.
        waits: a proposal is still or again open after a restart of the bridge.
            Otherwise the agent asks in its terminal.
        yes: keys that accept in its terminal.
    """

    name: str
    write: Write
    busy: tuple[str, ...]
    selected: str | None = None
    cwd: str = "sub"
    editable: bool = True
    waits: bool = False
    yes: str = "1"


def write_whole(model: Model, path: Path, text: str) -> list[Step]:
    return [model.call("write_file", file_path=str(path), content=text)]


def read_and_write(model: Model, path: Path, text: str) -> list[Step]:
    return [model.call("read_file", file_path=str(path)), *write_whole(model, path, text)]


def claude_write(model: Model, path: Path, text: str) -> list[Step]:
    return [model.call("Read", file_path=str(path)), model.call("Write", file_path=str(path), content=text)]


def copilot_edit(model: Model, path: Path, text: str) -> list[Step]:
    return [model.call("edit", path=str(path), old_str=path.read_text(), new_str=text)]


CASES = {
    "gemini": Case("gemini", write_whole, ("esc to cancel", "Apply this change?"), waits=True),
    "qwen": Case("qwen", read_and_write, ("esc to cancel", "Apply this change?"), waits=True),
    "claude": Case("claude", claude_write, ("Esc to cancel", "esc to interrupt"), "[⧉ 1 line selected]"),
    # It connects automatically only in a directory that the editor names; in others the user types `/ide`.
    "copilot": Case("copilot", copilot_edit, ("esc to cancel",), "@a.txt:2", ".", editable=False, waits=True),
}

OPENCODE = Case("opencode", lambda *_: [], ("esc interrupt",), "a.txt#2")


@dataclass(frozen=True)
class Stage:
    case: Case
    nvim: Nvim
    model: Model
    agent: Terminal
    file: Path

    async def wait_for(self, code: str, *args: Any) -> None:
        """Polls Lua in the editor; a failure shows the agent's screen."""
        try:
            await self.nvim.wait_for(code, *args, timeout=PATIENCE)
        except AssertionError as error:
            raise AssertionError(f"{error}:\n{await self.agent.screen()}") from error

    async def asks(self, text: str, *steps: Step) -> None:
        # Its turn may not be over; after a rejection some do not call the model again.
        with contextlib.suppress(TimeoutError):
            await eventually(lambda: self.model.done, STILL)
        self.model.plan(*steps)
        for busy in self.case.busy:
            await self.agent.hides(busy, timeout=PATIENCE)
        await self.agent.type(text)
        await self.agent.shows(text)
        await asyncio.sleep(TYPED)
        await self.agent.press("Enter")

    async def proposes(self, what: str, text: str) -> None:
        """The agent proposes a text for the file, and its review is open."""
        await self.asks(what, *self.case.write(self.model, self.file, text), Step(text=f"{what}: done"))
        await self.wait_for(REVIEWS, 1)

    async def decides(self, action: str) -> None:
        await asyncio.sleep(READ_FIRST)
        await self.nvim.request("nvim_command", f"McpTools review {action}")
        await self.nvim.wait_for(REVIEWS, 0, timeout=PATIENCE)

    async def one_review_stays(self) -> None:
        """Waits until one review stays open: Copilot CLI withdraws those that it opens again."""
        before = None
        async with asyncio.timeout(PATIENCE / 1000):
            while True:
                now = await self.nvim.lua(REVIEW_IDS)
                if len(now) == 1 and now == before:
                    return
                before = now
                await asyncio.sleep(SETTLED)

    async def has(self, text: str) -> None:
        with contextlib.suppress(TimeoutError):
            await eventually(lambda: self.file.read_text() == text, PATIENCE / 1000)
        assert self.file.read_text() == text, await self.agent.screen()
        lines = "return vim.deep_equal(vim.api.nvim_buf_get_lines(0, 0, -1, false), ...)"
        await self.nvim.wait_for(lines, text.splitlines())
        for busy in self.case.busy:
            await self.agent.hides(busy, timeout=PATIENCE)

    async def restarts(self) -> None:
        """The bridge is restarted, and the agent reconnects automatically."""
        await self.nvim.request("nvim_command", "McpTools restart")
        await self.nvim.wait_for("return require('mcp-tools').status().state ~= 'ready'")
        await self.connected()

    async def crashes(self) -> None:
        """The bridge is killed, and the agent reconnects automatically."""
        before = await self.nvim.lua(PID)
        os.kill(before, signal.SIGKILL)
        await self.nvim.wait_for(f"return (({PID.removeprefix('return ')}) or ...) ~= ...", before)
        await self.connected()

    async def connected(self) -> None:
        """Waits until the agent has connected and knows that it has."""
        await self.wait_for(SESSION)
        await asyncio.sleep(SETTLED)


@contextlib.asynccontextmanager
async def staged(
    case: Case,
    spawn_nvim: Spawn,
    home: Home,
    integration: str,
    prepare: Callable[[Path], Path] | None = None,
    selected: bool = False,
) -> AsyncIterator[Stage]:
    """An editor in a project, and the agent in a terminal, connected to it.

    Args:
        case: the agent.
        spawn_nvim: the fixture.
        home: its directories.
        integration: the option value that makes the editor known to the agent.
        prepare: changes the project; returns the agent's working directory.
        selected: line two is selected before the agent starts.
    """
    agents.install()
    project = home.make("project")
    (project / ".git").mkdir()
    (project / "sub").mkdir()
    file = project / "sub" / "a.txt"
    file.write_text(OLD)
    directory = prepare(project) if prepare else project / case.cwd
    setup = f"{{ agents = {{ '{integration}' }} }}"
    bridge = await support.start(spawn_nvim, setup=setup, cwd=project, args=["sub/a.txt"])
    await bridge.nvim.wait_for(FOUND, timeout=PATIENCE)
    if selected:
        await selects_line_two(bridge.nvim)
    async with models.serving() as model:
        place = agents.Workspace(home, directory, model)
        async with agents.running(case.name, place) as agent:
            stage = Stage(case, bridge.nvim, model, agent, file)
            await stage.wait_for(SESSION)
            yield stage


async def selects_line_two(nvim: Nvim) -> None:
    await nvim.request("nvim_input", "jV")
    await nvim.wait_for("return vim.fn.mode() == 'V'")


async def selection_shows(stage: Stage) -> None:
    if stage.case.selected:
        await stage.agent.shows(stage.case.selected, timeout=PATIENCE)
    else:  # its screen does not show it
        await stage.nvim.wait_for(
            "return vim.iter(probe.sessions.sessions()):any(function(session)"
            " return vim.tbl_get(session, 'sent_context', 'active', 'selection') ~= nil end)"
        )


@pytest.mark.parametrize("name", CASES)
async def test_edits_are_decided_in_the_editor(name: str, spawn_nvim: Spawn, home: Home) -> None:
    case = CASES[name]
    async with staged(case, spawn_nvim, home, name) as stage:
        await selects_line_two(stage.nvim)
        await selection_shows(stage)
        await stage.proposes("first change", "line one\nSECOND\nline three\n")
        await stage.model.received("line two")
        await stage.nvim.request("nvim_input", "<Esc>")
        await stage.decides("all")
        await stage.has("line one\nSECOND\nline three\n")
        await stage.nvim.wait_for(CHANGES, 1)

        await stage.proposes("bad change", "REFUSED\nSECOND\nline three\n")
        await stage.decides("none")
        await stage.has("line one\nSECOND\nline three\n")

        if case.editable:
            await stage.proposes("third change", "line one\nSECOND\nTHIRD\n")
            assert await stage.nvim.lua(EDIT, ["line one", "SECOND", "OF THE USER"])
            await stage.decides("all")
            await stage.has("line one\nSECOND\nOF THE USER\n")

        await stage.crashes()
        await stage.proposes("change after a crash", "line one\nSECOND\nAFTER\n")
        await stage.decides("all")
        await stage.has("line one\nSECOND\nAFTER\n")

        await stage.restarts()
        before = stage.file.read_text()
        await stage.proposes("last change", f"LAST\n{before}")
        await stage.restarts()
        if case.waits:
            await stage.one_review_stays()
            await stage.decides("all")
        else:
            await stage.nvim.wait_for(REVIEWS, 0, timeout=PATIENCE)
            await stage.agent.shows(*case.busy[:1])
            await stage.agent.type(case.yes)
        await stage.has(f"LAST\n{before}")


async def test_opencode_gets_the_selection_and_reconnects(spawn_nvim: Spawn, home: Home) -> None:
    async with staged(OPENCODE, spawn_nvim, home, "claude") as stage:
        await selects_line_two(stage.nvim)
        await selection_shows(stage)
        await stage.asks("look at this", Step(text="seen"))
        await stage.model.received("line two")
        await stage.restarts()
        await stage.nvim.request("nvim_input", "<Esc>gg")
        await stage.agent.hides("a.txt#2", timeout=PATIENCE)
        await stage.nvim.request("nvim_input", "GV")
        await stage.agent.shows("a.txt#3", timeout=PATIENCE)


async def test_opencode_reads_mentioned_files_and_directories(spawn_nvim: Spawn, home: Home) -> None:
    async with staged(OPENCODE, spawn_nvim, home, "claude") as stage:
        (stage.file.parent / "b.txt").write_text("first of b\nlast of b\n")
        for name in ("b.txt", "."):
            await stage.nvim.request("nvim_command", f"McpTools add {stage.file.parent / name}")
        await stage.agent.shows("b.txt#1", "sub#1", timeout=PATIENCE)
        await stage.asks("look at this", Step(text="seen"))
        await stage.model.received("last of b")
        await stage.model.received("<type>directory")


def work_tree(project: Path) -> Path:
    """A linked work tree beside the project."""
    (project / ".git").rmdir()
    person = ("-c", "user.name=Tester", "-c", "user.email=tester@example.org")
    tree = project.parent / "tree"
    add, commit = ("worktree", "add", "-q", str(tree)), (*person, "commit", "-qm", "first")
    for command in (("init", "-q"), ("add", "."), commit, add):
        processes.run(["git", *command], cwd=project, check=True)
    return tree


SCREEN = "table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), '\\n')"


@dataclass(frozen=True)
class Inside:
    """An agent in a terminal of the editor.

    Attributes:
        integration: the option value that makes the editor known to it.
        ready: its text once it accepts a prompt.
        requested: part of a request to its model: a tool of ours, or the prompt.
    """

    integration: str
    ready: str
    requested: str = "nvim_test_echo"


INSIDE = {
    "claude": Inside("claude", "for shortcuts"),
    # It accepts tools of root only.
    "gemini": Inside("gemini", "Type your message", requested="look at this"),
    "qwen": Inside("qwen", "Type your message"),
    "opencode": Inside("claude", "Ask anything"),
    "copilot": Inside("copilot", "/ commands"),
}


@pytest.mark.parametrize("name", INSIDE)
async def test_it_has_the_tools_in_the_editors_terminal(name: str, spawn_nvim: Spawn, home: Home) -> None:
    agents.install()
    agent = INSIDE[name]
    project = home.make("project")
    (project / ".git").mkdir()
    (project / "a.txt").write_text(OLD)
    async with models.serving() as model:
        directory = agents.program(name, agents.Workspace(home, project, model))
        environment = {"PATH": f"{directory}:{os.environ['PATH']}"}
        setup = f"{{ tools = {{ 'test' }}, agents = {{ '{agent.integration}' }} }}"
        options = {"cwd": project, "args": ["a.txt"], "env": environment}
        nvim = (await support.start(spawn_nvim, setup=setup, **options)).nvim
        await nvim.attach_ui(160, 40)
        await nvim.wait_for(FOUND, timeout=PATIENCE)
        await nvim.request("nvim_command", f"McpTools terminal {name}")

        pid = await nvim.wait_for("return vim.bo.channel > 0 and vim.fn.jobpid(vim.bo.channel)")
        shows = f"return {SCREEN}:find(..., 1, true)"
        try:
            await nvim.wait_for(shows, agent.ready, timeout=PATIENCE)
            await nvim.wait_for(SESSION, timeout=PATIENCE)
            model.plan(Step(text="seen"))
            await nvim.request("nvim_command", "McpTools send! look at this")
            await model.received(agent.requested)
        except AssertionError as error:
            raise AssertionError(f"{error}:\n{await nvim.lua(f'return {SCREEN}')}") from error
        finally:
            # In this order: Neovim 0.11 crashed when a terminal was wiped out whose program still wrote.
            await nvim.lua("vim.fn.jobstop(vim.bo.channel)")
            await agents.ended(pid)
            await nvim.request("nvim_command", "bwipeout!")


@pytest.mark.parametrize("name", [*CASES, "opencode"])
async def test_it_finds_the_editor_from_a_work_tree(name: str, spawn_nvim: Spawn, home: Home) -> None:
    case, integration = (OPENCODE, "claude") if name == "opencode" else (CASES[name], name)

    def prepare(project: Path) -> Path:
        return work_tree(project) / case.cwd

    async with staged(case, spawn_nvim, home, integration, prepare, selected=True) as stage:
        await selection_shows(stage)
        await stage.asks("look at this", Step(text="seen"))
        await stage.model.received("line two")
