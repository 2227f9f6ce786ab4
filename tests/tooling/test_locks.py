"""The lock files: complete, consistent, and without URLs."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PYTHON_LOCKS = ["requirements.lock", "requirements-dev.lock", "scripts/nvim-pypi.lock", "bench/serena.lock"]
DEBIAN_LOCKS = ["scripts/nvim-sid.lock", "scripts/luacheck.lock", "bench/wrk.lock"]
NPM_LOCKS = [
    f"{directory}/package-lock.json" for directory in ("tests/npm", "tests/clients/npm", "bench/npm")
]


def pins(name: str) -> dict[str, str]:
    """Package name to version in a Python lock."""
    return dict(re.findall(r"^([\w.-]+)==([^\s;]+)", (ROOT / name).read_text(), re.MULTILINE))


@pytest.mark.parametrize("name", [*PYTHON_LOCKS, *DEBIAN_LOCKS, *NPM_LOCKS])
def test_a_lock_contains_no_url(name: str) -> None:
    text = (ROOT / name).read_text()
    assert "://" not in text
    assert '"resolved"' not in text


@pytest.mark.parametrize("name", PYTHON_LOCKS)
def test_every_python_package_has_hashes(name: str) -> None:
    text = (ROOT / name).read_text()
    stanzas = re.findall(r"^[\w.-]+==.*(?:\n    --hash=sha256:[0-9a-f]{64}.*)+", text, re.MULTILINE)
    assert len(stanzas) == len(pins(name)) > 0


def test_the_development_lock_contains_the_versions_of_the_runtime_lock() -> None:
    runtime, development = pins("requirements.lock"), pins("requirements-dev.lock")
    assert runtime.items() <= development.items()
    assert {"mcp", "aiohttp", "msgpack"} <= runtime.keys()


@pytest.mark.parametrize("name", NPM_LOCKS)
def test_every_npm_package_has_an_integrity_hash(name: str) -> None:
    packages = json.loads((ROOT / name).read_text())["packages"]
    assert [path for path, package in packages.items() if path and "integrity" not in package] == []
    assert len(packages) > 1


@pytest.mark.parametrize("name", DEBIAN_LOCKS)
def test_each_line_of_a_debian_lock_has_hash_file_and_path(name: str) -> None:
    lines = [line for line in (ROOT / name).read_text().splitlines() if not line.startswith("#")]
    assert lines
    assert all(re.fullmatch(r"[0-9a-f]{64} [^\s/]+\.deb pool/\S+\.deb", line) for line in lines)
