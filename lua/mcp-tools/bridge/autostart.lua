--- Autostart: whether the bridge starts by itself, and when.
---
--- Receives: how this editor was started.
--- Sends: whether the bridge should start by itself, and does it at the right time.
--- Does not know about: processes.
---
--- Editors that live for one message or one page must not pay for a bridge.

local config = require('mcp-tools.config')

local M = {}

-- ms; the first screen is drawn before we do anything.
local DELAY = 10

local SHORT_LIVED = {
  filetypes = { 'gitcommit', 'gitrebase', 'gitsendemail', 'hgcommit', 'jj', 'jjdescription', 'svn', 'man' },
  -- Before file types are known, or with them switched off.
  names = {
    '^COMMIT_EDITMSG$',
    '^MERGE_MSG$',
    '^SQUASH_MSG$',
    '^TAG_EDITMSG$',
    '^NOTES_EDITMSG$',
    '^EDIT_DESCRIPTION$',
    '^git%-rebase%-todo$',
    '^addp%-hunk%-edit%.diff$',
    '^hg%-editor%-.*%.txt$',
    '^svn%-commit.*%.tmp$',
    '%.jjdescription$',
  },
  arguments = { '^-d$', '^%+Man!?', '^Man!?' },
}

---@param text string
---@param patterns string[]
---@return boolean
local function matches(text, patterns)
  for _, pattern in ipairs(patterns) do
    if text:find(pattern) then
      return true
    end
  end
  return false
end

--- Why the bridge does not start by itself here; nil when it does.
---@return string?
function M.hindrance()
  if not config.is_setup() then
    return config.refusal() and 'setup() was refused' or 'setup() was not called'
  elseif config.get('bridge.autostart') == false then
    return 'bridge.autostart is false'
  elseif vim.env.NVIM and vim.env.NVIM ~= '' then
    return 'this editor runs inside another Neovim'
  elseif vim.wo.diff then
    return 'this editor was started to show differences'
  elseif vim.list_contains(SHORT_LIVED.filetypes, vim.bo.filetype) then
    return ('this editor was started for one %s buffer'):format(vim.bo.filetype)
  end
  for i = 2, #vim.v.argv do
    local argument = vim.v.argv[i]
    if matches(argument, SHORT_LIVED.arguments) or matches(vim.fs.basename(argument), SHORT_LIVED.names) then
      return ('this editor was started with %s'):format(argument)
    end
  end
end

--- Starts the bridge once there is a UI, at once when there is one.
---@param start fun()
function M.run(start)
  local group = vim.api.nvim_create_augroup('mcp-tools.autostart', {})
  local function begin()
    vim.defer_fn(function()
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
