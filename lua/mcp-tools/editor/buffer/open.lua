--- Loads the buffer of a file without showing it, and unloads it again.
---
--- A hidden buffer has no swap file, so Neovim cannot ask about one that another editor left. It gets its swap file
--- when it is first shown in a window.

local access = require('mcp-tools.privacy.access')
local autocommands = require('mcp-tools.editor.buffer.autocommands')
local errors = require('mcp-tools.errors')
local project = require('mcp-tools.instances.project')
local timer = require('mcp-tools.util.timer')

local api, uv = vim.api, vim.uv

local M = {}

--- Maximum size of a loaded file, in bytes. Neovim reads a file on the main thread.
M.MAX_BYTES = 32 * 1024 * 1024

--- Time that a buffer loaded for calls stays loaded after the last call, in ms. It is longer after an edit, which the
--- user may undo and on which language servers report.
M.GRACE, M.GRACE_EDITED = 60 * 1000, 5 * 60 * 1000

-- Neovim's plugins for compressed files: they unpack to any size while the main thread waits.
local UNPACKING_GROUPS = { 'gzip', 'tar', 'zip' }

--- Magic numbers of Linux's virtual file systems: proc, sysfs, tracefs, debugfs. Files there report size 0 and may be
--- endless.
local VIRTUAL_FILE_SYSTEMS = { [0x9fa0] = true, [0x62656572] = true, [0x74726163] = true, [0x64626720] = true }

---@param path string
---@param stat table
---@return boolean
local function is_virtual(path, stat)
  local system = stat.size == 0 and uv.fs_statfs(path)
  return system ~= nil and system ~= false and VIRTUAL_FILE_SYSTEMS[tonumber(system.type)] == true
end

--- Returns whether Neovim would run a command to read the file.
---@param path string
---@return boolean
local function is_compressed(path)
  local names = { path, vim.fs.basename(path), vim.fn.fnamemodify(path, ':.') }
  local case = vim.o.fileignorecase and '\\c' or '\\C'
  for _, group in ipairs(UNPACKING_GROUPS) do
    local exists, found = pcall(api.nvim_get_autocmds, { group = group, event = { 'BufReadCmd', 'BufReadPost' } })
    for _, each in ipairs(exists and found or {}) do
      local regex = vim.regex(case .. vim.fn.glob2regpat(each.pattern))
      for _, name in ipairs(names) do
        if regex:match_str(name) then
          return true
        end
      end
    end
  end
  return false
end

--- Returns why Neovim must not read a file: reading it would block the main thread.
---@param path string
---@param stat table
---@return mcp-tools.Error?
function M.unreadable(path, stat)
  local name = access.shown(path, project.root())
  if stat.type ~= 'file' then
    return errors.new('tool_error', ('%s is a %s, not a file'):format(name, stat.type))
  elseif stat.size > M.MAX_BYTES then
    local text = '%s has %d bytes; the limit is %d'
    return errors.new('too_large', text:format(name, stat.size, M.MAX_BYTES))
  elseif is_virtual(path, stat) then
    return errors.new('tool_error', ('%s is a virtual file and may be endless'):format(name))
  end
end

--- Returns why a file cannot be loaded.
---@param path string
---@param problem string? libuv's error, "CODE: text"
---@param stat table?
---@return mcp-tools.Error?
local function refusal(path, problem, stat)
  if stat then
    local err = M.unreadable(path, stat)
    if not err and uv.fs_realpath(path) ~= path then
      local text = '%s was replaced after it was approved'
      err = errors.new('access_denied', text:format(access.shown(path, project.root())))
    end
    return err
  end
  local missing = (problem or ''):match('^ENOENT') ~= nil
  local text = missing and 'there is no file %s' or '%s cannot be opened: ' .. (problem or ''):gsub('%%', '%%%%')
  return errors.new(missing and 'not_found' or 'tool_error', text:format(access.shown(path, project.root())))
end

---@param bufnr integer
local function load_quietly(bufnr)
  api.nvim_set_option_value('swapfile', false, { buf = bufnr })
  -- A modeline may set 'spelllang': do not ask the user whether to download its spell file.
  local ignored = vim.o.eventignore
  vim.o.eventignore = ignored == '' and 'SpellFileMissing' or ignored .. ',SpellFileMissing'
  -- Errors come from autocommands; the caller checks whether the buffer is loaded.
  pcall(api.nvim_exec2, ('silent call bufload(%d)'):format(bufnr), {})
  vim.o.eventignore = ignored
  if api.nvim_buf_is_loaded(bufnr) and vim.fn.undotree(bufnr).seq_last == 0 then
    vim.bo[bufnr].modified = false -- no text has changed, but a modeline has set 'fileformat' or 'fileencoding'
  end
  local group = api.nvim_create_augroup('mcp-tools.loaded', { clear = false })
  api.nvim_clear_autocmds({ group = group, buffer = bufnr }) -- it may have been loaded before
  api.nvim_create_autocmd('BufWinEnter', {
    group = group,
    buffer = bufnr,
    desc = 'mcp-tools: a buffer that is shown has a swap file and stays loaded',
    callback = function()
      if vim.fn.win_gettype() ~= 'autocmd' then
        M.keep(bufnr)
        vim.bo[bufnr].swapfile = vim.go.swapfile
        return true
      end
    end,
  })
end

---@param path string
---@param problem string?
---@param stat table?
---@return integer? bufnr
---@return mcp-tools.Error? err
---@return boolean? new whether it was not loaded before
local function load(path, problem, stat)
  local showing = access.showing(path)
  for _, bufnr in ipairs(showing) do
    if api.nvim_buf_is_loaded(bufnr) then
      return bufnr
    end
  end
  local err = refusal(path, problem, stat)
  if err then
    return nil, err
  end
  if is_compressed(path) then
    local text = '%s is a compressed file; the user can open it'
    return nil, errors.new('tool_error', text:format(access.shown(path, project.root())))
  end
  local known = showing[1]
  local bufnr = known or vim.fn.bufadd(path)
  load_quietly(bufnr)
  err = refusal(path, problem, stat)
  if api.nvim_buf_is_loaded(bufnr) and not err then
    return bufnr, nil, true
  elseif not known and api.nvim_buf_is_valid(bufnr) then
    pcall(api.nvim_buf_delete, bufnr, { force = true })
  end
  return nil,
    err or errors.new('busy', ('%s could not be loaded now; try again'):format(access.shown(path, project.root())))
end

--- Maximum number of entries checked; a longer list is assumed to refer to every buffer.
local MAX_ENTRIES = 5000

--- The buffers in the user's lists, valid while no list changes.
---@type { state: string?, buffers: table<integer, true>, is_long: boolean? }
local in_lists = { buffers = {} }

--- Returns whether the user's quickfix or location lists refer to a buffer: if such a buffer is deleted, Neovim cannot
--- open its entries any more.
---@param bufnr integer
---@return boolean
local function is_in_list(bufnr)
  local gets, lists, ticks = { vim.fn.getqflist }, {}, {}
  for _, window in ipairs(api.nvim_list_wins()) do
    table.insert(gets, function(what)
      return vim.fn.getloclist(window, what)
    end)
  end
  for _, get in ipairs(gets) do
    for nr = 1, get({ nr = '$' }).nr do
      local list = get({ nr = nr, id = 0, changedtick = 0, size = 0 })
      lists[list.id] = { get = get, size = list.size } -- ids are unique across stacks
      table.insert(ticks, ('%d:%d'):format(list.id, list.changedtick))
    end
  end
  local state = table.concat(ticks, ' ')
  if in_lists.state ~= state then
    in_lists = { state = state, buffers = {} }
    for id, list in pairs(lists) do
      in_lists.is_long = in_lists.is_long or list.size > MAX_ENTRIES
      for _, item in ipairs(list.size <= MAX_ENTRIES and list.get({ id = id, items = 0 }).items or {}) do
        in_lists.buffers[item.bufnr] = true
      end
    end
  end
  return in_lists.is_long or in_lists.buffers[bufnr] == true
end

--- A buffer that was loaded for calls. It is unloaded some time after the last one ended, unless it has been shown in a
--- window or has unsaved changes.
---@class mcp-tools.BufferLease
---@field bufnr integer
---@field tick integer changedtick when it was loaded
---@field was_listed boolean
---@field calls table<mcp-tools.Call, true> calls that use it
---@field timer mcp-tools.Timer? running while no call uses it

---@type table<integer, mcp-tools.BufferLease>
local leases = {}

--- Ends the lease of a buffer, so that it stays loaded.
---@param bufnr integer
function M.keep(bufnr)
  local lease = leases[bufnr]
  leases[bufnr] = nil
  if lease and lease.timer then
    lease.timer:stop()
  end
end

--- Unloads a hidden, unmodified buffer that was loaded for calls, so that language servers close it. If a call or a
--- review other than the one that drops it uses it, it is unloaded later.
---@param bufnr integer
---@param ctx mcp-tools.Ctx? the call that drops it, if it may have ended
function M.drop(bufnr, ctx)
  local lease = leases[bufnr]
  local has_ended = lease and ctx and ctx.call and not lease.calls[ctx.call]
  if lease and vim.tbl_count(lease.calls) > (has_ended and 0 or 1) then
    return
  end
  M.keep(bufnr) -- ends the lease
  if not api.nvim_buf_is_valid(bufnr) or vim.bo[bufnr].modified or #vim.fn.win_findbuf(bufnr) > 0 then
    return
  elseif vim.fn.has('nvim-0.11') == 0 then
    -- There the response to a pending request for semantic tokens would show an error.
    for _, client in ipairs(vim.lsp.get_clients({ bufnr = bufnr })) do
      pcall(vim.lsp.semantic_tokens.stop, bufnr, client.id)
    end
  end
  -- A listed buffer that was never loaded (an argument of `nvim`) or one in a quickfix list must not be deleted.
  pcall(api.nvim_buf_delete, bufnr, { unload = vim.bo[bufnr].buflisted or is_in_list(bufnr) })
end

---@param lease mcp-tools.BufferLease
local function is_edited(lease)
  return api.nvim_buf_get_changedtick(lease.bufnr) ~= lease.tick
end

---@param lease mcp-tools.BufferLease
local function wait_idle(lease)
  local grace = is_edited(lease) and M.GRACE_EDITED or M.GRACE
  lease.timer = timer.after(grace, function()
    lease.timer = nil
    local bufnr = lease.bufnr
    if leases[bufnr] ~= lease then
      return -- it was unloaded and loaded again
    elseif not api.nvim_buf_is_loaded(bufnr) or vim.bo[bufnr].buflisted and not lease.was_listed then
      M.keep(bufnr)
    elseif vim.bo[bufnr].modified then
      wait_idle(lease)
    else
      M.drop(bufnr)
    end
  end)
end

--- Notes that a call or a review uses a buffer: one that was loaded for calls stays loaded until the last one ends.
---@param bufnr integer
---@param ctx mcp-tools.Ctx
function M.use(bufnr, ctx)
  local lease, call = leases[bufnr], ctx.call
  if not lease or not call or lease.calls[call] then
    return
  elseif lease.timer then
    lease.timer:stop()
    lease.timer = nil
  end
  lease.calls[call] = true
  call:on_end(function()
    lease.calls[call] = nil
    if leases[bufnr] ~= lease or next(lease.calls) then
      return
    elseif not api.nvim_buf_is_loaded(bufnr) or call.outcome and call.outcome.error and not is_edited(lease) then
      M.drop(bufnr)
    else
      wait_idle(lease)
    end
  end)
end

--- Unloads buffers that were loaded for calls and whose file was deleted since, so that language servers forget them.
function M.drop_deleted()
  for bufnr, lease in pairs(leases) do
    local is_idle = next(lease.calls) == nil and api.nvim_buf_is_valid(bufnr)
    if is_idle and not uv.fs_stat(api.nvim_buf_get_name(bufnr)) then
      M.drop(bufnr)
    end
  end
end

--- Loads the buffer of a file or finds the loaded one. The callback runs on the main loop, never before this returns.
---@param path string resolved
---@param cb fun(bufnr: integer?, err: mcp-tools.Error?, new: boolean?) `new`: it was not loaded before
---@param ctx mcp-tools.Ctx? the buffer is unloaded some time after this call; a cancelled call loads nothing. Without
---  `ctx`, the caller unloads the buffer with `drop`.
function M.load(path, cb, ctx)
  uv.fs_stat(path, function(problem, stat)
    vim.schedule(function()
      if ctx and ctx:cancelled() then
        return cb(nil, errors.new('cancelled', 'cancelled before anything was loaded'))
      elseif autocommands.are_running() then
        return autocommands.when_over(function(busy)
          if busy then
            return cb(nil, busy)
          end
          M.load(path, cb, ctx)
        end)
      end
      local bufnr, err, new = load(path, problem, stat)
      if ctx and ctx.call and bufnr and new then
        local tick = api.nvim_buf_get_changedtick(bufnr)
        leases[bufnr] = { bufnr = bufnr, tick = tick, was_listed = vim.bo[bufnr].buflisted, calls = {} }
      end
      if ctx and bufnr then
        M.use(bufnr, ctx)
      end
      cb(bufnr, err, new)
    end)
  end)
end

return M
