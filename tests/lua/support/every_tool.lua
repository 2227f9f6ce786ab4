-- Every bundled tool, and arguments for it made from its schema, for specs that hold for tools still to come.

local bundled = require('mcp-tools.loading.bundled')
local config = require('mcp-tools.config')
local core = require('mcp-tools.core')
local t = require('helpers')

local M = {}

--- ms that a call has; then it is cancelled, which is an end like another.
M.LIMIT = 1500

--- Offers all bundled tools, those that exist by their own name alone as well, and lets everything run.
function M.offer()
  local names = { 'all' }
  for _, file in ipairs(bundled.files('tools')) do
    table.insert(names, file.name)
  end
  config.setup({ tools = names, approval = { default = 'allow', rule = t.returns('allow') } })
  core.get()
  -- The person looks away: menus and prompts are dismissed.
  vim.ui.select = function(_, _, on_choice) on_choice(nil) end
  vim.ui.input = function(_, on_confirm) on_confirm(nil) end
end

--- The definitions, by name.
---@return mcp-tools.Definition[]
function M.tools()
  return vim.tbl_filter(function(tool) return tool.source.origin == 'bundled' end, core.get().registry:list('tools'))
end

--- What names of arguments mean. The first pattern that a name has counts.
local MEANINGS = {
  { 'path$', 'path' },
  { 'file$', 'path' },
  { '^filename$', 'path' },
  { 'uri$', 'uri' },
  { 'glob', 'glob' },
  { 'new_name', 'word' },
  { '^to$', 'other' },
  { 'dest', 'other' },
}

---@param name string
---@param schema table
---@param world table<string, any> what to point at: path, uri, glob, other, word, bufnr
local function sample(name, schema, world)
  if schema.const ~= nil then
    return schema.const
  elseif schema.enum then
    return schema.enum[1]
  elseif schema.default ~= nil then
    return schema.default
  end
  local kind = type(schema.type) == 'table' and schema.type[1] or schema.type
  for _, each in ipairs(schema.anyOf or schema.oneOf or {}) do
    kind = kind or each.type
    schema = each.type == kind and vim.tbl_extend('keep', each, schema) or schema
  end
  if name:find('bufnr') or name == 'buffer' and kind ~= 'string' then
    return world.bufnr
  elseif kind == 'integer' or kind == 'number' then
    return schema.minimum and math.max(schema.minimum, 1) or 1
  elseif kind == 'boolean' then
    return false
  elseif kind == 'array' then
    local count = math.max(schema.minItems or 0, 1)
    return t.list(count, function() return sample(name, schema.items or {}, world) end)
  elseif kind == 'object' then
    return M.arguments(schema, world)
  end
  for _, meaning in ipairs(MEANINGS) do
    if name:find(meaning[1]) then
      return world[meaning[2]]
    end
  end
  return world.word
end

--- Arguments that a schema asks for: the required ones, and of the others those that are named.
---@param schema table
---@param world table<string, any>
---@param also? table<string, true>
---@return table
function M.arguments(schema, world, also)
  local args = vim.empty_dict()
  for name, property in pairs(schema.properties or {}) do
    if vim.list_contains(schema.required or {}, name) or also and also[name] then
      args[name] = sample(name, property, world)
    end
  end
  return args
end

--- Arguments that point at a place in every way that the schema has: by path, by number of a buffer, by neither.
---@param schema table
---@param world table<string, any>
---@return table[]
function M.ways(schema, world)
  local ways = { M.arguments(schema, world) }
  for name in pairs(schema.properties or {}) do
    if name == 'bufnr' or name:find('path') or name:find('uri$') or name:find('file') then
      table.insert(ways, M.arguments(schema, world, { [name] = true }))
      local placed = {}
      for _, place in ipairs({ name, 'line', 'column', 'symbol', 'name', 'query', 'pattern' }) do
        placed[place] = true
      end
      table.insert(ways, M.arguments(schema, world, placed))
    end
  end
  return ways
end

---@class EveryCall
---@field name string
---@field args table
---@field text string everything that was told of it: result, error, progress, states
---@field outcome mcp-tools.Outcome

--- Begins a call, which is cancelled when its time is up.
---@param kind 'tool'|'resource'|'prompt'
---@param name string
---@param args table?
---@return fun(): EveryCall finish waits for its end
function M.begin(kind, name, args)
  local told = {}
  local function tell(value) table.insert(told, type(value) == 'string' and value or vim.inspect(value)) end
  local given = vim.deepcopy(args or vim.empty_dict())
  local ok, call = xpcall(function()
    return core.get().executor:execute(name, given, {
      kind = kind,
      host = 'test',
      exact_args = true,
      limit = M.LIMIT,
      listener = {
        progress = function(_, each) tell(each.latest) end,
        state = function(_, _, state) tell(state) end,
        log = function(_, _, _, data) tell(data) end,
      },
    })
  end, debug.traceback)
  t.ok(ok, ('%s %s: %s'):format(name, vim.inspect(args), tostring(call)))
  return function()
    if not vim.wait(M.LIMIT + 2000, function() return call:ended() end, 2) then
      call:cancel('user')
    end
    local outcome = t.ok(call.outcome, name .. ' has not ended')
    tell(outcome.payload and outcome.payload.text or '')
    tell(outcome.error or '')
    return { name = name, args = args, text = table.concat(told, '\n'), outcome = outcome }
  end
end

--- Calls a tool and waits for its end.
---@param name string
---@param args table?
---@return EveryCall
function M.call(name, args) return M.begin('tool', name, args)() end

--- Did its handler throw, or could its result not be written?
---@param done EveryCall
---@return boolean
function M.is_broken(done)
  local code = done.outcome.error and done.outcome.error.code
  return code == 'execution_error' or code == 'not_serializable' or code == 'invalid_output'
end

--- Does a schema take a value of one of these types?
---@param schema table
---@param ... string
---@return boolean
function M.takes(schema, ...)
  local kinds = type(schema.type) == 'table' and schema.type or { schema.type }
  for _, kind in ipairs({ ... }) do
    if vim.list_contains(kinds, kind) then
      return true
    end
  end
  return false
end

--- Arguments with a value put into every place that takes it, of the first entries of lists as well.
---@param schema table
---@param world table<string, any>
---@param value any
---@param fits fun(schema: table): boolean
---@return table<string, table> by the name of the place
function M.with_value(schema, world, value, fits)
  local list = {}
  local function add(place, given)
    list[place] = vim.tbl_extend('force', M.arguments(schema, world, { path = true }), given)
  end
  for name, property in pairs(schema.properties or {}) do
    local items = type(property.items) == 'table' and property.items or nil
    if fits(property) then
      add(name, { [name] = value })
    elseif items and fits(items) then
      add(name, { [name] = { value } })
    elseif items and items.properties then
      for inner, entry in pairs(M.with_value(items, world, value, fits)) do
        add(('%s[0].%s'):format(name, inner), { [name] = { entry } })
      end
    end
  end
  return list
end

--- Makes calls, and notes what throws and what holds up the editor.
---@class EveryTrial
---@field wrong string[]
---@field tried integer
local Trial = {}
Trial.__index = Trial

--- Of our time, in one go; s. A call as it is meant takes less than a tenth of that.
local LONGEST = 0.25

---@return EveryTrial
function M.trial()
  local self = setmetatable({ wrong = {}, tried = 0, at = '', last = os.clock() }, Trial)
  self.timer = assert(vim.uv.new_timer())
  self.timer:start(0, 1, function()
    local now = os.clock() -- of our time, whoever else is busy
    if now - self.last > LONGEST then
      table.insert(self.wrong, ('%s held the editor for %d ms'):format(self.at, (now - self.last) * 1e3))
    end
    self.last = now
  end)
  return self
end

---@param at string what is tried
---@param tool string
---@param args table
---@return EveryCall
function Trial:call(at, tool, args)
  -- Calls that are refused at once follow each other without a turn of the loop.
  self.tried, self.at, self.last = self.tried + 1, at, os.clock()
  local done = M.call(tool, args)
  local needs_python = tool:find('python') -- an environment that these specs have not
  if M.is_broken(done) and not needs_python then
    table.insert(self.wrong, ('%s: %s'):format(at, done.text:sub(1, 300)))
  end
  return done
end

--- Fails when anything was wrong, or next to nothing was tried.
function Trial:ends_well()
  self.timer:close()
  t.eq('', table.concat(self.wrong, '\n'))
  t.ok(self.tried > 300, self.tried)
end

return M
