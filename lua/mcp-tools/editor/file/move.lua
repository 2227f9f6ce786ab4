--- A file or folder moved, with what servers change in other files for it; buffers follow.

local access = require('mcp-tools.privacy.access')
local buffer_kind = require('mcp-tools.privacy.buffer_kind')
local clients = require('mcp-tools.editor.lsp.clients')
local disk = require('mcp-tools.editor.buffer.disk')
local errors = require('mcp-tools.errors')
local findings = require('mcp-tools.editor.diagnostics.findings')
local fresh = require('mcp-tools.editor.diagnostics.fresh')
local glob = require('mcp-tools.files.glob')
local log = require('mcp-tools.log')
local lsp = require('mcp-tools.editor.lsp')
local moved_imports = require('mcp-tools.editor.file.moved_imports')
local names = require('mcp-tools.editor.search.names')
local paths = require('mcp-tools.files.paths')
local request = require('mcp-tools.editor.lsp.request')
local save = require('mcp-tools.editor.buffer.save')
local sensitive = require('mcp-tools.privacy.sensitive')
local target = require('mcp-tools.editor.buffer.target')
local time_slice = require('mcp-tools.util.time_slice')
local watched_files = require('mcp-tools.editor.lsp.watched_files')
local workspace_edit = require('mcp-tools.editor.lsp.workspace_edit')

local api, uv = vim.api, vim.uv

---@param path string
---@param top string
local function is_at_or_below(path, top)
  return path == top or vim.startswith(path, top .. '/')
end

--- Buffers of what is moved, loaded or not.
---@param from string resolved
---@return { bufnr: integer, path: string }[]
local function buffers_of(from)
  local list = {}
  for _, bufnr in ipairs(api.nvim_list_bufs()) do
    local name = api.nvim_buf_get_name(bufnr)
    if name ~= '' and buffer_kind.kind(bufnr) == 'file' then
      local path = paths.resolve(name)
      if is_at_or_below(path, from) then
        table.insert(list, { bufnr = bufnr, path = path })
      end
    end
  end
  return list
end

--- Language servers hear by what Neovim listens to after a write that a buffer has another name.
---@param bufnr integer
local function tell_of_name(bufnr)
  for _, each in ipairs(api.nvim_get_autocmds({ event = 'BufWritePost', buffer = bufnr })) do
    local group = each.group_name or ''
    if group:match('^nvim%.lsp%.') or group:match('^lsp_b_') then
      api.nvim_exec_autocmds('BufWritePost', { group = each.group, buffer = bufnr, modeline = false })
    end
  end
end

--- Gives a loaded buffer its name. It is written without autocommands and just as it was read, or a later `:write`
--- would ask whether to overwrite the file: what formats on save would change its text, a line break at the end its
--- bytes.
---@param bufnr integer
---@param new string
local function rename_buffer(bufnr, new)
  local fixeol = vim.bo[bufnr].fixendofline
  vim.bo[bufnr].fixendofline = false
  local ok, thrown = pcall(api.nvim_buf_call, bufnr, function()
    vim.cmd(('silent keepalt keepjumps file %s'):format(vim.fn.fnameescape(new)))
    vim.cmd('silent noautocmd lockmarks keepalt keepjumps write!')
  end)
  vim.bo[bufnr].fixendofline = fixeol
  if not ok then
    error(thrown, 0)
  end
  tell_of_name(bufnr)
end

--- Has a buffer show the file where it is now.
---@param bufnr integer
---@param old string
---@param new string
---@return string? problem
local function follow(bufnr, old, new)
  local problem
  if api.nvim_buf_is_loaded(bufnr) then
    local ok, thrown = pcall(rename_buffer, bufnr, new)
    problem = not ok and ('buffer %d does not follow: %s'):format(bufnr, save.plain(thrown)) or nil
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

--- Has open buffers show what is on the disk: they are written where the file goes.
---@param ctx mcp-tools.Ctx
---@param from string
local function refresh(ctx, from)
  for _, each in ipairs(buffers_of(from)) do
    ctx:await(function(done)
      disk.refresh(each.bufnr, done)
    end)
  end
end

local M = {}

local WILL, DID = 'workspace/willRenameFiles', 'workspace/didRenameFiles'
--- Time of the tool, which is also that of a server's answer: in a large project the first one takes long.
M.TIMEOUT_MS = 60000
--- Changed files that are checked afterwards, and the time for that.
local MAX_CHECKED, CHECK_MS = 20, 8000
--- Problems that are named.
local MAX_PROBLEMS = 10
--- `FileChangeType` of the protocol.
local MADE, DELETED = 1, 3
--- What an import looks like in most languages.
local IMPORT = vim.regex([[\C\v<(import|from|require|include|use|using|mod)>]])

---@class mcp-tools.Moved
---@field problems string[] buffers that do not follow
---@field bufnr integer? of the file, where it has one
---@field broken string[] what servers find wrong afterwards in what was changed
---@field unchecked integer changed files that no server has looked at afterwards
---@field plans { plan: mcp-tools.lsp.Plan, files: mcp-tools.FileEdited[], name: string }[]

--- Why it cannot be moved.
---@param from string
---@param to string
---@return mcp-tools.Error?
function M.refusal(from, to)
  local stat = uv.fs_lstat(from)
  if not stat then
    return errors.new('not_found', ('path: there is no %s'):format(from))
  elseif stat.type ~= 'file' and stat.type ~= 'directory' then
    return errors.new('validation_error', ('path: %s is a %s'):format(from, stat.type))
  elseif uv.fs_lstat(to) then
    local text = 'new_path: there is a %s already, which is not overwritten; give the whole path of what does not exist'
    return errors.new('tool_error', text:format(to))
  elseif is_at_or_below(to, from) then
    return errors.new('validation_error', 'new_path: it lies in what is to be moved')
  elseif #buffer_kind.showing(to) > 0 then
    return errors.new('tool_error', ('new_path: a buffer of that name is open: %s'):format(to))
  end
  for _, each in ipairs(buffers_of(from)) do
    if api.nvim_buf_is_loaded(each.bufnr) and vim.bo[each.bufnr].modified then
      local text = '%s has unsaved changes; write them first (buffer_write)'
      return errors.new('tool_error', text:format(each.path))
    end
  end
end

--- The first file of a folder that is sensitive only as long as the folder keeps its name.
---@param ctx mcp-tools.Ctx in a coroutine
---@param from string
---@param to string
---@return string? path
function M.exposed(ctx, from, to)
  local stat = uv.fs_lstat(from)
  if not stat or stat.type ~= 'directory' or not sensitive.depends_on_name(from) then
    return nil
  end
  local pause = time_slice.of(ctx)
  for _, name in ipairs((names.list(ctx, from, { ignored = true }))) do
    local path = from .. '/' .. name
    if sensitive.is_sensitive(path) and not sensitive.is_sensitive(to .. '/' .. name) then
      return path
    end
    pause()
  end
end

--- Does a server want to know of it?
---@param client vim.lsp.Client
---@param which 'willRename'|'didRename'
---@param path string
---@param is_folder boolean
local function minds(client, which, path, is_folder)
  local workspace = (client.server_capabilities or {}).workspace or {}
  local wanted = (workspace.fileOperations or {})[which]
  for _, filter in ipairs(wanted and wanted.filters or {}) do
    local pattern = filter.pattern or {}
    local kind = pattern.matches
    local fits = not kind or kind == (is_folder and 'folder' or 'file')
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

--- Puts back what was changed elsewhere, the last first. Also for a call that has ended.
---@param moved mcp-tools.Moved
---@param done fun(problem: string?)
local function take_back(moved, done)
  local each = table.remove(moved.plans)
  if not each then
    return done()
  end
  local function go_on(err)
    if err then
      log.error('what %s changed for a move that came to nothing stays: %s', each.name, err.message)
      return done(('; what %s changed elsewhere stays: %s'):format(each.name, err.message))
    end
    take_back(moved, done)
  end
  workspace_edit.revert(each.plan, each.files, go_on)
end

--- Asks servers what changes elsewhere, and changes it.
---@param ctx mcp-tools.Ctx
---@param from string
---@param to string
---@param is_folder boolean
---@param moved mcp-tools.Moved
---@return mcp-tools.Error? err
local function change_others(ctx, from, to, is_folder, moved)
  for _, client in ipairs(clients.of(nil)) do
    local bufnr = next(client.attached_buffers)
    if bufnr and minds(client, 'willRename', from, is_folder) then
      local unready = lsp.wait_until_ready(ctx, client, bufnr, WILL)
      if unready then
        return errors.new('busy', ('%s, so that it cannot say what changes elsewhere; try again'):format(unready))
      end
      local change, err = request.ask(ctx, client, WILL, params_of(from, to), bufnr, M.TIMEOUT_MS)
      local plan, files
      if change then
        plan, err = workspace_edit.plan(ctx, change, client)
      end
      if plan and #plan.files > 0 then
        moved_imports.correct(plan.files, from, to)
        for _, file in ipairs(plan.files) do
          -- What is moved was saved, and stays so.
          file.write = file.write or is_at_or_below(file.resolved, from)
        end
        files, err = workspace_edit.apply(ctx, plan)
        if files then
          table.insert(moved.plans, { plan = plan, files = files, name = client.name })
        end
      end
      if err then
        return err
      end
    end
  end
end

--- Makes a folder with those above it.
---@param folder string
---@return string[] made the lowest first
---@return string? problem
local function make_folders(folder)
  local missing, made = {}, {}
  while not uv.fs_stat(folder) do
    table.insert(missing, folder)
    folder = vim.fs.dirname(folder)
  end
  for i = #missing, 1, -1 do
    local ok, problem = uv.fs_mkdir(missing[i], 493)
    if not ok then
      return made, problem
    end
    table.insert(made, 1, missing[i])
  end
  return made
end

--- Renames on the disk. Nothing is overwritten.
---@param from string
---@param to string
---@return mcp-tools.Error? err
local function rename(from, to)
  local made, problem = make_folders(vim.fs.dirname(to))
  if not problem and uv.fs_lstat(to) then
    problem = 'it exists by now'
  end
  local ok = not problem
  if ok then
    ok, problem = uv.fs_rename(from, to)
  end
  if ok then
    return nil
  end
  for _, folder in ipairs(made) do
    uv.fs_rmdir(folder)
  end
  return errors.new('tool_error', ('%s cannot be moved to %s: %s'):format(from, to, problem))
end

--- Lines that a plan changes, as they are counted afterwards.
---@param edits mcp-tools.Edit[]
---@return table<integer, true>
local function changed_rows(edits)
  local rows = {}
  for _, each in ipairs(edits) do
    rows[each.start_line] = true
  end
  return rows
end

--- What the servers find wrong, after the move, in the lines that were changed and in the imports of the moved file.
---@param ctx mcp-tools.Ctx
---@param moved mcp-tools.Moved
---@return string[] problems
---@return integer unchecked files
local function broken_imports(ctx, moved)
  local rows_of, order = {}, {}
  for _, each in ipairs(moved.plans) do
    for _, file in ipairs(each.plan.files) do
      if not rows_of[file.bufnr] and file.bufnr ~= moved.bufnr then
        table.insert(order, file.bufnr)
      end
      rows_of[file.bufnr] = vim.tbl_extend('force', rows_of[file.bufnr] or {}, changed_rows(file.edits))
    end
  end
  if moved.bufnr and api.nvim_buf_is_loaded(moved.bufnr) then
    table.insert(order, 1, moved.bufnr)
  end
  local problems, unchecked = {}, math.max(0, #order - MAX_CHECKED)
  local over, pause = uv.hrtime() + CHECK_MS * 1e6, time_slice.of(ctx)
  watched_files.notify_servers(ctx, true)
  for i = 1, math.min(#order, MAX_CHECKED) do
    local bufnr = order[i]
    local served = api.nvim_buf_is_loaded(bufnr) and clients.of(bufnr) or {}
    local left = (over - uv.hrtime()) / 1e6
    if #served == 0 or fresh.wait(ctx, bufnr, served, math.max(left, 1)) == 'no' then
      unchecked = unchecked + 1
    else
      local path = access.shown(api.nvim_buf_get_name(bufnr), ctx.root)
      for _, each in ipairs((findings.of(bufnr, { min_severity = 'warning' }, pause))) do
        local row = each.item.lnum - 1
        local line = api.nvim_buf_is_loaded(bufnr) and api.nvim_buf_get_lines(bufnr, row, row + 1, false)[1] or ''
        local is_import = bufnr == moved.bufnr and IMPORT:match_str(line) ~= nil
        if is_import or rows_of[bufnr] and rows_of[bufnr][row] then
          table.insert(problems, ('%s:%s'):format(path, each.row))
        end
      end
    end
  end
  return problems, unchecked
end

--- Moves it.
---@param ctx mcp-tools.Ctx in a coroutine
---@param from string resolved
---@param to string resolved
---@return mcp-tools.Moved?
---@return mcp-tools.Error? err
function M.run(ctx, from, to)
  local err = M.refusal(from, to)
  if err then
    return nil, err
  end
  local is_folder = (uv.fs_stat(from) or {}).type == 'directory'
  local loaded
  if not is_folder then
    loaded = lsp.target(ctx, { path = from }) -- so that its server runs
    if loaded then
      lsp.clients(ctx, loaded.bufnr)
    end
  end
  local moved = { plans = {}, problems = {}, broken = {}, unchecked = 0, bufnr = loaded and loaded.bufnr }
  local over = false
  ctx:on_cancel(function()
    if not over then
      over = true
      take_back(moved, function() end)
    end
  end)
  err = change_others(ctx, from, to, is_folder, moved)
  if not err then
    refresh(ctx, from)
    err = M.refusal(from, to) or rename(from, to)
  end
  over = true
  if err then
    local stays = ctx:await(function(done)
      take_back(moved, done)
    end)
    return nil, stays and errors.new(err.code, err.message .. stays) or err
  end
  for _, each in ipairs(buffers_of(from)) do
    local problem = follow(each.bufnr, api.nvim_buf_get_name(each.bufnr), to .. each.path:sub(#from + 1))
    table.insert(moved.problems, problem)
  end
  for _, client in ipairs(clients.of(nil)) do
    if minds(client, 'didRename', from, is_folder) then
      clients.notify(client, DID, params_of(from, to))
    end
  end
  disk.tell_servers(from, DELETED)
  disk.tell_servers(to, MADE)
  if #moved.plans > 0 then
    moved.broken, moved.unchecked = broken_imports(ctx, moved)
  end
  for _, each in ipairs(buffers_of(from)) do
    if not api.nvim_buf_is_loaded(each.bufnr) and not vim.bo[each.bufnr].buflisted then
      pcall(api.nvim_buf_delete, each.bufnr, { force = true }) -- Neovim adds it for late diagnostics of the old path
    end
  end
  if loaded and loaded.new then
    target.drop(loaded)
  end
  return moved
end

--- What was moved and changed, as text.
---@param ctx mcp-tools.Ctx
---@param from string
---@param to string
---@param moved mcp-tools.Moved
---@return string
function M.told(ctx, from, to, moved)
  local rows = { ('%s is now %s'):format(access.shown(from, ctx.root), access.shown(to, ctx.root)) }
  local plans = vim.tbl_filter(function(each)
    return #each.plan.files > 0
  end, moved.plans)
  for _, each in ipairs(plans) do
    local files = #each.plan.files
    table.insert(rows, ('%d places in %d files changed (by %s)'):format(each.plan.count, files, each.name))
    for i, file in ipairs(each.plan.files) do
      local state = each.files[i].written and '' or ', open and not saved'
      table.insert(rows, ('%s: %d%s'):format(file.path, #file.edits, state))
    end
  end
  if #plans == 0 then
    table.insert(rows, 'no language server changed anything elsewhere')
  end
  if #moved.broken > 0 then
    local text = '%d changed or moved imports do not resolve or have other problems now:'
    table.insert(rows, text:format(#moved.broken))
    vim.list_extend(rows, vim.list_slice(moved.broken, 1, MAX_PROBLEMS))
  end
  if moved.unchecked > 0 then
    table.insert(rows, ('%d changed files were not checked afterwards'):format(moved.unchecked))
  end
  vim.list_extend(rows, moved.problems)
  return table.concat(rows, '\n')
end

return M
