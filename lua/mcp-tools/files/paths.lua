--- Resolves paths and decides whether they are inside a project.

local lru = require('mcp-tools.util.lru')

local uv = vim.uv

local M = {}

--- Maximum number of nested symlinks, as on Linux.
local MAX_LINKS = 40
--- Maximum length of a path in bytes.
M.MAX_PATH = 4096
M.TOO_LONG = ('longer than %d bytes'):format(M.MAX_PATH)
--- Maximum length of a file name in bytes: 255 characters of up to 3 bytes.
M.MAX_NAME = 765
--- Maximum number of components, each of which is checked.
local MAX_PARTS = 255

--- Converts a file URI (also `file:/x`) to a path; other text is returned unchanged.
---@param text string
---@return string path
---@return boolean? doubtful parsers disagree: another host, a fragment or a query
function M.from_uri(text)
  local rest = text:match('^[fF][iI][lL][eE]:(/.*)$')
  if not rest then
    return text
  end
  local host, path = rest:match('^//([^/]*)(/.*)$')
  local plain = (path or rest):gsub('%%(%x%x)', function(hex)
    return string.char(tonumber(hex, 16))
  end)
  return plain, host ~= nil and host ~= '' and host:lower() ~= 'localhost' or rest:find('[#?]') ~= nil
end

--- Returns why a path is not resolved.
---@param path string
---@return string?
---@return integer parts
local function excess(path)
  local parts = 0
  for name in path:gmatch('[^/]+') do
    parts = parts + 1
    if #name > M.MAX_NAME then
      return ('with a name that is longer than %d bytes'):format(M.MAX_NAME), parts
    end
  end
  return parts > MAX_PARTS and ('with more than %d parts'):format(MAX_PARTS) or nil, parts
end

--- Maximum number of components of all paths resolved together, including link targets; each takes up to 5 µs.
M.MAX_STEPS = 4000
local TOO_MANY = ('too many path components or links: more than %d in this request'):format(M.MAX_STEPS)

--- Cache for resolving several paths.
---@class mcp-tools.Walked
---@field found table<string, string|boolean> target of a link; true: not a link; false: missing
---@field left integer remaining components

---@return mcp-tools.Walked
function M.walked()
  return { found = {}, left = M.MAX_STEPS }
end

---@param walked mcp-tools.Walked
---@param path string
---@return string|boolean
local function link_target(walked, path)
  local found = walked.found[path]
  if found == nil then
    local target, _, code = uv.fs_readlink(path)
    found = target or code == 'EINVAL' or uv.fs_lstat(path) ~= nil
    walked.found[path] = found
  end
  return found
end

--- Resolves a path component by component from the root. Links are followed; missing components are taken literally,
--- including `..` after them.
---@param path string absolute
---@param walked mcp-tools.Walked
---@return string path
---@return string? bad
local function walk(path, walked)
  local todo, missing, links = {}, nil, 0
  local done = {} -- paths of the resolved components
  local function push(text)
    local parts = {}
    for name in text:gmatch('[^/]+') do
      parts[#parts + 1] = name
    end
    for i = #parts, 1, -1 do
      todo[#todo + 1] = parts[i]
    end
  end
  push(path)
  while #todo > 0 do
    local name = table.remove(todo)
    walked.left = walked.left - 1
    if walked.left < 0 then
      return path, TOO_MANY
    end
    if name == '..' then
      done[#done] = nil
      missing = missing and missing <= #done and missing or nil
    elseif name ~= '.' then
      local here = (done[#done] or '') .. '/' .. name
      done[#done + 1] = here
      local found = not missing and link_target(walked, here)
      if type(found) == 'string' then
        links = links + 1
        if links > MAX_LINKS then
          return here, 'a circular link'
        end
        done[#done] = nil
        if found:sub(1, 1) == '/' then
          done = {}
        end
        push(found)
      elseif not found then
        missing = missing or #done -- everything below is missing too
      end
    end
  end
  return done[#done] or '/'
end

--- Returns an absolute path with symlinks resolved, so that a new file is checked by its real directory.
---@param path string path, relative to the working directory, or file URI
---@param walked? mcp-tools.Walked cache shared with earlier calls
---@return string path
---@return string? bad why it cannot be resolved; `path` is then unchecked
function M.resolve(path, walked)
  if #path <= 4 * M.MAX_PATH then -- percent-encoded
    path = M.from_uri(path)
  end
  if #path > M.MAX_PATH then
    return path, M.TOO_LONG
  end
  local bad, parts = excess(path)
  if bad then
    return path, bad
  end
  if path == '~' or path:sub(1, 2) == '~/' then
    path = uv.os_homedir() .. path:sub(2)
  elseif path:sub(1, 1) ~= '/' then
    local cwd = uv.cwd()
    if not cwd then
      return path, 'relative to a working directory that no longer exists'
    end
    path = cwd .. '/' .. path
  end
  walked = walked or M.walked()
  walked.left = walked.left - parts
  if walked.left < 0 then
    return path, TOO_MANY
  end
  local real = uv.fs_realpath(path)
  if real then
    return real
  end
  return walk(path, walked)
end

local real_roots = lru(256)

--- Returns a project root with symlinks resolved. The result is cached: if the root becomes a link later, its target is
--- outside the project.
---@param root string
---@return string
function M.real_root(root)
  local real = real_roots:get(root)
  if not real then
    real = uv.fs_realpath(root)
    real_roots:set(root, real)
  end
  return real or root
end

---@type string?
local account_home

--- Returns whether a directory is a project. `/`, the home directory and its parents are not.
---@param root string
---@return boolean
function M.is_project(root)
  root = M.real_root(root)
  account_home = account_home or (uv.os_get_passwd() or {}).homedir or '/'
  for _, home in ipairs({ uv.os_homedir() or '/', account_home }) do
    home = M.real_root(home)
    if root == '/' or root == home or vim.startswith(home, root .. '/') then
      return false
    end
  end
  return true
end

--- Returns whether a resolved path is the project root or inside it. Always false without a project.
---@param path string resolved
---@param root string
---@return boolean
function M.inside(path, root)
  if not M.is_project(root) then
    return false
  end
  root = M.real_root(root)
  return path == root or vim.startswith(path, root .. '/')
end

--- Returns a text that changes when a file does. Nil: there is no regular file.
---@param path string
---@return string?
function M.stamp(path)
  return M.stamp_of(uv.fs_stat(path))
end

--- The same for the status of a file.
---@param stat table?
---@return string?
function M.stamp_of(stat)
  if not stat or stat.type ~= 'file' then
    return nil
  end
  local times = { stat.mtime.sec, stat.mtime.nsec, stat.ctime.sec, stat.ctime.nsec } -- programs may restore mtime
  return ('%d %d %d.%09d %d.%09d'):format(stat.ino, stat.size, unpack(times))
end

return M
