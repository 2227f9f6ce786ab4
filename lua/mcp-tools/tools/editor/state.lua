--- Returns what the user is looking at: current file, cursor, selection and open files.

local access = require('mcp-tools.privacy.access')
local focus = require('mcp-tools.editor.user.focus')
local result = require('mcp-tools.editor.result')
local symbol = require('mcp-tools.editor.symbol')
local symbol_tree = require('mcp-tools.editor.symbol_tree')
local utf8 = require('mcp-tools.util.utf8')

local api, fn = vim.api, vim.fn

--- Maximum size of the selected text in bytes.
local MAX_SELECTED = 16 * 1024

--- Returns the current file and the symbol around the cursor.
---@param ctx mcp-tools.Ctx
---@return table?
local function current_of(ctx)
  local place = focus.cursor(ctx.root)
  if not place then
    return nil
  end
  local bufnr = place.bufnr
  place.filetype = vim.bo[bufnr].filetype ~= '' and vim.bo[bufnr].filetype or nil
  place.modified = vim.bo[bufnr].modified
  place.lines = api.nvim_buf_line_count(bufnr)
  place.changedtick = api.nvim_buf_get_changedtick(bufnr)
  local file = not place.withheld and symbol.await(ctx, bufnr, { within = symbol.INTERACTIVE_MS }) or nil
  local node = file and symbol_tree.around(file.tree, place.line)
  place.symbol = node
    and { name = symbol_tree.of(node, file.tree), kind = node.kind, start_line = node.line, end_line = node.end_line }
  return place
end

---@param root string
---@return mcp-tools.Selection?
local function selection_of(root)
  local found = focus.selection(root)
  if found and found.text and #found.text > MAX_SELECTED then
    found.text, found.truncated = utf8.cut(found.text, MAX_SELECTED), true
  end
  return found
end

--- Returns the listed buffers of files, those with unsaved changes first.
---@param root string
---@param limit integer
---@return table[] files
---@return integer total
---@return integer modified
local function files_of(root, limit)
  local changed, others = {}, {}
  for _, bufnr in ipairs(api.nvim_list_bufs()) do
    -- There may be thousands of buffers: `vim.bo` is ten times slower.
    if fn.buflisted(bufnr) == 1 and fn.getbufvar(bufnr, '&buftype') == '' then
      table.insert(fn.getbufvar(bufnr, '&modified') == 1 and changed or others, bufnr)
    end
  end
  local modified = #changed
  local all, files = vim.list_extend(changed, others), {}
  for i = 1, math.min(#all, limit) do
    local name = api.nvim_buf_get_name(all[i])
    files[i] = {
      bufnr = all[i],
      path = name ~= '' and access.shown(name, root) or nil,
      modified = i <= modified or nil,
      visible = #fn.win_findbuf(all[i]) > 0 or nil,
    }
  end
  return files, #all, modified
end

---@param current table
---@return string
local function current_text(current)
  local name = current.path or ('buffer %d without a file'):format(current.bufnr)
  local around = current.symbol
  return ('%s%s, %s; cursor in line %d, column %d%s\n%d: %s'):format(
    name,
    current.modified and ' (unsaved changes)' or '',
    result.count(current.lines, 'line'),
    current.line,
    current.column,
    around and (', in %s (lines %d-%d)'):format(around.name, around.start_line, around.end_line) or '',
    current.line,
    current.text or ('withheld: %s'):format(current.withheld)
  )
end

---@param selection mcp-tools.Selection
---@return string
local function selection_text(selection)
  return ('%s (%s), %d:%d to %d:%d%s\n%s'):format(
    selection.active and 'Selected' or 'Selected last',
    selection.mode,
    selection.start_line,
    selection.start_column,
    selection.end_line,
    selection.end_column,
    selection.truncated and ' (only the beginning; read these lines of the file for the rest):' or ':',
    selection.text or ('withheld: %s'):format(selection.withheld)
  )
end

return {
  name = 'editor_state',
  title = 'What the user is looking at',
  description = 'Returns what the user is looking at: current file, cursor line with the symbol around it, selected'
    .. " text, open files and which of them are unsaved. Use it when the user says 'this', 'here', 'selected' or 'my"
    .. " cursor'.",
  search_hint = 'selection, current buffer, cursor position, highlighted, open buffers, unsaved',
  args = {
    limit = {
      type = 'integer',
      description = 'Maximum number of files',
      default = 50,
      minimum = 0,
      maximum = 500,
      hidden = true,
    },
  },
  annotations = { read_only = true, idempotent = true, open_world = false },
  recommended = true,
  always_load = true,
  run = function(ctx, args)
    local files, total, modified = files_of(ctx.root, args.limit)
    return result.utf8({
      mode = api.nvim_get_mode().mode,
      root = ctx.root,
      cwd = fn.getcwd(),
      selection = selection_of(ctx.root),
      current = current_of(ctx),
      files = files,
      files_total = total,
      modified_total = modified,
    })
  end,
  render = function(value)
    local parts = { value.current and current_text(value.current) or 'No file is open.' }
    if value.selection then
      table.insert(parts, selection_text(value.selection))
    end
    local rows = { ('%s, %d unsaved'):format(result.count(value.files_total, 'open file'), value.modified_total) }
    for _, file in ipairs(value.files) do
      local name = file.path or ('buffer %d without a file'):format(file.bufnr)
      local about = file.modified and (file.visible and ': unsaved, shown' or ': unsaved')
      table.insert(rows, name .. (about or file.visible and ': shown' or ''))
    end
    if #value.files < value.files_total then
      table.insert(rows, ('… %d more'):format(value.files_total - #value.files))
    end
    table.insert(parts, table.concat(rows, '\n'))
    if value.mode ~= 'n' then
      table.insert(parts, 'Mode: ' .. value.mode)
    end
    return table.concat(parts, '\n\n')
  end,
}
