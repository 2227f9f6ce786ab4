--- Breakpoints in buffers that need no window: for the user's list, or for one run.

local access = require('mcp-tools.privacy.access')
local buffers = require('mcp-tools.editor.buffer')
local errors = require('mcp-tools.errors')
local nvim_dap = require('mcp-tools.editor.dap.nvim_dap')
local open = require('mcp-tools.editor.buffer.open')
local project = require('mcp-tools.instances.project')
local request = require('mcp-tools.editor.dap.request')
local sessions = require('mcp-tools.editor.dap.sessions')

local api = vim.api

local M = {}

local namespace = api.nvim_create_namespace('mcp-tools.dap.breakpoints')

---@class mcp-tools.dap.Point
---@field path string?
---@field bufnr integer?
---@field line integer
---@field condition string?
---@field hit_condition string?
---@field log_message string?

--- Schema of a breakpoint in arguments.
M.POINT = {
  type = 'object',
  properties = {
    path = { type = 'string', description = 'File path' },
    line = { type = 'integer', description = 'Line', minimum = 1 },
    condition = { type = 'string', description = 'Stop only if this expression is true' },
    hit_condition = { type = 'string', description = 'Number of hits before it stops', hidden = true },
    log_message = { type = 'string', description = 'Text to print instead, with `{value}`' },
    bufnr = { type = 'integer', description = 'Buffer number', minimum = 0, hidden = true },
  },
  required = { 'line' },
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

--- Returns what breakpoints make the program evaluate.
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
  local lines = { ('Breakpoint in line %d of %s'):format(point.line, point.path or 'buffer ' .. tostring(point.bufnr)) }
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

--- Returns errors of breakpoints that are known without loading their files.
---@param points mcp-tools.dap.Point[]
---@return mcp-tools.Error? err
function M.refusal(points)
  local _, missing = nvim_dap.get()
  if missing then
    return missing
  end
  for _, point in ipairs(points) do
    local found, err = M.file(point)
    err = err or found and found.bufnr and beyond(found.bufnr, point.line)
    if not err and not found.bufnr and not vim.uv.fs_stat(found.path) then
      err = errors.new('not_found', ('path: no such file: %s'):format(access.shown(found.path, project.root())))
    end
    if err then
      return err
    end
  end
end

--- Loads the files of breakpoints, after checking all of them.
---@param ctx mcp-tools.Ctx
---@param points mcp-tools.dap.Point[]
---@return integer[]? bufnrs in the same order
---@return mcp-tools.Error? err
function M.load(ctx, points)
  local bad = M.refusal(points)
  if bad then
    return nil, bad
  end
  local bufnrs = {}
  for i, point in ipairs(points) do
    local found = assert(M.file(point))
    local bufnr, err = found.bufnr, nil
    if not bufnr then
      bufnr, err = ctx:await(function(done)
        open.load(found.path, done, ctx)
      end)
    end
    err = err or beyond(bufnr, point.line)
    if err then
      return nil, err
    end
    open.keep(bufnr) -- breakpoints are signs in the buffer
    bufnrs[i] = bufnr
  end
  return bufnrs
end

--- Sets a breakpoint in nvim-dap's list. `sync` sends it to the programs that run.
---@param bufnr integer
---@param point mcp-tools.dap.Point
function M.set(bufnr, point)
  nvim_dap.store().set(
    { condition = point.condition, hit_condition = point.hit_condition, log_message = point.log_message },
    bufnr,
    point.line
  )
end

--- Returns the breakpoint in a line.
---@param bufnr integer
---@param line integer
---@return mcp-tools.dap.Breakpoint?
function M.at(bufnr, line)
  return vim.iter(nvim_dap.breakpoints(bufnr)[bufnr] or {}):find(function(point)
    return point.line == line
  end)
end

--- Sets breakpoints for one run. A line that has one already keeps it.
---@param ctx mcp-tools.Ctx
---@param points mcp-tools.dap.Point[]
---@return fun()? remove removes those that were set
---@return mcp-tools.Error? err
function M.add(ctx, points)
  local bufnrs, err = M.load(ctx, points)
  if not bufnrs then
    return nil, err
  end
  local marks = {} ---@type { bufnr: integer, id: integer }[]
  for i, bufnr in ipairs(bufnrs) do
    if not M.at(bufnr, points[i].line) then
      M.set(bufnr, points[i])
      -- Signs move with the text, and so does the mark.
      local id = api.nvim_buf_set_extmark(bufnr, namespace, points[i].line - 1, 0, {})
      table.insert(marks, { bufnr = bufnr, id = id })
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
