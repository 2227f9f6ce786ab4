"""The house of the Python side: where everything lives is a list that can be read."""

from __future__ import annotations

import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_every_package_is_shipped() -> None:
    """The packages that pyproject.toml lists are those that there are."""
    listed = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]
    there = {".".join(path.parent.relative_to(ROOT).parts) for path in (ROOT / "bridge").rglob("*.py")}
    assert listed == sorted(there)
