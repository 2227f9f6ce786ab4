--- Tool search (option `catalogue = "search"`): publishes three tools (search, describe, call) instead of all, so that
--- a client's context has only the definitions that it needs.

local source = require('mcp-tools.registry.source')
local tool = require('mcp-tools.registry.definition.tool')

local M = {}

M.SEARCH, M.DESCRIBE, M.CALL = 'tools_search', 'tools_describe', 'tools_call'

--- ms between two checks while definitions are still being loaded.
local LOADING_MS = 5
--- Maximum characters of a description in a search result.
local MAX_LINE = 120

local READS = { read_only = true, idempotent = true }

---@type table<string, table> definitions without what they share
local GIVEN = {
  [M.SEARCH] = {
    title = 'Find tools of the editor',
    description = 'Finds tools of the running Neovim: unsaved files; definitions, references, callers, subclasses,'
      .. ' types and renames by the language server; diagnostics, quick fixes, formatting; tests, debugger; selection,'
      .. ' undo, questions to the user. Call it first, before reading, grepping or editing, when a task is about code.'
      .. ' Then tools_describe and tools_call.',
    args = {
      query = { type = 'string', description = 'Words, such as "who calls a function"', default = '', maxLength = 500 },
      limit = { type = 'integer', description = 'Maximum number of tools', default = 10, minimum = 1, maximum = 200 },
    },
    annotations = READS,
  },
  [M.DESCRIBE] = {
    title = 'Describe tools',
    description = 'Returns descriptions and argument schemas of tools that tools_search has found.',
    args = {
      names = {
        type = 'array',
        items = { type = 'string', maxLength = 200 },
        description = 'Names of tools',
        minItems = 1,
        maxItems = 20,
        required = true,
      },
    },
    annotations = READS,
  },
  [M.CALL] = {
    title = 'Call a tool',
    description = 'Calls a tool of the editor by name, with arguments that match the schema from tools_describe.',
    input_schema = {
      type = 'object',
      properties = {
        name = { type = 'string', description = 'Name of the tool', maxLength = 200 },
        arguments = { type = 'object', description = 'Arguments of the tool' },
      },
      required = { 'name' },
      additionalProperties = false,
    },
  },
}

---@type table<string, mcp-tools.Definition>
local made = {}

--- Returns one of the three tools.
---@param name string
---@return mcp-tools.Definition?
function M.get(name)
  if GIVEN[name] and not made[name] then
    local given = vim.tbl_extend('error', GIVEN[name], { name = name, execute = function() end })
    made[name] = assert(tool.normalize(given, true))
    made[name].source = { origin = 'bundled', group = 'catalogue' }
  end
  return made[name]
end

--- Returns the three tools, in the order of their use.
---@return mcp-tools.Definition[]
function M.list()
  return { M.get(M.SEARCH), M.get(M.DESCRIBE), M.get(M.CALL) }
end

--- Returns the name of the tool that a call of `tools_call` calls.
---@param registry mcp-tools.Registry
---@param name any of the call
---@param args any
---@return string?
function M.inner(registry, name, args)
  local is_call = type(name) == 'string' and registry:bare(name) == M.CALL
  local inner = is_call and type(args) == 'table' and args.name
  return type(inner) == 'string' and inner or nil
end

-- Search -----------------------------------------------------------------------------------------------------------

local STOP_WORDS = {}
for word in
  (
    'a an and all are as at by can do does for from how i in into is it its me my of on or that the their them'
    .. ' this to use using what when which with you your'
  ):gmatch('%S+')
do
  STOP_WORDS[word] = true
end

--- Splits a text into words without endings, so that "renaming" finds "rename".
---@param text string
---@return string[]
local function stems(text)
  local list = {}
  for word in text:lower():gmatch('[%w\128-\255]+') do
    if #word > 1 and not STOP_WORDS[word] then
      local stem = word
      for _, ending in ipairs({ 'ing', 'ies', 'ed', 'er', 'es', 's', 'e', 'y' }) do
        local cut = word:sub(1, -#ending - 1)
        if #cut >= 3 and vim.endswith(word, ending) then
          stem = cut
          break
        end
      end
      table.insert(list, stem)
    end
  end
  return list
end

--- Returns how much each word says about a tool: its name says most.
---@param definition mcp-tools.Definition
---@return table<string, number>
local function weights(definition)
  local first, rest = definition.description:match('^(.-[.!?])%s+(.*)$')
  local out = {}
  for _, part in ipairs({
    { 1, table.concat(vim.tbl_keys(definition.input_schema.properties or {}), ' ') },
    { 1, rest or '' },
    { 2, first or definition.description },
    { 3, definition.title or '' },
    { 4, definition.search_hint or '' },
    { 4, definition.name },
  }) do
    for _, stem in ipairs(stems(part[2])) do
      out[stem] = math.max(out[stem] or 0, part[1])
    end
  end
  return out
end

---@param definition mcp-tools.Definition
---@param prefix string
---@return string
local function line_of(definition, prefix)
  local text = definition.description:gsub('%s+', ' ')
  text = text:match('^(.-[.!?])%s') or text
  if vim.fn.strchars(text) > MAX_LINE then
    text = vim.fn.strcharpart(text, 0, MAX_LINE - 1) .. '…'
  end
  return ('%s: %s'):format(tool.published_name(definition, prefix), text)
end

---@param list mcp-tools.Definition[]
---@param prefix string
---@return string[]
local function by_group(list, prefix)
  local groups, lines = {}, {}
  for _, definition in ipairs(list) do
    local group = source.group(definition)
    groups[group] = groups[group] or {}
    table.insert(groups[group], tool.published_name(definition, prefix))
  end
  for group, names in vim.spairs(groups) do
    table.insert(lines, ('%s: %s'):format(group, table.concat(names, ' ')))
  end
  return lines
end

--- Finds tools by words and formats them, one per line, best match first.
---@param list mcp-tools.Definition[]
---@param query string
---@param limit integer
---@param prefix string
---@return string
function M.search(list, query, limit, prefix)
  local wanted, found, of_tool, frequency = stems(query), {}, {}, {}
  if #wanted == 0 then
    return table.concat(by_group(list, prefix), '\n')
  end
  for i, definition in ipairs(list) do
    of_tool[i] = weights(definition)
    for stem in pairs(of_tool[i]) do
      frequency[stem] = (frequency[stem] or 0) + 1
    end
  end
  for i, definition in ipairs(list) do
    local score = 0
    for _, stem in ipairs(wanted) do
      -- A word that many tools have says little.
      score = score + (of_tool[i][stem] or 0) * math.log(1 + #list / (frequency[stem] or 1))
    end
    if score > 0 then
      table.insert(found, { definition = definition, score = score })
    end
  end
  if #found == 0 then
    local text = 'No tool matches these keywords. All tools, by group:\n'
    return text .. table.concat(by_group(list, prefix), '\n')
  end
  table.sort(found, function(a, b)
    if a.score ~= b.score then
      return a.score > b.score
    end
    return a.definition.name < b.definition.name
  end)
  local lines = {}
  for i = 1, math.min(limit, #found) do
    lines[i] = line_of(found[i].definition, prefix)
  end
  if #found > limit then
    table.insert(lines, ('(%d more match: raise limit, or use more keywords)'):format(#found - limit))
  end
  return table.concat(lines, '\n')
end

--- Returns the published definitions of tools, by name.
---@param registry mcp-tools.Registry
---@param view mcp-tools.View
---@param names string[]
---@return table
local function describe(registry, view, names)
  local out = { tools = {} }
  for _, name in ipairs(names) do
    local definition = registry:find_tool(name)
    if definition and view:allows(definition) then
      table.insert(out.tools, tool.published(definition, registry.prefix()))
    else
      out.unknown = out.unknown or {}
      table.insert(out.unknown, name)
    end
  end
  return out
end

---@param registry mcp-tools.Registry
---@param ctx mcp-tools.Ctx
local function await_loaded(registry, ctx)
  while registry.is_pending('tools') do
    ctx:await(function(done)
      vim.defer_fn(done, LOADING_MS)
    end)
  end
end

--- Returns one of the three tools with a handler for one client's view.
---@param registry mcp-tools.Registry
---@param view mcp-tools.View
---@param name string bare
---@return mcp-tools.Definition?
function M.bound(registry, view, name)
  local definition = M.get(name)
  if not definition then
    return nil
  end
  local function handler(ctx, args)
    await_loaded(registry, ctx)
    if name == M.SEARCH then
      return M.search(view:filter(registry:list('tools')), args.query, args.limit, registry.prefix())
    end
    return describe(registry, view, args.names)
  end
  return vim.tbl_extend('force', definition, { handler = handler, style = 'run' })
end

return M
