--- Moves a file or directory. Buffers follow, and language servers update references in other files.

local access = require('mcp-tools.privacy.access')
local buffers = require('mcp-tools.editor.buffer')
local clients = require('mcp-tools.editor.lsp.clients')
local disk = require('mcp-tools.editor.buffer.disk')
local errors = require('mcp-tools.errors')
local findings = require('mcp-tools.editor.diagnostics.findings')
local fresh = require('mcp-tools.editor.diagnostics.fresh')
local glob = require('mcp-tools.files.glob')
local history = require('mcp-tools.editor.edit.history')
local log = require('mcp-tools.log')
local lsp = require('mcp-tools.editor.lsp')
local moved_imports = require('mcp-tools.editor.lsp.moved_imports')
local search_files = require('mcp-tools.editor.search.files')
local paths = require('mcp-tools.files.paths')
local project = require('mcp-tools.instances.project')
local request = require('mcp-tools.editor.lsp.request')
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

--- Notifies language servers of a buffer's new name through Neovim's own autocommands for writes.
---@param bufnr integer
local function notify_renamed(bufnr)
  for _, each in ipairs(api.nvim_get_autocmds({ event = 'BufWritePost', buffer = bufnr })) do
    local group = each.group_name --[[@as string?]] or ''
    if group:match('^nvim%.lsp%.') or group:match('^lsp_b_') then
      api.nvim_exec_autocmds('BufWritePost', { group = each.group, buffer = bufnr, modeline = false })
    end
  end
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
  notify_renamed(bufnr)
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
    problem = not ok and ('buffer %d could not be renamed: %s'):format(bufnr, save.plain(thrown)) or nil
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

local WILL, DID = 'workspace/willRenameFiles', 'workspace/didRenameFiles'
--- Timeout of the tool and of a server's response in ms; the first response takes long in a large project.
local TIMEOUT_MS = 60000
--- Maximum number of changed files checked afterwards, and time for that in ms.
local MAX_CHECKED, CHECK_MS = 20, 8000
--- Maximum number of problems listed.
local MAX_PROBLEMS = 10
--- Matches imports of most languages.
local IMPORT = vim.regex([[\C\v<(import|from|require|include|use|using|mod)>]])

---@class mcp-tools.MoveChange in other files, by one server
---@field plan mcp-tools.lsp.Plan
---@field files mcp-tools.FilesEdited
---@field name string of the server

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

--- Returns whether a server has registered for a file operation.
---@param client vim.lsp.Client
---@param which 'willRename'|'didRename'
---@param path string
---@param is_directory boolean
local function is_registered(client, which, path, is_directory)
  local workspace = (client.server_capabilities or {}).workspace or {}
  local wanted = (workspace.fileOperations or {})[which]
  for _, filter in ipairs(wanted and wanted.filters or {}) do
    local pattern = filter.pattern or {}
    local kind = pattern.matches
    local fits = not kind or kind == (is_directory and 'folder' or 'file')
    if fits and (filter.scheme or 'file') == 'file' and glob.compile(pattern.glob or '**')(path) then
      return true
    end
  end
  return false
end

---@param from string
---@param to string
local function params_of(from, to)
  return { files = { { oldUri = vim.uri_from_fname(from), newUri = vim.uri_from_fname(to) } } }
end

--- Reverts the changes in other files, the last first, also for an ended call.
---@param changes mcp-tools.MoveChange[]
---@param done fun(problem: string?)
local function revert(changes, done)
  local each = table.remove(changes)
  if not each then
    return done()
  end
  workspace_edit.revert(each.plan, each.files, function(err)
    if err then
      log.error('cannot revert changes by %s after a failed move: %s', each.name, err.message)
      return done(('; changes by %s in other files remain: %s'):format(each.name, err.message))
    end
    revert(changes, done)
  end)
end

--- Asks servers for changes in other files and applies them.
---@param ctx mcp-tools.Ctx
---@param from string
---@param to string
---@param is_directory boolean
---@param changes mcp-tools.MoveChange[] gets those that were applied
---@return mcp-tools.Error? err
local function change_others(ctx, from, to, is_directory, changes)
  for _, client in ipairs(clients.of(nil)) do
    local bufnr = next(client.attached_buffers)
    if bufnr and is_registered(client, 'willRename', from, is_directory) then
      local unready = lsp.wait_until_ready(ctx, client, bufnr, WILL)
      if unready then
        return errors.new('busy', ('%s, so references in other files cannot be updated yet; try again'):format(unready))
      end
      local change, err = request.ask(ctx, client, WILL, params_of(from, to), bufnr, TIMEOUT_MS)
      local plan, files
      if change then
        plan, err = workspace_edit.plan(ctx, change, client)
      end
      if plan and #plan.files > 0 then
        moved_imports.correct(plan.files, from, to)
        for _, file in ipairs(plan.files) do
          -- Moved files were saved and stay saved.
          file.write = file.write or is_at_or_below(file.resolved, from)
        end
        files, err = workspace_edit.apply(ctx, plan)
        if files then
          table.insert(changes, { plan = plan, files = files, name = client.name })
        end
      end
      if err then
        return err
      end
    end
  end
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
  return errors.new('tool_error', ('cannot move %s to %s: %s'):format(shown(from), shown(to), save.plain(problem)))
end

--- Returns diagnostics after the move in changed lines and in the imports of the moved file.
---@param ctx mcp-tools.Ctx
---@param changes mcp-tools.MoveChange[]
---@param moved integer? buffer of the moved file
---@return string[] problems
---@return integer unchecked files
local function broken_imports(ctx, changes, moved)
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
  for _, each in ipairs(changes) do
    for _, file in ipairs(each.plan.files) do
      for _, edit in ipairs(file.edits) do
        add(file.bufnr)[edit.start_line] = true
      end
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

--- Moves a file or directory.
---@param ctx mcp-tools.Ctx inside a coroutine
---@param from string resolved
---@param to string resolved
---@return table?
---@return mcp-tools.Error? err
local function move(ctx, from, to)
  local err = refusal(from, to)
  if err then
    return nil, err
  end
  local is_directory = (uv.fs_stat(from) or {}).type == 'directory'
  local loaded = not is_directory and lsp.target(ctx, { path = from }) or nil -- starts its server
  if loaded then
    lsp.clients(ctx, loaded.bufnr)
  end
  local changes, over = {}, false
  ctx:on_cancel(function()
    if not over then
      over = true
      revert(changes, function() end)
    end
  end)
  err = change_others(ctx, from, to, is_directory, changes)
  if not err then
    refresh(ctx, from)
    err = refusal(from, to) or rename(from, to)
  end
  over = true
  if err then
    local remaining = ctx:await(function(done)
      revert(changes, done)
    end)
    return nil, remaining and errors.new(err.code, err.message .. remaining) or err
  end
  local answer = { path = shown(from), new_path = shown(to), problems = {} }
  for _, each in ipairs(buffers_of(from)) do
    local problem = follow(each.bufnr, api.nvim_buf_get_name(each.bufnr), to .. each.path:sub(#from + 1))
    table.insert(answer.problems, problem)
  end
  for _, client in ipairs(clients.of(nil)) do
    if is_registered(client, 'didRename', from, is_directory) then
      clients.notify(client, DID, params_of(from, to))
    end
  end
  history.moved(from, to)
  disk.notify_servers(from, 'Deleted')
  disk.notify_servers(to, 'Created')
  if #changes > 0 then
    answer.broken, answer.unchecked = broken_imports(ctx, changes, loaded and loaded.bufnr)
  end
  for _, each in ipairs(buffers_of(from)) do
    if not api.nvim_buf_is_loaded(each.bufnr) and not vim.bo[each.bufnr].buflisted then
      pcall(api.nvim_buf_delete, each.bufnr, { force = true }) -- Neovim adds it for late diagnostics of the old path
    end
  end
  if loaded and loaded.new then
    target.drop(loaded)
  end
  answer.changes = vim.tbl_map(function(each)
    local files = workspace_edit.summary(each.plan, each.files)
    return workspace_edit.bounded({ by = each.name, places = each.plan.count, files = files })
  end, changes)
  return answer
end

---@param answer table
---@return string
local function render(answer)
  local rows = { ('%s is now %s'):format(answer.path, answer.new_path) }
  for _, each in ipairs(answer.changes) do
    table.insert(rows, workspace_edit.text(each, 'changed by ' .. each.by))
  end
  if #answer.changes == 0 then
    table.insert(rows, 'no language server changed anything elsewhere')
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
---@return string? from
---@return string? to
---@return mcp-tools.Error? err
local function resolved(root, args)
  local found = {}
  for _, name in ipairs({ 'path', 'new_path' }) do
    local path, err = buffers.resolve(args[name], name)
    if path and is_link(args[name]) then
      err = errors.new('validation_error', ('%s: %s is a link to %s; use mv'):format(name, args[name], shown(path)))
    elseif path and path == paths.real_root(root) then
      err = errors.new('validation_error', ('%s: is the project root'):format(name))
    end
    if err then
      return nil, nil, err
    end
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
  preview = function(args)
    local from, to, err = resolved(project.root(), args)
    if from and to then
      err = refusal(from, to)
    end
    if err then
      return nil, err
    end
    return ('%s → %s\nLanguage servers may update references in other files.'):format(args.path, args.new_path)
  end,
  run = function(ctx, args)
    local from, to, err = resolved(ctx.root, args)
    if not from or not to then
      return nil, err
    end
    err = target.path_refusal(ctx, from) or target.path_refusal(ctx, to)
    local exposed = not err and exposed_file(ctx, from, to)
    err = exposed and target.path_refusal(ctx, exposed) or err
    if err then
      return nil, err
    end
    return move(ctx, from, to)
  end,
  render = render,
}
