--- Returns one value of a JSON file.

local contents = require('mcp-tools.editor.buffer.contents')
local errors = require('mcp-tools.errors')
local file_text = require('mcp-tools.files.text')
local json = require('mcp-tools.util.json')
local read = require('mcp-tools.privacy.read')
local result = require('mcp-tools.editor.result')
local target = require('mcp-tools.editor.buffer.target')
local time_slice = require('mcp-tools.util.time_slice')
local utf8 = require('mcp-tools.util.utf8')

local MAX_FILE = 16 * 1024 * 1024

---@param ctx mcp-tools.Ctx
---@param found mcp-tools.Target
---@return string? text
---@return mcp-tools.Error? err
local function text_of(ctx, found)
  if found.bufnr then
    return contents.of_buffer(found.bufnr, time_slice.of(ctx))
  end
  local bytes, err = read.await(ctx, found.path, MAX_FILE)
  return bytes and file_text.decode(bytes), err
end

--- Maximum number of nested tables in a returned value.
local MAX_LEVELS = 30

---@class mcp-tools.JsonAnswer
---@field type 'object'|'array'|'string'|'number'|'boolean'|'null'
---@field value any?
---@field keys string[]? of an object that is too large
---@field total integer? number of keys or items of a value that is too large
---@field path string? for display
---@field narrowed string? why the value is missing or incomplete
---@field deep boolean? it is too deeply nested to be returned

--- Returns the keys and indices of a path: `a.b`, `a[0]`, `a.0`, `["with.dot"]`.
---@param path string
---@return (string|integer)[]?
---@return string? fault
local function steps_of(path)
  local steps, at = {}, 1
  while at <= #path do
    local index, after = path:match('^%[(%d+)%]()', at)
    local quoted
    if not index then
      quoted, after = path:match('^%["([^"]*)"%]()', at)
    end
    if index then
      steps[#steps + 1], at = tonumber(index), after
    elseif quoted then
      steps[#steps + 1], at = quoted, after
    else
      local name
      name, after = path:match((at == 1 and '^' or '^%.') .. '([^.%[%]]+)()', at)
      if not name then
        return nil, ('invalid from character %d on'):format(at)
      end
      steps[#steps + 1], at = name, after
    end
  end
  return steps
end

--- Runs in a thread, so it cannot use upvalues.
local function work(text, steps, max, max_levels)
  local function answer(t)
    return vim.mpack.encode(t)
  end
  local function kind_of(value)
    if value == nil or value == vim.NIL then
      return 'null'
    elseif type(value) ~= 'table' then
      return type(value)
    end
    local list = vim.islist or vim.tbl_islist
    return (getmetatable(value) == nil and list(value)) and 'array' or 'object'
  end
  local ok, value = pcall(vim.json.decode, text)
  if not ok then
    return answer({ fault = tostring(value):gsub('^.-:%d+: ', '') })
  end
  local done = ''
  for _, step in ipairs(vim.mpack.decode(steps)) do
    local kind = kind_of(value)
    local there
    if kind == 'array' and tonumber(step) then
      there = value[tonumber(step) + 1]
    elseif kind == 'object' then
      there = value[tostring(step)]
    end
    if there == nil then
      local names = {}
      if kind == 'object' then
        for name in pairs(value) do
          names[#names + 1] = name
        end
        table.sort(names)
        names = { unpack(names, 1, 20) }
      end
      return answer({
        missing = tostring(step),
        at = done,
        kind = kind,
        keys = names,
        total = kind == 'array' and #value,
      })
    end
    value, done = there, done .. (done ~= '' and '.' or '') .. tostring(step)
  end
  local kind = kind_of(value)
  if kind == 'null' then
    return answer({ type = kind })
  end
  -- mpack cannot encode tables with more levels.
  local function is_deep(each, levels)
    if type(each) ~= 'table' then
      return false
    elseif levels == 0 then
      return true
    end
    for _, item in pairs(each) do
      if is_deep(item, levels - 1) then
        return true
      end
    end
    return false
  end
  local deep = is_deep(value, max_levels)
  if not deep and #vim.mpack.encode(value) <= max then
    return answer({ type = kind, value = value })
  elseif type(value) ~= 'table' then
    return answer({ type = kind, value = value:sub(1, max), cut = #value })
  end
  local names, total = {}, 0
  for name in pairs(value) do
    total = total + 1
    if kind == 'object' and #names < 200 then
      names[#names + 1] = name
    end
  end
  table.sort(names)
  return answer({ type = kind, keys = kind == 'object' and names or nil, total = total, deep = deep or nil })
end

--- Finds a value. Runs in a coroutine.
---@param ctx mcp-tools.Ctx
---@param text string
---@param path string
---@param max integer bytes of the value
---@return mcp-tools.JsonAnswer?
---@return mcp-tools.Error? err
local function find(ctx, text, path, max)
  local steps, fault = steps_of(path)
  if not steps then
    return nil, errors.new('validation_error', 'query: ' .. fault)
  end
  local packed = ctx:await(function(done)
    local thread = vim.uv.new_work(work, vim.schedule_wrap(done))
    thread:queue(text, vim.mpack.encode(steps), max, MAX_LEVELS)
  end)
  if not packed then
    return nil, errors.new('tool_error', 'the text could not be parsed')
  end
  local found = vim.mpack.decode(packed)
  if found.fault then
    local deep = found.fault:find('nested', 1, true) and 'it cannot be read: ' or 'it is not JSON: '
    return nil, errors.new('tool_error', deep .. found.fault)
  elseif found.missing then
    local what = found.kind == 'array' and ('an array of %d'):format(found.total)
      or found.kind == 'object' and 'an object with ' .. table.concat(vim.list_slice(found.keys, 1, 20), ', ')
      or 'a ' .. found.kind
    local where = found.at ~= '' and found.at or 'the top'
    return nil, errors.new('not_found', ('query: there is no %s; %s is %s'):format(found.missing, where, what))
  end
  return found
end

return {
  name = 'file_json',
  title = 'Read a value of a JSON file',
  description = 'Returns a value of a JSON file, unsaved changes included. For a value that is too large: its keys or'
    .. ' its number of items.',
  search_hint = 'jq, JSONPath, package.json, configuration',
  args = {
    path = { type = 'string', description = 'File' },
    bufnr = { type = 'integer', description = 'Buffer number', minimum = 0, hidden = true },
    query = {
      type = 'string',
      description = 'Path of the value, such as `items[0].name` or `["a.b"]`',
      default = '',
      maxLength = 10000,
    },
    max_bytes = {
      type = 'integer',
      description = 'Maximum size of the value, in bytes',
      default = 16384,
      minimum = 100,
      maximum = 1048576,
    },
  },
  annotations = { read_only = true, idempotent = true },
  run = function(ctx, args)
    local found = errors.unwrap(target.await(ctx, args, {}))
    local text = errors.unwrap(text_of(ctx, found))
    if utf8.invalid_at(text) then
      return nil, errors.new('tool_error', ('%s is not JSON: it is not UTF-8'):format(found.shown))
    end
    local answer = errors.unwrap(find(ctx, text, args.query, args.max_bytes))
    answer.path = (utf8.repair(found.shown))
    if answer.value == nil and answer.type ~= 'null' then
      answer.narrowed = answer.deep and 'the value is nested too deep; query a value below it'
        or 'the value is too large; query a value below it, or raise max_bytes'
      answer.deep = nil
    end
    return answer
  end,
  render = function(value)
    if value.total then
      local head = ('%s of %s; %s'):format(value.type, result.count(value.total, 'item'), value.narrowed)
      return table.concat({ head, unpack(value.keys or {}) }, '\n')
    elseif value.cut then
      return ('%s\n(the first %d of %d bytes)'):format(value.value, #value.value, value.cut)
    elseif value.type == 'string' then
      return value.value
    end
    return (json.encode(value.value))
  end,
}
