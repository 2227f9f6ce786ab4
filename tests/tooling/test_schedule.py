"""How tests are handed out when the worker that runs them dies."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.support import processes

ROOT = Path(__file__).resolve().parents[2]

CONFTEST = """
from tests.support.schedule import Schedule

def pytest_xdist_make_scheduler(config, log):
    return Schedule(config, log)
"""

DEADLY = """
import os, pytest

@pytest.mark.parametrize("n", range(5))
def test_some(n):
    if n == 2:
        os._exit(3)
"""
HARMLESS = """
import pytest

@pytest.mark.parametrize("n", range(3))
def test_other(n):
    pass
"""


@pytest.mark.slow
def test_a_dead_worker_costs_one_test(tmp_path: Path) -> None:
    """The test in which it died fails once; what it had before it is done, and the run ends."""
    files = {"conftest.py": CONFTEST, "test_a.py": DEADLY, "test_b.py": HARMLESS, "test_c.py": HARMLESS}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    ran = processes.run(
        [sys.executable, "-m", "pytest", "-q", "-n", "2", "-p", "no:cacheprovider", "-c", "/dev/null",
         "--rootdir", tmp_path, "-o", f"pythonpath={ROOT}", tmp_path],
        cwd=tmp_path, timeout=40,
    )  # fmt: skip
    assert "1 failed, 10 passed" in ran.stdout, ran.stdout + ran.stderr
    assert "test_some[2]" in ran.stdout
