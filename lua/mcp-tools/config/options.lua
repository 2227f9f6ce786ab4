--- All options of `setup()`: the source of their defaults, checks and the OPTIONS chapter of the help.

---@class mcp-tools.Option
---@field path string dotted path in the table passed to `setup()`
---@field type string|string[] 'string' | 'boolean' | 'integer' | 'function' | 'list' | 'map'; several = any of them
---@field description? string one or two sentences for the help; not for fields of a map
---@field default? any
---@field enum? string[] allowed values of the string form
---@field example? string of the list form
---@field items? string|string[] type of each item of a list, or of each value of a map
---@field item_enum? string[] allowed values of string items
---@field fields? mcp-tools.Option[] fields of each item of a map
---@field min? integer
---@field max? integer

local DECISIONS = { 'allow', 'ask', 'deny' }
local REVIEW = { 'ask', 'after', 'never' }
local KIB, MIB, SECOND = 1024, 1024 * 1024, 1000

---@param text string
---@return string[]
local function words(text)
  return vim.split(vim.trim(text), '%s+')
end

---@type mcp-tools.Option[]
local options = {}

---@param fields mcp-tools.Option
---@param description string
local function option(fields, description)
  fields.description = description
  table.insert(options, fields)
end

option(
  {
    path = 'tools',
    type = { 'string', 'boolean', 'list', 'map' },
    default = 'recommended',
    enum = { 'recommended', 'all' },
    example = '{ "file", "symbol" }',
    items = { 'string', 'map', 'boolean' },
  },
  'Bundled tools to switch on: "recommended", "all" (or true), none (false), a list of groups, tool names and'
    .. ' definitions, or a map such as { git = true, debug_run = false }, which adds to the value before it. NAME ='
    .. ' false also switches off a tool that a plugin registered.'
)
option(
  { path = 'resources', type = { 'boolean', 'list', 'map' }, default = true, items = { 'string', 'boolean' } },
  'Bundled resources to switch on: all (true), none (false), or a list of names. { NAME = false } switches one off,'
    .. ' even if a plugin registered it.'
)
option(
  { path = 'prompts', type = { 'boolean', 'list', 'map' }, default = true, items = { 'string', 'boolean' } },
  'Bundled prompts to switch on: all (true), none (false), or a list of names. { NAME = false } switches one off,'
    .. ' even if a plugin registered it.'
)
option(
  { path = 'catalogue', type = 'string', default = 'direct', enum = { 'direct', 'search' } },
  'How tools are published: "direct" lists all of them; "search" lists three tools that find, describe and call the'
    .. ' others (|mcp-tools-catalogue|), less than 2 kB for any number of tools.'
)
option(
  {
    path = 'clients',
    type = 'map',
    default = {},
    items = 'map',
    fields = {
      { path = 'tools', type = { 'string', 'list', 'map' }, items = { 'string', 'boolean' } },
      { path = 'readonly', type = 'boolean' },
      { path = 'catalogue', type = 'string', enum = { 'direct', 'search' } },
      { path = 'review', type = 'string', enum = { 'ask', 'after', 'never' } },
    },
  },
  'What an AI client sees, by the name that it reports: NAME = { tools = …, readonly = true, catalogue = "search",'
    .. ' review = "ask" }. It can only hide tools that are on (|mcp-tools-scopes|), and only make the review'
    .. ' stricter.'
)
option(
  {
    path = 'agents',
    type = { 'string', 'list', 'boolean' },
    enum = { 'auto' },
    example = '{ "claude", "gemini" }',
    items = 'string',
  },
  'Terminal agents that connect to this editor automatically, by name, such as { "claude", "gemini" }; "auto" or true'
    .. ' = all supported ones. Unset or false: none.'
)
option(
  { path = 'agent_directory_trust', type = 'list', default = {}, items = 'string', item_enum = { 'copilot' } },
  'Agents to which this editor reports its directories as trusted, so that they do not ask (|mcp-tools-agents|): {'
    .. ' "copilot" }. The others always ask.'
)
option(
  { path = 'agent_permissions', type = 'boolean', default = false },
  'Whether agents that |:McpTools-terminal| starts run the bundled tools that only read without asking'
    .. ' (|mcp-tools-permissions|).'
)
option(
  {
    path = 'terminal.position',
    type = 'string',
    default = 'auto',
    enum = { 'auto', 'left', 'right', 'above', 'below', 'float' },
  },
  'Where the terminal of an agent opens (|mcp-tools-terminal|); "auto": right of all windows if the screen has 160'
    .. ' columns, otherwise below them.'
)
option(
  { path = 'terminal.size', type = 'integer', default = 50, min = 1, max = 100 },
  'Width of such a window in percent of the screen; the height if it is above or below; both of a floating one.'
)
option(
  { path = 'terminal.auto_insert', type = 'boolean', default = true },
  'Enter Terminal mode whenever the cursor enters the terminal of an agent.'
)
option(
  { path = 'terminal.auto_close', type = 'boolean', default = true },
  'Close the window when the agent has ended without an error.'
)
option(
  { path = 'terminal.focus_after_send', type = 'boolean', default = false },
  'Go to the terminal of the agent after |:McpTools-send|, |:McpTools-add| and |:McpTools-type|.'
)
option(
  { path = 'terminal.commands', type = 'map', default = {}, items = { 'string', 'list' } },
  'Commands of agents in terminals instead of their names: { claude = "~/.claude/local/claude" }, or a list with'
    .. ' arguments. Other names are further programs that |:McpTools-terminal| starts, without tools: { aider = {'
    .. ' "aider", "--no-git" } }.'
)
option(
  { path = 'terminal.env', type = 'map', default = {}, items = 'string' },
  'Further environment variables of terminals.'
)
option(
  { path = 'terminal.cwd', type = { 'string', 'function' } },
  'Directory in which agents start, or a function that returns it; unset: the current one.'
)
option(
  { path = 'terminal.open', type = 'function' },
  'A function fun(command, env, cwd) that opens a terminal in place of this plugin, such as one outside of Neovim'
    .. ' (|mcp-tools-terminal-open|). It may return the buffer of a terminal.'
)
option(
  { path = 'hooks.context', type = 'boolean', default = true },
  'Hooks of terminal agents (|mcp-tools-hooks|): report what you have open, selected and unsaved, with each prompt'
    .. ' what has changed.'
)
option(
  { path = 'hooks.diagnostics', type = 'boolean', default = true },
  'Hooks of terminal agents: report new diagnostics of the files that the agent has edited.'
)
option(
  { path = 'hooks.reminder', type = 'boolean', default = false },
  'Hooks of terminal agents: after the third text search for one name in a turn, point to the symbol tools.'
)
option(
  { path = 'integrations', type = 'map', default = {}, items = { 'boolean', 'map' } },
  'Running servers of agents that get these tools while both run (|mcp-tools-integrations|): { opencode = true }, or'
    .. ' { opencode = { url = …, username = …, password_env = … } }. `ampcode = true` defines the command'
    .. ' `:AmpStartWithMCP`, which is `:McpTools terminal amp`.'
)
option(
  { path = 'tool_prefix', type = 'string', default = 'nvim_' },
  'Prefix of the names of all tools except mounted ones; may be empty.'
)
option(
  { path = 'bridge.command', type = { 'list', 'string' }, items = 'string' },
  'Command that starts the bridge, instead of the private Python environment: a list of arguments, or one executable.'
    .. ' It is not changed or expanded.'
)
option(
  { path = 'bridge.python', type = 'string' },
  'Python executable (3.11 or newer, with the packages of requirements.lock) that runs the bridge and Python tools'
    .. ' instead of the private environment.'
)
option(
  { path = 'bridge.host', type = 'string', default = '127.0.0.1' },
  'Address that the bridge listens on. Only loopback addresses (127.0.0.1, ::1) are allowed.'
)
option(
  { path = 'bridge.port', type = 'integer', default = 0, min = 0, max = 65535 },
  'Port that the bridge listens on; 0 = chosen automatically, the same each time for a project.'
)
option(
  { path = 'bridge.autostart', type = 'boolean', default = true },
  'Start the bridge once the editor has a UI and `setup()` was called.'
)
option(
  { path = 'bridge.preload', type = 'boolean', default = false },
  'Load the MCP SDK when the bridge starts (about a second, 45 MB) instead of with the first request. This is always'
    .. ' done in a project where a client has connected before.'
)
option(
  { path = 'bridge.allowed_hosts', type = 'list', default = {}, items = 'string' },
  'Host headers that are accepted in addition to the loopback names.'
)
option(
  { path = 'bridge.allowed_origins', type = 'list', default = {}, items = 'string' },
  "Origin headers that are accepted in addition to the bridge's own loopback address, for programs that send one. Web"
    .. ' pages cannot connect: the bridge does not support CORS preflight requests.'
)
option(
  { path = 'bridge.log_level', type = 'string', default = 'info', enum = { 'debug', 'info', 'warn', 'error' } },
  'Lowest level that is logged. "debug" includes messages about the bridge.'
)
option({ path = 'bridge.log_file', type = 'string' }, "File for the bridge's own log, in addition to the plugin's log.")
option(
  { path = 'bridge.tool_timeout', type = 'integer', default = 300 * SECOND, min = 0 },
  'Timeout in ms of tools whose definition has none; 0 = no limit.'
)
option(
  { path = 'limits.request_body', type = 'integer', default = 4 * MIB, min = KIB },
  'Maximum size of a request body in bytes.'
)
option(
  { path = 'limits.tool_result', type = 'integer', default = 10 * MIB, min = KIB },
  'Maximum size of the content of a tool result in bytes.'
)
option(
  { path = 'limits.resource', type = 'integer', default = 10 * MIB, min = KIB },
  'Maximum size of a resource in bytes.'
)
option(
  { path = 'limits.calls', type = 'integer', default = 1024, min = 1 },
  'Maximum number of running tool calls; further calls fail with `busy`.'
)
option(
  { path = 'limits.sessions', type = 'integer', default = 64, min = 1 },
  'Maximum number of sessions in memory; beyond that the oldest idle session is removed.'
)
option(
  { path = 'approval.default', type = 'string', default = 'ask', enum = DECISIONS },
  'Decision for a call that no other rule decides.'
)
option(
  { path = 'approval.ask_in', type = 'string', default = 'editor', enum = { 'editor', 'client', 'both' } },
  'Where the user is asked for approval: in the editor, by the AI client, or in both at once.'
)
option(
  { path = 'approval.timeout', type = 'integer', default = 120 * SECOND, min = SECOND },
  'Time in ms to answer a request for approval; after that the call is denied.'
)
option(
  { path = 'approval.groups', type = 'map', default = {}, items = 'string', item_enum = DECISIONS },
  'Decision for all tools of a group, mount or file: group = "allow" | "ask" | "deny".'
)
option(
  { path = 'approval.tools', type = 'map', default = {}, items = 'string', item_enum = DECISIONS },
  'Decision for single tools: name = "allow" | "ask" | "deny".'
)
option(
  { path = 'approval.rule', type = 'function' },
  'A function fun(tool, args, ctx) that returns "allow", "ask", "deny", or nil, which leaves the decision to the'
    .. ' other rules.'
)
option(
  { path = 'review.when', type = 'string', enum = REVIEW },
  'When edits by agents are reviewed, hunk by hunk (|mcp-tools-review|): "ask": before they are made, instead of a'
    .. ' request for approval; "after": rejected hunks are reverted; "never". Unset: if you choose a review in a'
    .. ' request for approval.'
)
option(
  { path = 'review.layout', type = 'string', default = 'inline', enum = { 'inline', 'split' } },
  'How a review is shown when you enter it: in the buffer itself, or side by side in its own tab page, where the'
    .. ' proposed text can be edited.'
)
option(
  { path = 'review.groups', type = 'map', default = {}, items = 'string', item_enum = REVIEW },
  '`review.when` for all tools of a group: group = "ask" | "after" | "never".'
)
option(
  { path = 'review.tools', type = 'map', default = {}, items = 'string', item_enum = REVIEW },
  '`review.when` for single tools: name = "ask" | "after" | "never".'
)
option(
  { path = 'review.timeout', type = 'integer', default = 1800 * SECOND, min = SECOND },
  'Time in ms to review the changes of a call; after that the changes are discarded.'
)
option(
  {
    path = 'sensitive.patterns',
    type = 'list',
    items = 'string',
    -- Files that contain secrets by convention, and the repositories of version control, which have copies of them.
    default = words([[
      .env .env.* .env-* .env_* .dev.vars *.env *.env.local *.env.dev *.env.development *.env.prod *.env.production
      *.env.staging *.env.test .envrc .envrc.* *.pem *.pem.txt *.key *.key.txt *.p12 *.pfx *.ppk *.jks *.keystore
      *.kdbx *.gpg *.pgp *.asc *.age *.p8 *_sk id_rsa id_dsa id_ecdsa id_ed25519 id_rsa.txt id_dsa.txt id_ecdsa.txt
      id_ed25519.txt *_rsa *_dsa *_ecdsa *_ed25519
      ssh_host_*_key deploy_key .netrc _netrc .pgpass .authinfo* .my.cnf .mylogin.cnf .boto .s3cfg .msmtprc
      .fetchmailrc .sentryclirc .ftpconfig .pypirc .npmrc .yarnrc.yml .git-credentials .htpasswd .databrickscfg
      .vault-token .vault_pass* .dockercfg *credentials.json credentials.tfrc.json client_secret*.json
      oauth_creds.json *firebase-adminsdk*.json local.settings.json appsettings.*.json auth.json secrets.y*ml
      secrets.json secrets.toml .secrets service-account*.json service_account*.json *.tfstate *.tfvars
      *.tfvars.json kubeconfig kubeconfig.* rclone.conf *.ovpn .claude.json .mcp.json **/.cursor/mcp.json
      **/.vscode/mcp.json **/.ssh/** **/.gnupg/** **/.aws/credentials **/.aws/config **/.docker/config.json
      **/.kube/config **/.azure/** **/gcloud/*.db **/.vscode/sftp.json **/.cargo/credentials* **/.gem/credentials
      **/.m2/settings.xml **/gh/hosts.yml .*_history .zhistory .histfile fish_history **/.git/** **/.hg/**
      **/.jj/** **/.svn/** **/.bzr/**
    ]]),
  },
  'Globs (|mcp-tools-globs|) of files whose text no tool returns. Globs for `.git` also apply to repositories with'
    .. ' another name, such as bare ones.'
)
option(
  { path = 'roots.markers', type = 'list', default = { '.git', '.jj', '.hg', '.svn' }, items = 'string' },
  'Files or directories in the root of a project; the nearest one above the current file is used.'
)
option(
  { path = 'git.alternates', type = 'list', default = {}, items = 'string' },
  'Directories from which repositories may borrow objects (`git clone --shared` or `--reference`), such as {'
    .. ' "~/src/linux" }. The tools refuse any other repository that borrows objects: a hostile one could expose the'
    .. ' history of another repository.'
)
option(
  { path = 'python.modules', type = 'list', default = {}, items = 'string' },
  "Python modules that define tools with `@mcp_tool`, in addition to the files `mcp_tools/*.py` in 'runtimepath'."
    .. " `python3/` directories in 'runtimepath' are searched, too."
)
option(
  { path = 'python.packages', type = 'string' },
  'pip requirements file of packages that tools need: `:McpTools install` adds them to the private environment. A'
    .. ' relative path is relative to the directory of your configuration.'
)
option(
  { path = 'mounts', type = 'map', default = {}, items = { 'map', 'string' } },
  'Other MCP servers, whose tools, resources and prompts clients get, too (|mcp-tools-mounts|): NAME = { command = {'
    .. ' … } } or { url = … }; and files that define servers, such as ".mcp.json" or { file = ".mcp.json", secrets ='
    .. ' { … } }.'
)
option(
  { path = 'instructions', type = { 'string', 'function' } },
  'Text, or a function that returns text, to add to the instructions for clients.'
)
option(
  { path = 'ui.approval', type = 'string', default = 'float', enum = { 'float', 'select', 'event' } },
  'How a request for approval is shown: in a floating window that does not take the focus, by `vim.ui.select` with'
    .. ' the change in a window at the top, or only as the event `User McpToolsApproval`, for another plugin to show.'
)
option(
  { path = 'ui.approval_focus', type = 'boolean', default = false },
  'Move the cursor into the approval window when it opens in normal mode.'
)
option(
  { path = 'ui.interview_focus', type = 'boolean', default = false },
  'Move the cursor into the window of an interview when it opens in normal mode.'
)
option(
  { path = 'ui.changes', type = 'string', default = 'number', enum = { 'number', 'sign', 'none' } },
  'How lines changed by an assistant are marked: by a colored line number, by a sign, or not at all'
    .. ' (|mcp-tools-changes|).'
)
option(
  { path = 'ui.progress', type = 'boolean', default = true },
  'Show calls that run longer than a second as progress messages (`:help progress-message`, Neovim 0.12); in older'
    .. ' versions as notifications, if a notification plugin is installed.'
)
option(
  { path = 'ui.dashboard', type = 'string', default = 'float', enum = { 'float', 'split' } },
  'Where the dashboard (|mcp-tools-dashboard|) opens: in a floating window, or below all others.'
)
option({ path = 'on_ready', type = 'function' }, 'A function fun(port) that is called when the bridge is ready.')
option({ path = 'on_stop', type = 'function' }, 'A function that is called when the bridge has stopped.')

return options
