"""The agents for the terminal that find an editor by themselves, each in a terminal of its own.

They come from npm by the lock of tests/clients/npm, which `install` brings to `.deps/agents`. None has an
account; a proxy that is not there keeps them from asking anybody but loopback.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import platform
import shlex
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from . import node, processes
from .model import Model
from .nvim import ROOT, Home
from .terminal import Terminal

LOCK = ROOT / "tests" / "clients" / "npm"
TARGET = ROOT / ".deps" / "agents"
MODULES = TARGET / "node_modules"
SIZE = ("-x", "120", "-y", "40")
GROUP = 500  # ms that what was killed may take; where nobody reaps it is never gone
NOWHERE = "http://127.0.0.1:9"

Setup = Callable[[Home, Path, Model], tuple[list[str], dict[str, str]]]


def install() -> None:
    """Install what the lock pins, unless it is there; skip the test where it cannot be had."""
    if (sys.platform, platform.machine()) != ("linux", "x86_64"):
        pytest.skip("the lock of tests/clients/npm is for Linux on x86-64")
    sys.path.insert(0, str(ROOT / "scripts"))
    import _npm  # type: ignore[import-not-found]

    try:
        _npm.install(LOCK, TARGET)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"what tests/clients/npm pins could not be installed: {error}")
    finally:
        sys.path.remove(str(ROOT / "scripts"))


def write(path: Path, value: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value))


def claude(home: Home, cwd: Path, model: Model) -> tuple[list[str], dict[str, str]]:
    """Claude Code, with every dialog of its first start behind it."""
    project = {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}
    project |= {"enabledMcpjsonServers": ["nvim-tools"]}
    settings = {"hasCompletedOnboarding": True, "theme": "dark", "autoConnectIde": True}
    write(home.make("home") / ".claude.json", settings | {"projects": {str(cwd.resolve()): project}})
    program = MODULES / "@anthropic-ai" / "claude-code-linux-x64" / "claude"
    return [str(program), "--model", "claude-mock", "--permission-mode", "default"], {
        "ANTHROPIC_BASE_URL": model.url,
        "ANTHROPIC_AUTH_TOKEN": "dummy",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_ERROR_REPORTING": "1",
        "DISABLE_AUTOUPDATER": "1",
        "ENABLE_TOOL_SEARCH": "false",
    }


def gemini(home: Home, cwd: Path, model: Model) -> tuple[list[str], dict[str, str]]:
    """Gemini CLI, which its person has told `/ide enable`."""
    settings = {
        "security": {"auth": {"selectedType": "gemini-api-key"}},
        "privacy": {"usageStatisticsEnabled": False},
        "general": {"enableAutoUpdate": False},
        "ide": {"enabled": True, "hasSeenNudge": True},
    }
    write(home.make("home") / ".gemini" / "settings.json", settings)
    return [str(node.NODE), str(entry("@google/gemini-cli", "gemini")), "--model", "gemini-2.5-flash"], {
        "GEMINI_API_KEY": "dummy",
        "GOOGLE_GEMINI_BASE_URL": model.url,
        "GEMINI_CLI_TRUST_WORKSPACE": "true",
        "GEMINI_CLI_NO_RELAUNCH": "1",
        "HTTP_PROXY": "",
        "HTTPS_PROXY": "",  # it would ask even loopback by it
        "SSH_CONNECTION": "127.0.0.1 1 127.0.0.1 22",  # in a container it would look for the editor outside
    }


def qwen(home: Home, cwd: Path, model: Model) -> tuple[list[str], dict[str, str]]:
    """Qwen Code, which its person has told `/ide enable`."""
    settings = {
        "security": {"auth": {"selectedType": "openai"}},
        "model": {"name": "mock"},
        "privacy": {"usageStatisticsEnabled": False},
        "general": {"enableAutoUpdate": False},
        "tools": {"approvalMode": "default"},
        "ide": {"enabled": True, "hasSeenNudge": True},
    }
    write(home.make("home") / ".qwen" / "settings.json", settings)
    return [str(node.NODE), str(entry("@qwen-code/qwen-code", "qwen")), "--auth-type", "openai"], {
        "OPENAI_API_KEY": "dummy",
        "OPENAI_BASE_URL": f"{model.url}/v1",
        "OPENAI_MODEL": "mock",
    }


def copilot(home: Home, cwd: Path, model: Model) -> tuple[list[str], dict[str, str]]:
    """Copilot CLI, whose person trusts the folder and the project, which may be another."""
    trusted = [str(cwd.resolve()), str(home.make("project").resolve())]
    settings = {"trusted_folders": trusted, "banner": "never"}
    write(home.make("home") / ".copilot" / "config.json", settings)
    return [str(MODULES / ".bin" / "copilot")], {
        "COPILOT_OFFLINE": "true",
        "COPILOT_AUTO_UPDATE": "false",
        "COPILOT_PROVIDER_BASE_URL": f"{model.url}/v1",
        "COPILOT_MODEL": "mock",
        "COPILOT_PROVIDER_API_KEY": "dummy",
    }


def opencode(home: Home, cwd: Path, model: Model) -> tuple[list[str], dict[str, str]]:
    """The terminal of opencode."""
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "Mock",
        "options": {"baseURL": f"{model.url}/v1", "apiKey": "dummy"},
        "models": {"mock": {"name": "mock", "tool_call": True, "limit": {"context": 100000, "output": 1000}}},
    }
    permission = {"*": "allow", "edit": "ask"}
    config = {
        "provider": {"mock": provider},
        "model": "mock/mock",
        "permission": permission,
        "autoupdate": False,
    }
    write(cwd / "opencode.json", config)
    return [str(MODULES / "opencode-linux-x64" / "bin" / "opencode")], {
        "OPENCODE_DISABLE_AUTOUPDATE": "1",
        "OPENCODE_DISABLE_MODELS_FETCH": "1",
        "OPENCODE_DISABLE_DEFAULT_PLUGINS": "1",
    }


def entry(package: str, program: str) -> Path:
    """The script that a package names for a program."""
    folder = MODULES / package
    script = json.loads((folder / "package.json").read_text())["bin"]
    return folder / (script if isinstance(script, str) else script[program])


AGENTS: dict[str, Setup] = {
    "claude": claude,
    "gemini": gemini,
    "qwen": qwen,
    "copilot": copilot,
    "opencode": opencode,
}


ALONE: dict[str, tuple[str, ...]] = {
    "claude": ("--allowedTools", "mcp__nvim-tools", "-p"),
    "gemini": ("--approval-mode", "yolo", "-p"),
    "qwen": ("--approval-mode", "yolo", "-p"),
    "copilot": ("--allow-all-tools", "-p"),
    "opencode": ("run",),
}
"""Without a terminal: before the one prompt that they answer; they ask nobody then."""


@dataclass(frozen=True)
class Place:
    """Where an agent runs.

    Attributes:
        home: its folders; the same as those of the editor, or they would not meet.
        cwd: the folder that it is started in.
        model: whom it asks.
    """

    home: Home
    cwd: Path
    model: Model


def environment(home: Home) -> dict[str, str]:
    """What a shell has, and nothing of the person who runs the tests."""
    own = home.environment()
    kept = {name: own[name] for name in own if name.startswith("XDG_") or name in ("HOME", "TMPDIR")}
    kept["PATH"] = f"{node.NODE.parent}{os.pathsep}/usr/local/bin:/usr/bin:/bin"
    kept |= {"TERM": "xterm-256color", "COLORTERM": "truecolor", "LANG": "C.UTF-8", "SHELL": "/bin/sh"}
    kept |= {"USER": "tester", "DO_NOT_TRACK": "1", "DISABLE_TELEMETRY": "1"}
    kept |= {"HTTP_PROXY": NOWHERE, "HTTPS_PROXY": NOWHERE, "NO_PROXY": "127.0.0.1,localhost"}
    return kept


def program(name: str, place: Place) -> Path:
    """A folder for PATH in which the agent is a program, as a person has it installed.

    What whoever starts it adds by flags and variables counts; no file of its own home knows of them.
    """
    argv, own = AGENTS[name](place.home, place.cwd, place.model)
    folder = place.home.make("bin")
    kept = environment(place.home) | own
    kept["PATH"] = f"{node.NODE.parent}{os.pathsep}/usr/local/bin:/usr/bin:/bin"
    words = shlex.join(["env", *(f"{key}={value}" for key, value in kept.items() if value), *argv])
    script = folder / name
    script.write_text(f'#!/bin/sh\nexec {words} "$@"\n')
    script.chmod(0o700)
    return folder


async def answer(
    name: str, place: Place, prompt: str, made: tuple[list[str], dict[str, str]], timeout: int = 60_000
) -> str:
    """What an agent says to one prompt without a terminal.

    Args:
        name: of the agent.
        place: where it runs.
        prompt: for it.
        made: what its function of `AGENTS` has given; it is not called again, as it writes the settings anew.
        timeout: ms that it may take.
    """
    argv, own = made
    own = own | {"MCP_CONNECTION_NONBLOCKING": "0"}  # else Claude Code asks its model before it has our tools
    env = {key: value for key, value in (environment(place.home) | own).items() if value}
    process = await processes.start(
        *argv,
        *ALONE[name],
        prompt,
        cwd=place.cwd,
        env=env,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        async with asyncio.timeout(timeout / 1000):
            output, _ = await process.communicate()
    finally:
        processes.end(process.pid)
    assert process.returncode == 0, output.decode()
    return output.decode()


@contextlib.asynccontextmanager
async def running(name: str, place: Place, **more: str) -> AsyncIterator[Terminal]:
    """An agent in a terminal; `more` are variables."""
    argv, own = AGENTS[name](place.home, place.cwd, place.model)
    env = environment(place.home) | own | more
    terminal = Terminal(place.home.path / f"{name}.sock", env)
    env = {key: value for key, value in env.items() if value}
    command = shlex.join(["env", "-i", *(f"{key}={value}" for key, value in env.items()), *argv])
    await terminal.tmux("new-session", "-d", *SIZE, "-c", str(place.cwd), "exec " + command)
    pid = int(await terminal.tmux("display-message", "-p", "#{pane_pid}"))
    try:
        yield terminal
    finally:
        await terminal.tmux("kill-server", check=False)
        await ended(pid)


async def ended(pid: int, timeout: int = 5_000) -> None:
    """Wait until a process whose terminal was closed has ended; after `timeout` ms it is killed.

    What it has started goes with it: it would write into a home that is thrown away.
    """
    with contextlib.suppress(ProcessLookupError, TimeoutError):
        async with asyncio.timeout(timeout / 1000):
            while True:
                os.kill(pid, 0)
                await asyncio.sleep(0.02)
    with contextlib.suppress(ProcessLookupError, TimeoutError):
        os.killpg(pid, signal.SIGKILL)
        async with asyncio.timeout(GROUP / 1000):
            while True:
                os.killpg(pid, 0)
                await asyncio.sleep(0.02)
