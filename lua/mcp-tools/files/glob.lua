--- Glob patterns for paths, with the same results in every Neovim version (unlike `vim.glob`).
---
---   *        any characters but `/`, also none
---   ?        one character but `/`
---   **/      any directories, also none
---   /**      at the end: the directory itself and all that is below it
---   [a-z]    one of these characters, [!a-z] one of the others
---   {a,b}    one of these patterns
---   \x       the character x
---
--- Unclosed brackets and braces are literal. A pattern becomes a regular expression for Vim's NFA engine, which is
--- never exponential.

local M = {}

---@param char string one byte
---@return string
local function literal(char)
  return char:find('[%w\128-\255]') and char or ('\\%%x%02x'):format(char:byte())
end

--- Any non-ASCII character in a class matches all non-ASCII characters.
---@param inner string between the brackets
---@param negated boolean
---@return string
local function class(inner, negated)
  local listed, i = {}, 1
  while i <= #inner do
    local from, to = inner:byte(i), inner:byte(i)
    if inner:sub(i + 1, i + 1) == '-' and i + 2 <= #inner then
      to, i = inner:byte(i + 2), i + 2
    end
    for byte = from, math.min(to, 127) do
      listed[#listed + 1] = (negated or byte ~= 47) and ('\\x%02x'):format(byte) or nil
    end
    i = i + 1
  end
  local ascii = table.concat(listed)
  if negated then
    return '\\[^/' .. ascii .. ']'
  end
  local wide = inner:find('[\128-\255]') and '\\[^\\x01-\\x7f]' or '\\%(a\\&b\\)' -- the latter never matches
  return ascii == '' and wide or '\\%(\\[' .. ascii .. ']\\|' .. wide .. '\\)'
end

--- Returns whether a part of a pattern begins or ends here.
---@param char string '' at the ends of the pattern
---@return boolean
local function is_border(char)
  return char == '' or char:find('^[{,}]$') ~= nil
end

---@param pattern string
---@param at integer
---@return string regex of what is at this place
---@return integer after
---@return boolean? is_brace it is `{`, `,` or `}`
local function token(pattern, at)
  local char, before = pattern:sub(at, at), pattern:sub(at - 1, at - 1)
  local after = (before == '/' or is_border(before)) and pattern:match('^%*%*+/()', at) --[[@as integer?]]
  if after then
    return '\\%(\\[^/]\\*/\\)\\*', after
  end
  after = pattern:match('^/%*%*+()', at) --[[@as integer?]]
  if after and is_border(pattern:sub(after, after)) then
    return '\\%(/\\.\\*\\)\\?', after
  end
  local stars = pattern:match('^%*+', at)
  if stars then
    return #stars > 1 and '\\.\\*' or '\\[^/]\\*', at + #stars
  elseif char == '?' then
    return '\\[^/]', at + 1
  elseif char == '\\' and at < #pattern then
    return literal(pattern:sub(at + 1, at + 1)), at + 2
  elseif char == '[' then
    local sign, inner, next_at = pattern:match('^%[([!^]?)(%]?[^%]]*)%]()', at)
    if inner and inner ~= '' then
      return class(inner, sign ~= ''), next_at
    end
  end
  return literal(char), at + 1, char:find('[{,}]') ~= nil
end

--- A brace that is not closed is literal, and so are its commas.
---@param pattern string
---@return string regex
local function regex_of(pattern)
  local parts, open, at = {}, {}, 1
  while at <= #pattern do
    local text, after, is_brace = token(pattern, at)
    local char = pattern:sub(at, at)
    parts[#parts + 1], at = text, after
    if is_brace and char == '{' then
      table.insert(open, { #parts })
    elseif is_brace and char == ',' and #open > 0 then
      table.insert(open[#open], #parts)
    elseif is_brace and char == '}' and #open > 0 then
      local places = table.remove(open)
      for i, place in ipairs(places) do
        parts[place] = i == 1 and '\\%(' or '\\|'
      end
      parts[#parts] = '\\)'
    end
  end
  return table.concat(parts)
end

--- Compiles a pattern.
---@param pattern string
---@return fun(text: string): boolean matches the whole text; also true if Vim fails, so that access checks fail closed
function M.compile(pattern)
  local ok, regex = pcall(vim.regex, '\\%#=2\\C\\V\\^' .. regex_of(pattern) .. '\\$')
  return function(text)
    local done, from = pcall(ok and regex.match_str or error, regex, text)
    return not done or from ~= nil
  end
end

return M
