--- Autostart: whether the bridge starts automatically, and when. Editors that live for one message or one page must not
--- pay for a bridge.

local config = require('mcp-tools.config')

local M = {}

-- ms; the first screen is drawn before we do anything.
local DELAY = 10

local SHORT_LIVED = { 'gitcommit', 'gitrebase', 'gitsendemail', 'hgcommit', 'jj', 'jjdescription', 'svn', 'man' }

--- Why this editor is short-lived.
---@return string?
local function purpose()
  if vim.env.NVIM and vim.env.NVIM ~= '' then
    return 'this editor runs inside another Neovim'
  elseif vim.wo.diff then
    return 'this editor was started to show differences'
  elseif vim.list_contains(SHORT_LIVED, vim.bo.filetype) then
    return ('this editor was started for one %s buffer'):format(vim.bo.filetype)
  end
end

local decided ---@type { reason: string? }? at the start; later other windows and files are shown

--- Why the bridge does not start by itself here; nil when it does.
---@return string?
function M.hindrance()
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

--- Starts the bridge once there is a UI, at once when there is one.
---@param start fun()
function M.run(start)
  local group = vim.api.nvim_create_augroup('mcp-tools.autostart', {})
  local function begin()
    vim.defer_fn(function()
      decided = { reason = purpose() }
      if not M.hindrance() then
        require('mcp-tools.bridge.first_time').tell() -- start-up cost
        start()
      end
    end, DELAY)
  end
  if vim.v.vim_did_enter == 1 and #vim.api.nvim_list_uis() > 0 then
    begin()
  else
    vim.api.nvim_create_autocmd('UIEnter', { group = group, once = true, callback = begin })
  end
end

return M
