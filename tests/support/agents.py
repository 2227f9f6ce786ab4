"""The terminal agents that find an editor automatically, each in its own terminal.

`install` installs them into `.deps/agents` from the npm lock in tests/clients/npm. None has an account, and a
proxy that does not exist limits them to loopback.
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
from typing import Any

import pytest

from . import node, processes
from .model import Model
from .nvim import ROOT, Home
from .results import eventually
from .terminal import Terminal

LOCK = ROOT / "tests" / "clients" / "npm"
TARGET = ROOT / ".deps" / "agents"
MODULES = TARGET / "node_modules"
SIZE = ("-x", "120", "-y", "40")
GROUP = 500  # ms for a killed group to end; without a reaper it never does
NOWHERE = "http://127.0.0.1:9"

Setup = Callable[[Home, Path, Model], tuple[list[str], dict[str, str]]]


def install() -> None:
    """Installs the locked packages unless they are installed; skips the test if that fails."""
    if (sys.platform, platform.machine()) != ("linux", "x86_64"):
        pytest.skip("the lock of tests/clients/npm is for Linux on x86-64")
    sys.path.insert(0, str(ROOT / "scripts"))
    import _npm  # type: ignore[import-not-found]

    try:
        _npm.install(LOCK, TARGET)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"the packages of tests/clients/npm could not be installed: {error}")
    finally:
        sys.path.remove(str(ROOT / "scripts"))


def write(path: Path, value: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value))


def claude(home: Home, cwd: Path, model: Model) -> tuple[list[str], dict[str, str]]:
    """Claude Code, with every dialog of its first start answered."""
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


IDE: dict[str, Any] = {
    "privacy": {"usageStatisticsEnabled": False},
    "general": {"enableAutoUpdate": False},
    "ide": {"enabled": True, "hasSeenNudge": True},
}
"""Settings of Gemini CLI and Qwen Code after `/ide enable`."""


def gemini(home: Home, cwd: Path, model: Model) -> tuple[list[str], dict[str, str]]:
    """Gemini CLI."""
    settings = IDE | {"security": {"auth": {"selectedType": "gemini-api-key"}}}
    write(home.make("home") / ".gemini" / "settings.json", settings)
    return [str(node.NODE), str(entry("@google/gemini-cli", "gemini")), "--model", "gemini-2.5-flash"], {
        "GEMINI_API_KEY": "dummy",
        "GOOGLE_GEMINI_BASE_URL": model.url,
        "GEMINI_CLI_TRUST_WORKSPACE": "true",
        "GEMINI_CLI_NO_RELAUNCH": "1",
        "HTTP_PROXY": "",
        "HTTPS_PROXY": "",  # it would use it even for loopback
        "SSH_CONNECTION": "127.0.0.1 1 127.0.0.1 22",  # in a container it would search outside
    }


def qwen(home: Home, cwd: Path, model: Model) -> tuple[list[str], dict[str, str]]:
    """Qwen Code."""
    settings = IDE | {"security": {"auth": {"selectedType": "openai"}}, "model": {"name": "mock"}}
    write(home.make("home") / ".qwen" / "settings.json", settings | {"tools": {"approvalMode": "default"}})
    return [str(node.NODE), str(entry("@qwen-code/qwen-code", "qwen")), "--auth-type", "openai"], {
        "OPENAI_API_KEY": "dummy",
        "OPENAI_BASE_URL": f"{model.url}/v1",
        "OPENAI_MODEL": "mock",
    }


def copilot(home: Home, cwd: Path, model: Model) -> tuple[list[str], dict[str, str]]:
    """Copilot CLI, whose user trusts the working directory and the project."""
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
    config = {"provider": {"mock": provider}, "model": "mock/mock", "autoupdate": False}
    write(cwd / "opencode.json", config | {"permission": {"*": "allow", "edit": "ask"}})
    return [str(MODULES / "opencode-linux-x64" / "bin" / "opencode")], {
        "OPENCODE_DISABLE_AUTOUPDATE": "1",
        "OPENCODE_DISABLE_MODELS_FETCH": "1",
        "OPENCODE_DISABLE_DEFAULT_PLUGINS": "1",
    }


def codex(home: Home, cwd: Path, model: Model) -> tuple[list[str], dict[str, str]]:
    """Codex, whose user trusts the working directory."""
    file = home.make("home") / ".codex" / "config.toml"
    file.parent.mkdir(parents=True, exist_ok=True)
    provider = f'[model_providers.mock]\nname = "mock"\nbase_url = "{model.url}/v1"\nwire_api = "responses"\n'
    trusted = f'[projects."{cwd.resolve()}"]\ntrust_level = "trusted"\n'
    file.write_text(f'model = "mock"\nmodel_provider = "mock"\n{provider}{trusted}')
    [program] = (MODULES / "@openai" / "codex-linux-x64" / "vendor").glob("*/bin/codex")
    return [str(program)], {}


def entry(package: str, program: str) -> Path:
    """The script of a program in a package."""
    directory = MODULES / package
    script = json.loads((directory / "package.json").read_text())["bin"]
    return directory / (script if isinstance(script, str) else script[program])


AGENTS: dict[str, Setup] = {each.__name__: each for each in (claude, codex, gemini, qwen, copilot, opencode)}
ALONE: dict[str, tuple[str, ...]] = {
    "claude": ("--allowedTools", "mcp__nvim-tools", "-p"),
    "codex": ("exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"),
    "gemini": ("--approval-mode", "yolo", "-p"),
    "qwen": ("--approval-mode", "yolo", "-p"),
    "copilot": ("--allow-all-tools", "-p"),
    "opencode": ("run",),
}
"""Options to answer one prompt without a terminal and without asking."""


@dataclass(frozen=True)
class Workspace:
    """Where an agent runs: the home of the editor, a working directory, and its model."""

    home: Home
    cwd: Path
    model: Model


def environment(home: Home) -> dict[str, str]:
    """The variables of a shell, without those of the user who runs the tests."""
    own = home.environment()
    kept = {name: own[name] for name in own if name.startswith("XDG_") or name in ("HOME", "TMPDIR")}
    kept["PATH"] = f"{node.NODE.parent}{os.pathsep}/usr/local/bin:/usr/bin:/bin"
    kept |= {"TERM": "xterm-256color", "COLORTERM": "truecolor", "LANG": "C.UTF-8", "SHELL": "/bin/sh"}
    kept |= {"USER": "tester", "DO_NOT_TRACK": "1", "DISABLE_TELEMETRY": "1"}
    kept |= {"HTTP_PROXY": NOWHERE, "HTTPS_PROXY": NOWHERE, "NO_PROXY": "127.0.0.1,localhost"}
    return kept


def program(name: str, workspace: Workspace) -> Path:
    """A directory for PATH with the agent as a program, which accepts more flags and variables."""
    argv, own = AGENTS[name](workspace.home, workspace.cwd, workspace.model)
    directory = workspace.home.make("bin")
    kept = environment(workspace.home) | own
    kept["PATH"] = f"{node.NODE.parent}{os.pathsep}/usr/local/bin:/usr/bin:/bin"
    words = shlex.join(["env", *(f"{key}={value}" for key, value in kept.items() if value), *argv])
    script = directory / name
    script.write_text(f'#!/bin/sh\nexec {words} "$@"\n')
    script.chmod(0o700)
    return directory


async def answer(
    name: str,
    workspace: Workspace,
    prompt: str,
    made: tuple[list[str], dict[str, str]],
    timeout: int = 60_000,
) -> str:
    """The answer of an agent to one prompt, without a terminal.

    Args:
        name: of the agent.
        workspace: where it runs.
        prompt: the text.
        made: result of its function in `AGENTS`, which writes the settings.
        timeout: in ms.
    """
    argv, own = made
    own = own | {"MCP_CONNECTION_NONBLOCKING": "0"}  # Claude Code waits for our tools before its model
    env = {key: value for key, value in (environment(workspace.home) | own).items() if value}
    words = (*argv, *ALONE[name], prompt)
    process = await processes.start(*words, cwd=workspace.cwd, env=env, stdout=-1, stderr=-2)
    try:
        async with asyncio.timeout(timeout / 1000):
            output, _ = await process.communicate()
    finally:
        processes.end(process.pid)
    assert process.returncode == 0, output.decode()
    return output.decode()


@contextlib.asynccontextmanager
async def running(name: str, workspace: Workspace, **more: str) -> AsyncIterator[Terminal]:
    """An agent in a terminal; `more` are variables."""
    argv, own = AGENTS[name](workspace.home, workspace.cwd, workspace.model)
    env = environment(workspace.home) | own | more
    terminal = Terminal(workspace.home.path / f"{name}.sock", env)
    env = {key: value for key, value in env.items() if value}
    command = shlex.join(["env", "-i", *(f"{key}={value}" for key, value in env.items()), *argv])
    await terminal.tmux("new-session", "-d", *SIZE, "-c", str(workspace.cwd), "exec " + command)
    pid = int(await terminal.tmux("display-message", "-p", "#{pane_pid}"))
    try:
        yield terminal
    finally:
        await terminal.tmux("kill-server", check=False)
        await ended(pid)


async def ended(pid: int, timeout: int = 5_000) -> None:
    """Waits for the end of a process whose terminal was closed; after `timeout` ms its group is killed."""
    with contextlib.suppress(ProcessLookupError, TimeoutError):
        await eventually(lambda: os.kill(pid, 0), timeout / 1000)
    with contextlib.suppress(ProcessLookupError, TimeoutError):
        os.killpg(pid, signal.SIGKILL)
        await eventually(lambda: os.killpg(pid, 0), GROUP / 1000)


async def output_of(*words: str, cwd: Path, env: dict[str, str]) -> str:
    """The output of a command that succeeds."""
    process = await processes.start(*words, cwd=cwd, env=env, stdout=-1, stderr=-2)
    output, _ = await process.communicate()
    assert process.returncode == 0, output.decode()
    return output.decode()
