--- `:McpTools endpoint`: what a client needs to connect.

local bridge = require('mcp-tools.bridge')
local notify = require('mcp-tools.notify')
local scratch = require('mcp-tools.ui.layout.scratch')

local TITLE = 'whoever has the token can call your tools'

-- As most clients have it in their configuration.
local JSON = [[
{
  "mcpServers": {
    "nvim-tools": {
      "type": "http",
      "url": "%s",
      "headers": { "Authorization": "Bearer %s" }
    }
  }
}]]

---@param register string
---@param what string
---@param text string
local function yank(register, what, text)
  vim.fn.setreg(register, text)
  notify.info(('register %s has the %s'):format(register, what))
end

---@param endpoint { url: string, token: string }
local function show(endpoint)
  local header, json = 'Authorization: Bearer ' .. endpoint.token, JSON:format(endpoint.url, endpoint.token)
  local lines = { endpoint.url, header, '', unpack(vim.split(json, '\n')) }
  local function yank_part()
    local line = vim.api.nvim_win_get_cursor(0)[1]
    local part = ({ { 'URL', endpoint.url }, { 'header', header } })[line] or { 'JSON', json }
    yank(vim.v.register, part[1], part[2])
  end
  local description = 'yank the URL, the header or the JSON'
  local keys = { { lhs = 'y', word = 'yank this', description = description, run = yank_part } }
  scratch.show('endpoint', lines, { title = TITLE, keys = keys })
end

---@type mcp-tools.Subcommand
return {
  usage = '[REGISTER]',
  description = 'show what a client needs: URL, header with the token, and both as JSON; with a register,'
    .. ' yank the JSON into it',
  run = function(rest)
    local endpoint = bridge.endpoint()
    if not endpoint then
      return notify.error('the bridge does not run', bridge.status().to_do or 'Try again in a moment')
    elseif rest == '' then
      return show(endpoint)
    end
    local register = rest:match('^"?([%a"*+])$')
    if not register then
      return notify.error(('endpoint %s? :McpTools endpoint [REGISTER], such as +'):format(rest))
    end
    yank(register, 'JSON', JSON:format(endpoint.url, endpoint.token))
  end,
}
