--- Targets of a call: the files and buffers that its arguments name, which approval checks (`call.targets`).

local access = require('mcp-tools.privacy.access')
local buffers = require('mcp-tools.editor.buffer')
local paths = require('mcp-tools.files.paths')
local sensitive = require('mcp-tools.privacy.sensitive')
local trim = require('mcp-tools.util.trim')

local uv = vim.uv

local M = {}

---@alias mcp-tools.NameKind
---| 'path'   # a path or file URI
---| 'maybe'  # a path, if the value looks like one
---| 'uri'    # a URI, or a path
---| 'url'    # a URI, or a path if the value looks like one
---| 'buffer' # a buffer number

--- Names of arguments with a path or a buffer, at any depth: the last word in singular.
---@type table<string, mcp-tools.NameKind>
local WORDS = {}
for kind, words in pairs({
  path = 'fname cwd root program dest destination directorie',
  maybe = 'from to source src target location input output script notebook config repo repository workspace attachment',
  url = 'url',
  buffer = 'buf bufnr buffer',
  [false] = 'profile xpath jsonpath',
}) do
  for word in words:gmatch('%S+') do
    WORDS[word] = kind
  end
end

--- Endings of the last word that mean a path.
local ENDS = { 'path', 'file', 'dir', 'directory', 'folder', 'uri' }

--- Only the last characters of a name are checked.
local MAX_KEY = 64
--- Bytes of a rejected value that are quoted in the reason.
local MAX_SHOWN = 200
--- Maximum number of files in one call. A user would not read more, and each blocks the main thread for a while.
local MAX_TARGETS = 128
--- Maximum number of values checked in one call, which is cheaper than resolving a path.
local MAX_VALUES = 2000
--- Maximum bytes of one path, percent-encoded.
local MAX_GIVEN = 4 * paths.MAX_PATH
--- Maximum bytes of all paths in one call, because resolving them blocks the main thread.
local MAX_BYTES = 32 * 1024
--- A value that may not be a path counts as one byte of MAX_BYTES for each of these bytes.
local PLAIN_BYTES = 4
--- Maximum number of wildcard parts, and of variables, that are looked up in one path.
local MAX_LOOKED_UP = 16

local WILD = '[%*%?%[{]'

---@param key string
---@return mcp-tools.NameKind?
local function find_kind(key)
  local words = key:sub(-MAX_KEY):gsub('(%l)(%u)', '%1_%2'):lower()
  local whole = words:gsub('%A*$', ''):gsub('%A*list$', '') -- bounded: MAX_KEY (path_list)
  if not whole:find('fnames?$') then
    whole = whole:gsub('%A*names?$', '') -- bounded: MAX_KEY (file_name, dirname)
  end
  local word = whole:match('%a+$') -- bounded: MAX_KEY
  word = word and (word:match('^(.+)s$') or word)
  local kind = WORDS[word]
  if kind ~= nil or not word then
    return kind or nil
  end
  for _, ending in ipairs(ENDS) do
    if vim.endswith(word, ending) then
      return ending == 'uri' and 'uri' or 'path'
    end
  end
end

---@class mcp-tools.CallTarget
---@field given string the value in the arguments
---@field path string? resolved path, or the name of a buffer without a file; nil for an unnamed buffer
---@field bad string? why it cannot be checked
---@field sensitive boolean
---@field unclear boolean? a tool may resolve it to another path
---@field other boolean? it is a buffer without a file: a permission applies only once
---@field bufnr integer? of a buffer without a file

--- Returns whether a path is a wildcard pattern. It is not if every part with wildcard characters exists as a file or
--- directory of that name.
---@param text string
local function is_pattern(text)
  if not text:find(WILD) then
    return false
  end
  local literal = text:sub(1, 2) == '~/' and uv.os_homedir() .. text:sub(2) or text
  if uv.fs_lstat(literal) then
    return false
  end
  local looked_up = 0
  for name, after in literal:gmatch('([^/]+)()') do
    if name:find(WILD) then
      looked_up = looked_up + 1
      if looked_up > MAX_LOOKED_UP or not uv.fs_lstat(literal:sub(1, after - 1)) then
        return true
      end
    end
  end
  return false
end

--- Returns whether a path contains an environment variable that is set.
---@param text string
local function has_variable(text)
  local seen, count = {}, 0
  for name in text:gmatch('%$[{%(]?([%w_]+)') do
    if not seen[name] then
      seen[name], count = true, count + 1
      if count > MAX_LOOKED_UP or vim.env[name] then
        return true
      end
    end
  end
  return false
end

--- Returns whether a tool that expands the path may get another path.
---@param text string
local function is_unclear(text)
  return text:find('`', 1, true) ~= nil
    or text:find('^~[^/]') ~= nil
    or text:find('^[%%#<]') ~= nil
    or is_pattern(text)
    or has_variable(text)
end

--- State of the search through one set of arguments.
---@class mcp-tools.CallTargets
---@field list mcp-tools.CallTarget[]
---@field seen table<string, true> by kind and value: many arguments may name one file
---@field count integer number of values checked
---@field bytes integer of paths
---@field marked table<string, true>? files whose buffers the user marked as sensitive; set with the first path
---@field names table<string, { of_value: mcp-tools.NameKind?, itself: 'uri'? }> kinds of each argument name
---@field walked mcp-tools.Walked?
---@field bundled boolean? for a bundled tool, where buffer 0 is the file beside a terminal or float

---@param targets mcp-tools.CallTargets
---@param given string
---@return mcp-tools.CallTarget
local function target_of_path(targets, given)
  local function rejected(bad)
    return { given = given:sub(1, MAX_SHOWN), bad = bad, sensitive = true }
  end
  if #given > MAX_GIVEN then
    return rejected(paths.TOO_LONG)
  end
  -- Decoded once: `%252e` names a file with `%2e` in its name. RFC 3986, 2.4 forbids a mounted server to decode twice.
  local plain, doubtful = paths.from_uri(given)
  if plain:find('%z') then
    return rejected('a path with a NUL byte')
  end
  targets.walked = targets.walked or paths.walked()
  local path, bad = paths.resolve(plain, targets.walked)
  if bad then
    return rejected(bad)
  end
  targets.marked = targets.marked or access.marked()
  local without = doubtful and paths.from_uri(given:match('^[^#?]*')) or plain
  return {
    given = given,
    path = path,
    sensitive = sensitive.is_sensitive(path)
      or plain ~= path and sensitive.is_sensitive(plain)
      or without ~= plain and sensitive.is_sensitive(without)
      or targets.marked[path] == true,
    unclear = doubtful or is_unclear(plain) or nil,
  }
end

---@param targets mcp-tools.CallTargets
---@param bufnr any
---@return mcp-tools.CallTarget?
local function target_of_buffer(targets, bufnr)
  if type(bufnr) ~= 'number' or not vim.api.nvim_buf_is_valid(bufnr) then
    return nil -- the tool has the better error message
  end
  bufnr = bufnr == 0 and vim.api.nvim_get_current_buf() or bufnr
  local kind, name = access.buffer_kind(bufnr)
  local label, marked = 'buffer ' .. bufnr, access.is_marked(bufnr)
  if kind == 'unnamed' then
    return marked and { given = label, sensitive = true } or nil
  elseif kind == 'other' then
    return {
      given = label,
      path = name ~= '' and access.name(name) or label,
      sensitive = marked or access.is_sensitive_name(name, kind),
      unclear = true,
      other = true,
      bufnr = bufnr,
    } --[[@as mcp-tools.CallTarget]]
  end
  local target = target_of_path(targets, name)
  target.sensitive = target.sensitive or marked
  return target
end

--- Resolves `.` and `..` in the text, as many programs do before they open a path: `a\n/../b` is `b`. Works from the
--- end, so that it stops early if the text cannot be a path.
---@param text string
---@return string? path nil if it cannot be a path
---@return integer dropped bytes of the names that were removed
local function collapsed(text)
  local names, kept, up, dropped = {}, 0, 0, 0
  for name in text:reverse():gmatch('[^/]+') do
    if up == 0 and name ~= '.' and name ~= '..' then
      names[#names + 1], kept = name, kept + #name + 1
    else
      up = name == '..' and up + 1 or name ~= '.' and up - 1 or up
      dropped = dropped + #name + 1
    end
    if #name > paths.MAX_NAME or kept > paths.MAX_PATH + 1 or dropped > MAX_BYTES then
      return nil, dropped
    end
  end
  local top = text:sub(1, 1) == '/' and '/' or ('../'):rep(up)
  return top .. table.concat(names, '/'):reverse(), dropped
end

--- Returns whether a value of the kind `maybe` looks like a path. Other values cannot reach a sensitive file or one
--- outside the project.
---@param targets mcp-tools.CallTargets
---@param given string
---@return boolean
local function looks_like_path(targets, given)
  local text, dropped = collapsed(given)
  targets.bytes = targets.bytes + dropped
  if not text then
    return false
  end
  targets.bytes = targets.bytes + #text / PLAIN_BYTES
  if uv.fs_lstat(text) then
    return true
  elseif text:find('%c') then
    return false
  end
  return text:find('^[/~$`]') ~= nil
    or text:find('^[fF][iI][lL][eE]:') ~= nil
    or text:find('%.%./') ~= nil
    or text:find('/', 1, true) ~= nil and uv.fs_lstat(text:match('^[^/]+')) ~= nil
    or text:find(WILD) ~= nil and text:find('^[%w._/,{}%[%]*?!+-]+$') ~= nil
    or sensitive.is_sensitive(text)
end

---@param targets mcp-tools.CallTargets
---@param kind mcp-tools.NameKind
---@param value any
local function add(targets, kind, value)
  if kind == 'buffer' and type(value) == 'string' then -- its name, or its number as a string
    value = tonumber(value) or value
    kind = type(value) == 'string' and 'maybe' or kind
  end
  local key = kind .. ' ' .. tostring(value)
  if targets.seen[key] then
    return
  end
  targets.seen[key] = true
  targets.count = targets.count + 1
  local list = targets.list
  if kind == 'buffer' then
    local current = value == 0 and buffers.current()
    if current then
      list[#list + 1] = target_of_buffer(targets, current)
    end
    if not current or not targets.bundled and current ~= vim.api.nvim_get_current_buf() then
      list[#list + 1] = target_of_buffer(targets, value)
    end
  elseif type(value) == 'string' and value ~= '' then
    if not targets.bundled and (value:find('^%s') or value:sub(-1):find('%s')) then
      add(targets, kind, trim(value)) -- a mounted server may trim it
    end
    local scheme = (kind == 'uri' or kind == 'url') and value:match('^(%a[%w+.-]*):')
    local is_file = scheme and scheme:lower() == 'file'
    if kind == 'maybe' then
      is_file = not targets.bundled and looks_like_path(targets, value)
    elseif not scheme then
      is_file = kind ~= 'url' or not targets.bundled and looks_like_path(targets, value)
    end
    if is_file then
      targets.bytes = targets.bytes + (#value <= MAX_GIVEN and #value or 0)
      list[#list + 1] = target_of_path(targets, value)
    end
  end
end

---@param targets mcp-tools.CallTargets
---@return string? bad
local function too_much(targets)
  if #targets.list > MAX_TARGETS or targets.count > MAX_VALUES then
    return ('more than %d, too many to check'):format(MAX_TARGETS)
  elseif targets.bytes > MAX_BYTES then
    return ('with more than %d bytes, too many to check'):format(MAX_BYTES)
  end
end

--- Returns 'uri' if a key is itself a path or URI, because some arguments map files to actions. A key without the
--- syntax of a path is one if it has a slash and the file exists, or if it names a sensitive file.
---@param key string
---@return 'uri'?
local function kind_of_key(key)
  if key:find('^/[^/]+/') or key:find('^~[^/]*/') or key:find('%.%./') or key:lower():find('^file:') then
    return 'uri'
  elseif key:find('/', 1, true) and key:find('[^/.]') and #key <= paths.MAX_PATH and uv.fs_lstat(key) then
    return 'uri' -- a directory in it may be a symlink
  end
  local path = #key <= paths.MAX_PATH and sensitive.is_sensitive(key) and paths.resolve(key)
  return path and sensitive.is_sensitive(path) and 'uri' or nil
end

--- Returns the kind of a key's value, and of the key if it names a file itself.
---@param targets mcp-tools.CallTargets
---@param key string
---@return mcp-tools.NameKind? kind
---@return 'uri'? itself
local function kinds_of(targets, key)
  local known = targets.names[key]
  if not known then
    known = { of_value = find_kind(key), itself = kind_of_key(key) }
    targets.names[key] = known -- every item of a list has the same keys
  end
  return known.of_value, known.itself
end

--- Kinds of the values in an object whose name means files, such as `path = { value = … }`.
---@type table<mcp-tools.NameKind, mcp-tools.NameKind>
local BELOW = { path = 'maybe', maybe = 'maybe', uri = 'url', url = 'url', buffer = 'buffer' }

---@param targets mcp-tools.CallTargets
---@param value table
---@param above? mcp-tools.NameKind kind of the values, from the names above this table
---@param keys? mcp-tools.NameKind kind of the keys, likewise
local function collect(targets, value, above, keys)
  for key, item in pairs(value) do
    if too_much(targets) then
      return
    end
    local kind, keys_below = above, BELOW[above] -- an item of a list
    if type(key) == 'string' then
      local of_value, itself = kinds_of(targets, key)
      local named = itself or keys ~= 'buffer' and keys
      if named then
        add(targets, named, key)
      end
      kind = of_value or BELOW[above]
      keys_below = kind
    end
    if type(item) == 'table' then
      collect(targets, item, kind, keys_below)
    elseif kind then
      add(targets, kind, item)
    end
  end
end

--- Returns the files that a resource of a mounted server names. Servers use their own schemes for files, so the text
--- of every URI is checked, too.
---@param uri string the server's own URI
---@param params table<string, string> values of its template's variables
---@return mcp-tools.CallTarget[]
function M.of_resource(uri, params)
  if uri:lower():find('^file:') then
    return M.by({ uri = uri })
  end
  local list, decoded = M.by(params), vim.uri_decode(uri)
  for part in decoded:gsub('/+', '/'):gmatch('[^?#&=;:%z]+') do
    local path = part:match('^.*[^/]') -- without a slash at the end
    if path and sensitive.is_sensitive(path) then
      table.insert(list, { given = uri:sub(1, MAX_SHOWN), sensitive = true })
      break
    end
  end
  return list
end

--- Returns every file and buffer that the arguments name.
---@param args table
---@param bundled? boolean whether they are for a bundled tool
---@return mcp-tools.CallTarget[] sorted
function M.by(args, bundled)
  local targets = { list = {}, seen = {}, names = {}, count = 0, bytes = 0, bundled = bundled }
  collect(targets, args)
  local list = targets.list
  local bad = too_much(targets)
  if bad then
    return { { given = 'the number of files that it names', bad = bad, sensitive = true } }
  end
  if #list > 1 then
    table.sort(list, function(a, b)
      return (a.path or a.given) < (b.path or b.given)
    end)
  end
  return list
end

return M
