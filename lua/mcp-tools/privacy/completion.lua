--- Completes paths of open buffers and of project files, one directory at a time like a shell.

local access = require('mcp-tools.privacy.access')
local time_slice = require('mcp-tools.util.time_slice')

local M = {}

--- Maximum number of entries returned, and of entries read.
local MAX_ENTRIES, MAX_SEEN = 1000, 100000

--- Returns the paths of open files that start with or contain the prefix.
---@param root string
---@param prefix string
---@return string[]
local function open_files(root, prefix)
  local first, rest, lower = {}, {}, prefix:lower()
  for _, info in ipairs(vim.fn.getbufinfo({ buflisted = 1, bufloaded = 1 })) do
    local _, _, resolved = access.buffer(info.bufnr, root)
    if resolved then
      local shown = access.shown(resolved, root)
      if vim.startswith(shown, prefix) then
        table.insert(first, shown)
      elseif shown:lower():find(lower, 1, true) then
        table.insert(rest, shown)
      end
    end
  end
  table.sort(first)
  table.sort(rest)
  return vim.list_extend(first, rest)
end

--- Completes open files.
---@param ctx mcp-tools.Ctx
---@param prefix string
function M.buffers(ctx, prefix)
  ctx(open_files(ctx.root, prefix))
end

--- Lists one directory without blocking the main thread.
---@param root string
---@param prefix string relative to the root
---@param cb fun(entries: string[])
local function entries_of(root, prefix, cb)
  local directory, stem = prefix:match('^(.*/)([^/]*)$')
  directory, stem = directory or '', stem or prefix
  local readable = access.files(root)
  local place = readable(directory == '' and '.' or directory)
  if not place then
    return cb({})
  end
  vim.uv.fs_scandir(
    place,
    vim.schedule_wrap(function(_, handle)
      time_slice.run(function(pause)
        local found, seen = {}, 0
        while handle and #found < MAX_ENTRIES and seen < MAX_SEEN do
          local name, kind = vim.uv.fs_scandir_next(handle)
          if not name then
            break
          elseif vim.startswith(name, stem) and not name:find('%c') then
            local path = directory .. name
            if readable(path) then
              table.insert(found, kind == 'directory' and path .. '/' or path)
            end
          end
          seen = seen + 1
          pause()
        end
        table.sort(found)
        cb(found)
      end)
    end)
  )
end

--- Completes files of the project, open ones first.
---@param ctx mcp-tools.Ctx
---@param prefix string
function M.project(ctx, prefix)
  local values = open_files(ctx.root, prefix)
  entries_of(ctx.root, prefix, function(found)
    local known = {}
    for _, path in ipairs(values) do
      known[path] = true
    end
    for _, path in ipairs(found) do
      if not known[path] then
        table.insert(values, path)
      end
    end
    ctx(values)
  end)
end

--- Completes absolute paths of project files without the first slash, for `file:///`.
---@param ctx mcp-tools.Ctx
---@param prefix string
function M.absolute(ctx, prefix)
  local base = ctx.root:sub(2) .. '/'
  if not vim.startswith(prefix, base) then
    return ctx(vim.startswith(base, prefix) and { base } or {})
  end
  entries_of(ctx.root, prefix:sub(#base + 1), function(found)
    ctx(vim.tbl_map(function(path)
      return base .. path
    end, found))
  end)
end

return M
