"""The protocol's own conformance suites: suite → proxy → bridge → a live Neovim with fixture.lua."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conformance import suite
from tests.conformance.proxy import proxied
from tests.support import bridge
from tests.support.nvim import Spawn

FIXTURES = "\n".join(
    f"dofile([[{Path(__file__).with_name(name)}]])"
    for name in ("fixture.lua", "fixture_inputs.lua", "fixture_tasks.lua")
)
OLDER = ["--spec-version", "2025-06-18"]
# (suite, which scenarios, how to list these)
RUNS = {
    "2025-06-18": (suite.ALPHA, ["--suite", "all", *OLDER], ["--server", *OLDER]),
    "0.1.16": (suite.STABLE, ["--suite", "all"], ["--server"]),
    "2025-11-25": (suite.ALPHA, ["--requirements", "2025-11-25"], ["--requirements", "2025-11-25"]),
    "2026-07-28": (suite.ALPHA, ["--requirements", "2026-07-28"], ["--requirements", "2026-07-28"]),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    "run",
    [
        pytest.param("0.1.16", marks=pytest.mark.nightly),
        pytest.param("2025-06-18", marks=pytest.mark.nightly),
        "2025-11-25",
        "2026-07-28",
    ],
)
async def test_only_expected_checks_fail(run: str, spawn_nvim: Spawn, tmp_path: Path) -> None:
    program, args, listing = RUNS[run]
    setup = bridge.with_limits("{ tool_prefix = '' }", task_after=300)
    server = await bridge.start(spawn_nvim, setup=setup, init=FIXTURES)
    # The suite cannot send a token. The proxy cuts the connection of `test_reconnection`, as a tool cannot.
    async with proxied(server.port, server.token, cut=b'"test_reconnection"') as port:
        report = await suite.run(program, f"http://localhost:{port}/mcp", *args, folder=tmp_path)
    print(dict(report.counts))
    assert report.complaints(suite.expected()) == [], report.output
    assert report.scenarios.keys() == await suite.required(program, *listing, folder=tmp_path)


@pytest.mark.slow
async def test_expected_failures_name_existing_scenarios(tmp_path: Path) -> None:
    known: set[str] = set()
    for program, _, listing in RUNS.values():
        known |= await suite.required(program, *listing, folder=tmp_path)
    assert {entry.partition(":")[0] for entry in suite.expected()} <= known
