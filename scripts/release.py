"""Prepares a release: writes its version into every file and turns the unreleased changes into its section.

    .deps/venv/bin/python scripts/release.py VERSION [--owner ACCOUNT]

As a module: the facts of a release, its files for the registries, and the licenses of installed packages. The
version is in pyproject.toml and in the files of VERSIONED, since Python and Lua do not read the former.
"""

from __future__ import annotations

import argparse
import datetime
import json
import re
import subprocess
import sys
import tomllib
from email import message_from_string
from importlib import metadata
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

PLACEHOLDER = "OWNER"
SCHEMA = "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json"
ROCK = "mcp-tools.nvim"
VERSION = re.compile(r"\d+\.\d+\.\d+(?:(?:a|b|rc)\d+)?")
VERSIONED = {
    "pyproject.toml": re.compile(r'(?m)^(version = ")([^"]+)(")$'),
    "bridge/mcp_tools_nvim/__init__.py": re.compile(r'(?m)^(__version__ = ")([^"]+)(")$'),
    "lua/mcp-tools/instances/project.lua": re.compile(r"(?m)^(M\.VERSION = ')([^']+)(')$"),
}
UNRELEASED = "## [Unreleased]"
_ACCOUNT = re.compile(r"[A-Za-z0-9](?:-?[A-Za-z0-9]){0,38}")
_SECTION = re.compile(r"(?m)^## (?:\[)?(\d[^\s\]]*)")
ROOT = Path(__file__).resolve().parent.parent
# Only in the checkout.
NOT_IN_A_ROCK = ("bench", "tests")

# SPDX identifiers of the free text in older metadata.
SPDX = {
    "Apache": "Apache-2.0",
    "Apache 2.0": "Apache-2.0",
    "MIT License": "MIT",
}
# Packages of other systems, which are not installed here.
ELSEWHERE = {"pywin32": ("PSF-2.0", "https://github.com/mhammond/pywin32")}
# Not a system with Neovim.
NOWHERE = "sys_platform == 'emscripten'"
_PIN = re.compile(r"^([\w.-]+)==([^\s;\\]+)([^\\\n]*)", re.MULTILINE)


class Facts(NamedTuple):
    """The project in pyproject.toml.

    Attributes:
        owner: of the repository, as in its URL.
    """

    name: str
    version: str
    description: str
    licence: str
    repository: str
    owner: str

    @property
    def server_name(self) -> str:
        """The name in the MCP registry, with the GitHub account as namespace."""
        return f"io.github.{self.owner}/{self.name}"

    @property
    def is_placeholder(self) -> bool:
        """Whether the URL is still a placeholder."""
        return self.owner == PLACEHOLDER


def facts(root: Path) -> Facts:
    """Reads pyproject.toml."""
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    repository = project["urls"]["Repository"]
    return Facts(
        project["name"],
        project["version"],
        project["description"],
        project["license"],
        repository,
        PurePosixPath(repository).parts[-2],
    )


def versions(root: Path) -> dict[str, str]:
    """The version in every file; that of the change log is in its newest section."""
    found = {}
    for name, pattern in VERSIONED.items():
        match = pattern.search((root / name).read_text())
        found[name] = match[2] if match else "none"
    sections = _SECTION.findall((root / "CHANGELOG.md").read_text())
    found["CHANGELOG.md"] = sections[0] if sections else "none"
    return found


def tracked(root: Path) -> list[str]:
    """The files of the last commit."""
    done = subprocess.run(
        ["git", "ls-tree", "-r", "-z", "--name-only", "HEAD"],
        cwd=root,
        capture_output=True,
        check=True,
        text=True,
    )
    return sorted(name for name in done.stdout.split("\0") if name)


# For the registries --------------------------------------------------------------------------------------


def server_json(known: Facts) -> dict[str, Any]:
    """The entry of the MCP registry, with which a client runs `uvx mcp-tools-nvim stdio`."""
    return {
        "$schema": SCHEMA,
        "name": known.server_name,
        "title": ROCK,
        "description": known.description,
        "version": known.version,
        "repository": {"url": known.repository, "source": "github"},
        "packages": [
            {
                "registryType": "pypi",
                "registryBaseUrl": "https://pypi.org",
                "identifier": known.name,
                "version": known.version,
                "runtimeHint": "uvx",
                "transport": {"type": "stdio"},
                "packageArguments": [{"type": "positional", "value": "stdio"}],
            }
        ],
    }


def rock_parts(files: list[str]) -> tuple[dict[str, str], dict[str, str], list[str]]:
    """The layout of the rock.

    Returns:
        Lua module → file, dotted path of other files → file, names of directories.
    """
    modules, others = {}, {}
    folders = set()
    for name in files:
        path = PurePosixPath(name)
        if path.parts[0] == "lua":
            dotted = ".".join(path.with_suffix("").parts[1:])
            if path.suffix != ".lua":
                others[dotted] = name
            else:
                modules[dotted.removesuffix(".init")] = name
        elif len(path.parts) > 1 and path.parts[0] not in NOT_IN_A_ROCK and not name.startswith("."):
            folders.add(path.parts[0])
    return modules, others, sorted(folders)


def rockspec(known: Facts, files: list[str]) -> str:
    """The rockspec of this version, for `luarocks upload`."""
    modules, others, folders = rock_parts(files)

    def table(entries: dict[str, str], indent: str) -> str:
        return "".join(f"{indent}[{_lua(key)}] = {_lua(value)},\n" for key, value in sorted(entries.items()))

    return f"""\
rockspec_format = '3.0'
package = {_lua(ROCK)}
version = {_lua(known.version + "-1")}
source = {{
  url = {_lua(f"git+{known.repository}")},
  tag = {_lua(f"v{known.version}")},
}}
description = {{
  summary = {_lua(known.description)},
  homepage = {_lua(known.repository)},
  license = {_lua(known.licence)},
  labels = {{ 'neovim', 'mcp' }},
}}
dependencies = {{ 'lua >= 5.1, < 5.4' }}
build = {{
  type = 'builtin',
  modules = {{
{table(modules, "    ")}  }},
  install = {{
    lua = {{
{table(others, "      ")}    }},
    conf = {{ 'requirements.lock' }},
  }},
  copy_directories = {{ {", ".join(map(_lua, folders))} }},
}}
"""


def _lua(text: str) -> str:
    return "'" + json.dumps(text, ensure_ascii=False)[1:-1].replace("'", "\\'").replace('\\"', '"') + "'"


# A new version -------------------------------------------------------------------------------------------


def release_section(text: str, version: str, day: str) -> str:
    """The change log with the unreleased changes as a new section, and an empty section above it.

    Raises:
        ValueError: there are no unreleased changes, or the version exists.
    """
    head, found, rest = text.partition(f"{UNRELEASED}\n")
    if not found:
        raise ValueError(f"CHANGELOG.md has no section `{UNRELEASED}`")
    if version in _SECTION.findall(rest):
        raise ValueError(f"CHANGELOG.md has a section {version} already")
    older = _SECTION.search(rest)
    if not rest[: older.start() if older else len(rest)].strip():
        raise ValueError("CHANGELOG.md says of nothing that it is unreleased")
    return f"{head}{UNRELEASED}\n\n## [{version}] - {day}\n{rest}"


def with_owner(texts: dict[Path, str], owner: str) -> dict[Path, str]:
    """The texts with the GitHub account instead of its placeholder.

    Raises:
        ValueError: not a valid account name.
    """
    if not _ACCOUNT.fullmatch(owner):
        raise ValueError(f"{owner} is no account on GitHub: letters, digits and single dashes")
    note = f" -- replace {PLACEHOLDER} with the account that hosts this repository"
    mark = re.compile(rf"\b{PLACEHOLDER}\b(?=/)")
    return {path: mark.sub(owner, text.replace(note, "")) for path, text in texts.items()}


def with_version(root: Path, version: str) -> dict[Path, str]:
    """The texts of the versioned files with another version."""
    texts = {}
    for name, pattern in VERSIONED.items():
        path = root / name
        texts[path], count = pattern.subn(rf"\g<1>{version}\g<3>", path.read_text())
        if count != 1:
            raise ValueError(f"{name} has the version in {count} places, one is wanted")
    return texts


def licence_names(lock: Path) -> list[str]:
    """The packages that a lock installs on any system."""
    return [name for name, _, marker in _PIN.findall(lock.read_text()) if NOWHERE not in marker]


def licence_of(name: str) -> tuple[str, str]:
    """License and URL of a package.

    Raises:
        ValueError: unknown license.
    """
    if name in ELSEWHERE:
        return ELSEWHERE[name]
    about = message_from_string(metadata.distribution(name).read_text("METADATA") or "")
    free = (about.get("License") or "").strip()
    licence = about.get("License-Expression") or SPDX.get(free, free)
    if not licence or "\n" in licence:
        raise ValueError(f"{name} does not say its licence in a line; say it in scripts/release.py")
    links = [each.partition(", ")[::2] for each in about.get_all("Project-URL", [])]
    chosen = [url for label, url in links if re.search("source|repo|github|code|home", label, re.IGNORECASE)]
    return licence, about.get("Home-page") or (chosen or [url for _, url in links] or [""])[0]


def licence_table(lock: Path) -> list[str]:
    """A row for each package, sorted by name."""
    rows = ["| Package | Licence | |", "| --- | --- | --- |"]
    for name in sorted(licence_names(lock)):
        licence, address = licence_of(name)
        rows.append(f"| {name} | {licence} | {f'<{address}>' if address else ''} |")
    return rows


def main() -> int:
    """Writes the version into every file."""
    parser = argparse.ArgumentParser(prog="release", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("version", help="such as 0.2.0 or 0.2.0rc1")
    parser.add_argument("--root", type=Path, default=ROOT, help="the checkout (default: this one)")
    parser.add_argument(
        "--owner",
        metavar="ACCOUNT",
        help=f"on GitHub, in the place of {PLACEHOLDER} (which is taken, too: as it was)",
    )
    options = parser.parse_args()
    if not VERSION.fullmatch(options.version):
        parser.error(f"{options.version} is not a valid version, such as 0.2.0 or 0.2.0rc1")
    readme = options.root / "README.md"
    log = options.root / "CHANGELOG.md"
    day = datetime.datetime.now(datetime.UTC).date().isoformat()
    try:
        texts = with_version(options.root, options.version)
        if facts(options.root).is_placeholder:
            if options.owner is None:
                raise ValueError(
                    f"{PLACEHOLDER} in pyproject.toml and README.md is a placeholder for a GitHub account,"
                    " under which the registries name this: say which one by --owner"
                )
            texts |= {readme: readme.read_text()}
            texts = with_owner(texts, options.owner)
        texts[log] = release_section(log.read_text(), options.version, day)
    except ValueError as error:
        parser.error(str(error))
    for path, text in texts.items():
        path.write_text(text)
        print(path.relative_to(options.root))
    print(f"Next: read the section, `make dist`, commit, and tag it v{options.version}.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
