"""The life of the process: claims a port, connects to Neovim, serves, and shuts down."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import os
import platform
import secrets
import signal
import sys
from collections.abc import Callable, Coroutine
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from .. import __version__
from ..calls.runner import Calls
from ..errors import EditorGoneError, LuaError, NoAnswerError, StartError
from ..http.handlers import Parts
from ..instances.holder import holder_of
from ..neovim.codec import fault_text
from ..neovim.modes import advice
from ..neovim.nvim import NvimEditor
from ..values import Hello, HelloInfo, PortHolder
from . import ports
from .environment import Environment
from .log import LogHandler, set_level

if TYPE_CHECKING:
    from ..agents.agents import Agents
    from ..http.listener import Runner
    from ..sessions.session import SessionInfo

T = TypeVar("T")

logger = logging.getLogger(__name__)

HELLO_WITHIN = 600.0
"""Seconds for Neovim's first answer: a prompt at its start may block it."""
HELLO_PATIENCE = 2.0
"""Seconds until the log reports this wait."""
END_WITH_EDITOR = 0.7
"""Seconds to send the last answers to clients after Neovim has exited; the documented maximum is 1 s."""
END_BY_SIGNAL = 1.8
"""Seconds for the same after a signal; the documented maximum is 3 s."""
SHUTDOWN_GRACE = 0.5
"""Seconds for calls to end before they are cancelled, such as the one whose tool restarts the bridge."""
FLUSH_TIMEOUT = 0.3
"""Seconds to notify Neovim of cancelled calls."""
END_MOUNTS = 0.6
"""Seconds until mounted servers that have not ended are killed."""
FOREIGN_AFTER = 5
"""Checks in a row without a proof until the process at the wanted port is considered foreign: a busy bridge
may fail to answer one or two."""
REPORT_AFTER = 0.25
"""Seconds in which changes of sessions are collected for one report."""


class _Ending:
    """The reason for the shutdown; set once.

    Attributes:
        kill: kills child processes; called before an immediate exit.
    """

    def __init__(self) -> None:
        self.reason: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self.signals = 0
        self.kill: Callable[[], None] = lambda: None

    def now(self, reason: str) -> None:
        if reason == "signal":
            self.signals += 1
            if self.signals > 1:
                self.kill()
                os._exit(0)  # a second signal exits immediately
        if not self.reason.done():
            self.reason.set_result(reason)

    async def unless(self, work: Coroutine[Any, Any, T]) -> T | None:
        """Returns the result of `work`; cancels it and returns None when the shutdown starts first."""
        task = asyncio.ensure_future(work)
        both: set[asyncio.Future[Any]] = {task, self.reason}
        await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
        task.cancel()
        await asyncio.wait({task})
        return None


async def run(environment: Environment, handler: LogHandler) -> int:
    """Runs the bridge until Neovim exits or the process receives a signal.

    Args:
        environment: the configuration.
        handler: the log handler; gets the secrets to hide.

    Returns:
        The exit code.

    Raises:
        StartError: the bridge cannot start; the message says what to do.
    """
    ending = _Ending()
    handler.hide(environment.token)
    _end_on_signal(ending)
    claim = ports.claim(environment.host, environment.port, environment.port_fallback)
    try:
        # Slow imports come after the claim, so that bridges that start at the same time see the port taken.
        from ..agents.agents import Agents
        from ..http.app import App
        from ..http.listener import Runner
        from ..mounts.mount import Mounts

        editor = await ending.unless(NvimEditor.open(environment.address))
        if editor is not None:
            editor.closed.add_done_callback(lambda _: ending.now("editor"))
            mounts = Mounts(editor, handler.hide)
            ending.kill = mounts.kill
            ending.reason.add_done_callback(lambda _: mounts.end(END_MOUNTS))
            parts = await ending.unless(_introduce(environment, editor, claim, handler))
            if parts is not None:
                app = App(parts)
                agents = Agents(editor, parts.hello, parts.token, handler.hide, app)
                runner = Runner(app, backpressure=parts.calls.backpressure)
                try:
                    await _serve(environment, parts, runner, claim, ending, editor, agents)
                finally:
                    await mounts.ended()
    except EditorGoneError:
        ending.now("editor")
    finally:
        claim.socket.close()
    logger.info("ended: %s", "Neovim has exited" if ending.reason.result() == "editor" else "signal")
    return 0


async def _introduce(
    environment: Environment, editor: NvimEditor, claim: ports.Claim, handler: LogHandler
) -> Parts:
    """Introduces the bridge to Neovim and builds the parts of the application."""
    holder: PortHolder = "none"
    if claim.taken:
        holder = await holder_of(
            environment.host, environment.port, environment.instance_dir, environment.token
        )
        logger.warning(
            "port %d is used by %s; using %d for now", environment.port, _HOLDERS[holder], claim.port
        )
    versions = _versions()
    info = HelloInfo(
        os.getpid(), claim.port, environment.port or claim.port, holder, versions, launch=environment.launch
    )
    hello = await _hello(editor, info, environment)
    settings = hello.settings
    if environment.tool_timeout is not None:
        settings = replace(settings, tool_timeout=environment.tool_timeout)
    token = hello.token or environment.token
    handler.hide(token)
    set_level(settings.log_level)
    boot = secrets.token_hex(6)
    calls = Calls(editor, settings, boot)
    parts = Parts(settings, hello, editor, calls, token, versions, boot)
    parts.report_sessions = _debounced_sessions(editor, calls)
    return parts


async def _hello(editor: NvimEditor, info: HelloInfo, environment: Environment) -> Hello:
    answer = asyncio.ensure_future(editor.hello(info, HELLO_WITHIN))
    try:
        await asyncio.wait({answer}, timeout=HELLO_PATIENCE)
        if not answer.done():
            logger.warning("%s; waiting for it", advice(await editor.mode(HELLO_PATIENCE)))
        return await answer
    except LuaError as error:
        raise StartError(fault_text(str(error), environment.address)) from error
    except NoAnswerError as error:
        raise StartError(f"Neovim at {environment.address} does not answer; is it blocked?") from error
    finally:
        answer.cancel()


async def _serve(
    environment: Environment,
    parts: Parts,
    runner: Runner,
    claim: ports.Claim,
    ending: _Ending,
    editor: NvimEditor,
    agents: Agents,
) -> None:
    """Serves until the shutdown, then answers the requests in flight and notifies Neovim."""
    await runner.setup()
    await runner.listen(claim.socket)
    await agents.open()
    # These objects live until the exit; later collections can skip them.
    gc.freeze()
    gc.enable()
    _print_ready(claim.port)
    logger.info("serving %s on port %d", parts.settings.root or environment.address, claim.port)
    watch = None
    if claim.taken:
        watch = asyncio.ensure_future(_take_wanted_port(environment, parts.token, editor, runner))
    reason = await ending.reason
    if watch is not None:
        watch.cancel()
    within = END_WITH_EDITOR if reason == "editor" else END_BY_SIGNAL
    await runner.stop_listening()
    await agents.disconnect()
    if reason != "editor":
        await _let_end(parts.calls, SHUTDOWN_GRACE)
    parts.calls.stop("editor_gone" if reason == "editor" else "shutdown")
    try:
        async with asyncio.timeout(within):
            await runner.cleanup()
            await agents.close()
    except TimeoutError:
        logger.warning("some connections did not end in time and were dropped")
    if reason != "editor":
        await editor.settle(FLUSH_TIMEOUT)
    editor.close()
    await asyncio.wait({editor.closed}, timeout=0.2)


async def _let_end(calls: Calls, within: float) -> None:
    """Waits for the calls in flight, at most `within` seconds."""
    for _ in range(round(within * 100)):
        if not calls.in_flight:
            return
        await asyncio.sleep(0.01)


async def _take_wanted_port(environment: Environment, token: str, editor: NvimEditor, runner: Runner) -> None:
    """Also serves the wanted port, as soon as it is free.

    Reports to Neovim when a foreign process holds it, since clients may send that process the token.
    """
    port, foreign = environment.port, 0

    async def held() -> None:
        nonlocal foreign
        holder = await holder_of(environment.host, port, environment.instance_dir, token)
        foreign = foreign + 1 if holder == "foreign" else 0
        if foreign == FOREIGN_AFTER:
            editor.report("port_taken", {"port": port})

    try:
        await runner.listen(await ports.await_port(environment.host, port, held))
    except Exception:  # boundary: the other port is still served
        logger.exception("port %d is free again but cannot be served", port)
        return
    editor.report("listening", {"port": port})
    logger.info("port %d is free again; serving it too", port)


def _debounced_sessions(editor: NvimEditor, calls: Calls) -> Callable[[list[SessionInfo]], None]:
    latest: list[SessionInfo] = []
    timer: asyncio.TimerHandle | None = None

    def send() -> None:
        nonlocal timer
        timer = None
        clients = [asdict(session) for session in latest]
        editor.report("sessions", {"count": len(clients), "calls": calls.in_flight, "clients": clients})

    def report(sessions: list[SessionInfo]) -> None:
        nonlocal latest, timer
        latest = sessions
        if timer is None:
            timer = asyncio.get_running_loop().call_later(REPORT_AFTER, send)

    return report


def _end_on_signal(ending: _Ending) -> None:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        loop.add_signal_handler(number, ending.now, "signal")


def _print_ready(port: int) -> None:
    try:
        sys.stdout.write(f"MCP server listening on port {port}\n")
        sys.stdout.flush()
    except OSError:
        pass  # stdout is closed


def _versions() -> dict[str, str]:
    packages = {"sdk": "mcp", "aiohttp": "aiohttp", "msgpack": "msgpack"}
    installed = {key: _installed(name) for key, name in packages.items()}
    return {"bridge": __version__, "python": platform.python_version(), **installed}


def _installed(name: str) -> str:
    """Returns the version of a package. `importlib.metadata` would take a megabyte of memory."""
    for directory in sys.path:
        with contextlib.suppress(OSError):  # Python skips directories that cannot be read
            for found in Path(directory).glob(f"{name}-*.dist-info"):
                return found.name.removeprefix(f"{name}-").removesuffix(".dist-info")
    return ""


_HOLDERS: dict[PortHolder, str] = {
    "none": "no process",
    "ours": "another Neovim of this user",
    "foreign": "a foreign process, so Neovim makes a new token",
}
