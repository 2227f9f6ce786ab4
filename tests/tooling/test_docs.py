"""The documentation: it matches the code, every name has a help tag, and every Lua example in it runs."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from mcp_tools_nvim.errors import Code
from tests.support import processes
from tests.support.nvim import ROOT, Home, Spawn

GUIDE, API, CLIENT_HELP = (ROOT / "doc" / f"mcp-tools{part}.txt" for part in ("", "-api", "-clients"))
HELPS = sorted((ROOT / "doc").glob("*.txt"))
README = ROOT / "README.md"
NEEDS_NETWORK = "vim.pack.add("
"""Such an example is compiled, not run."""


SHELL = {
    "git clone": "tests/e2e/test_managers.py",
    "make -C": "tests/e2e/test_managers.py",
    "nvim --headless": "tests/e2e/test_managers.py",
    "claude": "tests/clients/test_connected.py",
    "codex": "tests/clients/test_connected.py",
    "gemini": "tests/clients/test_connected.py",
    "copilot": "tests/clients/test_connected.py",
    "NVIM_LISTEN_ADDRESS": "tests/faults/test_bridge_death.py",
    "mcp-tools serve": "tests/e2e/test_remote.py",
    "mcp-tools stdio": "tests/e2e/test_remote.py",
    "ssh": "tests/e2e/test_remote.py forwards ports and sockets itself; there is no second machine",
    "ln -s": "makes a link; tests/tooling/test_programs.py runs such a link",
    "export": "sets a variable of the next command",
    "amp": "needs an account",
    "cline": "not among the pinned programs of the tests",
}
"""Where each shell command of README and help runs, or why it does not, by its first words."""


def markdown_blocks(text: str) -> list[str]:
    """The Lua blocks of a Markdown file."""
    return re.findall(r"^```lua\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def help_blocks(text: str) -> list[str]:
    """Returns the Lua blocks of a help file, from a line that ends in `>lua` to one that begins with `<`."""
    return re.findall(r">lua\n(.*?)^<", text, re.MULTILINE | re.DOTALL)


def examples() -> list[tuple[str, str]]:
    """Returns every Lua example with its file and line."""
    found = []
    for path, blocks in ((README, markdown_blocks), *((each, help_blocks) for each in HELPS)):
        text = path.read_text()
        for block in blocks(text):
            line = text[: text.index(block)].count("\n") + 1
            found.append((f"{path.name}:{line}", block))
    return found


def tags() -> dict[str, str]:
    """Returns the tags of the help, each with the name of its file."""
    pattern = r"(?<!\S)\*(\S+)\*(?!\S)"
    return {tag: path.name for path in HELPS for tag in re.findall(pattern, path.read_text())}


def first_tool() -> str:
    """Returns the block of the README that is marked as the first tool."""
    found = re.search(r"^<!-- first tool -->\n```lua\n(.*?)^```$", README.read_text(), re.M | re.S)
    assert found
    return found[1]


def gen_doc(*arguments: str, root: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """Run the generator of a checkout."""
    command = [sys.executable, str(root / "scripts" / "gen_doc"), *arguments]
    return processes.run(command)


@pytest.mark.slow
def test_generated_parts_match_the_code() -> None:
    done = gen_doc("--check")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
def test_a_change_of_the_code_is_reported_with_a_diff(tmp_path: Path) -> None:
    (tmp_path / ".deps").symlink_to(ROOT / ".deps")
    for name in ("bridge", "doc", "lua", "scripts"):
        shutil.copytree(ROOT / name, tmp_path / name)
    for path in (README, ROOT / "THIRD-PARTY.md", ROOT / "requirements.lock"):
        shutil.copy(path, tmp_path)
    options = tmp_path / "lua" / "mcp-tools" / "config" / "options.lua"
    options.write_text(options.read_text().replace("default = 'nvim_'", "default = 'vim_'"))

    done = gen_doc("--check", root=tmp_path)

    assert done.returncode == 1
    assert '+    Type: `string`, default: `"vim_"`' in done.stdout
    assert "make docs" in done.stdout
    assert gen_doc(root=tmp_path).returncode == 0
    assert gen_doc("--check", root=tmp_path).returncode == 0


def test_help_tags_are_built_without_duplicates(nvim_program: Path, home: Home) -> None:
    directory = home.make("doc")
    for path in HELPS:
        (directory / path.name).write_text(path.read_text())
    command = [nvim_program, "--headless", "-u", "NONE", "-i", "NONE", f"+helptags {directory}", "+qall"]
    done = processes.run(command, env=home.environment())

    assert not re.search(r"\bE\d+:", done.stderr)
    built = [line.split("\t")[0] for line in (directory / "tags").read_text().splitlines()]
    assert set(built) == tags().keys()
    assert {path.name for path in HELPS} <= set(built)


def found_in(directory: str, pattern: str) -> set[str]:
    """Returns what a pattern finds in the sources of a directory."""
    files = [path for path in (ROOT / directory).rglob("*") if path.suffix in (".lua", ".py")]
    return {each for path in files for each in re.findall(pattern, path.read_text(), re.MULTILINE)}


def test_every_mapping_key_event_agent_and_topic_has_a_help_tag() -> None:
    ui = "lua/mcp-tools/ui"
    [words] = found_in("lua/mcp-tools/command", r"complete = \{ ('accept'.*), 'list'")
    names = {
        "<Plug>(mcp-tools-%s)": found_in("plugin", r"^map\('([\w-]+)'"),
        "<Plug>(mcp-tools-review-%s)": set(re.findall(r"\w+", words)),
        "mcp-tools-approval-%s": found_in(f"{ui}/approval", r"name = '\w+'.* key = '(\w)'"),
        "mcp-tools-review-%s": found_in(f"{ui}/review", r"\{ '([^']+)', M\.\w+, "),
        "mcp-tools-interview-%s": found_in(f"{ui}/interview", r"^    \['(<[^']+>)'\] = \{ 'n'"),
        "mcp-tools-dashboard-%s": found_in(f"{ui}/dashboard", r"\blhs = '([^']+)'"),
        "mcp-tools-changes-%s": found_in("lua/mcp-tools/command", r"^      key\('([^']+)'"),
        "mcp-tools-agent-%s": {
            path.stem for path in (ROOT / "lua/mcp-tools/agents/known").glob("[a-z]*.lua")
        },
        "%s": found_in("lua", r"pattern = '(McpTools\w+)'")
        | found_in("lua", r":h(?:elp)? ([\w:-]*mcp-tools[\w-]*\w)")
        | found_in("bridge", r":h(?:elp)? (mcp-tools[\w-]*\w)"),
    }
    wanted = {pattern % name for pattern, found in names.items() for name in found}
    assert all(names.values())
    assert sorted(wanted - tags().keys()) == []


def test_help_topics_in_markdown_link_to_the_file_with_their_tag() -> None:
    for path in (README, ROOT / "SECURITY.md"):
        text = path.read_text()
        links = re.findall(r"\[`:h ([^`]+)`\]\(doc/([\w.-]+)\)", text)
        assert len(links) == len(re.findall(r"`:h (?!elptags)", text)), path.name
        assert all(tags()[topic] == name for topic, name in links)


def test_lua_python_and_help_have_the_same_error_codes() -> None:
    lua = (ROOT / "lua" / "mcp-tools" / "errors.lua").read_text()
    listed = re.findall(r"^---\| '(\w+)'", lua, re.MULTILINE)
    assert sorted(listed) == sorted(Code)
    assert re.findall(r"\*mcp-tools-error-(\w+)\*", GUIDE.read_text()) == listed


def test_every_link_in_the_help_has_a_tag(nvim_program: Path, home: Home) -> None:
    whole = "\n".join(path.read_text() for path in HELPS)
    text = re.sub(r">\w*\n.*?^<", "", whole, flags=re.MULTILINE | re.DOTALL)
    links = set(re.findall(r"(?<![\w|`])\|([\w:()'.-]+)\|(?![\w|`])", text)) - tags().keys()
    script = (
        "for _, link in ipairs(vim.split(vim.env.LINKS, ' ')) do"
        " if not pcall(vim.cmd.help, link) then io.stderr:write(link, '\\n') end end"
    )
    done = processes.run(
        [nvim_program, "--headless", "-u", "NONE", "-i", "NONE", "-n", f"+lua {script}", "+qall!"],
        env=home.environment() | {"LINKS": " ".join(sorted(links))},
    )
    missing = {line for line in done.stderr.split() if line in links}
    assert not missing, f"links that lead nowhere: {sorted(missing)}"


def test_help_lines_have_at_most_78_columns() -> None:
    for path in HELPS:
        for number, line in enumerate(path.read_text().splitlines(), 1):
            assert len(line) <= 78, f"{path.name}:{number} has {len(line)} columns: {line}"
            assert line == line.rstrip(), f"{path.name}:{number} ends in blanks"


async def test_every_lua_example_of_readme_and_help_runs(spawn_nvim: Spawn) -> None:
    nvim = await spawn_nvim()
    assert len(examples()) >= 14
    for source, block in examples():
        fault = await nvim.lua(
            "local code, run = ..."
            " local chunk, fault = loadstring(code)"
            " if chunk and run then fault = select(2, xpcall(chunk, debug.traceback)) end"
            " return type(fault) == 'string' and fault or nil",
            block,
            NEEDS_NETWORK not in block,
        )
        assert fault is None, f"{source}: {fault}\n{block}"
    assert await nvim.lua("return require('mcp-tools.registry').has('word_count')")


def test_every_shell_command_of_readme_and_help_runs_in_a_test_or_has_a_reason() -> None:
    found = re.findall(r"^```sh\n(.*?)^```$", README.read_text(), re.MULTILINE | re.DOTALL)
    found += [each for path in HELPS for each in re.findall(r">sh\n(.*?)^<", path.read_text(), re.M | re.S)]
    commands = [line.strip() for block in found for line in block.replace("\\\n", "").splitlines() if line]
    unknown = [command for command in commands if not command.startswith(tuple(SHELL))]
    assert not unknown
    assert not [start for start in SHELL if not any(each.startswith(start) for each in commands)]


async def test_the_first_tool_of_the_readme_is_short_and_works(spawn_nvim: Spawn, tmp_path: Path) -> None:
    block = first_tool()
    assert len(block.splitlines()) <= 12
    file = tmp_path / "poem.txt"
    file.write_text("one\ntwo\nthree\n")
    nvim = await spawn_nvim(args=[str(file), "+2"], init_lua=f"require('mcp-tools').setup({{}})\n{block}")

    result = await nvim.call_tool("cursor", lines=1)

    assert result == {"file": str(file), "line": 2, "text": ["two"]}
    assert (await nvim.call_tool("cursor"))["text"] == ["two", "three"]
    assert (await nvim.call_tool("cursor", lines=0))["code"] == "validation_error"


@pytest.mark.slow
async def test_the_tools_in_the_help_work(spawn_nvim: Spawn, tmp_path: Path) -> None:
    processes.run(["git", "init", "--quiet", "--initial-branch", "trunk", str(tmp_path)], check=True)
    nvim = await spawn_nvim(cwd=tmp_path)
    for block in help_blocks(API.read_text()):
        if ".register({" in block:
            await nvim.lua(block)

    assert await nvim.call_tool("word_count", text=" a  b ") == {"words": 2}
    assert await nvim.call_tool("git_branch") == "trunk"
    assert (await nvim.call_tool("mark_position", mark="q"))["code"] == "not_found"
    assert (await nvim.call_tool("mark_position", mark="Q"))["code"] == "validation_error"


def test_targets_in_the_readme_exist_and_pictures_show_no_local_path() -> None:
    text = README.read_text()
    targets = set(re.findall(r"\]\(([^)#:]+)\)|(?:src|srcset)=\"([^\"]+)\"", text))
    names = {first or second for first, second in targets}
    assert {".github/assistant.svg", "doc/img/review-inline-dark.svg", "SECURITY.md"} <= names
    assert sorted(name for name in names if not (ROOT / name).exists()) == []
    for name in names:
        if name.endswith(".svg"):
            picture = (ROOT / name).read_text()
            assert len(picture) < 60_000
            assert not re.search(r"/(home|root|work|Users)/|mcpt-", picture)


MEASURED = (
    ("30 references in 12 files takes {:.0f} ms", "code: 30 references", r"ours (\d+) ms"),
    ("ms and {:.1f} kB of the model's", "code: 30 references", r"ours \d+ ms / (\d+) B"),
    ("with Serena, {:.0f} ms", "code: 30 references", r"Serena (\d+) ms"),
    ("ms and {:.1f} kB.\n", "code: 30 references", r"Serena \d+ ms / (\d+) B"),
    ("tool call adds {:.1f} ms", "sync call, p50, sessions", r"\(([\d.]+) ms"),
    ("blocks Neovim for {:.0f} ms", "longest main-thread block", r"([\d.]+) ms"),
    ("`setup()` takes {:.1f} ms", "Neovim start-up: setup", r"([\d.]+) ms"),
    ("this costs {:.1f} ms", "Neovim start-up: setup", r"([\d.]+) ms"),
    ("{:.0f} MB of memory", "bridge before its first client", r"(\d+) MB"),
    ("{:.0f} MB after the first client", "bridge after its first client", r"(\d+) MB"),
)
"""Texts of the README, and where bench/RESULTS.md has their figures."""


def test_figures_in_the_readme_are_those_of_the_benchmark() -> None:
    text, results = README.read_text(), (ROOT / "bench" / "RESULTS.md").read_text().splitlines()
    for sentence, figure, pattern in MEASURED:
        row = next(row for row in results if row.startswith(f"| {figure}"))
        found = re.search(pattern, row.split("|")[2])
        assert found, row
        value = float(found[1]) / (1000 if "kB" in sentence else 1)
        assert sentence.format(value) in text, f"{figure}: {value}"
    packages = re.findall(r"^\S+==", (ROOT / "requirements.lock").read_text(), re.MULTILINE)
    assert f"downloads {len(packages)} Python packages" in text


async def test_the_readme_has_the_number_and_size_of_the_default_tools(spawn_nvim: Spawn) -> None:
    nvim = await spawn_nvim(init_lua="require('mcp-tools').setup({ tools = 'recommended' })")
    listed = await nvim.lua(
        "local registry = require('mcp-tools.core').get().registry"
        " return require('mcp-tools.scope.listing').json(registry, 'tools', 'nvim_', nil, 'client')"
    )
    expected = f"{len(json.loads(listed))} default tools are {len(listed) / 1000:.0f} kB"
    assert expected in README.read_text()


OTHER_ROWS = {"bridge/mcp_tools_nvim/", "lua/mcp-tools/", "lua/mcp-tools/agents/known/", "rplugin/python3/"}


def test_the_architecture_page_lists_every_directory() -> None:
    text = (ROOT / "doc" / "architecture.md").read_text()
    named = set(
        re.findall(
            r"(?:bridge|lua|tests|rplugin|plugin|scripts|bench|doc)/[\w./-]*(?![\w./<*-])",
            text + (ROOT / "CONTRIBUTING.md").read_text(),
        )
    )
    assert sorted(name for name in named if not (ROOT / name).exists()) == []

    rows = re.findall(r"^\| `([^`]+/)` \|", text, re.MULTILINE)
    assert len(rows) == len(set(rows))
    sources = [*ROOT.glob("bridge/mcp_tools_nvim/*/*.py"), *ROOT.glob("lua/mcp-tools/*/**/*.lua")]
    parts = [path.relative_to(ROOT).parts for path in sources]
    directories = {"/".join(each[:3]) + "/" for each in parts}
    assert directories <= set(rows), directories - set(rows)
    assert {row for row in rows if row.count("/") > 1} - directories <= OTHER_ROWS


def test_names_and_texts_of_returned_values_are_parsed() -> None:
    code = """
--- Does it.
---@param opts? table such as
--- these
---@return string[]? names what it contains
---@return { a: integer }? value, mcp-tools.Error? err
---@return integer?
function M.run(opts) end
"""
    sys.path.insert(0, str(ROOT / "scripts"))
    try:
        import _luacats
    finally:
        sys.path.remove(str(ROOT / "scripts"))
    [function] = _luacats.parse(code).functions
    assert function.text == "Does it."
    [opts] = function.params
    assert (opts.name, opts.type, opts.text, opts.optional) == ("opts", "table", "such as these", True)
    assert [(m.name, m.type, m.text, m.optional) for m in function.returns] == [
        ("names", "string[]", "what it contains", True),
        ("value", "{ a: integer }", "", True),
        ("err", "mcp-tools.Error", "", True),
        ("", "integer?", "", False),
    ]


AGENTS, LIBRARIES = ROOT / "tests" / "clients" / "npm", ROOT / "tests" / "npm"
PINNED = {
    "Claude Code": (AGENTS, "@anthropic-ai/claude-code"),
    "Codex": (AGENTS, "@openai/codex-linux-x64"),
    "Copilot CLI": (AGENTS, "@github/copilot"),
    "Gemini CLI": (AGENTS, "@google/gemini-cli"),
    "Qwen Code": (AGENTS, "@qwen-code/qwen-code"),
    "opencode": (AGENTS, "opencode-linux-x64"),
    "AI SDK (@ai-sdk/mcp)": (LIBRARIES, "@ai-sdk/mcp"),
    "MCP Inspector": (LIBRARIES, "@modelcontextprotocol/inspector"),
    "TypeScript SDK, v1": (LIBRARIES, "@modelcontextprotocol/sdk"),
    "TypeScript SDK, v2": (LIBRARIES, "@modelcontextprotocol/client"),
}


def test_the_help_lists_the_client_versions_of_the_tests() -> None:
    table = CLIENT_HELP.read_text().partition("*mcp-tools-clients-run*")[2].partition("\n<\n")[0]
    listed = dict(re.findall(r"(\S(?:[^\n ]| (?! ))*?) \* +(\d\S+)", table))
    pinned = {
        name: json.loads((directory / "package.json").read_text())["devDependencies"][package].rpartition(
            "@"
        )[2]
        for name, (directory, package) in PINNED.items()
    }
    assert listed == {name: pin.removesuffix("-linux-x64") for name, pin in pinned.items()} | {
        "Python SDK (mcp)": version("mcp")
    }
