--- Sections of the dashboard: tools, resources and prompts.

local Rows = require('mcp-tools.ui.window.rows')
local config = require('mcp-tools.config')
local form = require('mcp-tools.ui.form')
local json = require('mcp-tools.util.json')
local json_schema = require('mcp-tools.schema')
local kinds = require('mcp-tools.registry.kinds')
local listing = require('mcp-tools.scope.listing')
local report = require('mcp-tools.loading.report')
local sanitize = require('mcp-tools.util.sanitize')
local trim = require('mcp-tools.util.trim')

---@type table<string, table> tool → arguments of its last call
local last = {}

--- Returns whether a form can ask for an argument.
---@param schema table of the argument
---@return boolean
local function is_plain(schema)
  local of = type(schema) == 'table' and schema.type or nil
  if of == 'array' then
    return type(schema.items) == 'table' and schema.items.type == 'string'
  end
  return of == 'string' or of == 'number' or of == 'integer' or of == 'boolean'
end

---@param schema table of all arguments
---@param given table arguments that become defaults
---@return table
local function with_defaults(schema, given)
  local copy = vim.deepcopy(schema)
  for name, property in pairs(copy.properties or {}) do
    if given[name] ~= nil then
      property.default = given[name]
    end
  end
  return copy
end

---@param parts mcp-tools.DashboardParts
---@param name string
---@param args table
local function run_call(parts, name, args)
  last[name] = args
  parts.close() -- the result is shown in another window
  parts.run(('call %s %s'):format(name, json.encode(args) or '{}'))
end

--- Asks for the arguments as JSON, if no form can ask for them.
---@param parts mcp-tools.DashboardParts
---@param name string
local function ask_json(parts, name)
  local default = last[name] and json.encode(last[name]) or '{}'
  vim.ui.input({ prompt = ('%s, arguments as JSON: '):format(name), default = default }, function(text)
    if text then
      local ok, args = pcall(vim.json.decode, text)
      last[name] = ok and type(args) == 'table' and args or last[name]
      parts.close()
      parts.run(('call %s %s'):format(name, text))
    end
  end)
end

--- Asks for the arguments of a tool, and calls it.
---@param parts mcp-tools.DashboardParts
---@param name string
local function call_by_hand(parts, name)
  local tool = parts.registry:find_tool(name)
  if not tool then
    return parts.run('call ' .. name) -- reports why there is no such tool
  end
  local schema, plain = tool.input_schema, true
  for _, property in pairs(schema.properties or {}) do
    -- Schemas of mounted servers were not validated, and the form needs one that compiles.
    plain = plain and is_plain(property) and (tool.check ~= nil or json_schema.compile(property) ~= nil)
  end
  if not plain then
    return ask_json(parts, name)
  elseif not next(schema.properties or {}) then
    return run_call(parts, name, vim.empty_dict())
  end
  form.ask({ message = name, requestedSchema = with_defaults(schema, last[name] or {}) }, function(result)
    if result.action == 'accept' then
      run_call(parts, name, result.content)
    end
  end, function()
    return true
  end)
end

--- Indent of the details of a tool.
local INDENT = 10

local TRUST_MEANINGS = { trusted = 'runs', verified = 'runs', untrusted = 'asks', denied = 'never runs' }
local TRUST_GROUPS = { trusted = 'Good', verified = 'Good', untrusted = 'Warn', denied = 'Bad' }

--- Bytes of each definition in a client's list. Definitions never change.
---@type table<mcp-tools.Definition, integer>
local sizes = setmetatable({}, { __mode = 'k' })

---@param tool mcp-tools.Definition
---@return integer
local function size_of(tool)
  sizes[tool] = sizes[tool] or listing.size(tool, config.get('tool_prefix'))
  return sizes[tool]
end

--- Formats bytes as tokens of a model, four bytes each.
---@param bytes integer
---@return string
local function tokens_of(bytes)
  local tokens = math.ceil(bytes / 4)
  return (tokens < 1000 and '%d tokens' or '%.1fk tokens'):format(tokens < 1000 and tokens or tokens / 1000)
end

---@class mcp-tools.DashboardGroup
---@field name string
---@field on integer number of enabled tools
---@field items mcp-tools.Item[]

---@param parts mcp-tools.DashboardParts
---@return mcp-tools.DashboardGroup[]
local function grouped(parts)
  local by_name, list = {}, {}
  for _, item in ipairs(report.items(parts.registry)) do
    if item.kind == 'tools' then
      local group = by_name[item.group]
      if not group then
        group = { name = item.group, on = 0, items = {} }
        by_name[item.group] = group
        table.insert(list, group)
      end
      table.insert(group.items, item)
      group.on = group.on + (item.on and 1 or 0)
    end
  end
  table.sort(list, function(a, b)
    if (a.on > 0) ~= (b.on > 0) then
      return a.on > 0
    end
    return a.name < b.name
  end)
  return list
end

--- Adds the description and the parameters of a tool.
---@param rows mcp-tools.Rows
---@param tool mcp-tools.Definition
---@param why string what its trust level means, and the reason
local function add_details(rows, tool, why)
  local texts, schema = { { { 'trust', 'Dim' }, why } }, tool.input_schema
  for line in vim.gsplit(trim(tostring(tool.description or '')), '\n', { plain = true }) do
    table.insert(texts, { { '', 'Dim' }, line })
  end
  for name, property in vim.spairs(schema.properties or {}) do
    local must = vim.list_contains(schema.required or {}, name) and ', required' or ''
    local of = type(property) == 'table' and property or {}
    local what = ('%s%s  %s'):format(
      type(of.type) == 'string' and of.type or 'any',
      must,
      type(of.description) == 'string' and of.description or ''
    )
    table.insert(texts, { { name, 'Key' }, what })
  end
  local list, label = {}, 0
  for _, each in ipairs(texts) do
    label = math.max(label, vim.api.nvim_strwidth(each[1][1]))
  end
  local room = math.max(20, rows.width - INDENT - label - 2)
  for _, each in ipairs(texts) do
    for i, piece in ipairs(Rows.broken(sanitize.line(each[2]), room)) do
      table.insert(list, { cells = { i == 1 and each[1] or '', piece } })
    end
  end
  rows:table(list, { indent = INDENT })
end

---@param rows mcp-tools.Rows
---@param parts mcp-tools.DashboardParts
---@param group mcp-tools.DashboardGroup
local function add_tools(rows, parts, group)
  local list, reasons = {}, {}
  for _, item in ipairs(group.items) do
    local tool = item.on and parts.registry:find_tool(item.name)
    local trust, tokens, title = '', '', ''
    if tool then
      local why
      trust, why = parts.gateway:level(tool)
      reasons[item.name] = ('%s: %s'):format(TRUST_MEANINGS[trust], why)
      tokens, title = tokens_of(size_of(tool)), tostring(tool.title or tool.description or ''):match('[^\n]*')
    end
    table.insert(list, {
      cells = {
        item.on and { '●', 'Good' } or { '○', 'Dim' },
        { item.name, item.on and 'Name' or 'Dim' },
        { trust, TRUST_GROUPS[trust] },
        { tokens, 'Number' },
        { title, 'Dim' },
      },
      item = { kind = 'tool', id = 'tool ' .. item.name, value = { name = item.name, on = item.on } },
    })
  end
  local shown = Rows.new(rows.width)
  shown:table(list, { indent = 6, right = { [4] = true } })
  for i, item in ipairs(group.items) do
    table.insert(rows.list, shown.list[i])
    if parts.open['tool ' .. item.name] and reasons[item.name] then
      add_details(rows, parts.registry:find_tool(item.name), reasons[item.name])
    end
  end
end

---@param parts mcp-tools.DashboardParts
---@param value { name: string, on: boolean }
local function toggle(parts, value)
  parts.run(('tools %s %s'):format(value.on and 'disable' or 'enable', value.name))
end

local function toggle_details(parts, item)
  parts.open[item.id] = not parts.open[item.id]
end

---@type mcp-tools.DashboardSection
local tools = {
  title = 'Tools',
  note = function(parts)
    local count, bytes = 0, 0
    for _, tool in ipairs(parts.registry:list('tools')) do
      count, bytes = count + 1, bytes + size_of(tool)
    end
    return ('%d enabled, %s'):format(count, tokens_of(bytes))
  end,
  rows = function(rows, parts)
    for _, group in ipairs(grouped(parts)) do
      local id, count = 'group ' .. group.name, ('%d of %d'):format(group.on, #group.items)
      rows:add({
        '  ',
        { parts.open[id] and '▾' or '▸', 'Dim' },
        ' ',
        group.on > 0 and { '●', 'Good' } or { '○', 'Dim' },
        (' %-16s '):format(group.name),
        { ('%9s'):format(count), 'Dim' },
      }, { kind = 'group', id = id, value = { name = group.name, on = group.on > 0 } })
      if parts.open[id] then
        add_tools(rows, parts, group)
      end
    end
  end,
  keys = {
    {
      lhs = 't',
      description = 'switch the tool or group under the cursor on or off',
      word = 'toggle',
      item = { 'tool', 'group' },
      run = function(parts, item)
        toggle(parts, item.value)
      end,
    },
    {
      lhs = 'c',
      description = 'call the tool under the cursor; a form asks for its arguments',
      word = 'call',
      item = { 'tool' },
      run = function(parts, item)
        if not item.value.on then
          return vim.api.nvim_echo({ { ('%s is off; t switches it on'):format(item.value.name) } }, false, {})
        end
        call_by_hand(parts, item.value.name)
      end,
    },
  },
  details = { group = toggle_details, tool = toggle_details },
}

---@type mcp-tools.DashboardSection
local resources_and_prompts = {
  title = 'Resources and prompts',
  folded = true,
  note = function(parts)
    local notes = {}
    for _, row in ipairs(kinds.rows) do
      if not row.grouped then
        table.insert(notes, ('%d %s'):format(#parts.registry:list(row.kind), row.heading))
      end
    end
    return table.concat(notes, ', ')
  end,
  rows = function(rows, parts)
    local list = {}
    for _, row in ipairs(kinds.rows) do
      for _, entry in ipairs(row.grouped and {} or parts.registry:list(row.kind)) do
        local title = tostring(entry.title or entry.description or entry.name):match('[^\n]*')
        table.insert(list, {
          cells = { { row.what, 'Dim' }, { tostring(entry.key), 'Name' }, { title, 'Dim' } },
          item = { kind = 'offer', id = ('%s %s'):format(row.kind, entry.key) },
        })
      end
    end
    rows:table(list)
  end,
}

---@type mcp-tools.DashboardSection[]
return { tools, resources_and_prompts }
