"""scripts/install-env as a user or the plugin runs it, with packages from a directory."""

from __future__ import annotations

import ast
import hashlib
import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.support import processes
from tests.support.environment import wheel

PROGRAM = Path(__file__).resolve().parents[2] / "scripts" / "install-env"
STAMP = ".lock-hash"
UV = str(Path(sys.executable).parent) + os.pathsep + os.environ["PATH"]


@pytest.fixture
def packages(tmp_path: Path, lock: Path) -> Path:
    """A user's requirements: a package that needs the locked one."""
    wheel(tmp_path / "wheels", "extra", "1.0", "mcpt-probe")
    path = tmp_path / "requirements.txt"
    path.write_text(f"--no-index\n--find-links {tmp_path / 'wheels'}\nmcpt-extra\n")
    return path


def run(directory: Path, lock: Path, *args: str, path: str | None = None) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, **({"PATH": path} if path else {})}
    command = [sys.executable, str(PROGRAM), "--dir", str(directory), "--lock", str(lock), *args]
    return processes.run(command, env=environment, timeout=100)


def installed(directory: Path, lock: Path, *args: str, path: str) -> list[str]:
    """The lines of an installation that succeeds."""
    done = run(directory, lock, *args, path=path)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()


def value_in(directory: Path, name: str = "probe") -> str:
    code = f"import mcpt_{name}; print(mcpt_{name}.VALUE)"
    return processes.run([directory / "bin" / "python", "-c", code], check=True).stdout.strip()


@pytest.mark.slow
def test_the_lock_is_installed_once(tmp_path: Path, lock: Path, path: str) -> None:
    directory = tmp_path / "data" / "venv"
    assert run(directory, lock, "--check").returncode == 1
    installed(directory, lock, path=path)
    assert value_in(directory) == "42"
    assert (directory / STAMP).read_text().strip() == hashlib.sha256(lock.read_bytes()).hexdigest()
    assert installed(directory, lock, path=path) == [f"up to date: {directory}"]
    assert run(directory, lock, "--check").returncode == 0


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_packages_of_the_user_are_added_once(tmp_path: Path, lock: Path, packages: Path, path: str) -> None:
    directory = tmp_path / "data" / "venv"
    wanted = ("--packages", str(packages))
    installed(directory, lock, path=path)
    assert run(directory, lock, *wanted, "--check").returncode == 1
    installed(directory, lock, *wanted, path=path)
    assert (value_in(directory), value_in(directory, "extra")) == ("42", "42")
    digest = hashlib.sha256(packages.read_bytes()).hexdigest()
    assert (directory / ".packages-hash").read_text().strip() == digest
    for options in (wanted, ()):
        assert installed(directory, lock, *options, path=path) == [f"up to date: {directory}"]
    packages.write_text(packages.read_text().replace("mcpt-extra", "# nothing any more"))
    assert run(directory, lock, *wanted, "--check").returncode == 1
    installed(directory, lock, *wanted, path=path)
    with pytest.raises(subprocess.CalledProcessError):
        value_in(directory, "extra")


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_packages_that_conflict_are_refused(tmp_path: Path, lock: Path, packages: Path, path: str) -> None:
    """Nothing changes; the file is named."""
    directory = tmp_path / "venv"
    installed(directory, lock, "--packages", str(packages), path=path)
    wheel(tmp_path / "wheels", "probe", "2.0")
    bad = tmp_path / "bad.txt"
    bad.write_text(packages.read_text().replace("mcpt-extra", "mcpt-probe==2.0"))
    failed = run(directory, lock, "--packages", str(bad), path=path)
    assert failed.returncode == 1
    assert failed.stderr.startswith(f"install-env: {bad}: ")
    assert (value_in(directory), value_in(directory, "extra")) == ("42", "42")
    failed = run(directory, lock, "--packages", str(tmp_path / "absent.txt"), path=path)
    assert failed.stderr == f"install-env: {tmp_path / 'absent.txt'}: No such file or directory\n"


@pytest.mark.slow
def test_a_failed_installation_keeps_the_old_environment(tmp_path: Path, lock: Path) -> None:
    directory = tmp_path / "venv"
    installed(directory, lock, path=UV)
    bad = tmp_path / "bad.lock"
    bad.write_text(lock.read_text().replace("sha256:", "sha256:0").replace("==1.0", "==2.0"))
    failed = run(directory, bad, path=UV)
    assert failed.returncode == 1
    assert failed.stderr.startswith("install-env: ")
    assert value_in(directory) == "42"
    assert run(directory, lock, "--check").returncode == 0
    assert not directory.with_name("venv.old").exists()


@pytest.mark.slow
def test_the_leftovers_of_a_killed_run_are_replaced(tmp_path: Path, lock: Path) -> None:
    directory = tmp_path / "venv"
    directory.mkdir()
    (directory / "half").touch()
    directory.with_name("venv.old").mkdir()
    installed(directory, lock, path=UV)
    assert value_in(directory) == "42"
    assert sorted(p.name for p in tmp_path.iterdir() if p.name.startswith("venv")) == ["venv", "venv.lock"]


def test_an_old_python_is_an_error_that_says_what_to_install(tmp_path: Path, lock: Path) -> None:
    old = tmp_path / "old-python"
    old.write_text("#!/bin/sh\necho '[[3, 9, 2], \"/opt/python3.9\", true]'\n")
    old.chmod(0o755)
    done = run(tmp_path / "venv", lock, "--python", str(old))
    assert done.returncode == 1
    assert "Python 3.11 or newer is needed, here: /opt/python3.9 (Python 3.9.2)" in done.stderr
    assert "Install python3.13" in done.stderr
    assert not (tmp_path / "venv").exists()


@pytest.mark.slow
def test_the_last_line_has_the_reason(tmp_path: Path, lock: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    missing = tmp_path / "missing.lock"
    missing.write_text(lock.read_text().replace("mcpt-probe", "mcpt-missing"))
    done = run(tmp_path / "venv", missing, "--python", sys.executable, path="/nowhere")
    assert done.returncode == 1
    assert re.search("failed: No matching distribution found for mcpt-missing", done.stderr), done.stderr
    for name, value in {"PIP_INDEX_URL": "http://127.0.0.1:9/simple", "PIP_RETRIES": "1"}.items():
        monkeypatch.setenv(name, value)
    for name in ("PIP_NO_INDEX", "UV_INDEX_URL", "UV_DEFAULT_INDEX", "PIP_EXTRA_INDEX_URL"):
        monkeypatch.delenv(name, raising=False)
    missing.write_text(missing.read_text().replace("--no-index\n", ""))
    done = run(tmp_path / "venv", missing, "--python", sys.executable, path="/nowhere")
    assert "the package index cannot be reached (Connection refused)" in done.stderr, done.stderr


@pytest.mark.slow
def test_no_module_of_the_project_is_run(tmp_path: Path, lock: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trap = tmp_path / "project"
    trap.mkdir()
    for name in ("json", "importlib", "site", "venv", "subprocess"):
        (trap / f"{name}.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    monkeypatch.chdir(trap)
    old = tmp_path / "python"
    old.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    old.chmod(0o755)
    run(tmp_path / "venv", tmp_path / "no.lock", "--python", str(old))
    run(tmp_path / "venv", lock, "--python", str(old), path="/nowhere")
    assert not (tmp_path / "ran").exists()


def test_the_script_has_the_syntax_of_python_3_8() -> None:
    """It must get as far as its own message."""
    ast.parse(PROGRAM.read_text(), feature_version=(3, 8))


@pytest.mark.slow
def test_an_environment_with_a_broken_package_is_rebuilt(tmp_path: Path, lock: Path, path: str) -> None:
    directory = tmp_path / "venv"
    installed(directory, lock, path=path)
    next(directory.rglob("mcpt_probe.py")).unlink()
    assert run(directory, lock, "--imports", "mcpt_probe", "--check").returncode == 1
    lines = installed(directory, lock, "--imports", "mcpt_probe", path=path)
    assert lines[0] == "what is installed does not work: ModuleNotFoundError: No module named 'mcpt_probe'"
    assert lines[1] == f"creating {directory}"
    assert value_in(directory) == "42"


@pytest.mark.slow
def test_packages_that_cannot_be_imported_are_an_error(tmp_path: Path, lock: Path) -> None:
    """No environment is left."""
    directory = tmp_path / "venv"
    done = run(directory, lock, "--imports", "no_such_module", path=UV)

    reason = "ModuleNotFoundError: No module named 'no_such_module'"
    message = f"everything is installed, but cannot be used: {reason}"
    assert (done.returncode, done.stderr) == (1, f"install-env: {message}\n")
    assert "ready" not in done.stdout
    assert not directory.exists()
    assert json.loads(directory.with_name("venv.lock").read_text()) == {"failed": message}


def test_by_default_every_dependency_of_the_project_is_imported(tmp_path: Path) -> None:
    """Except uvloop, which is optional."""
    directory, asked = tmp_path / "venv", tmp_path / "asked"
    python = directory / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(f'#!/bin/sh\necho "$3" >{asked}\necho broken >&2\nexit 1\n')
    python.chmod(0o755)
    root = PROGRAM.parents[1]
    (directory / STAMP).write_text(hashlib.sha256((root / "requirements.lock").read_bytes()).hexdigest())

    checked = processes.run([sys.executable, PROGRAM, "--dir", directory, "--check"])

    assert checked.returncode == 1
    assert checked.stdout.splitlines()[0] == "what is installed does not work: broken"
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    wanted = project["dependencies"] + project["optional-dependencies"]["bridge"]
    names = {re.split(r"[^\w-]", requirement)[0] for requirement in wanted}
    assert set(re.findall(r"^import (\w+)", asked.read_text(), re.MULTILINE)) == names - {"uvloop"}


@pytest.mark.slow
def test_the_installation_continues_without_a_reader(tmp_path: Path, lock: Path) -> None:
    """The lock has its process id."""
    directory = tmp_path / "venv"
    command = [sys.executable, str(PROGRAM), "--dir", str(directory), "--lock", str(lock)]
    with processes.begin(command, env={**os.environ, "PATH": UV}, stdout=-1, stderr=-1) as process:
        assert process.stdout.readline() == f"creating {directory}\n"
        assert json.loads(directory.with_name("venv.lock").read_text()) == {"pid": process.pid}
        process.stdout.close()
        process.stderr.close()
        assert process.wait(50) == 0

    assert value_in(directory) == "42"
    assert json.loads(directory.with_name("venv.lock").read_text()) == {}
