"""Runs a conformance suite and judges every single check that it made.

The suites' own summaries hide warnings, skipped checks and scenarios that tested nothing, so only what they
wrote down (checks.json) counts here.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support import node

STABLE = node.MODULES / "conformance-stable" / "dist" / "index.js"
ALPHA = node.MODULES / "conformance-alpha" / "dist" / "index.js"
EXPECTED = Path(__file__).with_name("expected-failures.yml")
ENTRY = re.compile(r"  - (?P<name>[\w-]+(?::\S+)?) # \S.*")
RESULT_FOLDER = re.compile(r"server-(?P<scenario>.+)-\d{4}-\d\d-\d\dT[\d-]+Z")

# Checks every message against the schema, also in scenarios that test nothing.
GENERIC = "wire-schema-valid"
PASSED, NOTE = "SUCCESS", "INFO"

# What a check must have seen; the check alone would also pass on some errors.
PROOFS: dict[str, str] = {
    "tools-call-simple-text": '"This is a simple text response for testing."',
    "tools-call-error": "This tool intentionally returns an error for testing",
    "tools-call-with-progress": '"progress": 100',
    "tools-call-with-logging": '"Tool execution completed"',
    "tools-call-sampling": "LLM response: This is a test response from the client",
    "tools-call-elicitation": "action=accept",
    "sep-2322-elicitation-complete": "Hello, Alice!",
    "sep-2322-sampling-complete": "The capital of France is Paris.",
    "sep-2322-list-roots-complete": "1 roots, the first is file:///test/root",
    "sep-2322-request-state-complete": "state-ok",
    "sep-2322-multiple-inputs-complete": "Hello there!, Alice",
    "sep-2322-multi-round-r3": "Alice likes blue",
    "sep-2322-non-tool-complete": "Context: test context",
}


_listed: dict[tuple[Path, tuple[str, ...]], set[str]] = {}


@dataclass
class Scenario:
    name: str
    faults: dict[str, str] = field(default_factory=dict)
    passed: set[str] = field(default_factory=set)


@dataclass
class Report:
    scenarios: dict[str, Scenario]
    counts: Counter[str]
    output: str

    def complaints(self, expected: Iterable[str]) -> list[str]:
        """Faults that were not expected, and expected ones that did not occur."""
        entries = set(expected)
        found = []
        for scenario in self.scenarios.values():
            whole = scenario.name in entries
            if whole and not scenario.faults:
                found.append(f"stale: {scenario.name} passes")
            for check, fault in scenario.faults.items():
                if not whole and f"{scenario.name}:{check}" not in entries:
                    found.append(f"{scenario.name}:{check}: {fault}")
        for entry in entries:
            name, _, check = entry.partition(":")
            if check and name in self.scenarios and check not in self.scenarios[name].faults:
                found.append(f"stale: {entry} passes")
        return found


def judge(name: str, checks: list[dict[str, Any]]) -> Scenario:
    """The result of one scenario from its checks."""
    scenario = Scenario(name)
    for check in checks:
        status, details = check["status"], json.dumps(check.get("details"), ensure_ascii=False)
        if status == NOTE or (check["id"] == GENERIC and status == PASSED):
            continue
        if status != PASSED:
            scenario.faults[check["id"]] = f"{status}: {check.get('errorMessage') or details}"
        elif "Unknown tool: " in details:
            scenario.faults[check["id"]] = f"passed on an unknown tool: {details}"
        elif PROOFS.get(check["id"], "") not in details:
            scenario.faults[check["id"]] = f"passed on something else: {details}"
        else:
            scenario.passed.add(check["id"])
    scenario.passed -= scenario.faults.keys()
    if not scenario.passed and not scenario.faults:
        scenario.faults["nothing"] = "no check was made"
    return scenario


async def run(suite: Path, url: str, *args: str, folder: Path) -> Report:
    """Run a suite against a server.

    Args:
        suite: STABLE or ALPHA.
        url: the endpoint.
        args: options of the suite that select scenarios.
        folder: an empty directory for its output.
    """
    words = ("server", "--url", url, *args, "-o", str(folder))
    done = await node.run(suite, *words, home=folder, timeout=50_000)
    assert done.code in (0, 1), f"the suite did not run: {done.out}{done.err}"
    scenarios: dict[str, Scenario] = {}
    counts: Counter[str] = Counter()
    for result in sorted(folder.glob("*/checks.json")):
        match = RESULT_FOLDER.fullmatch(result.parent.name)
        assert match, f"no name of a scenario in {result.parent.name}"
        checks = json.loads(result.read_text())
        name = match["scenario"]
        assert name not in scenarios
        scenarios[name] = judge(name, checks)
        counts.update(check["status"] for check in checks)
    return Report(scenarios, counts, done.out)


async def required(suite: Path, *args: str, folder: Path) -> set[str]:
    """Names of the scenarios that a run has to have, as the suite lists them."""
    if (suite, args) in _listed:
        return _listed[suite, args]
    done = await node.run(suite, "list", *args, home=folder)
    assert done.code == 0, done.err
    section = done.out.partition("Server scenarios")[2].partition("Client scenarios")[0]
    tail = re.findall(r"- ([\w-]+) \[server\]", done.out)
    _listed[suite, args] = {*re.findall(r"^  - ([\w-]+)", section, re.MULTILINE), *tail}
    return _listed[suite, args]


def expected() -> list[str]:
    """The entries of expected-failures.yml; one without a reason is an error."""
    lines = [line for line in EXPECTED.read_text().splitlines() if line.strip().startswith("- ")]
    entries = []
    for line in lines:
        match = ENTRY.fullmatch(line)
        assert match, f"not `  - name # reason`: {line}"
        entries.append(match["name"])
    doubled = [name for name, count in Counter(entries).items() if count > 1]
    assert not doubled, f"listed twice: {doubled}"
    return entries
