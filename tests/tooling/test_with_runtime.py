"""What `make demo`, `make run` and `make trace` fetch and where they put it; packages come from a folder."""

from __future__ import annotations

import ast
import shutil
from pathlib import Path

import pytest

from tests.support import processes
from tests.support.nvim import ROOT

PROGRAM = """
import mcpt_probe, os, sys
print(sys.prefix, mcpt_probe.VALUE, os.environ.get("UV_NO_CACHE"), *sys.argv[1:])
"""
NVIM = "#!/bin/sh\necho NVIM v0.11.4\n"


@pytest.fixture
def checkout(tmp_path: Path, lock: Path, path: str) -> Path:
    """A fresh clone whose runtime is one tiny package. Nothing of development can be had; Neovim is there."""
    root = tmp_path / "checkout"
    (root / "scripts").mkdir(parents=True)
    for name in ("with-runtime", "install-env", "_nvims.py"):
        shutil.copy(ROOT / "scripts" / name, root / "scripts" / name)
    (root / "scripts" / "demo").write_text(PROGRAM)
    shutil.copy(lock, root / "requirements.lock")
    (root / "requirements-dev.lock").write_text("no-such-package==1.0 --hash=sha256:00\n")
    nvim = Path(path.split(":")[0]) / "nvim"
    nvim.write_text(NVIM)
    nvim.chmod(0o755)
    return root


@pytest.mark.slow
def test_fetches_the_runtime_alone(checkout: Path, path: str) -> None:
    """The program runs with what the plugin itself needs; the person's folders stay as they were.

    Something is said first, and nothing at the next run, which fetches nothing.
    """
    home = checkout.parent / "home"
    home.mkdir()
    command = ["python3", checkout / "scripts" / "with-runtime", "demo", "an argument"]
    env = {"PATH": path, "HOME": str(home), "LC_ALL": "C.UTF-8"}

    with processes.begin(command, env=env, stdout=-1, stderr=-1) as process:
        assert process.stderr
        first = process.stderr.readline()
        output, errors = process.communicate(timeout=50)
    again = processes.run(command, env=env, timeout=50)

    assert process.returncode == 0, errors
    assert first.startswith("Fetching what this needs into .deps/")
    assert output.split() == [str(checkout / ".deps" / "runtime"), "42", "None", "an", "argument"]
    assert [file.name for file in sorted((checkout / ".deps").iterdir())] == ["runtime", "runtime.lock"]
    assert list(home.rglob("*")) == []
    assert (again.stdout, again.stderr) == (output, "")


@pytest.mark.slow
def test_takes_what_development_has(checkout: Path, lock: Path, path: str) -> None:
    """Where `make setup` was run there is nothing to fetch; an outdated one is left alone."""
    development = checkout / ".deps" / "venv"
    install = ["python3", checkout / "scripts" / "install-env", "--dir", development, "--lock", lock]
    processes.run(install, env={"PATH": path, "HOME": str(lock.parent)}, check=True)
    command = ["python3", checkout / "scripts" / "with-runtime", "demo"]
    env = {"PATH": path, "HOME": str(lock.parent)}

    outdated = processes.run(command, env=env, timeout=50, check=True)
    shutil.copy(lock, checkout / "requirements-dev.lock")
    (checkout / "requirements.lock").write_text("no-such-package==1.0 --hash=sha256:00\n")
    current = processes.run(command, env=env, timeout=50, check=True)

    assert outdated.stdout.startswith(str(checkout / ".deps" / "runtime"))
    assert current.stdout.startswith(str(development))


@pytest.mark.slow
def test_says_why_it_failed(checkout: Path, path: str) -> None:
    """What cannot be fetched is named, and the program is not run."""
    (checkout / "requirements.lock").write_text("--no-index\nno-such-package==1.0 --hash=sha256:00\n")
    command = ["python3", checkout / "scripts" / "with-runtime", "demo"]
    done = processes.run(command, env={"PATH": path, "HOME": str(checkout.parent)}, timeout=50)

    assert done.returncode == 1
    assert "no-such-package" in done.stderr
    assert done.stderr.splitlines()[-1].startswith("install-env: ")
    assert done.stdout == ""


def test_can_be_read_by_an_old_python() -> None:
    """The program's syntax is that of Python 3.8, so that `install-env` can say what is missing."""
    ast.parse((ROOT / "scripts" / "with-runtime").read_text(), feature_version=(3, 8))
