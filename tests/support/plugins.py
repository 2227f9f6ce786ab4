"""Other Neovim plugins for nightly tests: `python -m tests.support.plugins` fetches them.

They are in `.deps/plugins/NAME` at the pinned commits. An existing checkout is not changed.
"""

from __future__ import annotations

import shutil
import subprocess

import pytest

from . import processes
from .nvim import ROOT

DIRECTORY = ROOT / ".deps" / "plugins"
TIMEOUT = 120  # seconds for one plugin
PINNED = {
    "avante.nvim": ("yetone", "a9334315e05ac750985c7d0b391e360e36e0278e"),
    "claudecode.nvim": ("coder", "2390c6e45c4789072c293ac69de051d169668b29"),
    "codecompanion.nvim": ("olimorris", "f1afd02537c68b3dd6e0d41d4adda5ef538e0473"),
    "lazy.nvim": ("folke", "306a05526ada86a7b30af95c5cc81ffba93fef97"),
    "mcphub.nvim": ("ravitemer", "7cd5db330f41b7bae02b2d6202218a061c3ebc1f"),
    "mini.nvim": ("nvim-mini", "c5cdbadeb423ff724e27a42ab2d1c504d1d6fc5a"),
    "neo-tree.nvim": ("nvim-neo-tree", "5e076e5419b95b13c29383e1de29270a50df2d40"),
    "neotest": ("nvim-neotest", "1c529a1ef9c82e8131e872368415cecc2bb86ea2"),
    "nui.nvim": ("MunifTanjim", "de740991c12411b663994b2860f1a4fd0937c130"),
    "nvim-dap": ("mfussenegger", "9e848e09a697ee95302a3ef2dd43fd6eb709e570"),
    "nvim-nio": ("nvim-neotest", "21f5324bfac14e22ba26553caf69ec76ae8a7662"),
    "nvim-tree.lua": ("nvim-tree", "4213bd6eabac38b16dd6615002b6243b23cf3bf6"),
    "oil.nvim": ("stevearc", "b91ee5a77a6a9605d9c1aaf4fda74b66082c8297"),
    "opencode.nvim": ("nickjvandyke", "2ddeebd3212596b51bf078e6ff52862655b80419"),
    "plenary.nvim": ("nvim-lua", "b9fd5226c2f76c951fc8ed5923d85e4de065e509"),
    "sidekick.nvim": ("folke", "8ad0ede3ff9065878a853e4b037ba6ac88231fb0"),
    "snacks.nvim": ("folke", "ad9ede6a9cddf16cedbd31b8932d6dcdee9b716e"),
    "telescope.nvim": ("nvim-telescope", "7d324792b7943e4aa16ad007212e6acc6f9fe335"),
}
"""Owner on GitHub and commit."""


def path(*names: str) -> str:
    """The checkouts, joined by colons; skips the test if one is missing."""
    for name in names:
        if not (DIRECTORY / name).is_dir():
            reason = DIRECTORY / f"{name}.reason"
            why = reason.read_text() if reason.exists() else "run `make test-nightly`, which fetches it"
            pytest.skip(f"no checkout of {name}: {why}")
    return ":".join(str(DIRECTORY / name) for name in names)


def fetch(name: str) -> str | None:
    """Fetches a plugin unless it exists; returns the reason of a failure."""
    target, (owner, commit) = DIRECTORY / name, PINNED[name]
    if target.is_dir():
        return None
    partial, address = DIRECTORY / f"{name}.partial", f"https://github.com/{owner}/{name}"
    shutil.rmtree(partial, ignore_errors=True)
    try:
        processes.run(["git", "init", "--quiet", partial], check=True)
        for command in (f"fetch --quiet --depth=1 {address} {commit}", "checkout --quiet FETCH_HEAD"):
            processes.run(["git", "-C", partial, *command.split()], timeout=TIMEOUT, check=True)
    except subprocess.CalledProcessError as error:
        return str(error.stderr).strip() or str(error)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    partial.rename(target)
    return None


def main() -> None:
    """Fetches all plugins, and prints which are missing and why."""
    DIRECTORY.mkdir(parents=True, exist_ok=True)
    for name in PINNED:
        reason = DIRECTORY / f"{name}.reason"
        reason.unlink(missing_ok=True)
        if why := fetch(name):
            reason.write_text(why)
            print(f"{name} cannot be fetched, its tests are skipped: {why}")


if __name__ == "__main__":
    main()
