--- Sets breakpoints in loaded buffers, permanently or for one run.

local access = require('mcp-tools.privacy.access')
local buffers = require('mcp-tools.editor.buffer')
local change = require('mcp-tools.editor.symbol.change')
local errors = require('mcp-tools.errors')
local find = require('mcp-tools.editor.symbol.find')
local nvim_dap = require('mcp-tools.editor.dap.nvim_dap')
local open = require('mcp-tools.editor.buffer.open')
local project = require('mcp-tools.instances.project')
local request = require('mcp-tools.editor.dap.request')
local sessions = require('mcp-tools.editor.dap.sessions')
local symbol_edits = require('mcp-tools.editor.symbol.edits')
local symbol_tree = require('mcp-tools.editor.symbol_tree')

local api = vim.api

local M = {}

local namespace = api.nvim_create_namespace('mcp-tools.dap.breakpoints')

---@class mcp-tools.dap.Point
---@field path string?
---@field bufnr integer?
---@field line integer? this or `symbol`
---@field symbol string? name path of a function: its first line of code
---@field condition string?
---@field hit_condition string?
---@field log_message string?

--- Schema of a breakpoint in arguments.
M.POINT = {
  type = 'object',
  properties = {
    path = { type = 'string', description = 'File path' },
    line = { type = 'integer', description = 'Line', minimum = 1 },
    symbol = { type = 'string', description = 'Function to stop in, instead of a line', minLength = 1 },
    condition = { type = 'string', description = 'Stop only if this expression is true' },
    hit_condition = { type = 'string', description = 'Number of hits before it stops', hidden = true },
    log_message = { type = 'string', description = 'Text to print instead, with `{value}`' },
    bufnr = { type = 'integer', description = 'Buffer number', minimum = 0, hidden = true },
  },
}

--- Returns the file of a breakpoint.
---@param point { path: string?, bufnr: integer? }
---@return { bufnr: integer?, path: string? }?
---@return mcp-tools.Error?
function M.file(point)
  local found, err = buffers.find({ path = point.path, bufnr = point.bufnr })
  if found and found.bufnr and not (found.path or ''):find('^/') then
    return nil, errors.new('tool_error', ('bufnr: buffer %d has no file'):format(found.bufnr))
  end
  return found, err
end

--- Returns the expressions that breakpoints evaluate in the program.
---@param points mcp-tools.dap.Point[]?
---@return string[]? texts nil if nothing
function M.expressions(points)
  local texts = {}
  for _, point in ipairs(points or {}) do
    for _, name in ipairs({ 'condition', 'hit_condition', 'log_message' }) do
      table.insert(texts, point[name])
    end
  end
  return texts[1] and texts or nil
end

--- Returns a breakpoint as text, for the user who approves it.
---@param point mcp-tools.dap.Point
---@return string
function M.preview(point)
  local where = point.line and ('line %d'):format(point.line) or point.symbol
  local file = point.path or point.bufnr and 'buffer ' .. point.bufnr or 'the project'
  local lines = { ('Breakpoint in %s of %s'):format(where, file) }
  for _, name in ipairs({ 'condition', 'hit_condition', 'log_message' }) do
    if point[name] then
      table.insert(lines, ('  %s: %s'):format(name, point[name]))
    end
  end
  return table.concat(lines, '\n')
end

---@param bufnr integer loaded
---@param line integer
---@return mcp-tools.Error?
local function beyond(bufnr, line)
  local count = api.nvim_buf_line_count(bufnr)
  if line > count then
    local name = access.shown(api.nvim_buf_get_name(bufnr), project.root())
    return errors.new(
      'validation_error',
      ('line: line %d is beyond the end of %s (%d lines)'):format(line, name, count)
    )
  end
end

--- Returns the error of breakpoints that are certain to fail. Loads no file.
---@param points mcp-tools.dap.Point[]
---@return mcp-tools.Error? err
function M.refusal(points)
  local _, missing = nvim_dap.get()
  if missing then
    return missing
  end
  for _, point in ipairs(points) do
    if (point.line == nil) == (point.symbol == nil) then
      return errors.new('validation_error', 'breakpoints: each needs a line or a symbol, and not both')
    end
    local _, found, err = nil, nil, nil
    if point.symbol then
      _, err = symbol_tree.parse(point.symbol, 'symbol')
    end
    if not err and (point.line or point.path or point.bufnr) then
      found, err = M.file(point)
    end
    if found and point.line and found.bufnr then
      err = beyond(found.bufnr, point.line)
    elseif found and not found.bufnr and not vim.uv.fs_stat(found.path) then
      err = errors.new('not_found', ('path: no such file: %s'):format(access.shown(found.path, project.root())))
    end
    if err then
      return err
    end
  end
end

--- Finds the function of a breakpoint.
---@param ctx mcp-tools.Ctx
---@param point mcp-tools.dap.Point
---@return integer? bufnr
---@return mcp-tools.Error? err
---@return integer? line in which its code begins
local function place_of(ctx, point)
  local found, err = find.one(ctx, point)
  if not found then
    return nil, err
  end
  local bufnr = found.source.bufnr
  local lines = api.nvim_buf_get_lines(bufnr, 0, -1, false)
  return bufnr, nil, symbol_edits.code_line(lines, change.place(ctx, found, lines), vim.bo[bufnr].filetype)
end

--- Loads the files of breakpoints, after checking all of them.
---@param ctx mcp-tools.Ctx
---@param points mcp-tools.dap.Point[]
---@return mcp-tools.dap.Point[]? loaded with buffer and line, in the same order
---@return mcp-tools.Error? err
function M.load(ctx, points)
  local bad = M.refusal(points)
  if bad then
    return nil, bad
  end
  local loaded = {}
  for i, point in ipairs(points) do
    local bufnr, err, line
    if point.symbol then
      bufnr, err, line = place_of(ctx, point)
    else
      local found = assert(M.file(point))
      bufnr, line = found.bufnr, point.line
      if not bufnr then
        bufnr, err = ctx:await(function(done)
          open.load(found.path, done, ctx)
        end)
      end
    end
    err = err or beyond(bufnr, line)
    if err then
      return nil, err
    end
    open.keep(bufnr) -- nvim-dap stores breakpoints as signs, which need a loaded buffer
    loaded[i] = vim.tbl_extend('force', point, { bufnr = bufnr, line = line })
  end
  return loaded
end

--- Sets a breakpoint in nvim-dap. `sync` sends it to running sessions.
---@param point mcp-tools.dap.Point loaded
function M.set(point)
  nvim_dap.store().set(
    { condition = point.condition, hit_condition = point.hit_condition, log_message = point.log_message },
    point.bufnr,
    point.line
  )
end

--- Returns the breakpoint on a line.
---@param bufnr integer
---@param line integer
---@return mcp-tools.dap.Breakpoint?
function M.at(bufnr, line)
  return vim.iter(nvim_dap.breakpoints(bufnr)[bufnr] or {}):find(function(point)
    return point.line == line
  end)
end

--- Sets breakpoints for one run, except on lines that already have one.
---@param ctx mcp-tools.Ctx
---@param points mcp-tools.dap.Point[]
---@return fun()? remove removes the new breakpoints
---@return mcp-tools.Error? err
function M.add(ctx, points)
  local loaded, err = M.load(ctx, points)
  if not loaded then
    return nil, err
  end
  local marks = {} ---@type { bufnr: integer, id: integer }[]
  for _, point in ipairs(loaded) do
    if not M.at(point.bufnr, point.line) then
      M.set(point)
      -- The mark moves with the text, like the sign of the breakpoint.
      local id = api.nvim_buf_set_extmark(point.bufnr, namespace, point.line - 1, 0, {})
      table.insert(marks, { bufnr = point.bufnr, id = id })
    end
  end
  return function()
    for _, mark in ipairs(marks) do
      local at = api.nvim_buf_is_valid(mark.bufnr)
        and api.nvim_buf_get_extmark_by_id(mark.bufnr, namespace, mark.id, {})[1]
      if at then
        nvim_dap.store().remove(mark.bufnr, at + 1)
        api.nvim_buf_del_extmark(mark.bufnr, namespace, mark.id)
      end
    end
    marks = {}
  end
end

--- Sends the breakpoints of buffers to every session, and waits until they are set.
---@param ctx mcp-tools.Ctx
---@param bufnrs integer[]
---@return mcp-tools.Error? err
function M.sync(ctx, bufnrs)
  local by_buffer = {}
  for _, bufnr in ipairs(bufnrs) do
    by_buffer[bufnr] = nvim_dap.breakpoints(bufnr)[bufnr] or {}
  end
  for _, entry in ipairs(sessions.all()) do
    if not entry.ended and next(by_buffer) and entry.session.initialized ~= false then
      local _, err = request.await(ctx, entry, 'setBreakpoints', request.TIMEOUT_MS, function(done)
        entry.session:set_breakpoints(by_buffer, function()
          done(true)
        end)
      end)
      if err and not entry.ended then
        return err
      end
    end
  end
end

return M
