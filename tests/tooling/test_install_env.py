"""scripts/install-env as a person or the plugin runs it; the package comes from a folder."""

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
    """What a person wants beside that: a package that needs the locked one."""
    wheel(tmp_path / "wheels", "extra", "1.0", "mcpt-probe")
    path = tmp_path / "requirements.txt"
    path.write_text(f"--no-index\n--find-links {tmp_path / 'wheels'}\nmcpt-extra\n")
    return path


def run(folder: Path, lock: Path, *args: str, path: str | None = None) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, **({"PATH": path} if path else {})}
    command = [sys.executable, str(PROGRAM), "--dir", str(folder), "--lock", str(lock), *args]
    return processes.run(command, env=environment, timeout=100)


def value_in(folder: Path, name: str = "probe") -> str:
    program = [folder / "bin" / "python", "-c", f"import mcpt_{name}; print(mcpt_{name}.VALUE)"]
    return processes.run(program, check=True).stdout.strip()


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
@pytest.mark.timeout(300)
def test_packages_beside_the_lock(tmp_path: Path, lock: Path, packages: Path, path: str) -> None:
    """A person's packages are added once, again when their file has changed; without it they stay."""
    folder = tmp_path / "data" / "venv"
    wanted = ("--packages", str(packages))
    assert run(folder, lock, path=path).returncode == 0
    assert run(folder, lock, *wanted, "--check").returncode == 1
    done = run(folder, lock, *wanted, path=path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (value_in(folder), value_in(folder, "extra")) == ("42", "42")
    digest = hashlib.sha256(packages.read_bytes()).hexdigest()
    assert (folder / ".packages-hash").read_text().strip() == digest
    assert run(folder, lock, *wanted, path=path).stdout.splitlines() == [f"up to date: {folder}"]
    assert run(folder, lock, path=path).stdout.splitlines() == [f"up to date: {folder}"]
    packages.write_text(packages.read_text().replace("mcpt-extra", "# nothing any more"))
    assert run(folder, lock, *wanted, "--check").returncode == 1
    assert run(folder, lock, *wanted, path=path).returncode == 0
    with pytest.raises(subprocess.CalledProcessError):
        value_in(folder, "extra")


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_packages_that_do_not_fit(tmp_path: Path, lock: Path, packages: Path, path: str) -> None:
    """They never change what the lock says: a file that would, or is not there, is named; nothing changes."""
    folder = tmp_path / "venv"
    assert run(folder, lock, "--packages", str(packages), path=path).returncode == 0
    wheel(tmp_path / "wheels", "probe", "2.0")
    bad = tmp_path / "bad.txt"
    bad.write_text(packages.read_text().replace("mcpt-extra", "mcpt-probe==2.0"))
    failed = run(folder, lock, "--packages", str(bad), path=path)
    assert failed.returncode == 1
    assert failed.stderr.startswith(f"install-env: {bad}: ")
    assert (value_in(folder), value_in(folder, "extra")) == ("42", "42")
    failed = run(folder, lock, "--packages", str(tmp_path / "absent.txt"), path=path)
    assert failed.stderr == f"install-env: {tmp_path / 'absent.txt'}: No such file or directory\n"


@pytest.mark.slow
def test_failure_keeps_the_old_environment(tmp_path: Path, lock: Path) -> None:
    """A lock that cannot be installed fails with a reason, and what was there before still works."""
    folder = tmp_path / "venv"
    assert run(folder, lock, path=UV).returncode == 0
    bad = tmp_path / "bad.lock"
    bad.write_text(lock.read_text().replace("sha256:", "sha256:0").replace("==1.0", "==2.0"))
    failed = run(folder, bad, path=UV)
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
    done = run(folder, lock, path=UV)
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


@pytest.mark.slow
def test_tells_why_a_package_cannot_be_installed(
    tmp_path: Path, lock: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last line has the cause, of an index that cannot be reached as well."""
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


def test_runs_no_module_of_the_working_directory(
    tmp_path: Path, lock: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A project may have a file for each module that the program or an interpreter that it asks imports."""
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


def test_can_be_read_by_an_old_python() -> None:
    """The program's syntax is that of Python 3.8, so that it gets as far as its own message there."""
    ast.parse(PROGRAM.read_text(), feature_version=(3, 8))


@pytest.mark.slow
def test_damage_is_repaired(tmp_path: Path, lock: Path, path: str) -> None:
    """An environment with the right stamp whose packages cannot be imported is built anew, and it is said."""
    folder = tmp_path / "venv"
    assert run(folder, lock, path=path).returncode == 0
    next(folder.rglob("mcpt_probe.py")).unlink()

    checked = run(folder, lock, "--imports", "mcpt_probe", "--check")
    repaired = run(folder, lock, "--imports", "mcpt_probe", path=path)

    assert checked.returncode == 1
    lines = repaired.stdout.splitlines()
    assert lines[0] == "what is installed does not work: ModuleNotFoundError: No module named 'mcpt_probe'"
    assert lines[1] == f"creating {folder}"
    assert value_in(folder) == "42"


@pytest.mark.slow
def test_what_does_not_work_is_not_ready(tmp_path: Path, lock: Path) -> None:
    """When all could be installed and cannot be imported, the run fails, says so, and leaves no stamp."""
    folder = tmp_path / "venv"
    done = run(folder, lock, "--imports", "no_such_module", path=UV)

    told = (
        "everything is installed, but cannot be used: ModuleNotFoundError: No module named 'no_such_module'"
    )
    assert (done.returncode, done.stderr) == (1, f"install-env: {told}\n")
    assert "ready" not in done.stdout
    assert not folder.exists()
    assert json.loads(folder.with_name("venv.lock").read_text()) == {"failed": told}


def test_the_bridge_is_imported_by_default(tmp_path: Path) -> None:
    """With the plugin's own lock what has to work is every package that pyproject.toml asks for.

    But for uvloop, which the bridge can do without.
    """
    folder, asked = tmp_path / "venv", tmp_path / "asked"
    python = folder / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(f'#!/bin/sh\necho "$3" >{asked}\necho broken >&2\nexit 1\n')
    python.chmod(0o755)
    root = PROGRAM.parents[1]
    (folder / STAMP).write_text(hashlib.sha256((root / "requirements.lock").read_bytes()).hexdigest())

    checked = processes.run([sys.executable, PROGRAM, "--dir", folder, "--check"])

    assert checked.returncode == 1
    assert checked.stdout.splitlines()[0] == "what is installed does not work: broken"
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    wanted = project["dependencies"] + project["optional-dependencies"]["bridge"]
    names = {re.split(r"[^\w-]", requirement)[0] for requirement in wanted}
    assert set(re.findall(r"^import (\w+)", asked.read_text(), re.MULTILINE)) == names - {"uvloop"}


@pytest.mark.slow
def test_goes_on_without_a_reader(tmp_path: Path, lock: Path) -> None:
    """An editor that starts the installation and quits does not end it; the lock says who is at it."""
    folder = tmp_path / "venv"
    command = [sys.executable, str(PROGRAM), "--dir", str(folder), "--lock", str(lock)]
    with processes.begin(command, env={**os.environ, "PATH": UV}, stdout=-1, stderr=-1) as process:
        assert process.stdout
        assert process.stderr
        assert process.stdout.readline() == f"creating {folder}\n"
        assert json.loads(folder.with_name("venv.lock").read_text()) == {"pid": process.pid}
        process.stdout.close()
        process.stderr.close()
        assert process.wait(50) == 0

    assert value_in(folder) == "42"
    assert json.loads(folder.with_name("venv.lock").read_text()) == {}
