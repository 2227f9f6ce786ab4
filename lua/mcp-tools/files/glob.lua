--- Globs: patterns of paths, matched in time that grows with the path alone.
---
--- Receives: a pattern; a path.
--- Sends: whether the whole path matches.
--- Does not know about: which patterns there are. Neovim's own `vim.glob` gives other answers in each version.
---
---   *        any characters but `/`, also none
---   ?        one character but `/`
---   **/      any folders, also none
---   /**      at the end: the folder itself and all that is below it
---   [a-z]    one of these characters, [!a-z] one of the others
---   {a,b}    one of these patterns
---   \x       the character x
---
--- What is not closed stands for itself. A pattern becomes states of an automaton that is in several of them at a time:
--- nothing is tried twice.

local M = {}

local SLASH = ('/'):byte()

--- One byte that is allowed: `set[byte]`.
---@class mcp-tools.GlobState
---@field set table<integer, true>?
---@field [1] mcp-tools.GlobState? what comes next
---@field [2] mcp-tools.GlobState? or this, where no byte is read

---@param allowed fun(byte: integer): boolean
---@return table<integer, true>
local function set_of(allowed)
  local set = {}
  for byte = 0, 255 do
    set[byte] = allowed(byte) or nil
  end
  return set
end

local ANY = set_of(function()
  return true
end)
local NAME = set_of(function(byte)
  return byte ~= SLASH
end)
--- The bytes after the first of a character in UTF-8.
local REST = set_of(function(byte)
  return byte >= 128 and byte < 192
end)

---@param set table<integer, true>
---@param after mcp-tools.GlobState
---@return mcp-tools.GlobState
local function one(set, after)
  return { after, set = set }
end

---@param set table<integer, true>
---@param after mcp-tools.GlobState
---@return mcp-tools.GlobState
local function many(set, after)
  local state = {}
  state[1], state[2] = one(set, state), after
  return state
end

---@param after mcp-tools.GlobState
---@return mcp-tools.GlobState
local function folders(after)
  local state = {}
  state[1], state[2] = many(NAME, one({ [SLASH] = true }, state)), after
  return state
end

--- What a part of a pattern is made into, once it is known what comes after it.
---@alias mcp-tools.GlobMaker fun(after: mcp-tools.GlobState): mcp-tools.GlobState

---@param text string
---@return mcp-tools.GlobMaker
local function literal(text)
  return function(after)
    for i = #text, 1, -1 do
      after = one({ [text:byte(i)] = true }, after)
    end
    return after
  end
end

--- One character: a byte of ASCII that is allowed, or, where `wide`, any other character.
---@param allowed fun(byte: integer): boolean
---@param wide boolean
---@return mcp-tools.GlobMaker
local function character(allowed, wide)
  local set = set_of(function(byte)
    if byte >= 128 then
      return wide
    end
    return byte ~= SLASH and allowed(byte)
  end)
  return function(after)
    return one(set, wide and many(REST, after) or after)
  end
end

---@param inner string between the brackets
---@param negated boolean
---@return mcp-tools.GlobMaker
local function class(inner, negated)
  local listed, i = {}, 1
  while i <= #inner do
    local from, to = inner:byte(i), inner:byte(i)
    if inner:sub(i + 1, i + 1) == '-' and i + 2 <= #inner then
      to, i = inner:byte(i + 2), i + 2
    end
    for byte = from, to do
      listed[byte] = true
    end
    i = i + 1
  end
  -- Characters beyond ASCII are not told apart: one of them that is listed stands for all.
  return character(function(byte)
    return (listed[byte] == true) ~= negated
  end, negated or inner:find('[\128-\255]') ~= nil)
end

local ANY_CHARACTER = character(function()
  return true
end, true)

---@param after mcp-tools.GlobState
---@return mcp-tools.GlobState
local function names(after)
  return many(NAME, after)
end

---@param after mcp-tools.GlobState
---@return mcp-tools.GlobState
local function anything(after)
  return many(ANY, after)
end

---@param after mcp-tools.GlobState
---@return mcp-tools.GlobState
local function below(after)
  return { one({ [SLASH] = true }, anything(after)), after }
end

---@param alternatives mcp-tools.GlobMaker[]
---@return mcp-tools.GlobMaker
local function choice(alternatives)
  return function(after)
    local state = alternatives[#alternatives](after)
    for i = #alternatives - 1, 1, -1 do
      state = { alternatives[i](after), state }
    end
    return state
  end
end

---@param parts mcp-tools.GlobMaker[]
---@return mcp-tools.GlobMaker
local function sequence(parts)
  return function(after)
    for i = #parts, 1, -1 do
      after = parts[i](after)
    end
    return after
  end
end

--- Does a part begin, or end, here? Inside of braces their signs are borders, too.
---@param text string what stands there, empty at the ends of the pattern
local function is_border(text)
  return text == '' or text:find('^[{,}]$') ~= nil
end

--- The token at a place: a maker, or one of the signs `{`, `,` and `}`.
---@param pattern string
---@param at integer
---@return mcp-tools.GlobMaker|string
---@return integer after
local function token(pattern, at)
  local char, before = pattern:sub(at, at), pattern:sub(at - 1, at - 1)
  if before == '/' or is_border(before) then
    local after = pattern:match('^%*%*+/()', at)
    if after then
      return folders, after
    end
  end
  local after = pattern:match('^/%*%*+()', at)
  if after and is_border(pattern:sub(after, after)) then
    return below, after
  end
  local stars = pattern:match('^%*+', at)
  if stars then
    return #stars > 1 and anything or names, at + #stars
  elseif char == '?' then
    return ANY_CHARACTER, at + 1
  elseif char == '\\' and at < #pattern then
    return literal(pattern:sub(at + 1, at + 1)), at + 2
  elseif char == '[' then
    local sign, inner, behind = pattern:match('^%[([!^]?)(%]?[^%]]*)%]()', at)
    if inner and inner ~= '' then
      return class(inner, sign ~= ''), behind
    end
  elseif char:find('[{,}]') then
    return char, at + 1
  end
  return literal(char), at + 1
end

---@class mcp-tools.GlobOpen braces that are not closed yet
---@field parts mcp-tools.GlobMaker[] of the alternative that is being read
---@field alternatives mcp-tools.GlobMaker[]
---@field flat mcp-tools.GlobMaker[] all of it, should it stay open

---@param pattern string
---@return mcp-tools.GlobMaker
local function parse(pattern)
  local stack = { { parts = {}, flat = {} } } ---@type mcp-tools.GlobOpen[]
  local at = 1
  local function add(maker)
    table.insert(stack[#stack].flat, maker)
    table.insert(stack[#stack].parts, maker)
  end
  while at <= #pattern do
    local found
    found, at = token(pattern, at)
    local top = stack[#stack]
    if type(found) == 'function' then
      add(found)
    elseif found == '{' then
      table.insert(stack, { parts = {}, alternatives = {}, flat = { literal('{') } })
    elseif #stack == 1 then
      add(literal(found))
    elseif found == ',' then
      table.insert(top.alternatives, sequence(top.parts))
      table.insert(top.flat, literal(','))
      top.parts = {}
    else
      table.insert(top.alternatives, sequence(top.parts))
      table.remove(stack)
      add(choice(top.alternatives))
    end
  end
  while #stack > 1 do -- never closed: they stand for themselves
    local flat = table.remove(stack).flat
    add(sequence(flat))
  end
  return sequence(stack[1].parts)
end

--- Adds a state, and those that come after it without a byte.
---@param list mcp-tools.GlobState[]
---@param seen table<mcp-tools.GlobState, integer>
---@param step integer
---@param state mcp-tools.GlobState
local function enter(list, seen, step, state)
  if seen[state] == step then
    return
  end
  seen[state] = step
  if state.set or not state[1] then
    list[#list + 1] = state
    return
  end
  enter(list, seen, step, state[1])
  if state[2] then
    enter(list, seen, step, state[2])
  end
end

--- Compiles a pattern.
---@param pattern string
---@return fun(text: string): boolean matches
function M.compile(pattern)
  local last = {}
  local first = parse(pattern)(last)
  return function(text)
    local seen, states = {}, {}
    enter(states, seen, 0, first)
    for i = 1, #text do
      local byte, after = text:byte(i), {}
      for _, state in ipairs(states) do
        if state.set and state.set[byte] then
          enter(after, seen, i, state[1])
        end
      end
      if #after == 0 then
        return false
      end
      states = after
    end
    return seen[last] == #text
  end
end

return M
