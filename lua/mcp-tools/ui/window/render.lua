--- Highlight groups, and drawing: rows in buffers, titles, keys and options of windows.

local api = vim.api

local M = {}

local PREFIX = 'McpTools'

---@class mcp-tools.HighlightLink
---@field name string without the prefix
---@field link string the group it links to by default
---@field use string what it highlights, for the documentation

---@type mcp-tools.HighlightLink[]
M.groups = {
  { name = 'Normal', link = 'Normal', use = 'text of a floating window' },
  { name = 'Title', link = 'Title', use = 'title of a window; most important text' },
  { name = 'Heading', link = 'Statement', use = 'heading of a section' },
  { name = 'Key', link = 'Special', use = 'key that can be pressed' },
  { name = 'Name', link = 'Identifier', use = 'tool, client, server, file' },
  { name = 'Label', link = 'Identifier', use = 'label of a value' },
  { name = 'Number', link = 'Number', use = 'number' },
  { name = 'Dim', link = 'Comment', use = 'less important text' },
  { name = 'Good', link = 'Added', use = 'working, allowed, selected' },
  { name = 'Warn', link = 'WarningMsg', use = 'truncated, rejected, outside the project' },
  { name = 'Bad', link = 'DiagnosticError', use = 'failed, denied' },
  { name = 'Busy', link = 'Changed', use = 'in progress' },
  { name = 'Added', link = 'DiffAdd', use = 'added line' },
  { name = 'Removed', link = 'DiffDelete', use = 'removed line' },
  { name = 'Changed', link = 'Changed', use = 'hunk header; number of a changed line' },
  { name = 'Part', link = 'DiffText', use = 'changed part of a line' },
  { name = 'Hidden', link = 'ErrorMsg', use = 'code of an invisible character' },
}

--- The only group that is not a link: it combines the color of the border with the background of the text.
local BORDER = 'Border'

--- Returns the attributes of the border. Many color schemes link FloatBorder to the separator of windows, whose color
--- is meant for a background of its own and would be invisible on ours.
---@return vim.api.keyset.highlight
local function border()
  local function get(name)
    return api.nvim_get_hl(0, { name = name, link = false })
  end
  local frame, float, text = get('FloatBorder'), get('NormalFloat'), get(PREFIX .. 'Normal')
  local function color(fg, bg)
    local is_meant_for_floats = not frame[bg] or frame[bg] == text[bg] or frame[bg] == float[bg]
    return is_meant_for_floats and frame[fg] or text[fg]
  end
  return {
    fg = color('fg', 'bg'),
    ctermfg = color('ctermfg', 'ctermbg'),
    bg = text.bg,
    ctermbg = text.ctermbg,
    default = true,
  }
end

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
  for _, group in ipairs(M.groups) do
    api.nvim_set_hl(0, PREFIX .. group.name, { link = group.link, default = true })
  end
  api.nvim_set_hl(0, PREFIX .. BORDER, border())
end

--- Returns the full name of a group. Treesitter groups, which begin with `@`, are returned unchanged.
---@param name string a name of `groups`
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

--- Groups whose background reaches the edge of the window, and the priority of syntax colors above them.
local LINES, OVER_LINES = { Added = true, Removed = true }, 5000

local NAMESPACE = api.nvim_create_namespace('mcp-tools-rows')

---@param buffer integer
---@param row integer 0-based
---@param text string
---@param mark { [1]: integer, [2]: integer, [3]: string }
local function set_mark(buffer, row, text, mark)
  local to = math.min(mark[2], #text) -- trailing blanks were trimmed
  local where = { end_col = to, hl_group = M.group(mark[3]) }
  if vim.startswith(mark[3], '@') then
    where.priority = OVER_LINES
  elseif LINES[mark[3]] and to == #text then
    where.end_row, where.end_col, where.hl_eol, where.strict = row + 1, 0, true, false
  end
  if mark[1] < to then
    api.nvim_buf_set_extmark(buffer, NAMESPACE, row, mark[1], where)
  end
end

---@param buffer integer
---@param first integer 0-based
---@param last integer exclusive
---@param rows mcp-tools.Row[]
local function replace(buffer, first, last, rows)
  api.nvim_buf_clear_namespace(buffer, NAMESPACE, first, last)
  local lines = vim.tbl_map(function(row)
    return row.text
  end, rows)
  api.nvim_buf_set_lines(buffer, first, last, false, lines)
  for i, row in ipairs(rows) do
    for _, mark in ipairs(row.marks) do
      set_mark(buffer, first + i - 1, row.text, mark)
    end
  end
end

--- Replaces `before` with `rows` in a buffer that is not modifiable. Equal rows at the beginning and the end are not
--- touched, to avoid flicker.
---@param buffer integer
---@param rows mcp-tools.Row[]
---@param before? mcp-tools.Row[] current rows of the buffer
---@return boolean changed
function M.update(buffer, rows, before)
  before = before or {}
  local head, tail, most = 0, 0, math.min(#before, #rows)
  local function same(one, other)
    return one.text == other.text and vim.deep_equal(one.marks, other.marks)
  end
  while head < most and same(before[head + 1], rows[head + 1]) do
    head = head + 1
  end
  if head == #before and head == #rows and head > 0 then
    return false
  end
  while tail < most - head and same(before[#before - tail], rows[#rows - tail]) do
    tail = tail + 1
  end
  vim.bo[buffer].modifiable = true
  replace(buffer, head, #before == 0 and -1 or #before - tail, vim.list_slice(rows, head + 1, #rows - tail))
  vim.bo[buffer].modifiable = false
  return true
end

--- Returns a piece of a window's title or footer.
---@param text string
---@param name string? highlight group
---@return table
function M.chunk(text, name)
  return { text, { M.group('Normal'), name and M.group(name) } }
end

--- Appends the number of hidden rows to a title.
---@param chunks table[]
---@param below integer rows below the visible part
---@return table[] chunks
function M.with_more(chunks, below)
  if below > 0 then
    table.insert(chunks, M.chunk(('… %d more line%s '):format(below, below == 1 and '' or 's'), 'Warn'))
  end
  return chunks
end

--- Returns a footer with the keys that fit, or with a part of the first key if none fits.
---@param list { [1]: string, [2]: string }[] keys and their descriptions
---@param width integer
---@param name string? highlight group of the descriptions
---@return table[] chunks
function M.keys(list, width, name)
  local used, chunks = 0, {}
  for _, part in ipairs(list) do
    local cells = api.nvim_strwidth(part[1] .. part[2]) + 3
    if used + cells <= width then
      used = used + cells
      table.insert(chunks, M.chunk((' %s '):format(part[1]), 'Key'))
      table.insert(chunks, M.chunk(part[2] .. ' ', name))
    end
  end
  local first = list[1]
  if #chunks == 0 and first then
    -- A footer must not be empty.
    chunks[1] = M.chunk((' %s '):format(vim.fn.strcharpart(first[1], 0, math.max(1, width - 2))), 'Key')
  end
  return chunks
end

---@param text string
---@param name string highlight group
---@return string
local function part(text, name)
  return ('%%#%s#%s%%*'):format(M.group(name), (text:gsub('%%', '%%%%')))
end

--- Returns a value of 'winbar' for a window without a border. The title is cut if there is no room. The keys are shown
--- while the cursor is in the window; otherwise, the keys that enter it.
---@param title string
---@param keys? { [1]: string, [2]: string }[] keys and their descriptions, before `q` and `?`
---@param q? string description of `q`; default: 'close'
---@return string
function M.winbar(title, keys, q)
  local list = {}
  for _, key in ipairs(vim.list_extend(vim.list_slice(keys or {}), { { 'q', q or 'close' }, { '?', 'keys' } })) do
    table.insert(list, part(key[1], 'Key') .. ' ' .. part(key[2], 'Dim'))
  end
  local value = "%%< %s%%= %%{%%g:actual_curwin == win_getid() ? %s : winnr() .. ' <C-W>w enters'%%} "
  return value:format(part(title, 'Title'), vim.fn.string(table.concat(list, '  ')))
end

--- Options of the user that do not apply to these windows. With 'foldmethod' "marker" untrusted text could hide its
--- rest behind `{{{`.
local OPTIONS = {
  foldenable = false,
  number = false,
  relativenumber = false,
  statuscolumn = '',
  signcolumn = 'no',
  colorcolumn = '',
  list = false,
  spell = false,
}

--- Sets options of a window, only for its current buffer.
---@param window integer
---@param options table<string, any> besides the fixed ones
function M.set_options(window, options)
  local where = { win = window, scope = 'local' }
  for name, value in pairs(vim.tbl_extend('error', OPTIONS, options)) do
    if api.nvim_get_option_value(name, where) ~= value then -- avoids needless `OptionSet` events
      api.nvim_set_option_value(name, value, where)
    end
  end
end

--- Returns the position of a float of this size in the middle of the editor.
---@param width integer
---@param height integer
---@return vim.api.keyset.win_config
function M.centered(width, height)
  return {
    relative = 'editor',
    width = width,
    height = height,
    row = math.max(0, math.floor((vim.o.lines - vim.o.cmdheight - height - 2) / 2)),
    col = math.max(0, math.floor((vim.o.columns - width - 2) / 2)),
  }
end

return M
