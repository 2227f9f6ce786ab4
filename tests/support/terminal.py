"""A real Neovim in a real terminal: keys go in, the screen comes out."""

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
from .rpc import Rpc, RpcError

WIDTH, HEIGHT = 80, 24  # the smallest screen that people use, where texts are cut first
PATIENCE = 15_000
TMUX = shutil.which("tmux")


needed = pytest.mark.skipif(TMUX is None, reason="tmux is not installed")


async def ended(call: asyncio.Task[Any]) -> Any:
    """The result of a call that has been answered."""
    async with asyncio.timeout(PATIENCE / 1000):
        return await call


class Screened(Nvim):
    """The Neovim in a terminal: not our child, so it is the terminal that tells of its end."""

    def __init__(self, rpc: Rpc, socket: Path, home: Home) -> None:
        self.rpc, self.socket, self.home = rpc, socket, home

    async def how_it_ended(self) -> str:
        """Only its terminal knows."""
        return "see its terminal"


class Terminal:
    """What a person has in front of them, and the RPC of the Neovim in it."""

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
        """Press keys by tmux's names: `Enter`, `Escape`, `Tab`, `C-c`."""
        await self.tmux("send-keys", *keys)

    async def enter(self, text: str, *keys: str) -> None:
        """Type text, then press Enter and other keys."""
        await self.type(text)
        await self.press("Enter", *keys)

    async def command(self, text: str) -> None:
        """Type an Ex command and press Enter."""
        await self.enter(f":{text}")

    async def screen(self) -> str:
        """What is on the screen now, with wrapped lines whole; nothing when its program has ended."""
        return await self.tmux("capture-pane", "-p", "-J", check=False)

    async def shows(self, *texts: str, timeout: int = PATIENCE) -> str:
        """Wait until all of `texts` are on the screen at once, and return the whole of it."""
        return await self.until(lambda screen: all(text in screen for text in texts), repr(texts), timeout)

    async def hides(self, text: str, timeout: int = PATIENCE) -> str:
        """Wait until `text` is no longer on the screen."""
        return await self.until(lambda screen: text not in screen, f"the end of {text!r}", timeout)

    async def until(self, good: Callable[[str], bool], what: str, timeout: int = PATIENCE) -> str:
        """Poll the screen; fail after `timeout` ms with what it shows instead."""
        screen = ""
        try:
            async with asyncio.timeout(timeout / 1000):
                while True:
                    screen = await self.screen()
                    if good(screen):
                        return screen
                    await asyncio.sleep(0.02)
        except TimeoutError:
            raise AssertionError(f"not within {timeout} ms: {what}; the screen:\n{screen}") from None

    async def gone(self, timeout: int = PATIENCE) -> None:
        """Wait until the program in the terminal has ended, and the terminal with it."""
        try:
            async with asyncio.timeout(timeout / 1000):
                while await self.is_open():
                    await asyncio.sleep(0.02)
        except TimeoutError:
            raise AssertionError(f"still there after {timeout} ms:\n{await self.screen()}") from None

    async def is_open(self) -> bool:
        """Does its program still run?"""
        return bool(await self.tmux("list-panes", check=False))

    async def close(self) -> None:
        """Quit Neovim as a person would; what does not quit is killed, and that fails the test."""
        try:
            if hasattr(self, "nvim"):
                with contextlib.suppress(RpcError, TimeoutError):
                    await self.nvim.request("nvim_command", "qall!", timeout=2_000)
                self.nvim.rpc.close()
                await self.gone()
        finally:
            await self.tmux("kill-server", check=False)


def configure(home: Home, init_lua: str) -> None:
    """Write the person's init.lua."""
    folder = home.make("config") / "nvim"
    folder.mkdir(exist_ok=True)
    (folder / "init.lua").write_text(init_lua)


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
    """Open a terminal with a Neovim in it, and close both at the end.

    Args:
        program: the Neovim.
        home: its folders.
        init_lua: the person's configuration.
        checkout: put this checkout on the runtimepath first.
        arguments: more arguments, such as a file to open.
        command: what the shell runs; `{nvim}` is Neovim with its arguments, `{quoted}` the same as one word.
        env: variables to set.
        cwd: where it starts; default: an empty folder in `home`.
    """
    first = f"vim.opt.runtimepath:prepend([[{ROOT}]])\n" if checkout else ""
    configure(home, f"{first}{PROBE}\n{init_lua}")
    listen = home.path / "terminal.sock"
    nvim = shlex.join([str(program), "--listen", str(listen), *arguments])
    environment = home.environment() | {"NVIM_LOG_FILE": str(home.path / "nvim.log")} | dict(env or {})
    terminal = Terminal(home.path / "tmux.sock", environment)
    size = ("-x", str(WIDTH), "-y", str(HEIGHT))
    place = ("-c", str(cwd or home.make("cwd")))
    await terminal.tmux(
        "new-session",
        "-d",
        *size,
        *place,
        command.replace("{nvim}", nvim).replace("{quoted}", shlex.quote(nvim)),
    )
    try:
        terminal.nvim = Screened(await attach(terminal, listen), listen, home)
        yield terminal
    finally:
        await terminal.close()


async def attach(terminal: Terminal, listen: Path) -> Rpc:
    """Connect to the Neovim in the terminal once it has its screen."""
    rpc = None
    try:
        async with asyncio.timeout(START_TIMEOUT / 1000):
            while rpc is None:
                try:
                    rpc = await Rpc.connect(listen)
                except OSError:
                    assert await terminal.is_open(), "the program ended at once"
                    await asyncio.sleep(0.01)
            while not await rpc.lua("return vim.v.vim_did_enter == 1 and #vim.api.nvim_list_uis() > 0"):
                await asyncio.sleep(0.01)
            return rpc
    except TimeoutError:
        if rpc:
            rpc.close()
        raise AssertionError(f"Neovim did not start:\n{await terminal.screen()}") from None
