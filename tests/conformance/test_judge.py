"""The judgement itself: what a suite's own summary would let pass must not pass here."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from tests.conformance.suite import GENERIC, Report, judge


def check(status: str, name: str = "check", **more: Any) -> dict[str, Any]:
    return {"id": name, "status": status, **more}


def complaints(scenario: str, checks: list[dict[str, Any]], *expected: str) -> list[str]:
    return Report({scenario: judge(scenario, checks)}, Counter(), "").complaints(expected)


@pytest.mark.parametrize(
    "checks",
    [
        [],
        [check("INFO")],
        [check("SUCCESS", GENERIC)],
        [check("SUCCESS"), check("FAILURE", "other")],
        [check("SUCCESS"), check("SKIPPED", "other")],
        [check("SUCCESS"), check("WARNING", "other")],
        [check("SUCCESS"), check("FAILURE", GENERIC)],
        [check("SUCCESS"), check("FAILURE")],
        [check("SUCCESS", details={"error": {"message": "Unknown tool: test_x"}})],
    ],
    ids=["nothing", "notes", "form", "failed", "skipped", "warned", "schema", "same name", "no such tool"],
)
def test_what_does_not_pass(checks: list[dict[str, Any]]) -> None:
    """Anything but a check of the scenario's own that succeeded, and nothing else, is a fault."""
    assert complaints("scenario", checks)
    assert complaints("scenario", checks, "scenario") == []


def test_what_passes() -> None:
    """Notes and the check of the form do no harm."""
    assert complaints("scenario", [check("SUCCESS"), check("INFO", "note"), check("SUCCESS", GENERIC)]) == []


def test_a_success_needs_its_proof() -> None:
    """An error result with text is no simple text, although the suite takes it for one."""
    name = "tools-call-simple-text"
    wrong = {"result": {"isError": True, "content": [{"type": "text", "text": "Error: no"}]}}
    right = {"result": {"content": [{"type": "text", "text": "This is a simple text response for testing."}]}}
    assert complaints(name, [check("SUCCESS", name, details=wrong)])
    assert complaints(name, [check("SUCCESS", name, details=right)]) == []


def test_expectations_of_single_checks() -> None:
    """An entry for one check excuses that one alone."""
    checks = [check("FAILURE", "a"), check("FAILURE", "b"), check("SUCCESS", "c")]
    assert len(complaints("scenario", checks, "scenario:a")) == 1
    assert complaints("scenario", checks, "scenario:a", "scenario:b") == []


@pytest.mark.parametrize("entry", ["scenario", "scenario:check"])
def test_stale_expectations(entry: str) -> None:
    """An entry whose scenario or check passes has to go; one of another suite's scenario is no concern."""
    assert complaints("scenario", [check("SUCCESS")], entry)
    assert complaints("other", [check("SUCCESS")], entry) == []
