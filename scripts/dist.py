"""Builds the published packages and checks them outside of the checkout. Nothing is uploaded.

    .deps/venv/bin/python scripts/dist.py [--out DIR] [--no-check]

Only committed files are built. The same commit gives the same bytes: times are those of the commit, or of
SOURCE_DATE_EPOCH. The wheel is built from the sdist, which checks that the sdist is complete. Then it is
installed into a separate environment with the locked packages, the rock is laid out like LuaRocks does, and a
Neovim with only this rock runs the bridge.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
sys.path.insert(0, str(HERE))
import _nvims  # noqa: E402 - neighbours
import release  # noqa: E402
from _editor import Editor, Unexpected  # noqa: E402

RESULTS = ("*.whl", "*.tar.gz", "*.rockspec", "server.json")
# In a separate process: a build backend changes its working directory and more.
BACKEND = "import sys, setuptools.build_meta as b; print(getattr(b, 'build_' + sys.argv[1])(sys.argv[2]))"
SECONDS = 60
READ_SPEC = """
local spec = setmetatable({}, { __index = function(_, name) error('a rockspec has no ' .. name) end })
setfenv(assert(loadfile(arg[1])), spec)()
io.write(vim.json.encode(setmetatable(spec, nil)))
"""
INIT = """
package.path = [[{share}/?.lua;{share}/?/init.lua;]] .. package.path
vim.opt.runtimepath:prepend([[{rock}]])
require('mcp-tools').setup({{ tools = {{ 'test' }}, bridge = {{ python = [[{python}]] }} }})
vim.schedule(function() require('mcp-tools').start() end)
"""


class Wrong(Exception):
    """A check failed; the text says which and where."""


class Built(NamedTuple):
    """The built files."""

    facts: release.Facts
    wheel: Path
    sdist: Path
    rockspec: Path
    server: Path


def say(text: str) -> None:
    """Prints a line and flushes it."""
    print(text, flush=True)


def epoch() -> int:
    """The time of all files."""
    if given := os.environ.get("SOURCE_DATE_EPOCH"):
        return int(given)
    return int(git("log", "-1", "--format=%ct"))


def git(*words: str) -> str:
    """The output of git in the checkout."""
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout


def export(folder: Path) -> None:
    """Writes the files of the last commit to a directory."""
    packed = subprocess.run(["git", "archive", "HEAD"], cwd=ROOT, capture_output=True, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        archive.extractall(folder, filter="data")
    for path in folder.rglob("*"):
        path.chmod(0o755 if path.is_dir() or os.access(path, os.X_OK) else 0o644)


def make(kind: str, tree: Path, out: Path, moment: int) -> Path:
    """Builds an sdist or a wheel of a tree with the build backend."""
    env = os.environ | {"SOURCE_DATE_EPOCH": str(moment)}
    command = [sys.executable, "-c", BACKEND, kind, str(out)]
    done = subprocess.run(command, cwd=tree, env=env, capture_output=True, text=True)
    if done.returncode != 0:
        raise Wrong(f"the {kind} was not built:\n{done.stdout}{done.stderr}")
    return out / done.stdout.split()[-1]


def even_out(sdist: Path, moment: int) -> None:
    """Rewrites an sdist without differences between builds: order, times, owners."""
    plain = io.BytesIO()
    with tarfile.open(sdist) as old, tarfile.open(fileobj=plain, mode="w", format=tarfile.PAX_FORMAT) as new:
        for member in sorted(old.getmembers(), key=lambda each: each.name):
            data = old.extractfile(member) if member.isfile() else None
            kept = tarfile.TarInfo(member.name)
            kept.type, kept.size, kept.mtime = member.type, member.size, moment
            kept.mode = 0o755 if member.isdir() or member.mode & 0o100 else 0o644
            new.addfile(kept, data)
    with sdist.open("wb") as file, gzip.GzipFile("", "wb", fileobj=file, mtime=moment) as packed:
        packed.write(plain.getvalue())


def build(out: Path) -> Built:
    """Builds everything."""
    out.mkdir(parents=True, exist_ok=True)
    for old in (path for pattern in RESULTS for path in out.glob(pattern)):
        old.unlink()
    with tempfile.TemporaryDirectory() as folder:
        tree, unpacked = Path(folder) / "tree", Path(folder) / "unpacked"
        export(tree)
        known, files, moment = release.facts(tree), release.tracked(ROOT), epoch()
        differing = {place: at for place, at in release.versions(tree).items() if at != known.version}
        if differing:
            raise Wrong(f"pyproject.toml says {known.version}, but there is {differing}")
        sdist = make("sdist", tree, out, moment)
        even_out(sdist, moment)
        with tarfile.open(sdist) as archive:
            archive.extractall(unpacked, filter="data")
        (content,) = unpacked.iterdir()
        wheel = make("wheel", content, out, moment)
    rockspec = out / f"{release.ROCK}-{known.version}-1.rockspec"
    rockspec.write_text(release.rockspec(known, files))
    server = out / "server.json"
    server.write_text(json.dumps(release.server_json(known), indent=2, ensure_ascii=False) + "\n")
    for path in (sdist, wheel, rockspec, server):
        say(f"  {path.relative_to(out)}  {path.stat().st_size:,} bytes")
    return Built(known, wheel, sdist, rockspec, server)


# Checks of the results ---------------------------------------------------------------------------------


def steps(built: Built) -> Iterator[str]:
    """Runs all checks, with a line for each."""
    program = os.environ.get("NVIM_PROGRAM") or _nvims.read()["found"][_nvims.REQUIRED]
    yield _contents(built)
    with tempfile.TemporaryDirectory(prefix="mcpt-dist-") as folder:
        home = Path(folder)
        bin_ = environment(built.wheel, home / "env")
        yield f"{built.wheel.name} in an environment of its own, with the locked packages"
        yield _commands(bin_, built.facts.version, home)
        yield _alone(built.wheel, home)
        spec = read_spec(built.rockspec, program, home)
        share, rock = lay_out(spec, home / "rocks")
        yield f"{built.rockspec.name}: {len(spec['build']['modules'])} modules, {_folders(spec)}"
        yield from _live(bin_, share, rock, program, home, built.facts.version)


def _contents(built: Built) -> str:
    """Checks the ownership line of the readme in the registries, and the texts in the archives."""
    server = json.loads(built.server.read_text())
    with zipfile.ZipFile(built.wheel) as wheel:
        names = wheel.namelist()
        (metadata,) = [name for name in names if name.endswith(".dist-info/METADATA")]
        text = wheel.read(metadata).decode()
        licence = [name for name in names if name.endswith("/licenses/LICENSE")]
    if f"mcp-name: {server['name']}" not in text:
        raise Wrong(
            f"README.md lacks `mcp-name: {server['name']}`, by which the MCP registry knows the owner"
        )
    with tarfile.open(built.sdist) as sdist:
        files = {name.partition("/")[2] for name in sdist.getnames()}
    missing = {"README.md", "LICENSE", "CHANGELOG.md", "THIRD-PARTY.md", "pyproject.toml"} - files
    if missing or not licence:
        raise Wrong(f"missing: {', '.join(missing) or 'LICENSE in the wheel'}")
    return f"server.json is {server['name']} {server['version']}, and the readme says so"


def environment(wheel: Path, folder: Path) -> Path:
    """Installs the wheel, with packages checked by hash; returns the directory of programs."""
    uv = Path(sys.executable).with_name("uv")
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    wanted = folder.with_suffix(".txt")
    lock = (ROOT / "requirements.lock").read_text()
    wanted.write_text(f"{lock}\nmcp-tools-nvim @ {wheel.as_uri()} --hash=sha256:{digest}\n")
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    for command in (
        [uv, "venv", "--quiet", "--no-project", "--python", sys.executable, folder],
        [uv, "pip", "install", "--quiet", "--python", python, "--require-hashes", "-r", wanted],
        [uv, "pip", "check", "--quiet", "--python", python],
    ):
        env = os.environ | {"UV_PYTHON_DOWNLOADS": "never", "UV_LINK_MODE": "copy"}
        run(list(map(str, command)), folder.parent, env, SECONDS * 5)
    return python.parent


def run(
    command: list[str], folder: Path, env: dict[str, str], seconds: float = SECONDS, text: str = ""
) -> str:
    """The output of a program; a failure raises `Wrong`."""
    try:
        done = subprocess.run(
            command, cwd=folder, env=env, input=text, capture_output=True, text=True, timeout=seconds
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Wrong(f"{' '.join(command)}: {error}") from error
    if done.returncode != 0:
        raise Wrong(f"{' '.join(command)}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def _commands(bin_: Path, version: str, home: Path) -> str:
    """Checks that both program names exist and print the version."""
    env = _clean(home)
    for name in ("mcp-tools", "mcp-tools-nvim"):
        said = run([str(bin_ / name), "--version"], home, env).strip()
        if said != f"mcp-tools {version}":
            raise Wrong(f"{name} --version: {said}")
    if "stdio" not in run([str(bin_ / "mcp-tools"), "--help"], home, env):
        raise Wrong("mcp-tools --help does not name its commands")
    active = env | {"PATH": f"{bin_}{os.pathsep}{env['PATH']}"}
    config = json.loads(run([str(bin_ / "mcp-tools"), "config", "cursor", "--json"], home, active))["text"]
    entry = json.loads(config)["mcpServers"]["nvim-tools"]
    if "usage: mcp-tools stdio" not in run([entry["command"], *entry["args"], "--help"], home, env):
        raise Wrong(f"a client could not start it by {entry}")
    code = "import mcp_tools_nvim.api, mcp_tools_nvim.python_tools, mcp_tools_nvim.process.main"
    run([str(bin_ / "python"), "-I", "-c", code], home, env)
    return "mcp-tools --help, --version; its packages can be imported"


INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "dist", "version": "1"},
    },
}
STDIO_SECONDS = 2.0


def _alone(wheel: Path, home: Path) -> str:
    """Checks that `mcp-tools stdio` answers `initialize` without other packages and without an editor."""
    uv, folder = Path(sys.executable).with_name("uv"), home / "alone"
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    env = os.environ | {"UV_PYTHON_DOWNLOADS": "never", "UV_LINK_MODE": "copy"}
    for command in (
        [uv, "venv", "--quiet", "--no-project", "--python", sys.executable, folder],
        [uv, "pip", "install", "--quiet", "--python", python, "--no-deps", wheel],
    ):
        run(list(map(str, command)), home, env, SECONDS * 5)
    program = str(python.parent / "mcp-tools")
    run([program, "--version"], home, _clean(home))  # compiles the modules
    begun = time.monotonic()
    answer = json.loads(run([program, "stdio"], home, _clean(home), text=json.dumps(INITIALIZE) + "\n"))
    seconds = time.monotonic() - begun
    if "serverInfo" not in answer.get("result", {}) or seconds > STDIO_SECONDS:
        raise Wrong(f"mcp-tools stdio, alone: {answer} after {seconds:.1f} s")
    return f"mcp-tools stdio without another package answers after {seconds:.1f} s"


def read_spec(path: Path, program: str, home: Path) -> dict[str, Any]:
    """The values of a rockspec, run without globals."""
    reader = home / "read_spec.lua"
    reader.write_text(READ_SPEC)
    command = [program, "-u", "NONE", "-i", "NONE", "-n", "-l", str(reader), str(path)]
    values: dict[str, Any] = json.loads(run(command, home, _clean(home)))
    wanted = {"rockspec_format", "package", "version", "source", "description", "dependencies", "build"}
    if set(values) != wanted or not path.name.startswith(f"{values['package']}-{values['version']}."):
        raise Wrong(f"{path.name} has the fields {sorted(values)}")
    return values


def lay_out(spec: dict[str, Any], tree: Path) -> tuple[Path, Path]:
    """Lays out a rock like LuaRocks; returns the directories of the modules and of the rock."""
    share = tree / "share" / "lua" / "5.1"
    rock = tree / "lib" / "luarocks" / "rocks-5.1" / spec["package"] / spec["version"]
    build = spec["build"]
    copies = [(name, rock / "conf" / Path(name).name) for name in build["install"]["conf"]]
    for module, name in build["modules"].items():
        place = share.joinpath(*module.split("."))
        copies.append(
            (name, place / "init.lua" if Path(name).name == "init.lua" else place.with_suffix(".lua"))
        )
    for dotted, name in build["install"]["lua"].items():
        copies.append((name, share.joinpath(*dotted.split(".")[:-1], Path(name).name)))
    for name, place in copies:
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, place)
    for name in build["copy_directories"]:
        shutil.copytree(ROOT / name, rock / name, ignore=shutil.ignore_patterns("__pycache__"))
    return share, rock


def _folders(spec: dict[str, Any]) -> str:
    return " ".join(f"{name}/" for name in spec["build"]["copy_directories"])


def _clean(home: Path) -> dict[str, str]:
    """This environment without variables that refer to other files."""
    kept = ("PATH", "LANG", "LC_ALL", "TMPDIR", "SYSTEMROOT")
    return {name: os.environ[name] for name in kept if name in os.environ} | {"HOME": str(home)}


# With an editor ------------------------------------------------------------------------------------------


def _live(bin_: Path, share: Path, rock: Path, program: str, home: Path, version: str) -> Iterator[str]:
    """Checks that the programs of the wheel find an editor that has only the rock."""
    init, place = home / "init.lua", home / "editor"
    place.mkdir()
    init.write_text(INIT.format(share=share, rock=rock, python=bin_ / "python"))
    editor = Editor(program, place, init, _clean(home))
    try:
        editor.ask_until('require("mcp-tools").endpoint()')
        plugin = editor.ask('{require("mcp-tools.instances.project").plugin_dir()}')
        if plugin != [str(rock.resolve())]:
            raise Wrong(f"the plugin takes {plugin} for its folder")
        yield f"Neovim with the rock alone runs its bridge ({rock.relative_to(home)})"
        yield _talk(bin_ / "mcp-tools", editor, version)
    except Unexpected as error:
        raise Wrong(str(error)) from error
    finally:
        editor.close()


def _talk(program: Path, editor: Editor, version: str) -> str:
    """Checks that `list` finds the editor and `stdio` speaks MCP with it."""
    project = Path(editor.socket).parent / "project"
    found = json.loads(run([str(program), "list", "--json"], project, editor.env))
    if [each["root"] for each in found] != [str(project.resolve())]:
        raise Wrong(f"mcp-tools list: {found}")
    info = {"name": "dist", "version": version}
    begin = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info}
    echo = {"name": "nvim_test_echo", "arguments": {"text": "hello"}}
    asked: list[dict[str, Any]] = [
        {"id": 1, "method": "initialize", "params": begin},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/list"},
        {"id": 3, "method": "tools/call", "params": echo},
    ]
    text = "".join(json.dumps({"jsonrpc": "2.0", **each}) + "\n" for each in asked)
    lines = run([str(program), "stdio"], project, editor.env, SECONDS, text).splitlines()
    results = {said["id"]: said.get("result") for said in map(json.loads, lines) if "id" in said}
    if not results.get(1) or not results.get(2) or not results.get(3):
        raise Wrong(f"mcp-tools stdio: {lines}")
    names = [tool["name"] for tool in results[2]["tools"]]
    text = results[3]["content"][0]["text"]
    if results[1]["serverInfo"]["version"] != version or "nvim_test_echo" not in names or text != "hello":
        raise Wrong(f"mcp-tools stdio: {results}")
    return f"mcp-tools list, stdio: initialize, tools/list ({len(names)} tools), tools/call"


def main() -> int:
    """Builds, checks and reports."""
    parser = argparse.ArgumentParser(prog="dist", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--out", type=Path, default=ROOT / "dist", help="default: %(default)s")
    parser.add_argument("--no-check", action="store_true", help="only build")
    options = parser.parse_args()
    try:
        built = build(options.out.resolve())
        if not options.no_check:
            for done in steps(built):
                say(f"  ✓ {done}")
    except Wrong as error:
        print(f"dist: {error}", file=sys.stderr)
        return 1
    if changed := git("status", "--porcelain").splitlines():
        say(f"Uncommitted changes of {len(changed)} files are not included.")
    if built.facts.is_placeholder:
        say(
            f"Before it is published: {release.PLACEHOLDER} in pyproject.toml and README.md"
            " is a placeholder for the owner of the repository; `release.py` asks for it."
        )
    say(f"{options.out}: nothing was uploaded.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
