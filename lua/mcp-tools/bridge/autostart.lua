--- Decides whether and when the bridge starts automatically. Editors that open for one message or page start none.

local config = require('mcp-tools.config')

local M = {}

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

--- Starts the bridge as soon as there is a UI.
---@param start fun()
function M.run(start)
  local group = vim.api.nvim_create_augroup('mcp-tools.autostart', {})
  local function begin()
    vim.defer_fn(function()
      decided = { reason = purpose() }
      if not M.blocker() then
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
