"""A Neovim in a real terminal (tmux): keys and screens."""

from __future__ import annotations

import asyncio
import contextlib
import shlex
import shutil
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from . import processes
from .nvim import PROBE, ROOT, START_TIMEOUT, Home, Nvim
from .results import eventually
from .rpc import Rpc, RpcError

WIDTH, HEIGHT = 80, 24  # the smallest usual screen, where texts are cut first
PATIENCE = 15_000
TMUX = shutil.which("tmux")


needed = pytest.mark.skipif(TMUX is None, reason="tmux is not installed")


async def ended(call: asyncio.Task[Any]) -> Any:
    """The result of a call."""
    async with asyncio.timeout(PATIENCE / 1000):
        return await call


class Screened(Nvim):
    """A Neovim in a terminal, which is not a child of this process."""

    def __init__(self, rpc: Rpc, socket: Path, home: Home) -> None:
        self.rpc, self.socket, self.home = rpc, socket, home

    async def how_it_ended(self) -> str:
        """The terminal has its output."""
        return "see its terminal"


class Terminal:
    """A terminal, and the RPC of the Neovim in it."""

    nvim: Nvim

    def __init__(self, socket: Path, environment: Mapping[str, str]) -> None:
        self.socket = socket
        self._environment = environment

    async def tmux(self, *arguments: str, check: bool = True) -> str:
        process = await processes.start(
            *(str(TMUX), "-u", "-S", str(self.socket), "-f", "/dev/null", *arguments),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=self._environment,
        )
        output, errors = await process.communicate()
        assert not check or process.returncode == 0, f"tmux {arguments[0]}: {errors.decode()}"
        return output.decode()

    async def type(self, text: str) -> None:
        await self.tmux("send-keys", "-l", "--", text)

    async def press(self, *keys: str) -> None:
        """Presses keys by tmux's names: `Enter`, `Escape`, `Tab`, `C-c`."""
        await self.tmux("send-keys", *keys)

    async def enter(self, text: str, *keys: str) -> None:
        """Types text, then presses Enter and other keys."""
        await self.type(text)
        await self.press("Enter", *keys)

    async def command(self, text: str) -> None:
        """Types an Ex command and presses Enter."""
        await self.enter(f":{text}")

    async def screen(self) -> str:
        """The screen with wrapped lines joined; empty when the program has ended."""
        return await self.tmux("capture-pane", "-p", "-J", check=False)

    async def shows(self, *texts: str, timeout: int = PATIENCE) -> str:
        """Waits until the screen contains all of `texts`, and returns it."""
        return await self.until(lambda screen: all(text in screen for text in texts), repr(texts), timeout)

    async def hides(self, text: str, timeout: int = PATIENCE) -> str:
        """Waits until `text` is no longer on the screen."""
        return await self.until(lambda screen: text not in screen, f"the end of {text!r}", timeout)

    async def until(self, good: Callable[[str], bool], what: str, timeout: int = PATIENCE) -> str:
        """Polls the screen; `timeout` in ms."""
        screen = ""

        async def look() -> bool:
            nonlocal screen
            screen = await self.screen()
            return good(screen)

        try:
            await eventually(look, timeout / 1000)
        except TimeoutError:
            raise AssertionError(f"not within {timeout} ms: {what}; the screen:\n{screen}") from None
        return screen

    async def question_settled(self, ms: int = 400) -> None:
        """Waits until the approval question has been on the screen long enough to be answered."""
        shown = "local one = probe.approval.current() return one and vim.uv.hrtime() - one.shown_at > ..."
        await self.nvim.wait_for(shown, ms * 1_000_000)

    async def gone(self, timeout: int = PATIENCE) -> None:
        """Waits until the program and its terminal have ended."""

        async def ended() -> bool:
            return not await self.is_open()

        try:
            await eventually(ended, timeout / 1000)
        except TimeoutError:
            raise AssertionError(f"still running after {timeout} ms:\n{await self.screen()}") from None

    async def is_open(self) -> bool:
        """Whether its program runs."""
        return bool(await self.tmux("list-panes", check=False))

    async def close(self) -> None:
        """Quits Neovim; if it does not quit it is killed and the test fails."""
        try:
            if hasattr(self, "nvim"):
                with contextlib.suppress(RpcError, TimeoutError):
                    await self.nvim.request("nvim_command", "qall!", timeout=2_000)
                self.nvim.rpc.close()
                await self.gone()
        finally:
            await self.tmux("kill-server", check=False)


def configure(home: Home, init_lua: str) -> None:
    """Writes the user's init.lua."""
    (home.make("config/nvim") / "init.lua").write_text(init_lua)


@contextlib.asynccontextmanager
async def opened(
    program: Path,
    home: Home,
    *,
    init_lua: str = "",
    checkout: bool = True,
    arguments: Sequence[str] = (),
    command: str = "{nvim}",
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> AsyncIterator[Terminal]:
    """Opens a terminal with a Neovim.

    Args:
        program: the Neovim.
        home: its directories.
        init_lua: the user's configuration.
        checkout: puts this checkout on the runtimepath.
        arguments: more arguments, such as a file to open.
        command: shell command; `{nvim}` is Neovim with its arguments, `{quoted}` the same as one word.
        env: variables to set.
        cwd: working directory; default: an empty one in `home`.
    """
    first = f"vim.opt.runtimepath:prepend([[{ROOT}]])\n" if checkout else ""
    configure(home, f"{first}{PROBE}\n{init_lua}")
    listen = home.path / "terminal.sock"
    nvim = shlex.join([str(program), "--listen", str(listen), *arguments])
    environment = home.environment() | {"NVIM_LOG_FILE": str(home.path / "nvim.log")} | dict(env or {})
    terminal = Terminal(home.path / "tmux.sock", environment)
    options = ("-x", str(WIDTH), "-y", str(HEIGHT), "-c", str(cwd or home.make("cwd")))
    shell = command.replace("{nvim}", nvim).replace("{quoted}", shlex.quote(nvim))
    await terminal.tmux("new-session", "-d", *options, shell)
    try:
        terminal.nvim = Screened(await attach(terminal, listen), listen, home)
        yield terminal
    finally:
        await terminal.close()


async def attach(terminal: Terminal, listen: Path) -> Rpc:
    """Connects to the Neovim in the terminal once it has a UI."""
    rpc = None

    async def is_shown() -> bool:
        nonlocal rpc
        if rpc is None:
            try:
                rpc = await Rpc.connect(listen)
            except OSError:
                assert await terminal.is_open(), "the program exited at once"
                return False
        return await rpc.lua("return vim.v.vim_did_enter == 1 and #vim.api.nvim_list_uis() > 0")

    try:
        await eventually(is_shown, START_TIMEOUT / 1000)
        return rpc
    except TimeoutError:
        if rpc:
            rpc.close()
        raise AssertionError(f"Neovim did not start:\n{await terminal.screen()}") from None
