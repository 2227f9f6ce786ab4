"""The life of the process: claim a port, say hello to the editor, serve, and end in time."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import platform
import secrets
import signal
import sys
from collections.abc import Callable, Coroutine
from dataclasses import asdict, replace
from importlib import metadata
from typing import TYPE_CHECKING, Any, TypeVar

from .. import __version__
from ..calls.runner import Calls
from ..errors import EditorGoneError, LuaError, NoAnswerError, StartError
from ..http.parts import Parts, Token
from ..instances.holder import holder_of
from ..neovim.decode import fault_text
from ..neovim.modes import advice
from ..neovim.nvim import NvimEditor
from ..values import Hello, HelloInfo, PortHolder, Versions
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
"""Seconds for the editor's first answer: it may sit at a prompt of its own start-up."""
HELLO_PATIENCE = 2.0
"""Seconds after which the log says what it waits for."""
END_WITH_EDITOR = 0.7
"""Seconds for the last answers to clients when the editor is gone; the promise is 1 s to the exit."""
END_BY_SIGNAL = 2.0
"""Seconds for the same after a signal; the promise is 3 s."""
SHUTDOWN_GRACE = 0.25
"""Seconds before that for calls that are about to end, such as the one whose tool restarts the bridge."""
FLUSH_TIMEOUT = 0.3
"""Seconds for the editor to hear that its calls were cancelled."""
END_MOUNTS = 0.6
"""Seconds for mounted servers to end by themselves; then they are killed."""
FOREIGN_AFTER = 5
"""Looks without a proof after which the holder of the wanted port is a foreign process: a bridge that is busy
may miss one or two."""
REPORT_AFTER = 0.25
"""Seconds in which changes of the sessions become one report."""


class _Ending:
    """Why the process is to end; set once.

    Attributes:
        kill: ends child processes at once; called before an exit that waits for nothing.
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
                os._exit(0)  # whoever sends a second one does not want to wait
        if not self.reason.done():
            self.reason.set_result(reason)

    async def unless(self, work: Coroutine[Any, Any, T]) -> T | None:
        """Runs `work`, but gives None when the end comes first."""
        task = asyncio.ensure_future(work)
        both: set[asyncio.Future[Any]] = {task, self.reason}
        await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
        task.cancel()
        await asyncio.wait({task})
        return None


async def run(environment: Environment, handler: LogHandler) -> int:
    """Runs the bridge until the editor is gone or a signal comes.

    Args:
        environment: what the process was started with.
        handler: of the log; it is told what must not be shown.

    Returns:
        The exit code.

    Raises:
        StartError: it cannot start; the text says what to do.
    """
    ending = _Ending()
    handler.hide(environment.token)
    _end_on_signal(ending)
    claim = ports.claim(environment.host, environment.port, environment.port_fallback)
    try:
        # The slow part, while the port is already ours: other editors that start now see that.
        from ..agents.agents import Agents
        from ..http.app import App
        from ..http.listener import Runner
        from ..mounts.loader import Mounts

        editor = await ending.unless(NvimEditor.open(environment.address))
        if editor is not None:
            editor.closed.add_done_callback(lambda _: ending.now("editor"))
            mounts = Mounts(editor, handler.hide)
            ending.kill = mounts.kill
            ending.reason.add_done_callback(lambda _: mounts.end(END_MOUNTS))
            parts = await ending.unless(_meet(environment, editor, claim, handler))
            if parts is not None:
                agents = Agents(editor, parts.hello.endpoints, handler.hide)
                parts.watcher = agents.session_events
                parts.server_info = agents.endpoints.server_info
                app = App(parts)
                agents.join(app)
                runner = Runner(app, backpressure=parts.calls.backpressure)
                try:
                    await _serve(environment, parts, runner, claim, ending, editor, agents)
                finally:
                    await mounts.ended()
    except EditorGoneError:
        ending.now("editor")
    finally:
        claim.socket.close()
    logger.info("ended: %s", "Neovim is gone" if ending.reason.result() == "editor" else "told to")
    return 0


async def _meet(
    environment: Environment, editor: NvimEditor, claim: ports.Claim, handler: LogHandler
) -> Parts:
    """Says hello and puts together what the application needs."""
    holder: PortHolder = "none"
    if claim.taken:
        holder = await holder_of(
            environment.host, environment.port, environment.instance_dir, environment.token
        )
        logger.warning(
            "port %d is held by %s; using %d for now", environment.port, _HOLDERS[holder], claim.port
        )
    versions = _versions()
    info = HelloInfo(
        os.getpid(),
        claim.port,
        environment.port or claim.port,
        holder,
        versions,
        launch=environment.launch,
    )
    hello = await _hello(editor, info, environment)
    settings = hello.settings
    if environment.tool_timeout is not None:
        settings = replace(settings, tool_timeout=environment.tool_timeout)
    token = Token(hello.token or environment.token)
    handler.hide(token.value)
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
    """Serves until the end, then answers what is in flight and tells the editor."""
    await runner.setup()
    await runner.listen(claim.socket)
    await agents.open()
    # What lives now lives to the end: later collections need not look at it.
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
        logger.warning("some connections did not end in time; dropped")
    if reason != "editor":
        await editor.settle(FLUSH_TIMEOUT)
    editor.close()
    await asyncio.wait({editor.closed}, timeout=0.2)


async def _let_end(calls: Calls, within: float) -> None:
    """Waits for the calls in flight, but not for long."""
    for _ in range(round(within * 100)):
        if not calls.in_flight:
            return
        await asyncio.sleep(0.01)


async def _take_wanted_port(
    environment: Environment, token: Token, editor: NvimEditor, runner: Runner
) -> None:
    """Serves the wanted port as well, as soon as its holder lets it go.

    A foreign process may take it first, and be sent the token by clients: the editor is told.
    """
    port, foreign = environment.port, 0

    async def held() -> None:
        nonlocal foreign
        holder = await holder_of(environment.host, port, environment.instance_dir, token.value)
        foreign = foreign + 1 if holder == "stranger" else 0
        if foreign == FOREIGN_AFTER:
            editor.report("port_taken", {"port": port})

    try:
        await runner.listen(await ports.await_port(environment.host, port, held))
    except Exception:  # boundary: nobody waits for this, and the port that is served goes on
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
    numbers = [getattr(signal, name) for name in ("SIGTERM", "SIGINT", "SIGHUP") if hasattr(signal, name)]
    try:
        for number in numbers:
            loop.add_signal_handler(number, ending.now, "signal")
    except NotImplementedError:  # Windows
        for number in numbers:
            signal.signal(number, lambda *_: loop.call_soon_threadsafe(ending.now, "signal"))


def _print_ready(port: int) -> None:
    try:
        sys.stdout.write(f"MCP server listening on port {port}\n")
        sys.stdout.flush()
    except OSError:
        pass  # nobody reads it; serving goes on


def _versions() -> Versions:
    return Versions(
        bridge=__version__,
        python=platform.python_version(),
        sdk=_installed("mcp"),
        aiohttp=_installed("aiohttp"),
        msgpack=_installed("msgpack"),
    )


def _installed(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""


_HOLDERS: dict[PortHolder, str] = {
    "none": "nobody",
    "ours": "another Neovim of yours",
    "stranger": "a stranger, so a new token is made",
}
