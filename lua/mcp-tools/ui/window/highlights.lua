--- Highlight groups of the plugin's windows, linked to groups of the color scheme.

local api = vim.api

local M = {}

local PREFIX = 'McpTools'

---@class mcp-tools.HighlightLink
---@field name string without the prefix
---@field link string the group it links to by default
---@field use string what it highlights, for the documentation

---@type mcp-tools.HighlightLink[]
M.list = {
  { name = 'Normal', link = 'NormalFloat', use = 'text of a floating window' },
  { name = 'Title', link = 'Title', use = 'title of a window; most important text' },
  { name = 'Heading', link = 'Statement', use = 'heading of a section' },
  { name = 'Key', link = 'Special', use = 'key that can be pressed' },
  { name = 'Name', link = 'Identifier', use = 'tool, client, server, file' },
  { name = 'Label', link = 'Identifier', use = 'label of a value' },
  { name = 'Number', link = 'Number', use = 'number' },
  { name = 'Dim', link = 'Comment', use = 'less important text' },
  { name = 'Good', link = 'DiagnosticOk', use = 'working, allowed, selected' },
  { name = 'Warn', link = 'DiagnosticWarn', use = 'truncated, rejected, outside the project' },
  { name = 'Bad', link = 'DiagnosticError', use = 'failed, denied' },
  { name = 'Busy', link = 'DiagnosticInfo', use = 'in progress' },
  { name = 'Added', link = 'DiffAdd', use = 'added line' },
  { name = 'Removed', link = 'DiffDelete', use = 'removed line' },
  { name = 'Changed', link = 'Changed', use = 'hunk header; number of a changed line' },
  { name = 'Hidden', link = 'ErrorMsg', use = 'code of an invisible character' },
}

--- The only group that is not a link: it combines the color of the border with the background of the text.
local BORDER = 'Border'

local defined = false

--- Defines the groups that are not defined yet. Links survive a change of the color scheme; the border is recomputed.
function M.define()
  if not defined then
    defined = true
    api.nvim_create_autocmd('ColorScheme', {
      group = api.nvim_create_augroup('mcp-tools.highlights', {}),
      desc = 'mcp-tools: update the color of borders',
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

--- Returns the full name of a group. Treesitter groups, which begin with `@`, are returned unchanged.
---@param name string a name from `list`
---@return string
function M.group(name)
  if not defined then
    M.define()
  end
  return vim.startswith(name, '@') and name or PREFIX .. name
end

--- Returns the value of 'winhighlight' for a floating window.
---@return string
function M.winhighlight()
  return ('Normal:%sNormal,NormalFloat:%sNormal,FloatBorder:%sBorder'):format(PREFIX, PREFIX, PREFIX)
end

return M
