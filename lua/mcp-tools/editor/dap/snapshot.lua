--- Snapshot of a stopped program: its variables by name and value, a whole picture of where it stands.
---
--- Receives: the entry of a stopped session; ids of frames and references, or neither.
--- Sends: lists that fit an answer: what is too much comes without values, and says which argument narrows it.
--- Does not know about: what runs or changes the program.

local access = require('mcp-tools.files.access')
local errors = require('mcp-tools.errors')
local source_lines = require('mcp-tools.editor.dap.source_lines')
local stop = require('mcp-tools.editor.dap.stop')
local time_slice = require('mcp-tools.util.time_slice')
local values = require('mcp-tools.editor.dap.values')
local variables = require('mcp-tools.editor.dap.variables')

local M = {}

--- Bytes of the variables of one answer.
local MAX_BYTES = 16 * 1024
--- Variables of one answer, when nobody says how many.
M.MAX_COUNT = 200

--- A frame as it is given.
---@param frame table
---@param root string
---@return table
function M.frame(frame, root)
  local source = frame.source or {}
  return {
    id = frame.id,
    name = frame.name,
    path = source.path and access.shown(source.path, root) or source.name,
    line = frame.line,
    column = frame.column,
  }
end

--- The frame that is meant: by its id, else where the program stands.
---@param ctx mcp-tools.Ctx
---@param entry mcp-tools.dap.Entry
---@param frame_id integer?
---@return integer? id
---@return mcp-tools.Error? err
function M.frame_id(ctx, entry, frame_id)
  if frame_id then
    return frame_id
  end
  local frame, err = stop.frame(ctx, entry)
  return frame and frame.id, not frame and (err or errors.new('tool_error', 'the stopped thread has no frame')) or nil
end

---@param list mcp-tools.dap.Shown[]
---@return integer
local function size(list)
  local bytes = 0
  for _, shown in ipairs(list) do
    bytes = bytes + #shown.name + #(shown.value or '') + #(shown.type or '') + 60
  end
  return bytes
end

---@class mcp-tools.dap.VariablesArgs
---@field variables_reference integer?
---@field frame_id integer?
---@field filter string?
---@field start integer
---@field count integer
---@field names string[]?
---@field names_only boolean
---@field max_chars integer
---@field timeout_ms integer

--- The variables that arguments mean, as the adapter has them.
---@param ctx mcp-tools.Ctx
---@param entry mcp-tools.dap.Entry
---@param args mcp-tools.dap.VariablesArgs
---@return table[]?
---@return mcp-tools.Error?
local function found(ctx, entry, args)
  if not args.variables_reference then
    local id, err = M.frame_id(ctx, entry, args.frame_id)
    if not id then
      return nil, err
    end
    return variables.locals(ctx, entry, id, args.timeout_ms)
  end
  return variables.of(ctx, entry, {
    variablesReference = args.variables_reference,
    filter = args.filter,
  }, args.timeout_ms)
end

--- Variables of a reference, or those that are local.
---@param ctx mcp-tools.Ctx
---@param entry mcp-tools.dap.Entry
---@param args mcp-tools.dap.VariablesArgs
---@return table? answer
---@return mcp-tools.Error? err
function M.variables(ctx, entry, args)
  local refused = args.variables_reference and variables.refusal(entry, args.variables_reference)
  if refused then
    return nil, refused
  end
  local all, err = found(ctx, entry, args)
  if not all then
    return nil, err
  end
  if args.names then
    local wanted = {}
    for _, name in ipairs(args.names) do
      wanted[name] = true
    end
    all = vim.tbl_filter(function(variable)
      return wanted[variable.name] == true
    end, all)
  end
  local pause, list = time_slice.of(ctx), {}
  values.refresh(pause)
  for i = args.start + 1, math.min(args.start + args.count, #all) do
    table.insert(list, variables.shown(entry, all[i], args.names_only and 0 or args.max_chars, pause))
    pause()
  end
  local answer = { variables = list, total = #all }
  if args.start + #list < #all then
    answer.next_start = args.start + #list
  end
  if size(list) > MAX_BYTES then
    for _, shown in ipairs(list) do
      shown.value = nil
    end
    answer.values_left_out = 'too much for one answer: narrow it with names, count or max_chars'
    while size(list) > MAX_BYTES do
      for i = #list, math.floor(#list / 2) + 1, -1 do
        list[i] = nil
      end
      answer.next_start = args.start + #list
    end
  end
  return answer
end

--- All that there is to see of a stopped program.
---@param ctx mcp-tools.Ctx
---@param entry mcp-tools.dap.Entry
---@param args { context_lines: integer, levels: integer, max_locals: integer, max_chars: integer }
---@return table
function M.snapshot(ctx, entry, args)
  local answer = { session_id = entry.id, status = 'stopped', reason = entry.stop.reason }
  answer.thread_id = entry.stop.thread_id
  local frames, total = stop.stack(ctx, entry, entry.stop.thread_id, args.levels)
  if not frames or not frames[1] then
    answer.at = 'nowhere that the adapter tells'
    return answer
  end
  local frame = frames[1]
  answer.at = stop.named(frame, ctx.root)
  local path = (frame.source or {}).path
  if path then
    answer.code, answer.code_withheld = source_lines.code(ctx, path, frame.line, args.context_lines)
  end
  answer.frames = vim.tbl_map(function(each)
    return M.frame(each, ctx.root)
  end, vim.list_slice(frames, 1, args.levels))
  answer.total_frames = total
  local locals = M.variables(ctx, entry, {
    frame_id = frame.id,
    start = 0,
    count = args.max_locals,
    names_only = false,
    max_chars = args.max_chars,
    timeout_ms = 5000,
  })
  if locals then
    answer.locals, answer.total_locals = locals.variables, locals.total
    answer.values_left_out = locals.values_left_out
  end
  return answer
end

return M
