"""Arguments that never reach the editor: numbers that Lua cannot hold, and too many values."""

from __future__ import annotations

from typing import Any

import pytest

from bridge.calls.arguments import MAX_FAULTS, MAX_INTEGER, MAX_VALUES, faults_of


@pytest.mark.parametrize(
    ("value", "faulty"), [(MAX_INTEGER, False), (MAX_INTEGER + 1, True), (1e308, False), (float("inf"), True)]
)
def test_numbers(value: Any, faulty: bool) -> None:
    """A number that would change on its way is named by its path."""
    faults = faults_of({"a": [{"b": value}]})
    assert [fault.field for fault in faults] == (["a[0].b"] if faulty else [])


def test_so_many_values_and_no_more() -> None:
    """One value more than the limit is refused as a whole, wherever they are."""
    assert faults_of({"x": [0] * (MAX_VALUES - 1)}) == ()
    for arguments in (
        {"x": [0] * MAX_VALUES},
        {"x": [{}] * MAX_VALUES},
        {str(number): 0 for number in range(MAX_VALUES + 1)},
        {"x": [[0] * 1000] * 30},
    ):
        (fault,) = faults_of(arguments)
        assert fault.field == "(root)"
        assert str(MAX_VALUES) in fault.message


def test_faults_that_are_told_are_bounded() -> None:
    """Thousands of bad numbers make no answer of megabytes."""
    assert len(faults_of({"x": [float("inf")] * 5000})) == MAX_FAULTS
