"""Arguments that never reach the editor: numbers that Lua cannot hold, and too many values."""

from __future__ import annotations

import time
from typing import Any

import pytest

from mcp_tools_nvim.calls.arguments import (
    MAX_FAULTS,
    MAX_INTEGER,
    MAX_NAME_BYTES,
    MAX_NAMES,
    MAX_VALUES,
    faults_of,
    fits,
    refuse_arguments,
)


@pytest.mark.parametrize(
    ("value", "faulty"), [(MAX_INTEGER, False), (MAX_INTEGER + 1, True), (1e308, False), (float("inf"), True)]
)
def test_a_number_that_lua_cannot_hold_is_named_by_its_path(value: Any, faulty: bool) -> None:
    faults = faults_of({"a": [{"b": value}]})
    assert [fault.field for fault in faults] == (["a[0].b"] if faulty else [])


def test_the_number_of_values_is_limited() -> None:
    assert faults_of({"x": [0] * (MAX_VALUES - 1)}) == ()
    for arguments, field in (
        ({"y": 1, "x": [0] * MAX_VALUES}, "x"),
        ({"x": [{}] * MAX_VALUES}, "x"),
        ({str(number): 0 for number in range(MAX_VALUES + 1)}, "(root)"),
        ({"x": [[0] * 1000] * 30}, "x"),
    ):
        (fault,) = faults_of(arguments)
        assert fault.field == field
        assert str(MAX_VALUES) in fault.message


def test_the_number_and_length_of_names_is_limited() -> None:
    """A repeated name counts once."""
    assert faults_of({"x": [{"a": 1, "b": 2}] * (MAX_VALUES // 3 - 1)}) == ()
    assert faults_of({"x": {str(number): 0 for number in range(MAX_NAMES - 1)}}) == ()
    assert faults_of({"x": {"n" * (MAX_NAME_BYTES - 1): 0}}) == ()
    assert faults_of({"x": ["n" * 1_000_000]}) == ()
    for arguments, field in (
        ({"y": {"a": 1}, "x": {str(number): 0 for number in range(MAX_NAMES)}}, "x"),
        ({"x": [{"b": {f"k{number}": 0}} for number in range(MAX_NAMES)]}, "x"),
        ({str(number): 0 for number in range(MAX_NAMES + 1)}, "(root)"),
        ({"x": {"n" * (MAX_NAME_BYTES + 1): 0}}, "x"),
        ({"n" * MAX_NAME_BYTES + "n": 0}, "(root)"),
    ):
        (fault,) = faults_of(arguments)
        assert fault.field == field
        assert "different names" in fault.message


def test_the_number_and_paths_of_reported_faults_are_limited() -> None:
    value: Any = [MAX_INTEGER + 1] * 100
    for _ in range(60):
        value = {"n" * 1000: value}
    outcome = refuse_arguments({"x": value})
    assert len(outcome.error.errors) == MAX_FAULTS
    assert len(repr(outcome)) < 100_000


def test_checking_many_arguments_stops_at_the_limit() -> None:
    rows = [[0] * MAX_VALUES] * 200
    began = time.process_time()
    for arguments in (
        {str(number): 0 for number in range(400_000)},
        {str(number): row[:-1] for number, row in enumerate(rows)},
        {str(number): row for number, row in enumerate(rows)},
    ):
        for _ in range(10):
            assert len(faults_of(arguments)) == 1
    assert time.process_time() - began < 0.5


def test_fits_applies_the_limit_of_values_but_not_of_text() -> None:
    assert fits({"content": ["x" * 1_000_000] * 100})
    assert fits(None)
    assert not fits({"content": [0] * MAX_VALUES})
    assert not fits({"content": [[{}] * 100] * (MAX_VALUES // 100)})
