-- The editor's side of `make run`: sets the plugin up unless the user's configuration did, starts the bridge, and
-- shows how a client reaches it.

local python = ...
local root = vim.fs.dirname(vim.fs.dirname(debug.getinfo(1, 'S').source:sub(2)))
local env_file = vim.fs.joinpath(root, '.deps', 'run.env')
local OWNER_ONLY = tonumber('600', 8)

vim.opt.runtimepath:prepend(root)
vim.cmd.runtime('plugin/mcp-tools.lua')

--- Returns the directory of the loaded copy of the plugin; another one if the user's configuration loaded it first.
local function loaded_from()
  local file = debug.getinfo(require('mcp-tools').setup, 'S').source:sub(2)
  return vim.uv.fs_realpath(vim.fs.joinpath(vim.fs.dirname(file), '..', '..'))
end

local function write_env(endpoint)
  local fd = assert(vim.uv.fs_open(env_file, 'w', OWNER_ONLY))
  vim.uv.fs_chmod(env_file, OWNER_ONLY)
  vim.uv.fs_write(fd, ('export NVIM_MCP_URL=%s NVIM_MCP_TOKEN=%s\n'):format(endpoint.url, endpoint.token))
  vim.uv.fs_close(fd)
end

local function show(endpoint)
  local tools = vim.tbl_keys(require('mcp-tools').list_tools())
  require('mcp-tools.ui.window.scratch').show('endpoint', {
    ('mcp-tools.nvim is ready: %d tools at %s'):format(#tools, endpoint.url),
    'q closes this window. :McpTools tools lists them; for URL and token:',
    '  :lua =require("mcp-tools").endpoint()',
    '',
    'In another terminal, hand it to a client:',
    '  . ' .. env_file,
    '  claude mcp add --transport http nvim-tools "$NVIM_MCP_URL" \\',
    '    --header "Authorization: Bearer $NVIM_MCP_TOKEN"',
    '  codex mcp add nvim-tools --url "$NVIM_MCP_URL" \\',
    '    --bearer-token-env-var NVIM_MCP_TOKEN',
    '  gemini mcp add --scope user --transport http nvim-tools \\',
    '    "$NVIM_MCP_URL" -H "Authorization: Bearer $NVIM_MCP_TOKEN"',
    '',
    'Other clients: :help mcp-tools-clients',
  })
end

local function setup()
  local config = require('mcp-tools.config')
  if not config.is_setup() then
    require('mcp-tools').setup({ tools = 'recommended' })
  end
  if config.get('bridge.python') == nil and config.get('bridge.command') == nil then
    require('mcp-tools').setup({ bridge = { python = python } })
  end
end

local function start()
  require('mcp-tools').start({
    on_ready = function()
      local endpoint = require('mcp-tools').endpoint()
      write_env(endpoint)
      show(endpoint)
    end,
  })
end

local copy = loaded_from()
if copy ~= vim.uv.fs_realpath(root) then
  local text = 'make run: your configuration has loaded mcp-tools.nvim from %s, so that copy runs'
  vim.notify(text:format(copy), vim.log.levels.WARN)
else
  setup()
  vim.cmd('silent! helptags ' .. vim.fn.fnameescape(vim.fs.joinpath(root, 'doc')))
  vim.api.nvim_create_autocmd('UIEnter', { once = true, callback = vim.schedule_wrap(start) })
  vim.api.nvim_create_autocmd('VimLeavePre', {
    callback = function()
      os.remove(env_file)
    end,
  })
end
