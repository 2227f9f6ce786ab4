"""Releases and lock files: one version everywhere, valid registry files, and packages that work."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.support import processes
from tests.support.nvim import ROOT

sys.path.insert(0, str(ROOT / "scripts"))
import _nvims
import dist
import release

FACTS = release.facts(ROOT)
# What the registry's schema of 2025-12-11 and its other rules require of the fields in our entry.
TITLE = {"type": "string", "minLength": 1, "maxLength": 100}
VERSION = {"type": "string", "maxLength": 255, "pattern": r"^\d+\.\d+\.\d+"}


def entry(required: str, **fields: dict[str, Any]) -> dict[str, Any]:
    """An object with these fields only."""
    return {"additionalProperties": False, "required": required.split(), "properties": fields}


ARGUMENT = {"type": {"const": "positional"}, "value": {"type": "string"}}
PACKAGE = entry(
    "registryType identifier transport version",
    registryType={"const": "pypi"},
    registryBaseUrl={"const": "https://pypi.org"},
    identifier={"type": "string"},
    version=VERSION,
    runtimeHint={"const": "uvx"},
    transport={"const": {"type": "stdio"}},
    packageArguments={"items": {"required": ["type", "value"], "properties": ARGUMENT}},
)
REPOSITORY = {"url": {"pattern": "^https://github\\.com/[^/]+/[^/]+$"}, "source": {"const": "github"}}
SCHEMA = {"pattern": r"^https://static\.modelcontextprotocol\.io/schemas/\d{4}-\d\d-\d\d/server\."}
ENTRY = {"type": "object"} | entry(
    "$schema name description version packages",
    name={"maxLength": 200, "pattern": "^io\\.github\\.[A-Za-z0-9-]+/[A-Za-z0-9._-]+$"},
    title=TITLE,
    description=TITLE,
    version=VERSION,
    repository={"required": ["url", "source"], "properties": REPOSITORY},
    packages={"items": PACKAGE},
    **{"$schema": SCHEMA},
)


def test_every_file_names_the_same_version() -> None:
    assert set(release.versions(ROOT).values()) == {FACTS.version}


def test_the_registry_entry_is_valid_and_the_readme_has_its_ownership_line() -> None:
    entry = release.server_json(FACTS)
    jsonschema.validate(entry, ENTRY)
    assert {entry["version"], *(package["version"] for package in entry["packages"])} == {FACTS.version}
    assert f"mcp-name: {entry['name']}" in (ROOT / "README.md").read_text()


def test_the_package_has_a_command_of_the_same_name() -> None:
    scripts = re.search(r"(?ms)^\[project\.scripts\]\n(.*?)^\[", (ROOT / "pyproject.toml").read_text())
    assert scripts
    assert re.findall(r"(?m)^([\w-]+) = ", scripts[1]) == ["mcp-tools", FACTS.name]


def test_the_rockspec_contains_every_file_of_the_plugin(nvim_program: Path, tmp_path: Path) -> None:
    files = release.tracked(ROOT)
    path = tmp_path / f"{release.ROCK}-{FACTS.version}-1.rockspec"
    path.write_text(release.rockspec(FACTS, files))
    spec = dist.read_spec(path, str(nvim_program), tmp_path)

    share, rock = dist.lay_out(spec, tmp_path / "tree")

    found = {str(each.relative_to(share)) for each in share.rglob("*") if each.is_file()}
    lua = [each for each in (ROOT / "lua").rglob("*") if each.is_file() and "__pycache__" not in each.parts]
    assert found == {str(each.relative_to(ROOT / "lua")) for each in lua}
    needed = (
        "bridge/mcp_tools_nvim/__main__.py scripts/install-env plugin/mcp-tools.lua conf/requirements.lock"
    )
    assert all((rock / name).is_file() for name in needed.split())
    # Names that LuaRocks itself uses in the directory of a rock.
    assert not {"lua", "lib", "rock_manifest"} & set(spec["build"]["copy_directories"])
    program = rock / "scripts" / "install-env"
    done = processes.run([sys.executable, program, "--check", "--dir", tmp_path / "env"])
    assert (done.returncode, done.stderr) == (1, "")


def test_a_release_writes_its_version_everywhere_once(tmp_path: Path) -> None:
    for name in (*release.VERSIONED, "CHANGELOG.md", "README.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    log = tmp_path / "CHANGELOG.md"
    log.write_text(f"# Log\n\n{release.UNRELEASED}\n\n- New.\n\n## {FACTS.version}\n\n- Old.\n")

    # The state before an owner is known.
    for name in ("pyproject.toml", "README.md"):
        text = (tmp_path / name).read_text()
        (tmp_path / name).write_text(text.replace(f"{FACTS.owner}/mcp-tools", "OWNER/mcp-tools"))

    def cut(version: str, owner: str = "some-body") -> subprocess.CompletedProcess[str]:
        words = [sys.executable, ROOT / "scripts" / "release.py", version, "--root", tmp_path]
        return processes.run([*words, *(("--owner", owner) if owner else ())])

    assert cut("1.2").returncode == 2
    assert "already" in cut(FACTS.version).stderr
    assert "--owner" in cut("9.8.7", "").stderr
    assert "no account" in cut("9.8.7", "a b").stderr
    assert set(release.versions(tmp_path).values()) == {FACTS.version}
    assert cut("9.8.7").returncode == 0
    assert set(release.versions(tmp_path).values()) == {"9.8.7"}
    section = r"## \[Unreleased\]\n\n## \[9\.8\.7\] - \d{4}-\d\d-\d\d\n\n- New\.\n\n## "
    assert re.search(section, log.read_text())
    assert release.facts(tmp_path).server_name == "io.github.some-body/mcp-tools-nvim"
    assert "OWNER" not in (tmp_path / "README.md").read_text()
    assert "mcp-name: io.github.some-body/mcp-tools-nvim" in (tmp_path / "README.md").read_text()
    assert "nothing" in cut("9.8.8", "").stderr


def test_the_licences_of_all_packages_are_permissive() -> None:
    names = release.licence_names(ROOT / "requirements.lock")
    assert {"aiohttp", "mcp", "msgpack", "pywin32", "uvicorn"} <= set(names)
    kinds = {name: release.licence_of(name)[0] for name in names}
    free = re.compile(r"(MIT-0|MIT|Apache-2\.0|BSD-[23]-Clause|PSF-2\.0|ISC|MPL-2\.0)")
    assert [name for name, kind in kinds.items() if re.sub(free, "", kind).strip(" ANDOR()")] == []


@pytest.mark.nightly
@pytest.mark.timeout(180)  # packages are fetched where no cache has them
def test_builds_are_reproducible_and_installed_programs_work(tmp_path: Path) -> None:
    if _nvims.REQUIRED not in _nvims.read()["found"]:
        pytest.skip(f"Neovim {_nvims.REQUIRED} is not installed")
    program = [sys.executable, ROOT / "scripts" / "dist.py", "--out"]
    done = processes.run([*program, tmp_path / "first"], timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "tools/call" in done.stdout, done.stdout  # its last check
    assert processes.run([*program, tmp_path / "second", "--no-check"], timeout=30).returncode == 0
    for path in (tmp_path / "first").iterdir():
        assert path.read_bytes() == (tmp_path / "second" / path.name).read_bytes(), path.name
    jsonschema.validate(json.loads((tmp_path / "first" / "server.json").read_text()), ENTRY)


def test_workflows_run_what_exists() -> None:
    """Every command of a workflow that belongs to the project is a target of the Makefile or a file."""
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    workflows = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
    texts = "".join(path.read_text() for path in workflows)
    commands = re.findall(r"^\s*- run: (make \S+|\.\S+)", texts, re.MULTILINE)
    assert {".ci/run", "make test-quick", "make dist"} <= set(commands)
    for command in commands:
        program, _, target = command.partition(" ")
        assert target in targets if program == "make" else (ROOT / program).exists(), command


PYTHON_LOCKS = ["requirements.lock", "requirements-dev.lock", "scripts/nvim-pypi.lock", "bench/serena.lock"]
DEBIAN_LOCKS = ["scripts/nvim-sid.lock", "scripts/luacheck.lock", "bench/wrk.lock"]
NPM_LOCKS = [f"{name}/package-lock.json" for name in ("tests/npm", "tests/clients/npm", "bench/npm")]


def pins(name: str) -> dict[str, str]:
    """Package name to version in a Python lock."""
    return dict(re.findall(r"^([\w.-]+)==([^\s;]+)", (ROOT / name).read_text(), re.MULTILINE))


@pytest.mark.parametrize("name", [*PYTHON_LOCKS, *DEBIAN_LOCKS, *NPM_LOCKS])
def test_a_lock_contains_no_url(name: str) -> None:
    text = (ROOT / name).read_text()
    assert "://" not in text
    assert '"resolved"' not in text


@pytest.mark.parametrize("name", PYTHON_LOCKS)
def test_every_python_package_has_hashes(name: str) -> None:
    text = (ROOT / name).read_text()
    stanzas = re.findall(r"^[\w.-]+==.*(?:\n    --hash=sha256:[0-9a-f]{64}.*)+", text, re.MULTILINE)
    assert len(stanzas) == len(pins(name)) > 0


def test_the_development_lock_contains_the_versions_of_the_runtime_lock() -> None:
    runtime, development = pins("requirements.lock"), pins("requirements-dev.lock")
    assert runtime.items() <= development.items()
    assert {"mcp", "aiohttp", "msgpack"} <= runtime.keys()


@pytest.mark.parametrize("name", NPM_LOCKS)
def test_every_npm_package_has_an_integrity_hash(name: str) -> None:
    packages = json.loads((ROOT / name).read_text())["packages"]
    assert [path for path, package in packages.items() if path and "integrity" not in package] == []
    assert len(packages) > 1


@pytest.mark.parametrize("name", DEBIAN_LOCKS)
def test_each_line_of_a_debian_lock_has_hash_file_and_path(name: str) -> None:
    lines = [line for line in (ROOT / name).read_text().splitlines() if not line.startswith("#")]
    assert lines
    assert all(re.fullmatch(r"[0-9a-f]{64} [^\s/]+\.deb pool/\S+\.deb", line) for line in lines)
