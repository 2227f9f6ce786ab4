"""A lock that can be installed without a network, and places to install it from."""

from __future__ import annotations

import hashlib
import os
import sys
from pathlib import Path

import pytest

from tests.support.environment import wheel


@pytest.fixture
def lock(tmp_path: Path) -> Path:
    """A lock of one tiny package, in a wheel that lies beside it."""
    wheels = tmp_path / "wheels"
    digest = hashlib.sha256(wheel(wheels, "probe", "1.0").read_bytes()).hexdigest()
    path = tmp_path / "probe.lock"
    path.write_text(f"--no-index\n--find-links {wheels}\nmcpt-probe==1.0 --hash=sha256:{digest}\n")
    return path


@pytest.fixture(params=["uv", pytest.param("pip", marks=pytest.mark.slow)])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A PATH with or without uv, and with one Python that has no other neighbours."""
    folder = tmp_path / "path"
    folder.mkdir()
    (folder / "python3").symlink_to(sys.executable)
    if request.param == "uv":
        (folder / "uv").symlink_to(Path(sys.executable).with_name("uv"))
    return f"{folder}{os.pathsep}/usr/bin{os.pathsep}/bin"
