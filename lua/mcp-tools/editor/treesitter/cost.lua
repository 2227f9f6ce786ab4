--- Cost of queries: those that would hold up the editor, in a step that nothing stops.
---
--- Receives: the text of a query, the root of a tree.
--- Sends: why it is not run.
--- Does not know about: files, captures, who asks.

local treesitter = require('mcp-tools.editor.treesitter')

local M = {}

--- Two quantifiers beside or in each other are tried in every way, in one go that nothing stops. A few `?` alone do no
--- harm.
local MAX_REPEATED, MAX_OPTIONAL = 1, 10
--- Levels of a tree; nodes of a query, and those in each other. One step that nothing stops tries all of them with each
--- other: at 20000 levels, or 100 nodes, that takes seconds. No code of people is as deep.
local MAX_NODES, MAX_NESTED = 30, 8
M.MAX_DEPTH = 1000
--- Bytes of a node that is looked into: no language has ten nodes for each byte, and most nodes are small.
local MIN_BYTES = M.MAX_DEPTH / 10

--- Why a query may take for ever.
---@param query string
---@return string?
function M.excess(query)
  local bare = query:gsub('\\.', ''):gsub('"[^"\n]*"', '"'):gsub(';[^\n]*', ''):gsub('#[%w_.-]+[?!]?', '')
  local _, repeated = bare:gsub('[*+]', '')
  local _, optional = bare:gsub('%?', '')
  if repeated > MAX_REPEATED or repeated > 0 and optional > 0 then
    return 'more than one *, + or ? takes for ever on long lists of nodes'
  elseif optional > MAX_OPTIONAL then
    return ('more than %d ? take for ever on long lists of nodes'):format(MAX_OPTIONAL)
  end
  local count, nested, most = 0, 0, 0
  bare = bare:gsub('%(%s*_', '(')
  for word in bare:gmatch('[%w_.@#-]+') do
    count = count + (word:find('^_+$') and 1 or 0)
  end
  for sign in bare:gmatch('[()"]') do
    nested = nested + (sign == '(' and 1 or sign == ')' and -1 or 0)
    count, most = count + (sign == ')' and 0 or 1), math.max(most, nested)
  end
  if count > MAX_NODES or most > MAX_NESTED then
    return ('more than %d nodes, or %d in each other, take too long'):format(MAX_NODES, MAX_NESTED)
  end
end

--- Predicates that take time proportional to the text of a node. Others run patterns or code of plugins, in one step
--- that nothing stops.
M.PREDICATES = { 'eq', 'any-of', 'contains', 'has-parent', 'has-ancestor' }

--- Returns the first predicate or directive of a query that is not allowed.
---@param query vim.treesitter.Query
---@return string? name
function M.forbidden(query)
  for _, predicates in pairs(query.info.patterns) do
    for _, predicate in ipairs(predicates) do
      local name = tostring(predicate[1])
      local plain = name:match('^(.*)%?$') or ''
      plain = plain:gsub('^not%-', '')
      if
        not vim.list_contains(M.PREDICATES, plain) and not vim.list_contains(M.PREDICATES, (plain:gsub('^any%-', '')))
      then
        return name
      end
    end
  end
end

--- Has a tree more levels than a query can be run on?
---@param ctx mcp-tools.Ctx in a coroutine
---@param root TSNode
---@param is_old fun(): boolean has the text changed? Then nothing more is looked at
---@return boolean
function M.is_too_deep(ctx, root, is_old)
  local levels = { root:iter_children() }
  ctx:await(function(done)
    treesitter.walk(function()
      if #levels == 0 or #levels > M.MAX_DEPTH or ctx:cancelled() or is_old() then
        return false
      end
      local child = levels[#levels]()
      if child and child:byte_length() >= MIN_BYTES then
        levels[#levels + 1] = child:iter_children()
      elseif not child then
        levels[#levels] = nil
      end
      return true
    end, done)
  end)
  return #levels > M.MAX_DEPTH
end

return M
