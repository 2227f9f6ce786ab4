-- Receives a question for approval. Sends the lines that show it whole, strangers' text made visible.
-- Does not know about windows and keys.

local log = require('mcp-tools.log')
local source = require('mcp-tools.registry.source')
local sanitize = require('mcp-tools.ui.sanitize')

local M = {}

-- Of arguments and of a preview: more is not read by anyone, and costs time to lay out.
local MAX_BYTES = 64 * 1024
-- Each argument has its share, so that a long one hides no other; this is the least.
local MIN_SHARE = 256
local MAX_DEPTH = 100

M.CHOICES = { -- in the order in which they are offered
  { name = 'once', key = 'y', text = 'once', long = 'Allow once' },
  { name = 'deny', key = 'n', text = 'deny', long = 'Deny' },
  { name = 'session', key = 's', text = 'session', long = 'Allow in this session' },
  { name = 'always', key = 'a', text = 'always', long = 'Always allow in this project' },
  { name = 'never', key = 'N', text = 'never', long = 'Never allow in this project' },
  { name = 'silence', key = 'S', text = 'silence', long = 'Deny, and ask no more for this session' },
}

--- Those of them that a question has.
---@param question mcp-tools.Question
---@return table[]
function M.choices(question)
  return vim.tbl_filter(function(choice)
    return vim.list_contains(question.choices, choice.name)
  end, M.CHOICES)
end

---@class mcp-tools.ApprovalLines
---@field lines string[]
---@field bytes integer
---@field max integer
---@field cut boolean?

---@param out mcp-tools.ApprovalLines
---@param line string
---@return boolean room
local function add(out, line)
  if out.bytes > out.max then
    out.cut = true
    return false
  end
  if #line > out.max then
    line = line:sub(1, out.max):gsub('[\192-\255]?[\128-\191]*$', '') .. '…'
    out.cut = true
  end
  out.bytes = out.bytes + #line + 1
  table.insert(out.lines, line)
  return true
end

--- Text of several lines, each behind a bar, so that none looks like a line of ours.
---@param out mcp-tools.ApprovalLines
---@param text string
---@param margin string
local function add_block(out, text, margin)
  for _, line in ipairs(sanitize.lines(text:sub(1, out.max + 1))) do
    if not add(out, ('%s│ %s'):format(margin, line)) then
      break
    end
  end
  out.cut = out.cut or #text > out.max
end

local function sorted_keys(value)
  local keys = vim.tbl_keys(value)
  table.sort(keys, function(a, b)
    if type(a) == type(b) and type(a) == 'number' then
      return a < b
    end
    return tostring(a) < tostring(b)
  end)
  return keys
end

---@param key any
---@return string
local function label_of(key)
  local text = sanitize.line(tostring(key))
  return text:find('^[%w_%-.]+$') and text or '"' .. text:gsub('["\\]', '\\%0') .. '"'
end

---@param out mcp-tools.ApprovalLines
---@param label string with a colon, or empty
---@param value any
---@param margin string
---@param depth integer
local function add_value(out, label, value, margin, depth)
  local start = margin .. label
  if type(value) == 'string' then
    if value:find('\n', 1, true) then
      local _, breaks = value:gsub('\n', '')
      add(out, ('%stext of %d lines'):format(start, breaks + 1))
      return add_block(out, value, margin .. '  ')
    end
    local cut = #value > out.max
    add(out, ('%s"%s"'):format(start, sanitize.line(value:sub(1, out.max)):gsub('["\\]', '\\%0')))
    out.cut = out.cut or cut
  elseif type(value) == 'table' and next(value) == nil then
    add(out, start .. (vim.islist(value) and '[]' or '{}'))
  elseif type(value) == 'table' and depth < MAX_DEPTH then
    if label ~= '' and not add(out, start) then
      return
    end
    local list = vim.islist(value)
    for _, key in ipairs(sorted_keys(value)) do
      if out.cut then
        return
      end
      add_value(out, (list and '- [%s] ' or '%s: '):format(label_of(key)), value[key], margin .. '  ', depth + 1)
    end
  else
    add(out, start .. (value == vim.NIL and 'null' or sanitize.line(tostring(value))))
  end
end

---@param question mcp-tools.Question
---@return string[] lines
local function arguments(question)
  if next(question.args) == nil then
    return { 'without arguments' }
  end
  local keys = sorted_keys(question.args)
  local share = math.max(MIN_SHARE, math.floor(MAX_BYTES / #keys))
  local lines, bytes, cut = { 'arguments' }, 0, 0
  for i, key in ipairs(keys) do
    local out = { lines = {}, bytes = 0, max = share }
    add_value(out, label_of(key) .. ': ', question.args[key], '  ', 1)
    vim.list_extend(lines, out.lines)
    bytes = bytes + out.bytes
    if out.cut then
      cut = cut + 1
      table.insert(lines, '    … CUT')
    end
    if bytes > 2 * MAX_BYTES and i < #keys then
      cut = cut + #keys - i
      table.insert(lines, ('  … CUT: %d more'):format(#keys - i))
      break
    end
  end
  if cut > 0 then
    lines[1] = ('arguments, CUT: %d of %d are too long to be shown whole'):format(cut, #keys)
  end
  return lines
end

--- What would change, if the definition can tell.
---@param question mcp-tools.Question
---@return string[]
local function preview(question)
  local definition = question.call.definition
  if not definition.preview or not source.is_believed(definition, question.root) then
    return {}
  end
  local ok, text = xpcall(definition.preview, debug.traceback, vim.deepcopy(question.args))
  if not ok or type(text) ~= 'string' then
    log.error('the preview of %s failed: %s', definition.name, vim.inspect(text))
    return { '', 'its preview failed (:McpTools log)' }
  end
  local out = { lines = {}, bytes = 0, max = MAX_BYTES }
  add_block(out, text, '  ')
  return vim.list_extend({ '', out.cut and 'changes, CUT' or 'changes' }, out.lines)
end

--- Who asks, as they call themselves.
---@param call mcp-tools.Call
---@param short? boolean without the version
---@return string
function M.client(call, short)
  local name = call.client and call.client.name
  if not name then
    return 'the host ' .. sanitize.line(call.host)
  end
  local text = ('calls itself "%s"'):format(sanitize.line(tostring(name)):gsub('"', '\\"'))
  if call.client.version and not short then
    text = ('%s, version "%s"'):format(text, sanitize.line(tostring(call.client.version)):gsub('"', '\\"'))
  end
  return text
end

---@param place mcp-tools.Place
---@param root string
---@return string
local function file(place, root)
  local path = sanitize.line(place.path)
  if require('mcp-tools.files.paths').inside(place.path, root) then
    return path
  end
  return path .. '  (OUTSIDE the project)'
end

--- What is asked: who wants to run what, and why.
---@param question mcp-tools.Question
---@return string[] lines
function M.facts(question)
  local call = question.call
  local definition = call.definition
  local title = definition.title or definition.description
  local lines = {
    'tool    ' .. sanitize.line(call.name),
    '        ' .. sanitize.line(vim.split(title, '\n', { plain = true })[1]),
    'source  ' .. sanitize.line(source.describe(definition, question.root)),
    'client  ' .. M.client(call),
    'reason  ' .. sanitize.line(question.reason),
  }
  for _, place in ipairs(question.places) do
    if place.path then
      table.insert(lines, 'file    ' .. file(place, question.root))
    end
  end
  table.insert(lines, '')
  return vim.list_extend(lines, arguments(question))
end

--- All lines of a question. What would change is for the editor only: it may show what the client cannot read.
---@param question mcp-tools.Question
---@return string[] lines
function M.lines(question)
  return vim.list_extend(M.facts(question), preview(question))
end

return M
