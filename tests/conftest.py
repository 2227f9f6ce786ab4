"""Fixtures and options of the whole test run.

Async style: pytest-asyncio in auto mode. `async def test_…` and async fixtures just work, each test on its
own event loop; those that share a bridge share the session's loop as well (`pytestmark` in them says so).

A test that uses `nvim_version` (directly, or through `nvim_program` or `spawn_nvim`) runs on the required
Neovim. With `@pytest.mark.every_nvim` it runs on each supported one: for what depends on the version.
`@pytest.mark.nvim("0.12")` names others.
"""

from __future__ import annotations

import contextlib
import gc
import importlib.util
import os
import shutil
import socket
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest
import pytest_asyncio

from tests.support import leaks, processes
from tests.support.nvim import Home, Nvim, new_home, start
from tests.support.shared import Keep, keeping

# Collected tests stay in memory until the end; scanning them again and again takes a quarter of the start.
gc.disable()

ROOT = Path(__file__).resolve().parents[1]


def load_nvims() -> Any:
    """Loads the script that lists the supported Neovim versions; it is not on the import path."""
    spec = importlib.util.spec_from_file_location("nvims", ROOT / "scripts" / "_nvims.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


nvims = load_nvims()

# Ordinary runs try the same examples every time; `make fuzz` looks for new ones.
hypothesis.settings.register_profile("default", deadline=None, derandomize=True, max_examples=50)
hypothesis.settings.register_profile("quick", deadline=None, derandomize=True, max_examples=10)
hypothesis.settings.register_profile("fuzz", deadline=None, max_examples=10_000)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--quick", action="store_true", help="one Neovim, and no test that is marked slow")
    parser.addoption("--every-nvim", action="store_true", help="every test on each supported Neovim")
    parser.addoption("--update-captures", action="store_true", help="store the current screens as expected")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--quick"):
        hypothesis.settings.load_profile("quick")
    if not nvims.RECORD.exists():
        raise pytest.UsageError("run `make setup` first: no Neovim is installed for the tests")
    lacking = nvims.required() & nvims.read()["missing"].keys()
    if lacking:
        raise pytest.UsageError(f"required, but not to be had: Neovim {', '.join(sorted(lacking))}")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    from tests.support.schedule import Schedule

    return Schedule(config, log)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.getoption("--quick"):
        return
    slow = [item for item in items if item.get_closest_marker("slow")]
    config.hook.pytest_deselected(items=slow)
    items[:] = [item for item in items if item not in set(slow)]


def pytest_collection_finish(session: pytest.Session) -> None:
    gc.collect()
    gc.freeze()
    gc.enable()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "nvim_version" not in metafunc.fixturenames:
        return
    config, named = metafunc.config, metafunc.definition.get_closest_marker("nvim")
    every = config.getoption("--every-nvim") or metafunc.definition.get_closest_marker("every_nvim")
    minors = named.args if named else tuple(nvims.SOURCES) if every else (nvims.REQUIRED,)
    if config.getoption("--quick"):
        minors = [minor for minor in minors if minor == nvims.REQUIRED]
    missing = nvims.read()["missing"]
    metafunc.parametrize(
        "nvim_version",
        [
            pytest.param(
                minor,
                id=f"nvim-{minor}",
                marks=[pytest.mark.skip(f"Neovim {minor} cannot be had")] if minor in missing else [],
            )
            for minor in minors
        ],
        scope="module",
    )


def pytest_unconfigure(config: pytest.Config) -> None:
    """Prints which Neovim versions were not tested."""
    if config.getoption("--quick") or not nvims.RECORD.exists() or config.getoption("--collect-only"):
        return
    for minor, reason in nvims.read()["missing"].items():
        print(f"!!! NOT TESTED ON NEOVIM {minor}: {reason}", file=sys.stderr)


@pytest.fixture
def nvim_program(nvim_version: str) -> Path:
    """The Neovim executable of this test run."""
    return Path(nvims.read()["found"][nvim_version])


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def keep() -> AsyncIterator[Keep]:
    """Starts a shared bridge: `await keep(version, setup="{…}", init="…")`.

    For fixtures with a wider scope than a test only; otherwise the bridge counts as a leaked process.
    """
    async with keeping(nvims.read()["found"]) as kept:
        yield kept


@pytest.fixture
def home() -> Iterator[Home]:
    """Empty directories for one editor."""
    with new_home() as directories:
        yield directories


@pytest.fixture
async def spawn_nvim(nvim_program: Path, home: Home) -> AsyncIterator[Callable[..., Awaitable[Nvim]]]:
    """Start real Neovims: `nvim = await spawn_nvim(init_lua="…")`; see tests/support/nvim.py for the options.

    They share the test's `home`, are quit at its end, and must leave no socket or instance file.
    """
    started: list[Nvim] = []

    async def spawn(**options: Any) -> Nvim:
        nvim = await start(nvim_program, options.pop("home", home), **options)
        started.append(nvim)
        return nvim

    yield spawn
    async with contextlib.AsyncExitStack() as stack:
        for nvim in started:
            stack.push_async_callback(nvim.stop)


@pytest.fixture
def free_port() -> Callable[[], int]:
    """Returns free ports of 127.0.0.1, each a different one."""
    given: set[int] = set()

    def find() -> int:
        while True:
            with socket.socket() as probe:
                probe.bind(("127.0.0.1", 0))
                port: int = probe.getsockname()[1]
            if port not in given:
                given.add(port)
                return port

    return find


@pytest.fixture(autouse=True)
def no_process_left() -> Iterator[None]:
    """Fail a test that leaves a process behind; 3 s are allowed for an orderly end."""
    before = set(leaks.descendants())
    yield
    left = leaks.left_over(before)
    for pid in left:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, 9)
    assert not left, f"processes left behind: {left}"


@pytest.fixture(scope="session", autouse=True)
def marked_processes() -> None:
    """Marks the processes of this run, and keeps them from inheriting ignored signals."""
    processes.ignore_alone()
    leaks.mark()


@pytest.fixture(scope="session", autouse=True)
def own_places() -> Iterator[None]:
    """Points this process at empty directories of its own, so that no test touches the user's files."""
    names = (
        "XDG_CONFIG_HOME",
        "XDG_DATA_HOME",
        "XDG_STATE_HOME",
        "XDG_CACHE_HOME",
        "XDG_RUNTIME_DIR",
        "TMPDIR",
    )
    kept = {name: os.environ.get(name) for name in names}
    directory = tempfile.mkdtemp(prefix="mcpt-")
    try:
        for name in names:
            place = Path(directory) / name.lower()
            place.mkdir(mode=0o700)
            os.environ[name] = str(place)
        yield
    finally:
        for name, value in kept.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        shutil.rmtree(directory)
