"""The language server in the settings of clients; everything else stays the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mcp_tools_nvim.client_config import change, lsp
from mcp_tools_nvim.client_config.change import Change, ChangeError
from mcp_tools_nvim.client_config.client import NAME, AiClient, ConfigLevel, Stdio
from mcp_tools_nvim.client_config.formats import value_at
from mcp_tools_nvim.client_config.known import CLIENTS

COMMAND = ["mcp-tools", "lsp"]
LANGUAGES = {".py": "python", ".lua": "lua"}
CASES = [(name, level) for name, client in CLIENTS.items() if client.lsp for level in client.lsp.files]


def connect(
    client: AiClient, root: Path, level: ConfigLevel, languages: dict[str, str] = LANGUAGES
) -> list[Change]:
    entry = change.add_entry(client, Stdio("mcp-tools", ("stdio",)), level, root)
    return lsp.add_lsp([entry], client, COMMAND, languages, level, root)


def disconnect(client: AiClient, root: Path, level: ConfigLevel) -> list[Change]:
    return lsp.remove_lsp([change.remove_entry(client, level, root)], client, level, root)


def write(changes: list[Change]) -> None:
    change.apply([each for each in changes if not each.is_empty])


def entry_of(client: AiClient, root: Path, level: ConfigLevel) -> Any:
    values = json.loads(lsp.path_of(client.lsp, level, root).read_text())
    return value_at(values, (*client.lsp.path, NAME))


@pytest.mark.parametrize(("name", "level"), CASES)
def test_the_server_is_added_once_updated_and_removed(name: str, level: ConfigLevel, tmp_path: Path) -> None:
    client = CLIENTS[name]
    write(connect(client, tmp_path, level))
    entry = entry_of(client, tmp_path, level)
    given = entry["command"] if isinstance(entry["command"], list) else [entry["command"], *entry["args"]]
    assert given == COMMAND
    extensions = next(entry[key] for key in entry if "xtension" in key)
    assert sorted(extensions) == [".lua", ".py"]
    assert all(each.is_empty for each in connect(client, tmp_path, level))
    write(connect(client, tmp_path, level, {".go": "go"}))
    assert ".go" in json.dumps(entry_of(client, tmp_path, level))
    assert ".py" not in json.dumps(entry_of(client, tmp_path, level))
    write(disconnect(client, tmp_path, level))
    assert client.lsp is not None
    assert not lsp.path_of(client.lsp, level, tmp_path).exists()
    assert all(each.is_empty for each in disconnect(client, tmp_path, level))


def test_servers_of_opencode_are_disabled_unless_the_user_configured_them(tmp_path: Path) -> None:
    """An entry alone would enable all of them."""
    client, path = CLIENTS["opencode"], tmp_path / "opencode.json"
    before = '{\n  // mine\n  "lsp": { "gopls": { "command": ["gopls"], "extensions": [".go"] } }\n}\n'
    path.write_text(before)
    write(connect(client, tmp_path, "project"))
    values = json.loads(path.read_text().replace("// mine", ""))
    assert values["lsp"]["pyright"] == values["lsp"]["php intelephense"] == {"disabled": True}
    assert values["lsp"]["gopls"]["command"] == ["gopls"]
    assert values["mcp"][NAME]
    write(disconnect(client, tmp_path, "project"))
    after = path.read_text()
    assert "// mine" in after
    restored, original = (json.loads(text.replace("// mine", "")) for text in (after, before))
    assert change.pruned(restored) == original
    path.write_text('{"theme": "x"}')
    write(connect(client, tmp_path, "project"))
    write(disconnect(client, tmp_path, "project"))
    assert "lsp" not in json.loads(path.read_text())  # an empty one would enable them


def test_a_server_that_the_user_disabled_stays_disabled(tmp_path: Path) -> None:
    path = tmp_path / "opencode.json"
    path.write_text('{"lsp": {"astro": {"disabled": true}}}')
    write(connect(CLIENTS["opencode"], tmp_path, "project"))
    table = json.loads(path.read_text())["lsp"]
    assert table["astro"] == {"disabled": True}
    assert NAME in table


def test_a_client_level_or_setting_without_lsp_is_refused(tmp_path: Path) -> None:
    for name, level, why in (
        ("gemini-cli", "user", "no LSP client"),
        ("qwen-code", "user", "--project is missing"),
    ):
        with pytest.raises(ChangeError, match=why):
            connect(CLIENTS[name], tmp_path, level)  # type: ignore[arg-type]
    (tmp_path / "opencode.json").write_text('{"lsp": false}')
    with pytest.raises(ChangeError, match="lsp"):
        connect(CLIENTS["opencode"], tmp_path, "project")


def test_an_invalid_file_without_our_server_is_not_changed(tmp_path: Path) -> None:
    (tmp_path / ".github").mkdir()
    (tmp_path / ".github" / "lsp.json").write_text("{ broken")
    assert all(each.is_empty for each in disconnect(CLIENTS["copilot-cli"], tmp_path, "project"))
