--- Lists marks, jumps and changes.

local access = require('mcp-tools.privacy.access')
local buffers = require('mcp-tools.editor.buffer')
local focus = require('mcp-tools.editor.user.focus')
local errors = require('mcp-tools.errors')
local result = require('mcp-tools.editor.result')
local position = require('mcp-tools.editor.position')
local redact = require('mcp-tools.privacy.redact')
local trim = require('mcp-tools.util.trim')
local utf8 = require('mcp-tools.util.utf8')

local api, fn = vim.api, vim.fn

--- Maximum length of the text of a line, in bytes.
local MAX_TEXT = 200

--- Returns a function that creates places. It checks the access to each buffer once.
---@param root string
---@return fun(bufnr: integer?, line: integer, byte: integer, name: string?): table place line from 1, byte from 0
local function places(root)
  local known = {}
  return function(bufnr, line, byte, name)
    local seen = {}
    if bufnr then
      name = api.nvim_buf_get_name(bufnr)
      known[bufnr] = known[bufnr] or api.nvim_buf_is_loaded(bufnr) and { access.buffer(bufnr, root) } or {}
      seen = known[bufnr]
    end
    local text = seen[1] and api.nvim_buf_get_lines(bufnr, line - 1, line, false)[1]
    return {
      path = name and name ~= '' and access.shown(name, root) or nil,
      bufnr = bufnr,
      line = line,
      column = bufnr and position.column(bufnr, line - 1, math.max(byte, 0)) or byte + 1,
      text = text and redact.quoted(utf8.cut(trim(text), MAX_TEXT)) or nil,
      withheld = seen[2],
    }
  end
end

---@param bufnr integer
---@param place fun(...): table
---@return table[]
local function marks(bufnr, place)
  local list = {}
  local function add(each, number)
    local at = each.pos
    if at[2] > 0 then
      local name = not number and each.file and fn.fnamemodify(each.file, ':p') or nil
      local found = place(number, at[2], at[3] - 1, name)
      found.mark = each.mark:sub(2)
      table.insert(list, found)
    end
  end
  for _, each in ipairs(fn.getmarklist(bufnr)) do
    add(each, bufnr)
  end
  for _, each in ipairs(fn.getmarklist()) do
    local number = each.pos[1]
    add(each, number > 0 and api.nvim_buf_is_valid(number) and number or nil)
  end
  return list
end

---@param bufnr integer
---@param place fun(...): table
---@return table[] newest first
local function jumps(bufnr, place)
  local window, list = focus.window(bufnr), {}
  for _, each in ipairs(window and fn.getjumplist(window)[1] or {}) do
    if api.nvim_buf_is_valid(each.bufnr) then
      table.insert(list, 1, place(each.bufnr, math.max(each.lnum, 1), each.col))
    end
  end
  return list
end

---@param bufnr integer
---@param place fun(...): table
---@return table[] newest first
local function changes(bufnr, place)
  local list = {}
  for _, each in ipairs(fn.getchangelist(bufnr)[1] or {}) do
    table.insert(list, 1, place(bufnr, math.max(each.lnum, 1), each.col))
  end
  return list
end

local READERS = { marks = marks, jumps = jumps, changes = changes }
local KINDS = { 'marks', 'jumps', 'changes' }

---@param place table
---@return string
local function row_of(place)
  local mark = place.mark and place.mark .. ' ' or ''
  local text = place.text or place.withheld and ('withheld (%s)'):format(place.withheld) or ''
  return ('%s%s:%d:%d: %s'):format(mark, place.path or 'no file', place.line, place.column, text)
end

return {
  name = 'editor_marks',
  title = 'Marks, jumps and changes',
  description = 'Lists marks, the jump list and the change list of an open file, newest first.',
  args = {
    path = { type = 'string', description = 'Open file; default: the current one' },
    kind = { type = 'string', enum = KINDS, description = 'Only this list' },
    bufnr = { type = 'integer', description = 'Buffer number', minimum = 0, hidden = true },
    limit = {
      type = 'integer',
      description = 'Maximum number per list',
      default = 30,
      minimum = 1,
      maximum = 200,
      hidden = true,
    },
    offset = { type = 'integer', description = 'Number to skip per list', default = 0, minimum = 0, hidden = true },
  },
  annotations = { read_only = true, idempotent = true, open_world = false },
  run = function(ctx, args)
    local found = errors.unwrap(buffers.find(args, { current = true }))
    if not found.bufnr then
      local text = '%s is not open in the editor; only open files have marks'
      return nil, errors.new('not_found', text:format(found.path))
    end
    local answer = { bufnr = found.bufnr } ---@type table<string, any>
    for _, kind in ipairs(args.kind and { args.kind } or KINDS) do
      local items, about = result.page(READERS[kind](found.bufnr, places(ctx.root)), args)
      answer[kind] = items
      answer.next_offset = about.next_offset or answer.next_offset
      answer[kind .. '_total'] = about.total
    end
    return result.utf8(answer)
  end,
  render = function(value, args)
    local rows = {}
    for _, kind in ipairs(KINDS) do
      if value[kind] then
        local total = value[kind .. '_total']
        table.insert(rows, result.with_range(('%d %s'):format(total, kind), args, total))
        vim.list_extend(rows, vim.tbl_map(row_of, value[kind]))
      end
    end
    return table.concat(rows, '\n')
  end,
}
