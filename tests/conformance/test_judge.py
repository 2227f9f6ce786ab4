"""The judgement is stricter than the suites' own summaries."""

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
def test_anything_but_successful_checks_is_a_fault(checks: list[dict[str, Any]]) -> None:
    assert complaints("scenario", checks)
    assert complaints("scenario", checks, "scenario") == []


def test_notes_and_the_schema_check_do_no_harm() -> None:
    assert complaints("scenario", [check("SUCCESS"), check("INFO", "note"), check("SUCCESS", GENERIC)]) == []


def test_a_success_needs_its_proof() -> None:
    name = "tools-call-simple-text"
    wrong = {"result": {"isError": True, "content": [{"type": "text", "text": "Error: no"}]}}
    right = {"result": {"content": [{"type": "text", "text": "This is a simple text response for testing."}]}}
    assert complaints(name, [check("SUCCESS", name, details=wrong)])
    assert complaints(name, [check("SUCCESS", name, details=right)]) == []


def test_an_entry_for_a_check_excuses_only_that_check() -> None:
    checks = [check("FAILURE", "a"), check("FAILURE", "b"), check("SUCCESS", "c")]
    assert len(complaints("scenario", checks, "scenario:a")) == 1
    assert complaints("scenario", checks, "scenario:a", "scenario:b") == []


@pytest.mark.parametrize("entry", ["scenario", "scenario:check"])
def test_an_entry_that_passes_is_stale(entry: str) -> None:
    assert complaints("scenario", [check("SUCCESS")], entry)
    assert complaints("other", [check("SUCCESS")], entry) == []
