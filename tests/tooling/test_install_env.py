"""scripts/install-env as a person or the plugin runs it; the package comes from a folder."""

from __future__ import annotations

import ast
import hashlib
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.support import processes

PROGRAM = Path(__file__).resolve().parents[2] / "scripts" / "install-env"
STAMP = ".lock-hash"


@pytest.fixture
def lock(tmp_path: Path) -> Path:
    """A lock of one tiny package, in a wheel that lies beside it."""
    info = "mcpt_probe-1.0.dist-info"
    files = {
        "mcpt_probe.py": "VALUE = 42\n",
        f"{info}/METADATA": "Metadata-Version: 2.1\nName: mcpt-probe\nVersion: 1.0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    wheel = wheels / "mcpt_probe-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
        record = "".join(f"{name},,\n" for name in [*files, f"{info}/RECORD"])
        archive.writestr(f"{info}/RECORD", record)
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    path = tmp_path / "probe.lock"
    path.write_text(f"--no-index\n--find-links {wheels}\nmcpt-probe==1.0 --hash=sha256:{digest}\n")
    return path


def run(folder: Path, lock: Path, *args: str, path: str | None = None) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, **({"PATH": path} if path else {})}
    command = [sys.executable, str(PROGRAM), "--dir", str(folder), "--lock", str(lock), *args]
    return processes.run(command, env=environment, timeout=50)


def value_in(folder: Path) -> str:
    program = [folder / "bin" / "python", "-c", "import mcpt_probe; print(mcpt_probe.VALUE)"]
    return processes.run(program, check=True).stdout.strip()


@pytest.fixture(params=["uv", pytest.param("pip", marks=pytest.mark.slow)])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A PATH with or without uv, and with one Python that has no other neighbours."""
    folder = tmp_path / "path"
    folder.mkdir()
    (folder / "python3").symlink_to(sys.executable)
    if request.param == "uv":
        (folder / "uv").symlink_to(Path(sys.executable).with_name("uv"))
    return f"{folder}{os.pathsep}/usr/bin{os.pathsep}/bin"


@pytest.mark.slow
def test_installs_once(tmp_path: Path, lock: Path, path: str) -> None:
    """The environment holds the locked package and the lock's hash; a second run does nothing."""
    folder = tmp_path / "data" / "venv"
    assert run(folder, lock, "--check").returncode == 1
    first = run(folder, lock, path=path)
    assert first.returncode == 0, first.stdout + first.stderr
    assert value_in(folder) == "42"
    assert (folder / STAMP).read_text().strip() == hashlib.sha256(lock.read_bytes()).hexdigest()
    assert run(folder, lock, path=path).stdout.splitlines() == [f"up to date: {folder}"]
    assert run(folder, lock, "--check").returncode == 0


@pytest.mark.slow
def test_failure_keeps_the_old_environment(tmp_path: Path, lock: Path) -> None:
    """A lock that cannot be installed fails with a reason, and what was there before still works."""
    folder = tmp_path / "venv"
    uv = str(Path(sys.executable).parent) + os.pathsep + os.environ["PATH"]
    assert run(folder, lock, path=uv).returncode == 0
    bad = tmp_path / "bad.lock"
    bad.write_text(lock.read_text().replace("sha256:", "sha256:0").replace("==1.0", "==2.0"))
    failed = run(folder, bad, path=uv)
    assert failed.returncode == 1
    assert failed.stderr.startswith("install-env: ")
    assert value_in(folder) == "42"
    assert run(folder, lock, "--check").returncode == 0
    assert not folder.with_name("venv.old").exists()


@pytest.mark.slow
def test_killed_run_is_repaired(tmp_path: Path, lock: Path) -> None:
    """What a killed run left (half an environment, the old one aside) does not stop the next run."""
    folder = tmp_path / "venv"
    folder.mkdir()
    (folder / "half").touch()
    folder.with_name("venv.old").mkdir()
    uv = str(Path(sys.executable).parent) + os.pathsep + os.environ["PATH"]
    done = run(folder, lock, path=uv)
    assert done.returncode == 0, done.stdout + done.stderr
    assert value_in(folder) == "42"
    assert sorted(p.name for p in tmp_path.iterdir() if p.name.startswith("venv")) == ["venv", "venv.lock"]


def test_names_what_is_missing(tmp_path: Path, lock: Path) -> None:
    """Without a new enough Python it ends with exit code 1 and says what to install."""
    old = tmp_path / "old-python"
    old.write_text("#!/bin/sh\necho '[[3, 9, 2], \"/opt/python3.9\", true]'\n")
    old.chmod(0o755)
    done = run(tmp_path / "venv", lock, "--python", str(old))
    assert done.returncode == 1
    assert "Python 3.11 or newer is needed, here: /opt/python3.9 (Python 3.9.2)" in done.stderr
    assert "Install python3.13" in done.stderr
    assert not (tmp_path / "venv").exists()


def test_can_be_read_by_an_old_python() -> None:
    """The program's syntax is that of Python 3.8, so that it gets as far as its own message there."""
    ast.parse(PROGRAM.read_text(), feature_version=(3, 8))
