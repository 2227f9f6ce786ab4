--- Files: where they really are, and which of them are off limits.
---
--- Receives: paths as clients write them.
--- Sends: resolved paths, and verdicts "inside the root?", "sensitive?".
--- Does not know about: arguments (trust/targets.lua), tools, decisions, people.

local sensitive = require('mcp-tools.files.sensitive')

local uv = vim.uv

local M = {}

--- Links that lead to links; as many as the system follows.
local MAX_LINKS = 40

--- Takes `.` and `..` out of an absolute path by its text alone; right only where no part is a symlink.
---@param path string
---@return string
local function flatten(path)
  local parts = {}
  for part in path:gmatch('[^/]+') do
    if part == '..' then
      table.remove(parts)
    elseif part ~= '.' then
      parts[#parts + 1] = part
    end
  end
  return '/' .. table.concat(parts, '/')
end

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

---@param path string absolute
---@param links integer followed so far
---@return string path, boolean? endless its links lead nowhere
local function follow(path, links)
  local existing, rest = path, ''
  while existing ~= '' do
    local real = uv.fs_realpath(existing)
    if real then
      return rest == '' and real or flatten(real .. rest)
    end
    local parent, name = existing:match('^(.*)/([^/]*)$')
    -- A link whose target does not exist yet: what is written to it lands there.
    local target = name ~= '' and uv.fs_readlink(existing)
    if target then
      if links >= MAX_LINKS then
        return flatten(path), true
      end
      return follow((target:sub(1, 1) == '/' and target or parent .. '/' .. target) .. rest, links + 1)
    end
    existing, rest = parent, '/' .. name .. rest
  end
  return flatten(rest)
end

--- The absolute form of a path, with symlinks resolved, so that a new file is judged by the folder that it would really
--- land in.
---@param path string relative ones count from the working directory; or a file URI
---@return string path
---@return boolean? endless its links lead in a circle
function M.resolve(path)
  path = M.from_uri(path)
  if path == '~' or path:sub(1, 2) == '~/' then
    path = uv.os_homedir() .. path:sub(2)
  elseif path:sub(1, 1) ~= '/' then
    path = uv.cwd() .. '/' .. path
  end
  return follow(path, 0)
end

local real_root, root_of

--- The project's root with its links resolved. One that was resolved stays what it was: when it is made a link later,
--- what lies in it is outside.
---@param root string
---@return string
function M.real_root(root)
  if root_of ~= root then
    local real = uv.fs_realpath(root)
    if not real then
      return root
    end
    real_root, root_of = real, root
  end
  return real_root
end

--- Is a resolved path the root or below it?
---@param path string resolved
---@param root string
---@return boolean
function M.inside(path, root)
  root = M.real_root(root)
  return path == root or vim.startswith(path, root:sub(-1) == '/' and root or root .. '/')
end

--- Is its text off limits, by its name?
M.sensitive = sensitive.matches

return M
