--- Highlight groups of our windows, one set for all of them, each linked to one of the colour scheme.

local api = vim.api

local M = {}

local PREFIX = 'McpTools'

---@class mcp-tools.HighlightLink
---@field name string what follows the prefix
---@field link string group of the colour scheme that it is linked to
---@field use string what is shown in it, for the documentation

---@type mcp-tools.HighlightLink[]
M.list = {
  { name = 'Normal', link = 'NormalFloat', use = 'text of a floating window' },
  { name = 'Title', link = 'Title', use = 'of a window; what is most important' },
  { name = 'Heading', link = 'Statement', use = 'of a section' },
  { name = 'Key', link = 'Special', use = 'key that can be pressed' },
  { name = 'Name', link = 'Identifier', use = 'tool, client, server, file' },
  { name = 'Label', link = 'Identifier', use = 'what stands before a value' },
  { name = 'Number', link = 'Number', use = 'number' },
  { name = 'Dim', link = 'Comment', use = 'what can be left unread' },
  { name = 'Good', link = 'DiagnosticOk', use = 'works, was allowed, is chosen' },
  { name = 'Warn', link = 'DiagnosticWarn', use = 'cut, rejected, outside the project' },
  { name = 'Bad', link = 'DiagnosticError', use = 'failed, was denied' },
  { name = 'Busy', link = 'DiagnosticInfo', use = 'goes on' },
  { name = 'Added', link = 'DiffAdd', use = 'line that comes' },
  { name = 'Removed', link = 'DiffDelete', use = 'line that goes' },
  { name = 'Changed', link = 'Changed', use = 'where a hunk is; number of its lines' },
  { name = 'Hidden', link = 'ErrorMsg', use = 'what could not be seen, as its code' },
}

--- The only one that is no link: the frame stands on the background of the text, whatever the colour scheme has for
--- frames.
local BORDER = 'Border'

local defined = false

--- Defines the groups, where nobody else did. The links stay when the colour scheme changes; the frame is made anew.
function M.define()
  if not defined then
    defined = true
    api.nvim_create_autocmd('ColorScheme', {
      group = api.nvim_create_augroup('mcp-tools.highlights', {}),
      desc = 'mcp-tools: frames have the colours of the new scheme',
      callback = M.define,
    })
  end
  for _, group in ipairs(M.list) do
    api.nvim_set_hl(0, PREFIX .. group.name, { link = group.link, default = true })
  end
  local border = api.nvim_get_hl(0, { name = 'FloatBorder', link = false })
  local normal = api.nvim_get_hl(0, { name = PREFIX .. 'Normal', link = false })
  local own = { fg = border.fg, ctermfg = border.ctermfg, bg = normal.bg, ctermbg = normal.ctermbg, default = true }
  api.nvim_set_hl(0, PREFIX .. BORDER, own)
end

--- The group of a name. Those of the syntax of a language, which begin with `@`, are themselves.
---@param name string of `list`
---@return string
function M.group(name)
  if not defined then
    M.define()
  end
  return vim.startswith(name, '@') and name or PREFIX .. name
end

--- As the option 'winhighlight' of a floating window takes them.
---@return string
function M.winhighlight()
  return ('Normal:%sNormal,NormalFloat:%sNormal,FloatBorder:%sBorder'):format(PREFIX, PREFIX, PREFIX)
end

return M
