--- Highlight groups of our windows, one set for all of them, each linked to one of the colour scheme.
---
--- Receives: nothing.
--- Sends: groups that a colour scheme or a person may define themselves; the names of all of them.
--- Does not know about: windows, what is shown.

local M = {}

local PREFIX = 'McpTools'

--- What follows the prefix → the group of the colour scheme that it is linked to.
---@type table<string, string>
M.links = {
  Title = 'Title', -- of a window, and what is most important in it
  Heading = 'Statement', -- of a section
  Key = 'Special', -- that can be pressed
  Name = 'Identifier', -- of a tool, a client, a server
  Number = 'Number',
  Dim = 'Comment', -- what can be left unread
  Good = 'DiagnosticOk',
  Warn = 'DiagnosticWarn',
  Bad = 'DiagnosticError',
  Busy = 'DiagnosticInfo', -- something that goes on
}

--- Defines the groups, where nobody else did.
function M.define()
  for name, link in pairs(M.links) do
    vim.api.nvim_set_hl(0, PREFIX .. name, { link = link, default = true })
  end
end

--- The group of a name.
---@param name string of `links`
---@return string
function M.group(name)
  return PREFIX .. name
end

return M
