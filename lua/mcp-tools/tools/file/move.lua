--- Moves a file or directory. Buffers follow, and language servers update references in other files.

local access = require('mcp-tools.privacy.access')
local approval_diff = require('mcp-tools.editor.lsp.approval_diff')
local approved = require('mcp-tools.editor.edit.approved')
local buffers = require('mcp-tools.editor.buffer')
local clients = require('mcp-tools.editor.lsp.clients')
local disk = require('mcp-tools.editor.buffer.disk')
local errors = require('mcp-tools.errors')
local findings = require('mcp-tools.editor.diagnostics.findings')
local fresh = require('mcp-tools.editor.diagnostics.fresh')
local history = require('mcp-tools.editor.edit.history')
local log = require('mcp-tools.log')
local lsp = require('mcp-tools.editor.lsp')
local search_files = require('mcp-tools.editor.search.files')
local paths = require('mcp-tools.files.paths')
local project = require('mcp-tools.instances.project')
local renamed_files = require('mcp-tools.editor.lsp.renamed_files')
local save = require('mcp-tools.editor.buffer.save')
local sensitive = require('mcp-tools.privacy.sensitive')
local target = require('mcp-tools.editor.buffer.target')
local time_slice = require('mcp-tools.util.time_slice')
local watched_files = require('mcp-tools.editor.lsp.watched_files')
local workspace_edit = require('mcp-tools.editor.lsp.workspace_edit')

local api, uv = vim.api, vim.uv

---@param path string
---@return string
local function shown(path)
  return access.shown(path, project.root())
end

---@param path string
---@param top string
local function is_at_or_below(path, top)
  return path == top or vim.startswith(path, top .. '/')
end

--- Returns the buffers of the moved files, loaded or not.
---@param from string resolved
---@return { bufnr: integer, path: string }[]
local function buffers_of(from)
  local list = {}
  for _, bufnr in ipairs(api.nvim_list_bufs()) do
    local name = api.nvim_buf_get_name(bufnr)
    if name ~= '' and access.buffer_kind(bufnr) == 'file' then
      local path = paths.resolve(name)
      if is_at_or_below(path, from) then
        table.insert(list, { bufnr = bufnr, path = path })
      end
    end
  end
  return list
end

--- Renames a loaded buffer. Its file keeps its bytes.
---@param bufnr integer
---@param new string
local function rename_buffer(bufnr, new)
  local ok, thrown = pcall(api.nvim_buf_call, bufnr, function()
    vim.cmd(('silent keepalt keepjumps file %s'):format(vim.fn.fnameescape(new)))
  end)
  if not ok then
    error(thrown, 0)
  end
  save.acknowledge(bufnr) -- or a later `:write` would ask whether to overwrite the file
  save.notify_written(bufnr) -- servers
end

--- Makes a buffer follow its moved file.
---@param bufnr integer
---@param old string
---@param new string
---@return string? problem
local function follow(bufnr, old, new)
  local problem
  if api.nvim_buf_is_loaded(bufnr) then
    local ok, thrown = pcall(rename_buffer, bufnr, new)
    problem = not ok and ('buffer %d could not be renamed: %s'):format(bufnr, errors.plain(thrown)) or nil
  else
    local listed = vim.bo[bufnr].buflisted
    vim.bo[vim.fn.bufadd(new)].buflisted = listed
  end
  for _, each in ipairs(api.nvim_list_bufs()) do
    if api.nvim_buf_get_name(each) == old and #vim.fn.win_findbuf(each) == 0 then
      pcall(api.nvim_buf_delete, each, { force = true })
    end
  end
  return problem
end

--- Reloads buffers that changed on disk, since they are written to the new path.
---@param ctx mcp-tools.Ctx
---@param from string
local function refresh(ctx, from)
  for _, each in ipairs(buffers_of(from)) do
    disk.await(ctx, each.bufnr)
  end
end

--- Timeout of the tool and of a server's response in ms; the first response takes long in a large project.
local TIMEOUT_MS = 60000
--- Timeout of a server's response for the question, ms.
local PREVIEW_MS = 15000
--- Maximum number of entries of a moved directory that are compared with those at the time of the question.
local MAX_COMPARED = 2000
--- Maximum number of changed files checked afterwards, and time for that in ms.
local MAX_CHECKED, CHECK_MS = 20, 8000
--- Maximum number of problems listed.
local MAX_PROBLEMS = 10
--- Matches imports of most languages.
local IMPORT = vim.regex([[\C\v<(import|from|require|include|use|using|mod)>]])

local NOT_ASKED = 'references in other files were not updated: the user has approved the move without their diff'
local NO_CHANGES = 'No language server changes other files.'

---@class mcp-tools.MoveChange in other files
---@field plan mcp-tools.lsp.Plan
---@field files mcp-tools.FilesEdited? nil: not yet applied
---@field by string names of the servers

--- Returns why a path cannot be moved.
---@param from string
---@param to string
---@return mcp-tools.Error?
local function refusal(from, to)
  local stat = uv.fs_lstat(from)
  if not stat then
    return errors.new('not_found', ('path: there is no %s'):format(shown(from)))
  elseif stat.type ~= 'file' and stat.type ~= 'directory' then
    return errors.new('validation_error', ('path: %s is a %s'):format(shown(from), stat.type))
  elseif uv.fs_lstat(to) then
    local text = 'new_path: %s already exists and is not overwritten; give the full path of a new file'
    return errors.new('tool_error', text:format(shown(to)))
  elseif is_at_or_below(to, from) then
    return errors.new('validation_error', 'new_path: must not be inside path')
  elseif #access.showing(to) > 0 then
    return errors.new('tool_error', ('new_path: a buffer of that name is open: %s'):format(shown(to)))
  end
  for _, each in ipairs(buffers_of(from)) do
    if api.nvim_buf_is_loaded(each.bufnr) and vim.bo[each.bufnr].modified then
      local text = '%s has unsaved changes; write them first (file_save)'
      return errors.new('tool_error', text:format(shown(each.path)))
    end
  end
end

--- Returns the first file of a directory that would no longer be sensitive under the directory's new name.
---@param ctx mcp-tools.Ctx inside a coroutine
---@param from string
---@param to string
---@return string? path
local function exposed_file(ctx, from, to)
  local stat = uv.fs_lstat(from)
  if not stat or stat.type ~= 'directory' or not sensitive.depends_on_name(from) then
    return nil
  end
  local pause = time_slice.of(ctx)
  for _, name in ipairs((search_files.names(ctx, from, { ignored = true }))) do
    local path = from .. '/' .. name
    if sensitive.is_sensitive(path) and not sensitive.is_sensitive(to .. '/' .. name) then
      return path
    end
    pause()
  end
end

--- Reverts the changes in other files, also for an ended call.
---@param change mcp-tools.MoveChange
---@param done fun(problem: string?)
local function revert(change, done)
  if not change.files then
    return done()
  end
  workspace_edit.revert(change.plan, change.files, function(err)
    if err then
      log.error('cannot revert changes by %s after a failed move: %s', change.by, err.message)
    end
    done(err and ('; changes by %s in other files remain: %s'):format(change.by, err.message) or nil)
  end)
end

--- Renames on disk, and creates the directories of the new path.
---@param from string
---@param to string
---@return mcp-tools.Error? err
local function rename(from, to)
  local parent, missing = vim.fs.dirname(to), {}
  local existing = parent
  while not uv.fs_stat(existing) do
    table.insert(missing, existing)
    existing = vim.fs.dirname(existing)
  end
  local ok, problem = pcall(vim.fn.mkdir, parent, 'p')
  if ok then
    ok, problem = uv.fs_rename(from, to)
  end
  if ok then
    return nil
  end
  for _, directory in ipairs(missing) do
    uv.fs_rmdir(directory)
  end
  return errors.new('tool_error', ('cannot move %s to %s: %s'):format(shown(from), shown(to), errors.plain(problem)))
end

--- Returns diagnostics after the move in changed lines and in the imports of the moved file.
---@param ctx mcp-tools.Ctx
---@param plan mcp-tools.lsp.Plan
---@param moved integer? buffer of the moved file
---@return string[] problems
---@return integer unchecked files
local function broken_imports(ctx, plan, moved)
  local rows_of, order = {}, {}
  local function add(bufnr)
    if not rows_of[bufnr] then
      rows_of[bufnr] = {}
      table.insert(order, bufnr)
    end
    return rows_of[bufnr]
  end
  if moved and api.nvim_buf_is_loaded(moved) then
    add(moved)
  end
  for _, file in ipairs(plan.files) do
    for _, edit in ipairs(file.edits) do
      add(file.bufnr)[edit.start_line] = true
    end
  end
  local problems, unchecked = {}, math.max(0, #order - MAX_CHECKED)
  local deadline, pause = uv.hrtime() + CHECK_MS * 1e6, time_slice.of(ctx)
  watched_files.notify_servers(ctx, true)
  for i = 1, math.min(#order, MAX_CHECKED) do
    local bufnr = order[i] --[[@as integer]]
    local served = api.nvim_buf_is_loaded(bufnr) and clients.of(bufnr) or {}
    local left = (deadline - uv.hrtime()) / 1e6
    if #served == 0 or fresh.wait(ctx, bufnr, served, math.max(left, 1)) == 'no' then
      unchecked = unchecked + 1
    else
      local path = access.shown(api.nvim_buf_get_name(bufnr), ctx.root)
      for _, each in ipairs((findings.of(bufnr, { min_severity = 'warning' }, pause))) do
        local row = each.line - 1
        local line = api.nvim_buf_is_loaded(bufnr) and api.nvim_buf_get_lines(bufnr, row, row + 1, false)[1] or ''
        local is_import = bufnr == moved and IMPORT:match_str(line) ~= nil
        if is_import or rows_of[bufnr][row] then
          table.insert(problems, ('%s:%s'):format(path, each.row))
        end
      end
    end
  end
  return problems, unchecked
end

--- Describes the state of a file, or the entries of a directory. Files in a directory are not compared, since logs,
--- caches and build output change in normal use; nor are swap files, which Neovim itself may keep there.
---@param path string
---@return string
local function state_of(path)
  local stat = uv.fs_lstat(path)
  if not stat or stat.type ~= 'directory' then
    -- Unlike the time of the last modification, that of the last change cannot be set.
    return stat and ('%d %d %d.%09d'):format(stat.ino, stat.size, stat.ctime.sec, stat.ctime.nsec) or ''
  end
  local left, found = { path }, {}
  while #left > 0 and #found < MAX_COMPARED do
    local parent = table.remove(left)
    local directory = uv.fs_opendir(parent, nil, MAX_COMPARED)
    for _, entry in ipairs(directory and uv.fs_readdir(directory) or {}) do
      if not entry.name:find('%.sw%l$') then
        local each = parent .. '/' .. entry.name
        table.insert(found, each .. '\0' .. entry.type)
        table.insert(left, entry.type == 'directory' and each or nil)
      end
    end
    if directory then
      uv.fs_closedir(directory)
    end
  end
  table.sort(found)
  return stat.ino .. '\0' .. table.concat(found, '\0')
end

--- State of what is moved when the user was asked, by call.
---@type table<mcp-tools.Call, string>
local asked = setmetatable({}, { __mode = 'k' })

--- Loads a file, which starts its server.
---@param ctx mcp-tools.Ctx
---@param from string
---@return mcp-tools.Target?
local function loaded_file(ctx, from)
  local loaded = lsp.target(ctx, { path = from })
  if loaded then
    lsp.clients(ctx, loaded.bufnr)
  end
  return loaded
end

--- Computes the text of the question, with the diff of other files.
---@param ctx mcp-tools.Ctx inside a coroutine
---@param args table with the id of the call
---@param move mcp-tools.lsp.Move
---@param head string
local function prepare(ctx, args, move, head)
  if not move.is_directory then
    loaded_file(ctx, move.from)
  end
  local plan, more = renamed_files.plan(ctx, move, PREVIEW_MS)
  local text, ticks = NO_CHANGES .. '\n', {}
  for _, file in ipairs(plan and plan.files or {}) do
    ticks[file.bufnr] = file.changedtick
  end
  if plan then
    text = workspace_edit.preview(plan, ctx)
  elseif more then
    text = ('References in other files are not updated: %s\n'):format(more.message)
  end
  approval_diff.keep('file_move', args, ('%s\n%s'):format(head, text), ticks)
end

--- Returns why other files are not changed: the user was asked, and saw no diff.
---@param ctx mcp-tools.Ctx
---@return string?
local function no_changes(ctx)
  local text = ctx.call.approved_preview
  if not text or approved.has_diff(text) then
    return nil
  end
  return text:find(NO_CHANGES, 1, true) and 'no language server changed anything elsewhere' or NOT_ASKED
end

--- Moves a file or directory.
---@param ctx mcp-tools.Ctx inside a coroutine
---@param from string resolved
---@param to string resolved
---@return table?
---@return mcp-tools.Error? err
local function move(ctx, from, to)
  local err = refusal(from, to)
  errors.check(err)
  local is_directory = (uv.fs_stat(from) or {}).type == 'directory'
  local it = { from = from, to = to, is_directory = is_directory }
  local loaded = not is_directory and loaded_file(ctx, from) or nil
  local change, over = {}, false
  ctx:on_cancel(function()
    if not over then
      over = true
      revert(change, function() end)
    end
  end)
  local note = no_changes(ctx)
  if not note then
    local plan, more = renamed_files.plan(ctx, it, TIMEOUT_MS)
    change.plan, change.by = plan, more
    err = not plan and more or nil
  end
  local before = asked[ctx.call]
  if not err and before and before ~= state_of(from) then
    err = errors.new('stale', ('path: %s has changed since the user was asked; call again'):format(shown(from)))
  elseif not err and change.plan then
    change.files, err = workspace_edit.apply(ctx, change.plan)
    ctx.call.has_changes = nil -- they are undone until the file is moved
  end
  if not err then
    refresh(ctx, from)
    err = refusal(from, to) or rename(from, to)
  end
  over, ctx.call.has_changes = true, not err
  if err then
    local remaining = ctx:await(function(done)
      revert(change, done)
    end)
    return nil, remaining and errors.new(err.code, err.message .. remaining) or err
  end
  local answer = { path = shown(from), new_path = shown(to), problems = {}, note = note }
  for _, each in ipairs(buffers_of(from)) do
    local problem = follow(each.bufnr, api.nvim_buf_get_name(each.bufnr), to .. each.path:sub(#from + 1))
    table.insert(answer.problems, problem)
  end
  renamed_files.notify(it)
  history.moved(from, to)
  disk.notify_servers(from, 'Deleted')
  disk.notify_servers(to, 'Created')
  if change.files then
    answer.broken, answer.unchecked = broken_imports(ctx, change.plan, loaded and loaded.bufnr)
  end
  for _, each in ipairs(buffers_of(from)) do
    if not api.nvim_buf_is_loaded(each.bufnr) and not vim.bo[each.bufnr].buflisted then
      pcall(api.nvim_buf_delete, each.bufnr, { force = true }) -- Neovim adds it for late diagnostics of the old path
    end
  end
  if loaded and loaded.new then
    target.drop(loaded)
  end
  if change.files then
    local files = workspace_edit.summary(change.plan, change.files)
    answer.changes = workspace_edit.bounded({ by = change.by, places = change.plan.count, files = files })
  end
  return answer
end

---@param answer table
---@return string
local function render(answer)
  local rows = { ('%s is now %s'):format(answer.path, answer.new_path) }
  if answer.changes then
    table.insert(rows, workspace_edit.text(answer.changes, 'changed by ' .. answer.changes.by))
  else
    table.insert(rows, answer.note or 'no language server changed anything elsewhere')
  end
  local broken = answer.broken or {}
  if #broken > 0 then
    local text = '%d changed or moved imports do not resolve or have other problems now:'
    table.insert(rows, text:format(#broken))
    vim.list_extend(rows, broken, 1, math.min(#broken, MAX_PROBLEMS))
  end
  if (answer.unchecked or 0) > 0 then
    table.insert(rows, ('%d changed files were not checked afterwards'):format(answer.unchecked))
  end
  return table.concat(vim.list_extend(rows, answer.problems), '\n')
end

---@param given string
---@return boolean
local function is_link(given)
  local name = vim.fs.normalize(given)
  local parent = paths.resolve(vim.fs.dirname(name))
  local stat = parent and uv.fs_lstat(vim.fs.joinpath(parent, vim.fs.basename(name)))
  return stat ~= nil and stat.type == 'link'
end

--- Resolves the arguments.
---@param root string
---@param args { path: string, new_path: string }
---@return string from
---@return string to
local function resolved(root, args)
  local found = {}
  for _, name in ipairs({ 'path', 'new_path' }) do
    local path = errors.unwrap(buffers.resolve(args[name], name))
    local fault = is_link(args[name]) and ('%s: %s is a link to %s; use mv'):format(name, args[name], shown(path))
      or path == paths.real_root(root) and ('%s: is the project root'):format(name)
    errors.check(fault and errors.new('validation_error', fault))
    found[name] = path
  end
  return found.path, found.new_path
end

return {
  name = 'file_move',
  title = 'Move a file',
  description = 'Moves a file or directory and updates imports through the language server. Use it instead of mv.',
  search_hint = 'rename file, move module, git mv, move directory',
  args = {
    path = { type = 'string', description = 'File or directory', required = true, minLength = 1 },
    new_path = { type = 'string', description = 'New path, with the name', required = true, minLength = 1 },
  },
  annotations = { read_only = false, destructive = true, idempotent = false },
  recommended = true,
  needs_approval = 'it moves files',
  timeout = TIMEOUT_MS,
  preview = function(args, again, call)
    local from, to = resolved(project.root(), args)
    errors.check(refusal(from, to))
    if call then
      asked[call] = asked[call] or state_of(from)
    end
    local head = ('%s → %s'):format(args.path, args.new_path):gsub('%c', '?')
    local own = vim.tbl_extend('force', args, { call = call and call.id })
    local it = { from = from, to = to, is_directory = (uv.fs_stat(from) or {}).type == 'directory' }
    local text = head .. '\nReferences in other files are updated only if their diff is shown here.'
    return approval_diff.preview('file_move', own, text, function(ctx)
      prepare(ctx, own, it, head)
    end, again)
  end,
  run = function(ctx, args)
    local from, to = resolved(ctx.root, args)
    errors.check(target.path_refusal(ctx, from) or target.path_refusal(ctx, to))
    local exposed = exposed_file(ctx, from, to)
    errors.check(exposed and target.path_refusal(ctx, exposed))
    return move(ctx, from, to)
  end,
  render = render,
}
