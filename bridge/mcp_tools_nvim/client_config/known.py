"""The table of all AI clients that can be connected."""

from __future__ import annotations

import sys

from .client import NAME, AiClient, ConfigLevel, Entry, Hooks, Lsp, Permissions, Server, Stdio

_CONFIG = "${XDG_CONFIG_HOME:-~/.config}"
_AGENTS_SKILLS: dict[ConfigLevel, str] = {"user": "~/.agents/skills", "project": ".agents/skills"}
"""Directories that most agents read besides their own; one skill there serves them all."""
_STDIO = {"type": "stdio"}
_HTTP = {"type": "http"}
_CLAUDE = "${CLAUDE_CONFIG_DIR:-~/.claude}"
_CODEX = "${CODEX_HOME:-~/.codex}"
_CONTINUE = "${CONTINUE_GLOBAL_DIR:-~/.continue}"
_COPILOT = "${COPILOT_HOME:-~/.copilot}"
_GEMINI = "${GEMINI_CLI_HOME:-~}/.gemini"
_QWEN = "${QWEN_HOME:-~/.qwen}"
_READS_UNASKED = "it runs tools that only read without asking"
_VSCODE = f"{_CONFIG}/Code/User"
_ZED = f"{_CONFIG}/zed"
if sys.platform == "darwin":
    _VSCODE = "~/Library/Application Support/Code/User"
    _ZED = "~/.config/zed"


# fmt: off
_OPENCODE_SERVERS = (
    "astro", "bash", "biome", "clangd", "clojure-lsp", "csharp", "dart", "deno",
    "dockerfile", "elixir-ls", "eslint", "fsharp", "gleam", "gopls", "haskell-language-server", "jdtls",
    "julials", "kotlin-ls", "lua-ls", "nixd", "ocaml-lsp", "oxlint", "php intelephense", "prisma",
    "pyright", "razor", "ruby-lsp", "rust", "sourcekit-lsp", "svelte", "terraform", "texlab",
    "tinymist", "ty", "typescript", "vue", "yaml-ls", "zls",
)
# fmt: on
"""The language servers that OpenCode 1.18 downloads and starts once its configuration has `lsp`."""


def _codex(server: Server) -> Entry:
    if isinstance(server, Stdio):
        # The editor is found by these variables; Codex passes little more than HOME and PATH to a server.
        # Its background process has the variables of the first Codex, whatever the project: no $NVIM.
        inherited = ["NVIM_APPNAME", "XDG_RUNTIME_DIR", "XDG_STATE_HOME"]
        return {"command": server.command, "args": list(server.args), "env_vars": inherited}
    if server.variable is not None:
        return {"url": server.url, "bearer_token_env_var": server.variable}
    return {"url": server.url, "http_headers": server.headers(None)}


def _goose(server: Server) -> Entry:
    # Goose does not load an extension without a description.
    fields = {"name": NAME, "description": "The tools of the running Neovim", "enabled": True, "timeout": 300}
    if isinstance(server, Stdio):
        return {**fields, "type": "stdio", "cmd": server.command, "args": list(server.args), "envs": {}}
    fields |= {"type": "streamable_http", "uri": server.url, "headers": server.headers("${%s}")}
    # It expands only the variables listed here, from its environment or the user's keyring.
    return fields if server.variable is None else {**fields, "env_keys": [server.variable]}


def _opencode(server: Server) -> Entry:
    if isinstance(server, Stdio):
        return {"type": "local", "command": [server.command, *server.args], "enabled": True}
    headers = server.headers("{env:%s}")
    return {"type": "remote", "url": server.url, "enabled": True, "oauth": False, "headers": headers}


CLIENTS = {
    "amp": AiClient(
        title="Amp",
        files={"user": f"{_CONFIG}/amp/settings.json", "project": ".amp/settings.json"},
        skills={"user": "~/.config/agents/skills", "project": ".agents/skills"},
        commands=("amp",),
        homes=(f"{_CONFIG}/amp",),
        path=("amp.mcpServers",),
        reference="${%s}",
        advice="`amp mcp list` shows it.",
    ),
    "claude-code": AiClient(
        title="Claude Code",
        files={"user": "${CLAUDE_CONFIG_DIR:-~}/.claude.json", "project": ".mcp.json"},
        skills={"user": f"{_CLAUDE}/skills", "project": ".claude/skills"},
        commands=("claude",),
        homes=(_CLAUDE,),
        reference="${%s}",
        http_fields=_HTTP,
        advice="In Claude Code, `/mcp` shows whether the server is connected.",
        project_advice="Claude Code asks once to approve the project's file.",
        hooks=Hooks(
            "claude",
            {"user": f"{_CLAUDE}/settings.json", "project": ".claude/settings.json"},
            matcher="Edit|Write|NotebookEdit|Grep|Bash",
            advice="`/hooks` shows the hooks.",
        ),
        lsp=Lsp(
            {"user": f"{_CLAUDE}/{NAME}/.lsp.json", "project": f".claude/{NAME}/.lsp.json"},
            advice="For the language servers, start Claude Code with `claude --plugin-dir %s`.",
        ),
        permissions=Permissions(
            f"{_CLAUDE}/settings.json",
            (".mcp.json",),
            f"mcp__{NAME}__%s",
            path=("permissions", "allow"),
        ),
    ),
    "codex": AiClient(
        title="Codex",
        files={"user": f"{_CODEX}/config.toml", "project": ".codex/config.toml"},
        skills=_AGENTS_SKILLS,
        commands=("codex",),
        homes=(_CODEX,),
        format="toml",
        path=("mcp_servers",),
        reference="%s",
        custom=_codex,
        advice="Start Neovim first: Codex reads the list of tools only when a conversation starts."
        " Codex and Neovim both ask before an edit."
        ' To be asked only by Neovim, add `default_tools_approval_mode = "approve"` below'
        " `[mcp_servers.nvim-tools]` in its config.toml. In Codex, `/mcp` shows the server.",
        project_advice="The project's file applies once Codex trusts the project.",
        hooks=Hooks(
            "codex",
            {"user": f"{_CODEX}/hooks.json", "project": ".codex/hooks.json"},
            matcher="^(apply_patch|Bash)$",
            advice="At its next start, Codex asks whether to trust the hooks: choose 'Trust all'.",
            environment_advice="Then choose Restart in `/daemon`: the background server keeps its variables.",
        ),
        permissions=_READS_UNASKED,
    ),
    "continue-dev": AiClient(
        title="Continue",
        files={
            "user": f"{_CONTINUE}/mcpServers/{NAME}.json",
            "project": f".continue/mcpServers/{NAME}.json",
        },
        skills={"user": f"{_CONTINUE}/skills", "project": ".continue/skills"},
        commands=("cn",),
        homes=(_CONTINUE,),
        stdio_fields=_STDIO,
        http_fields=_HTTP,
        advice="Tools are used in agent mode only. The command `cn` reads only config.yaml.",
    ),
    "copilot-cli": AiClient(
        title="Copilot CLI",
        files={"user": f"{_COPILOT}/mcp-config.json", "project": ".github/mcp.json"},
        skills=_AGENTS_SKILLS,
        commands=("copilot",),
        homes=(_COPILOT,),
        stdio_fields={"type": "local", "tools": ["*"]},
        http_fields={"type": "http", "tools": ["*"]},
        advice="In Copilot CLI, `/mcp` shows the server.",
        hooks=Hooks(
            "copilot",
            {"user": f"{_COPILOT}/hooks/{NAME}.json", "project": f".github/hooks/{NAME}.json"},
            matcher="Edit|Write|Grep|Bash",
            is_own=True,
        ),
        lsp=Lsp(
            {"user": f"{_COPILOT}/lsp-config.json", "project": ".github/lsp.json"},
            path=("lspServers",),
            languages="fileExtensions",
        ),
        permissions=_READS_UNASKED,
    ),
    "crush": AiClient(
        title="Crush",
        files={"user": f"{_CONFIG}/crush/crush.json", "project": "crush.json"},
        skills={"user": f"{_CONFIG}/crush/skills", "project": ".crush/skills"},
        commands=("crush",),
        homes=(f"{_CONFIG}/crush",),
        path=("mcp",),
        reference="$%s",
        stdio_fields=_STDIO,
        http_fields=_HTTP,
    ),
    "cursor": AiClient(
        title="Cursor",
        files={"user": "~/.cursor/mcp.json", "project": ".cursor/mcp.json"},
        skills=_AGENTS_SKILLS,
        commands=("cursor", "cursor-agent"),
        homes=("~/.cursor",),
        reference="${env:%s}",
        advice="Turn the server on under Settings, MCP.",
    ),
    "gemini-cli": AiClient(
        title="Gemini CLI",
        files={"user": f"{_GEMINI}/settings.json", "project": ".gemini/settings.json"},
        skills=_AGENTS_SKILLS,
        commands=("gemini",),
        homes=(_GEMINI,),
        reference="$%s",
        url_key="httpUrl",
        advice="In Gemini CLI, `/mcp` shows whether the server is connected; the folder must be trusted.",
        hooks=Hooks(
            "gemini",
            {"user": f"{_GEMINI}/settings.json", "project": ".gemini/settings.json"},
            matcher="^(replace|write_file|grep_search|search_file_content|run_shell_command)$",
            events=("SessionStart", "BeforeAgent", "AfterTool"),
            timeout=5000,
            name=NAME,
        ),
        permissions=Permissions(f"{_GEMINI}/policies/{NAME}.toml", (".gemini/settings.json",)),
    ),
    "goose": AiClient(
        title="Goose",
        files={"user": f"{_CONFIG}/goose/config.yaml"},
        skills={"user": "~/.config/agents/skills", "project": ".agents/skills"},
        commands=("goose",),
        homes=(f"{_CONFIG}/goose",),
        format="yaml",
        path=("extensions",),
        reference="${%s}",
        custom=_goose,
        advice="`goose configure` shows the server among the extensions.",
    ),
    "opencode": AiClient(
        title="OpenCode",
        files={"user": f"{_CONFIG}/opencode/opencode.json", "project": "opencode.json"},
        skills=_AGENTS_SKILLS,
        commands=("opencode",),
        homes=(f"{_CONFIG}/opencode",),
        path=("mcp",),
        reference="{env:%s}",
        custom=_opencode,
        advice="`opencode mcp list` shows whether the server is connected.",
        hooks=Hooks(
            "opencode",
            {"user": f"{_CONFIG}/opencode/plugin/{NAME}.js", "project": f".opencode/plugin/{NAME}.js"},
            is_own=True,
        ),
        lsp=Lsp(
            {"user": f"{_CONFIG}/opencode/opencode.json", "project": "opencode.json"},
            path=("lsp",),
            languages=None,
            off=_OPENCODE_SERVERS,
            advice="The model has the tool `lsp` if OPENCODE_EXPERIMENTAL_LSP_TOOL=true is exported.",
        ),
        permissions=Permissions(
            f"{_CONFIG}/opencode/opencode.json",
            ("opencode.json", "opencode.jsonc", ".opencode/opencode.json", ".opencode/opencode.jsonc"),
            f"{NAME}_%s",
            path=("permission",),
            value="allow",
        ),
    ),
    "qwen-code": AiClient(
        title="Qwen Code",
        files={"user": f"{_QWEN}/settings.json", "project": ".qwen/settings.json"},
        skills=_AGENTS_SKILLS,
        commands=("qwen",),
        homes=(_QWEN,),
        reference="$%s",
        url_key="httpUrl",
        advice="In Qwen Code, `/mcp` shows whether the server is connected.",
        project_advice="The project's file needs `qwen mcp approve nvim-tools`.",
        hooks=Hooks(
            "qwen",
            {"user": f"{_QWEN}/settings.json", "project": ".qwen/settings.json"},
            matcher="^(edit|write_file|grep_search|run_shell_command)$",
        ),
        lsp=Lsp(
            {"project": ".lsp.json"},
            advice="For the language servers, start Qwen Code with `qwen --experimental-lsp`.",
        ),
        permissions=Permissions(
            f"{_QWEN}/settings.json",
            (".qwen/settings.json", ".mcp.json"),
            f"mcp__{NAME}__%s",
            path=("permissions", "allow"),
        ),
    ),
    "vscode": AiClient(
        title="VS Code",
        files={"user": f"{_VSCODE}/mcp.json", "project": ".vscode/mcp.json"},
        skills=_AGENTS_SKILLS,
        commands=("code",),
        homes=(_VSCODE,),
        path=("servers",),
        reference="${env:%s}",
        stdio_fields=_STDIO,
        http_fields=_HTTP,
        advice="VS Code asks once whether the server is trusted; `MCP: List Servers` starts it.",
    ),
    "windsurf": AiClient(
        title="Windsurf",
        files={"user": "~/.codeium/windsurf/mcp_config.json"},
        skills={"user": "~/.codeium/windsurf/skills", "project": ".windsurf/skills"},
        commands=("windsurf",),
        homes=("~/.codeium/windsurf",),
        reference="${env:%s}",
        url_key="serverUrl",
        advice="Reload the servers in Cascade's MCP panel.",
    ),
    "zed": AiClient(
        title="Zed",
        files={"user": f"{_ZED}/settings.json", "project": ".zed/settings.json"},
        skills=_AGENTS_SKILLS,
        commands=("zed", "zeditor"),
        homes=(_ZED,),
        path=("context_servers",),
        stdio_fields={"env": {}},
        advice="The agent panel's settings show whether the server runs.",
    ),
}
"""Name in the command line → client, sorted. `lua/mcp-tools/bridge/clients.lua` has the names, too."""
