--- Returns the changed files of the working tree, and the state of the branch.

local buffers = require('mcp-tools.editor.buffer')
local paths = require('mcp-tools.files.paths')
local repository = require('mcp-tools.editor.git.repository')
local result = require('mcp-tools.editor.result')
local revision = require('mcp-tools.editor.git.revision')
local time_slice = require('mcp-tools.util.time_slice')
local utf8 = require('mcp-tools.util.utf8')

--- Files in the repository's git directory that exist during an operation.
local OPERATIONS = {
  { 'rebase-merge', 'rebase' },
  { 'rebase-apply', 'rebase' },
  { 'MERGE_HEAD', 'merge' },
  { 'CHERRY_PICK_HEAD', 'cherry-pick' },
  { 'REVERT_HEAD', 'revert' },
  { 'BISECT_LOG', 'bisect' },
}

---@class mcp-tools.git.Status
---@field branch string?
---@field commit string?
---@field upstream string?
---@field ahead integer?
---@field behind integer?
---@field operation string?
---@field files { kind: 'staged'|'unstaged'|'conflicts'|'untracked', text: string }[]
---@field cut boolean
---@field total integer?
---@field next_offset integer?
---@field unsaved string[]?

---@param status mcp-tools.git.Status
---@param entry string
local function read_head(status, entry)
  local key, value = entry:match('^# branch%.(%S+) (.*)$')
  if key == 'head' then
    status.branch = value ~= '(detached)' and utf8.repair(value) or nil
  elseif key == 'oid' then
    status.commit = value:match('^%x+$') and value:sub(1, 12) or nil
  elseif key == 'upstream' then
    status.upstream = utf8.repair(value)
  elseif key == 'ab' then
    local ahead, behind = value:match('^%+(%d+) %-(%d+)$')
    status.ahead, status.behind = tonumber(ahead), tonumber(behind)
  end
end

---@param status mcp-tools.git.Status
---@param xy string
---@param text string
local function add_changed(status, xy, text)
  for i, kind in ipairs({ 'staged', 'unstaged' }) do
    local letter = xy:sub(i, i)
    if letter ~= '.' then
      table.insert(status.files, { kind = kind, text = letter .. ' ' .. text })
    end
  end
end

--- Parses the entries of `git status --porcelain=v2 -z`.
---@param status mcp-tools.git.Status is extended
---@param list string[]
---@param shown fun(name: string): string
---@param pause fun()
local function read(status, list, shown, pause)
  local i = 1
  while i <= #list do
    local entry = list[i]
    local kind = entry:sub(1, 1)
    if kind == '#' then
      read_head(status, entry)
    elseif kind == '1' then
      local xy, name = entry:match('^1 (..) %S+ %S+ %S+ %S+ %S+ %S+ (.*)$')
      add_changed(status, xy, shown(name))
    elseif kind == '2' then
      i = i + 1
      local xy, name = entry:match('^2 (..) %S+ %S+ %S+ %S+ %S+ %S+ %S+ (.*)$')
      add_changed(status, xy, ('%s -> %s'):format(shown(list[i] or '?'), shown(name)))
    elseif kind == 'u' then
      local xy, name = entry:match('^u (..) %S+ %S+ %S+ %S+ %S+ %S+ %S+ %S+ (.*)$')
      table.insert(status.files, { kind = 'conflicts', text = xy .. ' ' .. shown(name) })
    elseif kind == '?' then
      table.insert(status.files, { kind = 'untracked', text = shown(entry:sub(3)) })
    end
    i = i + 1
    pause()
  end
end

--- Returns the operation that is in progress.
---@param git_dir string
---@return string?
local function operation_in(git_dir)
  for _, each in ipairs(OPERATIONS) do
    if vim.uv.fs_stat(git_dir .. '/' .. each[1]) then
      return each[2]
    end
  end
end

--- Returns the status of the project.
---@param ctx mcp-tools.Ctx inside a coroutine
---@param path? string resolved
---@return mcp-tools.git.Status?
---@return string? fault
local function status_of(ctx, path)
  local found, fault = repository.find(ctx.root)
  if not found then
    return nil, fault
  end
  local root = paths.real_root(ctx.root)
  local prefix = root == found.worktree and '' or root:sub(#found.worktree + 2) .. '/'
  local args = { 'status', '--porcelain=v2', '--branch', '-z', '--untracked-files=normal', '--', path or '.' }
  local done = revision.ask(ctx, args)
  if not done.ok then
    return nil, done.fault
  end
  local status = { files = {}, operation = operation_in(found.gitdir), cut = done.cut }
  read(status, revision.entries(done.stdout), function(name)
    if vim.startswith(name, prefix) then
      name = name:sub(#prefix + 1)
    end
    return (utf8.repair(name))
  end, time_slice.of(ctx))
  return status
end

return {
  name = 'git_status',
  title = 'Git status',
  description = 'Returns the branch, an unfinished merge or rebase, and the changed files, also those that are only'
    .. ' changed in the editor.',
  search_hint = 'changed files, branch, untracked, staged, ahead, behind',
  args = {
    path = { type = 'string', description = 'File or directory' },
    limit = {
      type = 'integer',
      description = 'Maximum number of files',
      default = 200,
      minimum = 1,
      maximum = 5000,
      hidden = true,
    },
    offset = { type = 'integer', description = 'Number of files to skip', default = 0, minimum = 0, hidden = true },
  },
  annotations = { read_only = true, idempotent = true },
  run = function(ctx, args)
    local place, err = revision.place(ctx, args)
    if err then
      return nil, err
    end
    local found, fault = status_of(ctx, place.path)
    if not found then
      return nil, revision.error_of(fault --[[@as string]])
    end
    local files, page = result.page(found.files, args)
    found.files, found.cut = nil, found.cut or nil
    for _, file in ipairs(files) do
      found[file.kind] = found[file.kind] or {}
      table.insert(found[file.kind], file.text)
    end
    found.unsaved = buffers.unsaved(ctx.root, place.path)
    return vim.tbl_extend('error', found, page)
  end,
  render = function(value, args)
    local head = value.branch or ('detached at %s'):format(value.commit or '?')
    if value.upstream then
      local text = '%s, upstream %s: %d ahead, %d behind'
      head = text:format(head, value.upstream, value.ahead or 0, value.behind or 0)
    end
    head = value.operation and ('%s; %s in progress'):format(head, value.operation) or head
    head = ('%s; %s'):format(head, value.total == 0 and 'no changes' or result.count(value.total, 'change'))
    local rows = { result.with_range(value.cut and head .. ' or more, give path' or head, args, value.total) }
    for _, kind in ipairs({ 'conflicts', 'staged', 'unstaged', 'untracked' }) do
      for _, text in ipairs(value[kind] or {}) do
        table.insert(rows, ('%s: %s'):format(kind, text))
      end
    end
    for _, path in ipairs(value.unsaved or {}) do
      table.insert(rows, 'unsaved in the editor: ' .. path)
    end
    return table.concat(rows, '\n')
  end,
}
