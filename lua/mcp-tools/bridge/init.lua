--- Public functions of the bridge; each loads its file when it is first used, which keeps the start-up short. Decides
--- whether and when the bridge starts automatically: editors that open for one message or page start none.

local config = require('mcp-tools.config')
local global_state = require('mcp-tools.util.global_state')

---@class mcp-tools.bridge: mcp-tools.bridge.Control
---@field is_running fun(): boolean
---@field get_port fun(): integer?
---@field get_auth_token fun(): string?
---@field endpoint fun(): { url: string, token: string, port: integer }?
---@field relay fun(): mcp-tools.bridge.Relay?
---@field acp_entry fun(transport: string): table?, mcp-tools.Error?
---@field revoke_acp fun(entry: table)
---@field status fun(): mcp-tools.bridge.Status
local M = {}

--- Functions that load bridge/control.lua; all others are in bridge/current.lua.
local CONTROL = { 'start', 'stop', 'restart', 'install', 'is_wanted', 'show_hint' }

-- In ms; the first screen is drawn before that.
local DELAY = 10

local SHORT_LIVED = { 'gitcommit', 'gitrebase', 'gitsendemail', 'hgcommit', 'jj', 'jjdescription', 'svn', 'man' }

--- Returns why this editor is short-lived.
---@return string?
local function purpose()
  if vim.env.NVIM and vim.env.NVIM ~= '' then
    return 'this Neovim runs inside another Neovim'
  elseif vim.wo.diff then
    return 'this Neovim was started to show differences'
  elseif vim.list_contains(SHORT_LIVED, vim.bo.filetype) then
    return ('this Neovim was started for one %s buffer'):format(vim.bo.filetype)
  end
end

local decided ---@type { reason: string? }? made at start-up, as the shown buffers change later

--- Returns why the bridge does not start automatically; nil if it does.
---@return string?
function M.blocker()
  if not config.is_setup() then
    return config.refusal() and 'setup() was refused' or 'setup() was not called'
  elseif config.get('bridge.autostart') == false then
    return 'bridge.autostart is false'
  end
  if decided then
    return decided.reason
  end
  return purpose()
end

--- Starts the bridge once there is a UI, except in short-lived editors.
function M.autostart()
  local function begin()
    vim.defer_fn(function()
      decided = { reason = purpose() }
      if M.blocker() or vim.v.exiting ~= vim.NIL then
        return
      end
      M.show_hint()
      if not M.is_wanted() then
        M.start()
      end
    end, DELAY)
  end
  if vim.v.vim_did_enter == 1 and #vim.api.nvim_list_uis() > 0 then
    return begin()
  end
  local group = vim.api.nvim_create_augroup('mcp-tools.autostart', {})
  vim.api.nvim_create_autocmd('UIEnter', { group = group, once = true, callback = begin })
end

if global_state.bridge then
  -- Start-up cost: a bridge exists here only after the plugin was reloaded; `control` replaces it.
  require('mcp-tools.bridge.control')
end

setmetatable(M, {
  __index = function(_, key)
    return require('mcp-tools.bridge.' .. (vim.list_contains(CONTROL, key) and 'control' or 'current'))[key]
  end,
})

return M
