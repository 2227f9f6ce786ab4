"""The agents themselves: each finds the editor, sees the selection, and has its edits decided on there.

Nobody is asked but a scripted model on loopback. What each of them cannot do, its case says.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support import agents, processes
from tests.support import bridge as support
from tests.support import model as models
from tests.support import terminal as terminals
from tests.support.model import Model, Step
from tests.support.nvim import Home, Nvim
from tests.support.terminal import Terminal

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(240),  # the first one installs the agents
    terminals.needed,
]

OLD = "line one\nline two\nline three\n"
PATIENCE = 30_000  # ms; an agent that starts has much to load
TYPED = 0.3  # s; an Enter that comes faster than a person's is taken for a part of pasted text
STILL = 1.5
"""Seconds for an agent to end what it was asked before."""

SETTLED = 0.7  # s in which nothing is taken back
LOOKED = 0.5  # s; an answer to a review that came a moment ago may be meant for the one before it

SESSION = """
return vim.iter(probe.sessions.sessions()):any(function(session)
  return session.open
end)
"""
REVIEWS = "return probe.review.count() == ..."
REVIEW_IDS = """
return vim.tbl_map(function(review)
  return review.id
end, probe.review.list())
"""
FOUND = """
local status = probe.agents.status()[1]
return status and status.state == 'on' and #status.files > 0
"""
PID = "return probe.current.reported.hello.pid"
CHANGES = "return #probe.changes.list() == ..."
EDIT = "return probe.review.current():rewrite(1, ...)"

Write = Callable[[Model, Path, str], list[Step]]


@dataclass(frozen=True)
class Case:
    """One agent.

    Attributes:
        name: of the agent.
        write: what the model does so that a file has a text.
        busy: what the screen shows until its turn is over.
        selected: what it shows of a selection; Gemini CLI counts files, and Qwen Code shows nothing.
        folder: below the project, where it is started.
        editable: what the person changes of a proposal counts. Copilot CLI writes its own text.
        waits: a proposal is before the person after a restart of the bridge: it has stayed, or come again.
            Else the agent asks on in its terminal.
        yes: keys that accept in its terminal.
    """

    name: str
    write: Write
    busy: tuple[str, ...]
    selected: str | None = None
    folder: str = "sub"
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
    # It connects by itself only in a folder that the editor names; from others its person uses `/ide`.
    "copilot": Case(
        "copilot", copilot_edit, ("esc to cancel",), "@a.txt:2", folder=".", editable=False, waits=True
    ),
}

OPENCODE = Case("opencode", lambda *_: [], ("esc interrupt",), "a.txt#2")


@dataclass(frozen=True)
class Stage:
    """An editor, a model and an agent."""

    case: Case
    nvim: Nvim
    model: Model
    agent: Terminal
    file: Path

    async def asks(self, text: str, *steps: Step) -> None:
        """The person asks the agent for something, for which the model then does this."""
        # It may still be about what was asked before; after a refusal some ask their model no more.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(STILL):
                while not self.model.done:
                    await asyncio.sleep(0.02)
        self.model.plan(*steps)
        for busy in self.case.busy:
            await self.agent.hides(busy, timeout=PATIENCE)
        await self.agent.type(text)
        await self.agent.shows(text)
        await asyncio.sleep(TYPED)
        await self.agent.press("Enter")

    async def proposes(self, what: str, text: str) -> None:
        """The agent proposes a text for the file; the proposal is before the person."""
        await self.asks(what, *self.case.write(self.model, self.file, text), Step(text=f"{what}: done"))
        try:
            await self.nvim.wait_for(REVIEWS, 1, timeout=PATIENCE)
        except AssertionError as error:
            raise AssertionError(f"{what} is not proposed:\n{await self.agent.screen()}") from error

    async def decides(self, action: str) -> None:
        """The person says something of the proposal in Neovim."""
        await asyncio.sleep(LOOKED)
        await self.nvim.request("nvim_command", f"McpTools review {action}")
        await self.nvim.wait_for(REVIEWS, 0, timeout=PATIENCE)

    async def one_review_stays(self) -> None:
        """The same is before the person for a while: Copilot CLI takes back what it asks again."""
        before = None
        async with asyncio.timeout(PATIENCE / 1000):
            while True:
                now = await self.nvim.lua(REVIEW_IDS)
                if len(now) == 1 and now == before:
                    return
                before = now
                await asyncio.sleep(SETTLED)

    async def has(self, text: str) -> None:
        """The file has a text, and so has the buffer of the person."""
        try:
            async with asyncio.timeout(PATIENCE / 1000):
                while self.file.read_text() != text:
                    await asyncio.sleep(0.02)
        except TimeoutError:
            assert self.file.read_text() == text, await self.agent.screen()
        lines = "return vim.deep_equal(vim.api.nvim_buf_get_lines(0, 0, -1, false), ...)"
        await self.nvim.wait_for(lines, text.splitlines())
        for busy in self.case.busy:
            await self.agent.hides(busy, timeout=PATIENCE)

    async def restarts(self) -> None:
        """The bridge is started anew, and the agent comes back by itself."""
        await self.nvim.request("nvim_command", "McpTools restart")
        await self.nvim.wait_for("return require('mcp-tools').status().state ~= 'ready'")
        try:
            await self.nvim.wait_for(SESSION, timeout=PATIENCE)
        except AssertionError as error:
            raise AssertionError(f"it has not come back:\n{await self.agent.screen()}") from error

    async def crashes(self) -> None:
        """The bridge is killed, and the agent comes back without being told to."""
        before = await self.nvim.lua(PID)
        os.kill(before, signal.SIGKILL)
        await self.nvim.wait_for(f"return (({PID.removeprefix('return ')}) or ...) ~= ...", before)
        await self.nvim.wait_for(SESSION, timeout=PATIENCE)


@contextlib.asynccontextmanager
async def staged(
    case: Case,
    spawn_nvim: Callable[..., Awaitable[Nvim]],
    home: Home,
    integration: str,
    prepare: Callable[[Path], Path] | None = None,
    selected: bool = False,
) -> AsyncIterator[Stage]:
    """An editor in a project, and the agent in a terminal, which has found it.

    Args:
        case: the agent.
        spawn_nvim: the fixture.
        home: its folders.
        integration: the option value that makes the editor known to the agent.
        prepare: makes more of the project; returns the folder in which the agent is started.
        selected: the person has selected line two before the agent is there.
    """
    agents.install()
    project = home.make("project")
    (project / ".git").mkdir()
    (project / "sub").mkdir()
    file = project / "sub" / "a.txt"
    file.write_text(OLD)
    folder = prepare(project) if prepare else project / case.folder
    setup = f"{{ agents = {{ '{integration}' }} }}"
    options: dict[str, Any] = {"cwd": project, "args": ["sub/a.txt"]}
    bridge = await support.start(spawn_nvim, setup=setup, **options)
    await bridge.nvim.wait_for(FOUND, timeout=PATIENCE)
    if selected:
        await selects_line_two(bridge.nvim)
    async with models.serving() as model:
        place = agents.Workspace(home, folder, model)
        async with agents.running(case.name, place) as agent:
            stage = Stage(case, bridge.nvim, model, agent, file)
            try:
                await bridge.nvim.wait_for(SESSION, timeout=PATIENCE)
            except AssertionError as error:
                raise AssertionError(f"it has not found the editor:\n{await agent.screen()}") from error
            yield stage


async def selects_line_two(nvim: Nvim) -> None:
    """The person does."""
    await nvim.request("nvim_input", "jV")
    await nvim.wait_for("return vim.fn.mode() == 'V'")


async def selection_shows(stage: Stage) -> None:
    """The agent knows what is selected."""
    if stage.case.selected:
        await stage.agent.shows(stage.case.selected, timeout=PATIENCE)
    else:  # nothing tells when it has come
        await stage.nvim.wait_for(
            "return vim.iter(probe.sessions.sessions()):any(function(session)"
            " return vim.tbl_get(session, 'sent_context', 'active', 'selection') ~= nil end)"
        )


@pytest.mark.parametrize("name", CASES)
async def test_edits_are_decided_on_in_the_editor(
    name: str, spawn_nvim: Callable[..., Awaitable[Nvim]], home: Home
) -> None:
    """It sees the selection; what it proposes is accepted, rejected and changed; a restart loses nothing."""
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
            assert await stage.nvim.lua(EDIT, ["line one", "SECOND", "OF THE PERSON"])
            await stage.decides("all")
            await stage.has("line one\nSECOND\nOF THE PERSON\n")

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


async def test_opencode(spawn_nvim: Callable[..., Awaitable[Nvim]], home: Home) -> None:
    """It finds the editor by Claude Code's file, counts lines from 1, and comes back; it proposes nothing."""

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


def work_tree(project: Path) -> Path:
    """A linked work tree of the project, beside it."""
    (project / ".git").rmdir()
    person = ("-c", "user.name=Tester", "-c", "user.email=tester@example.org")
    tree = project.parent / "tree"
    for command in (
        ("init", "-q"),
        ("add", "."),
        (*person, "commit", "-qm", "first"),
        ("worktree", "add", "-q", str(tree)),
    ):
        processes.run(["git", *command], cwd=project, check=True)
    return tree


SCREEN = "table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), '\\n')"


@dataclass(frozen=True)
class Inside:
    """An agent in a terminal of the editor.

    Attributes:
        integration: the option value that makes the editor known to it.
        ready: what it shows once it takes a prompt.
        told: what its model hears: of our tools, where they can be given to it; else of the prompt.
    """

    integration: str
    ready: str
    told: str = "nvim_test_echo"


INSIDE = {
    "claude": Inside("claude", "for shortcuts"),
    "gemini": Inside("gemini", "Type your message", told="look at this"),  # it takes tools from root alone
    "qwen": Inside("qwen", "Type your message"),
    "opencode": Inside("claude", "Ask anything"),
    "copilot": Inside("copilot", "/ commands"),
}


@pytest.mark.parametrize("name", INSIDE)
async def test_in_a_terminal_of_the_editor(
    name: str, spawn_nvim: Callable[..., Awaitable[Nvim]], home: Home
) -> None:
    """`:McpTools terminal` opens it connected and with our tools; `:McpTools send` types into it."""
    agents.install()
    agent = INSIDE[name]
    project = home.make("project")
    (project / ".git").mkdir()
    (project / "a.txt").write_text(OLD)
    async with models.serving() as model:
        folder = agents.program(name, agents.Workspace(home, project, model))
        environment = {"PATH": f"{folder}:{os.environ['PATH']}"}
        bridge = await support.start(
            spawn_nvim,
            setup=f"{{ tools = {{ 'test' }}, agents = {{ '{agent.integration}' }} }}",
            cwd=project,
            args=["a.txt"],
            env=environment,
        )
        nvim = bridge.nvim
        await nvim.attach_ui(160, 40)
        await nvim.wait_for(FOUND, timeout=PATIENCE)
        await nvim.request("nvim_command", f"McpTools terminal {name}")

        pid = await nvim.wait_for("return vim.bo.channel > 0 and vim.fn.jobpid(vim.bo.channel)")
        shows = f"return {SCREEN}:find(..., 1, true)"
        try:
            await nvim.wait_for(shows, agent.ready, timeout=PATIENCE)
            await nvim.wait_for(SESSION, timeout=PATIENCE)
            model.plan(Step(text="seen"))
            await nvim.request("nvim_command", "McpTools send look at this")
            await nvim.wait_for(shows, "look at this", timeout=PATIENCE)
            await asyncio.sleep(TYPED)
            await nvim.lua("vim.api.nvim_chan_send(vim.bo.channel, '\\r')")
            await model.received(agent.told)
        except AssertionError as error:
            raise AssertionError(f"{error}:\n{await nvim.lua(f'return {SCREEN}')}") from error
        finally:
            # In this order: Neovim 0.11 was seen to end where a terminal is wiped whose program still writes.
            await nvim.lua("vim.fn.jobstop(vim.bo.channel)")
            await agents.ended(pid)
            await nvim.request("nvim_command", "bwipeout!")


@pytest.mark.parametrize("name", [*CASES, "opencode"])
async def test_from_a_work_tree(name: str, spawn_nvim: Callable[..., Awaitable[Nvim]], home: Home) -> None:
    """One that is started in a linked work tree finds the editor of the repository and the selection."""
    case, integration = (OPENCODE, "claude") if name == "opencode" else (CASES[name], name)

    def prepare(project: Path) -> Path:
        return work_tree(project) / case.folder

    async with staged(case, spawn_nvim, home, integration, prepare, selected=True) as stage:
        await selection_shows(stage)
        await stage.asks("look at this", Step(text="seen"))
        await stage.model.received("line two")
