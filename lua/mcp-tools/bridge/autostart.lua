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
  -- `man` with Neovim as its pager; the second one follows `-c`.
  commands = { '^%+Man!?$', '^%+Man!? ' },
  after_c = { '^Man!?$', '^Man!? ' },
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

--- Why this editor is short-lived.
---@return string?
local function purpose()
  if vim.env.NVIM and vim.env.NVIM ~= '' then
    return 'this editor runs inside another Neovim'
  elseif vim.wo.diff then
    return 'this editor was started to show differences'
  elseif vim.list_contains(SHORT_LIVED.filetypes, vim.bo.filetype) then
    return ('this editor was started for one %s buffer'):format(vim.bo.filetype)
  end
  for i = 2, #vim.v.argv do
    local argument, before = vim.v.argv[i], vim.v.argv[i - 1]
    if
      argument == '-d'
      or matches(argument, SHORT_LIVED.commands)
      or before == '-c' and matches(argument, SHORT_LIVED.after_c)
      or matches(vim.fs.basename(argument), SHORT_LIVED.names)
    then
      return ('this editor was started with %s'):format(argument)
    end
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
