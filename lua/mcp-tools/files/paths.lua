--- Files: where they really are, and which of them are off limits.

local uv = vim.uv

local M = {}

--- Links that lead to links; as many as the system follows.
local MAX_LINKS = 40
--- Bytes; no system opens a longer one.
M.MAX_PATH = 4096
M.TOO_LONG = ('longer than %d bytes'):format(M.MAX_PATH)
--- No file system has a longer name: 255 characters of up to 3 bytes.
M.MAX_NAME = 765
--- No project is as deep; each part is looked at.
local MAX_PARTS = 255

--- The path of a file URI (`file:/x` is one, too); anything else as it is.
---@param text string
---@return string path
---@return boolean? doubtful readers of URIs do not agree on it: another host, a fragment or a query
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

--- Why it is none that is looked at.
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

--- Parts of all paths that are resolved together, each at most 5 µs; those that links lead to count, too.
M.MAX_STEPS = 4000
local TOO_MANY = ('with too many parts, or behind too many links: more than %d steps with those before'):format(
  M.MAX_STEPS
)

--- What is known of the way to several paths: each place is looked at once.
---@class mcp-tools.Walked
---@field found table<string, string|boolean> target of a link; true for what is none, false for what does not exist
---@field left integer steps

---@return mcp-tools.Walked
function M.walked()
  return { found = {}, left = M.MAX_STEPS }
end

---@param walked mcp-tools.Walked
---@param path string
---@return string|boolean
local function look(walked, path)
  local found = walked.found[path]
  if found == nil then
    local target, _, code = uv.fs_readlink(path)
    found = target or code == 'EINVAL' or uv.fs_lstat(path) ~= nil
    walked.found[path] = found
  end
  return found
end

--- Part by part from the top, so that each is looked at once: links are followed, what does not exist is taken by its
--- text, `..` after it included.
---@param path string absolute
---@param walked mcp-tools.Walked
---@return string path
---@return string? bad
local function walk(path, walked)
  local todo, missing, links = {}, nil, 0
  local done = {} -- paths from the top to here
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
      local found = not missing and look(walked, here)
      if type(found) == 'string' then
        links = links + 1
        if links > MAX_LINKS then
          return here, 'a link that leads in a circle'
        end
        done[#done] = nil
        if found:sub(1, 1) == '/' then
          done = {}
        end
        push(found)
      elseif not found then
        missing = missing or #done -- and whatever is below it
      end
    end
  end
  return done[#done] or '/'
end

--- The absolute form of a path, with symlinks resolved, so that a new file is judged by the folder that it would really
--- land in.
---@param path string relative ones count from the working directory; or a file URI
---@param walked? mcp-tools.Walked by paths before, in the same moment
---@return string path
---@return string? bad why no one can say where it is; then the path is no more than was given
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
      return path, 'in a working directory that does not exist any more'
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

local real_roots, count = {}, 0
--- More projects than one editor sees.
local MAX_ROOTS = 256

--- The project's root with its links resolved. One that was resolved stays what it was: when it is made a link later,
--- what lies in it is outside.
---@param root string
---@return string
function M.real_root(root)
  local known = real_roots[root]
  if known then
    return known
  end
  local real = uv.fs_realpath(root)
  if not real then
    return root
  end
  if count >= MAX_ROOTS then
    real_roots, count = {}, 0
  end
  real_roots[root], count = real, count + 1
  return real
end

---@type string?
local account_home

--- Is it the folder of a project? The top of the file system, the home folder and those above it are where an editor
--- was started that has none.
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

--- Is a resolved path of the project: its root, or below it? Without a project none is.
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

return M
