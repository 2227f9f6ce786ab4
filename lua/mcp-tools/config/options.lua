--- Every option of `setup()`, once: defaults, validation and the OPTIONS chapter of the help come from this list.

---@class mcp-tools.Option
---@field path string dotted place in the table given to `setup()`
---@field type string|string[] 'string' | 'boolean' | 'integer' | 'function' | 'list' | 'map'; several = any of them
---@field description string one sentence or two; generated into the help
---@field default? any absent = nil
---@field enum? string[] allowed values of the string form
---@field example? string of the list form
---@field items? string|string[] type of each item of a list, or of each value of a map
---@field item_enum? string[] allowed values of string items
---@field fields? mcp-tools.Option[] what each item of a map may hold
---@field min? integer
---@field max? integer

local DECISIONS = { 'allow', 'ask', 'deny' }
local REVIEW = { 'ask', 'after', 'never' }
local KIB, MIB, SECOND = 1024, 1024 * 1024, 1000

---@type mcp-tools.Option[]
return {
  {
    path = 'tools',
    type = { 'string', 'list', 'map' },
    enum = { 'recommended', 'all' },
    example = '{ "buffer", "lsp" }',
    items = { 'string', 'map', 'boolean' },
    description = 'Bundled tools to offer: "recommended", "all", a list of groups, tool names and definitions, or a map'
      .. ' such as { buffer = true, test = false }. Unset: none. What is false is not offered, whoever has registered'
      .. ' it.',
  },
  {
    path = 'resources',
    type = { 'boolean', 'list', 'map' },
    default = true,
    items = { 'string', 'boolean' },
    description = 'Bundled resources to offer: all (true), none (false), or a list of names; { NAME = false } takes one'
      .. ' away, whoever has registered it.',
  },
  {
    path = 'prompts',
    type = { 'boolean', 'list', 'map' },
    default = true,
    items = { 'string', 'boolean' },
    description = 'Bundled prompts to offer: all (true), none (false), or a list of names; { NAME = false } takes one'
      .. ' away, whoever has registered it.',
  },
  {
    path = 'catalogue',
    type = 'string',
    default = 'direct',
    enum = { 'direct', 'search' },
    description = 'How tools are published: each of them, or three that find, describe and call the others'
      .. ' (|mcp-tools-catalogue|), which costs a model less than 2 kB however many there are.',
  },
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
    description = 'What an AI client sees, by the name that it gives itself: NAME = { tools = …, readonly = true,'
      .. ' catalogue = "search", review = "ask" }. It only takes away from what is on (|mcp-tools-scopes|), and only'
      .. ' makes the review stricter.',
  },
  {
    path = 'companions',
    type = { 'string', 'list', 'boolean' },
    enum = { 'auto' },
    example = '{ "claude", "gemini" }',
    items = 'string',
    description = 'Agents in terminals that find this editor by themselves, by name, such as { "claude", "gemini" };'
      .. ' "auto" or true = all that the plugin knows. Unset or false: none.',
  },
  {
    path = 'companion_trust',
    type = 'list',
    default = {},
    items = 'string',
    item_enum = { 'copilot' },
    description = 'Agents that are told that you trust the folders of this editor, and so do not ask you whether you do'
      .. ' (|mcp-tools-companions|): { "copilot" }. The others ask in any case.',
  },
  {
    path = 'integrations',
    type = 'map',
    default = {},
    items = { 'boolean', 'map' },
    description = 'Servers of agents that run already and get these tools for as long as both run'
      .. ' (|mcp-tools-integrations|): { opencode = true }, or {'
      .. ' opencode = { url = …, username = …, password_env = … } }. `ampcode = true` makes the command'
      .. ' `:AmpStartWithMCP`, which is `:McpTools terminal amp`.',
  },
  {
    path = 'tool_prefix',
    type = 'string',
    default = 'nvim_',
    description = 'Put before the name of every tool that a client sees; may be empty.',
  },
  {
    path = 'bridge.command',
    type = { 'list', 'string' },
    items = 'string',
    description = 'Command that starts the bridge instead of the private Python environment, taken as it is: a list of'
      .. ' arguments, or one program.',
  },
  {
    path = 'bridge.python',
    type = 'string',
    description = 'Python (3.11 or newer, with the packages of requirements.lock) that runs the bridge and tools in'
      .. ' Python instead of the private environment.',
  },
  {
    path = 'bridge.host',
    type = 'string',
    default = '127.0.0.1',
    description = 'Address that the bridge listens on. Only loopback ones (127.0.0.1, ::1) are accepted.',
  },
  {
    path = 'bridge.port',
    type = 'integer',
    default = 0,
    min = 0,
    max = 65535,
    description = 'Port that the bridge listens on; 0 = one that stays the same for the project.',
  },
  {
    path = 'bridge.autostart',
    type = 'boolean',
    default = true,
    description = 'Start the bridge once the editor has a UI and `setup()` was called.',
  },
  {
    path = 'bridge.preload',
    type = 'boolean',
    default = false,
    description = 'Load the MCP SDK when the bridge starts (about a second, 45 MB), not with the first request. '
      .. 'The bridge does so anyway in a project where a client has connected before.',
  },
  {
    path = 'bridge.allowed_hosts',
    type = 'list',
    default = {},
    items = 'string',
    description = 'Host headers accepted besides the loopback names.',
  },
  {
    path = 'bridge.allowed_origins',
    type = 'list',
    default = {},
    items = 'string',
    description = "Origin headers accepted besides the bridge's own loopback address, for programs that send one. "
      .. 'A page in a browser cannot connect even then: the bridge answers no CORS preflight.',
  },
  {
    path = 'bridge.log_level',
    type = 'string',
    default = 'info',
    enum = { 'debug', 'info', 'warn', 'error' },
    description = 'Least level that goes to the log. "debug" also shows messages about the bridge.',
  },
  {
    path = 'bridge.log_file',
    type = 'string',
    description = 'File that the bridge writes its own log to, besides the log of the plugin.',
  },
  {
    path = 'bridge.tool_timeout',
    type = 'integer',
    default = 300 * SECOND,
    min = 0,
    description = 'Time in ms that a tool may take when its definition names none; 0 = no limit.',
  },
  {
    path = 'limits.request_body',
    type = 'integer',
    default = 4 * MIB,
    min = KIB,
    description = 'Largest body of a request, in bytes.',
  },
  {
    path = 'limits.tool_result',
    type = 'integer',
    default = 10 * MIB,
    min = KIB,
    description = 'Largest content of one tool result, in bytes.',
  },
  {
    path = 'limits.resource',
    type = 'integer',
    default = 10 * MIB,
    min = KIB,
    description = 'Largest resource that is read, in bytes.',
  },
  {
    path = 'limits.calls',
    type = 'integer',
    default = 1024,
    min = 1,
    description = 'Tool calls in flight; more are answered `busy`.',
  },
  {
    path = 'limits.sessions',
    type = 'integer',
    default = 64,
    min = 1,
    description = 'Sessions held in memory; beyond that the oldest idle one gives way.',
  },
  {
    path = 'approval.default',
    type = 'string',
    default = 'ask',
    enum = DECISIONS,
    description = 'What happens to a call that no other rule decides.',
  },
  {
    path = 'approval.ask_in',
    type = 'string',
    default = 'editor',
    enum = { 'editor', 'client', 'both' },
    description = 'Where the person is asked: here, by the AI client, or in both places at once.',
  },
  {
    path = 'approval.timeout',
    type = 'integer',
    default = 120 * SECOND,
    min = SECOND,
    description = 'Time in ms to answer a question for approval; none in time = denied.',
  },
  {
    path = 'approval.groups',
    type = 'map',
    default = {},
    items = 'string',
    item_enum = DECISIONS,
    description = 'Decision for each tool of a group, mount or file of tools: group = "allow" | "ask" | "deny".',
  },
  {
    path = 'approval.tools',
    type = 'map',
    default = {},
    items = 'string',
    item_enum = DECISIONS,
    description = 'Decision for single tools: name = "allow" | "ask" | "deny".',
  },
  {
    path = 'approval.rule',
    type = 'function',
    description = 'fun(tool, args, ctx): "allow" | "ask" | "deny" | nil; nil leaves the decision to the other rules.',
  },
  {
    path = 'review.when',
    type = 'string',
    enum = REVIEW,
    description = 'When edits of agents are reviewed, hunk by hunk (|mcp-tools-review|): "ask" before they are made,'
      .. ' instead of a question for approval; "after", so that what you reject is taken back; "never". Unset: when you'
      .. ' choose so in a question for approval.',
  },
  {
    path = 'review.layout',
    type = 'string',
    default = 'inline',
    enum = { 'inline', 'split' },
    description = 'How a review is shown once you go there: in the buffer itself, or side by side in a tab page of its'
      .. ' own, where what is proposed can be edited.',
  },
  {
    path = 'review.groups',
    type = 'map',
    default = {},
    items = 'string',
    item_enum = REVIEW,
    description = 'The same for each tool of a group: group = "ask" | "after" | "never".',
  },
  {
    path = 'review.tools',
    type = 'map',
    default = {},
    items = 'string',
    item_enum = REVIEW,
    description = 'The same for single tools: name = "ask" | "after" | "never".',
  },
  {
    path = 'review.timeout',
    type = 'integer',
    default = 1800 * SECOND,
    min = SECOND,
    description = 'Time in ms to review what a call wants to change; none in time = nothing is changed.',
  },
  {
    path = 'sensitive.patterns',
    type = 'list',
    items = 'string',
    -- Files that hold secrets by convention, and what version control keeps of them.
    default = {
      '.env',
      '.env.*',
      '.env-*',
      '.env_*',
      '.dev.vars',
      '*.env',
      '.envrc',
      '.envrc.*',
      '*.pem',
      '*.key',
      '*.p12',
      '*.pfx',
      '*.ppk',
      '*.jks',
      '*.keystore',
      '*.kdbx',
      '*.gpg',
      '*.pgp',
      '*.asc',
      '*.age',
      '*.p8',
      '*_sk',
      'id_rsa',
      'id_dsa',
      'id_ecdsa',
      'id_ed25519',
      '*_rsa',
      '*_dsa',
      '*_ecdsa',
      '*_ed25519',
      'ssh_host_*_key',
      'deploy_key',
      '.netrc',
      '_netrc',
      '.pgpass',
      '.authinfo*',
      '.my.cnf',
      '.mylogin.cnf',
      '.boto',
      '.s3cfg',
      '.msmtprc',
      '.fetchmailrc',
      '.sentryclirc',
      '.ftpconfig',
      '.pypirc',
      '.npmrc',
      '.yarnrc.yml',
      '.git-credentials',
      '.htpasswd',
      '.databrickscfg',
      '.vault-token',
      '.vault_pass*',
      '.dockercfg',
      '*credentials.json',
      'credentials.tfrc.json',
      'client_secret*.json',
      'oauth_creds.json',
      '*firebase-adminsdk*.json',
      'local.settings.json',
      'appsettings.*.json',
      'auth.json',
      'secrets.y*ml',
      'secrets.json',
      'secrets.toml',
      '.secrets',
      'service-account*.json',
      'service_account*.json',
      '*.tfstate',
      '*.tfvars',
      '*.tfvars.json',
      'kubeconfig',
      'kubeconfig.*',
      'rclone.conf',
      '*.ovpn',
      '.claude.json',
      '.mcp.json',
      '**/.cursor/mcp.json',
      '**/.vscode/mcp.json',
      '**/.ssh/**',
      '**/.gnupg/**',
      '**/.aws/credentials',
      '**/.aws/config',
      '**/.docker/config.json',
      '**/.kube/config',
      '**/.azure/**',
      '**/gcloud/*.db',
      '**/.vscode/sftp.json',
      '**/.cargo/credentials*',
      '**/.gem/credentials',
      '**/.m2/settings.xml',
      '**/gh/hosts.yml',
      '.*_history',
      '.zhistory',
      '.histfile',
      'fish_history',
      '**/.git/**',
      '**/.hg/**',
      '**/.jj/**',
      '**/.svn/**',
      '**/.bzr/**',
    },
    description = 'Globs (|mcp-tools-globs|) of files whose text no tool returns. What they say of `.git` holds for'
      .. ' repositories of another name, such as bare ones.',
  },
  {
    path = 'roots.markers',
    type = 'list',
    default = { '.git', '.jj', '.hg', '.svn' },
    items = 'string',
    description = 'Files or folders that mark the root of a project; the nearest one above the current file counts.',
  },
  {
    path = 'git.alternates',
    type = 'list',
    default = {},
    items = 'string',
    description = 'Directories from which repositories may borrow objects (`git clone --shared` or `--reference`), such'
      .. ' as { "~/src/linux" }. The tools refuse any other repository that borrows objects: a hostile one could expose'
      .. ' the history of another repository.',
  },
  {
    path = 'python.modules',
    type = 'list',
    default = {},
    items = 'string',
    description = 'Python modules that define tools with `@mcp_tool`, besides the files `mcp_tools/*.py` on the'
      .. ' runtimepath. They are looked for in `python3/` folders on the runtimepath, too.',
  },
  {
    path = 'python.packages',
    type = 'string',
    description = 'Requirements file, as pip reads it, of packages that tools need: `:McpTools install` adds them to'
      .. ' the private environment. A relative path starts at the folder of your configuration.',
  },
  {
    path = 'mounts',
    type = 'map',
    default = {},
    items = { 'map', 'string' },
    description = 'Other MCP servers, whose tools, resources and prompts are offered too (|mcp-tools-mounts|): NAME ='
      .. ' { command = { … } } or { url = … }; and files that name servers, such as ".mcp.json" or { file ='
      .. ' ".mcp.json", secrets = { … } }.',
  },
  {
    path = 'instructions',
    type = { 'string', 'function' },
    description = 'Text, or fun(): string, added to the instructions that a client gets from the server.',
  },
  {
    path = 'ui.approval',
    type = 'string',
    default = 'float',
    enum = { 'float', 'select', 'event' },
    description = 'How a question for approval is shown: in a floating window that leaves the cursor where it is, by'
      .. ' `vim.ui.select`, or not at all, for whoever shows it at the event `User McpToolsApproval`.',
  },
  {
    path = 'ui.approval_focus',
    type = 'boolean',
    default = false,
    description = 'Move the cursor into the approval window when it opens in normal mode.',
  },
  {
    path = 'ui.interview_focus',
    type = 'boolean',
    default = false,
    description = 'Move the cursor into the window of an interview when it opens in normal mode.',
  },
  {
    path = 'ui.changes',
    type = 'string',
    default = 'number',
    enum = { 'number', 'sign', 'none' },
    description = 'How lines that an assistant has changed are marked: their number is coloured, with a sign beside it,'
      .. ' or not at all (|mcp-tools-changes|).',
  },
  {
    path = 'ui.progress',
    type = 'boolean',
    default = true,
    description = 'Show calls that run longer than a second as progress messages (`:help progress-message`, Neovim'
      .. ' 0.12); in older ones as notifications, where a plugin shows those.',
  },
  {
    path = 'ui.dashboard',
    type = 'string',
    default = 'float',
    enum = { 'float', 'split' },
    description = 'Where the dashboard (|mcp-tools-dashboard|) opens: in a floating window, or below all others.',
  },
  { path = 'on_ready', type = 'function', description = 'fun(port: integer), called when the bridge is ready.' },
  { path = 'on_stop', type = 'function', description = 'fun(), called when the bridge has stopped.' },
}
