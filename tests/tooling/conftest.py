"""A lock that can be installed without a network."""

from __future__ import annotations

import hashlib
import os
import sys
from pathlib import Path

import pytest

from tests.support.environment import wheel


@pytest.fixture
def lock(tmp_path: Path) -> Path:
    """A lock of one tiny package, with a wheel of it."""
    wheels = tmp_path / "wheels"
    digest = hashlib.sha256(wheel(wheels, "probe", "1.0").read_bytes()).hexdigest()
    path = tmp_path / "probe.lock"
    path.write_text(f"--no-index\n--find-links {wheels}\nmcpt-probe==1.0 --hash=sha256:{digest}\n")
    return path


@pytest.fixture(params=["uv", pytest.param("pip", marks=pytest.mark.slow)])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A PATH with one Python, with or without uv."""
    directory = tmp_path / "path"
    directory.mkdir()
    (directory / "python3").symlink_to(sys.executable)
    if request.param == "uv":
        (directory / "uv").symlink_to(Path(sys.executable).with_name("uv"))
    return f"{directory}{os.pathsep}/usr/bin{os.pathsep}/bin"
