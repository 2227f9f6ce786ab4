--- Prompt: debug the stopped program. Uses nvim-dap only if it is already loaded.

local excerpt = require('mcp-tools.editor.result.excerpt')
local nvim_dap = require('mcp-tools.editor.dap.nvim_dap')
local variables = require('mcp-tools.editor.dap.variables')
local stop = require('mcp-tools.editor.dap.stop')
local utf8 = require('mcp-tools.util.utf8')

--- Timeout of requests to the debug adapter.
local TIMEOUT_MS = 3000
local FRAMES, VARIABLES, MAX_VALUE = 20, 40, 200
local AROUND = 5

--- Returns the local variables of a frame, one per line.
---@param ctx mcp-tools.Ctx
---@param entry mcp-tools.dap.Entry
---@param frame table
---@return string
local function locals(ctx, entry, frame)
  local list, err = variables.locals(ctx, entry, frame.id, TIMEOUT_MS)
  if not list then
    return 'unavailable: ' .. err.message
  end
  local lines = {}
  variables.refresh(ctx)
  for i, variable in ipairs(list) do
    if i > VARIABLES then
      table.insert(lines, '…')
      break
    end
    local shown = variables.shown(variable, MAX_VALUE)
    table.insert(lines, ('%s = %s'):format(shown.name, (shown.value:gsub('%s+', ' '))))
  end
  return table.concat(lines, '\n')
end

---@return table? session stopped session
---@return string? missing what is missing, and what to do
local function stopped_session()
  local session = nvim_dap.focused()
  if not nvim_dap.loaded() then
    return nil,
      'nvim-dap is not loaded in this editor. Install mfussenegger/nvim-dap, configure an adapter for this language,'
        .. ' set a breakpoint (:DapToggleBreakpoint) and start the program (:DapContinue).'
  elseif not session then
    return nil, 'nvim-dap has no session. Set a breakpoint (:DapToggleBreakpoint) and start the program (:DapContinue).'
  elseif not session.stopped_thread_id then
    return nil, 'the program is running. Set a breakpoint that it reaches, or pause it (:DapPause).'
  end
  return session
end

--- Describes the stopped program. Must run in a coroutine.
---@param ctx mcp-tools.Ctx
---@return string? text
---@return string? missing what is missing, and what to do
local function describe(ctx)
  local session, missing = stopped_session()
  if not session then
    return nil, missing
  end
  local entry = { session = session } --[[@as any]]
  local frames, err = stop.stack(ctx, entry, session.stopped_thread_id, FRAMES, TIMEOUT_MS)
  local frame = session.current_frame or frames and frames[1]
  if not frames or not frame then
    return nil, 'the debug adapter returned no stack: ' .. (not frames and err.message or 'it is empty')
  end
  local lines = {}
  for i, item in ipairs(frames) do
    lines[i] = ('%s %s'):format(item.id == frame.id and '>' or ' ', stop.named(item, ctx.root))
  end
  local parts = {
    ('Stopped in %s.'):format(stop.named(frame, ctx.root)),
    'Stack:\n' .. excerpt.fenced(table.concat(lines, '\n')),
    'Variables:\n' .. excerpt.fenced(locals(ctx, entry, frame)),
  }
  local path = frame.source and frame.source.path
  local source = path and excerpt.find(ctx, path, frame.line - AROUND)
  if source then
    local code = excerpt.numbered(source, frame.line - AROUND, frame.line + AROUND, frame.line)
    table.insert(parts, 'Code:\n' .. excerpt.fenced(code, source.filetype))
  end
  return table.concat(parts, '\n\n')
end

return {
  name = 'debug_stopped',
  title = 'Debug the stopped program',
  description = 'Explains where and why the program in the debugger (nvim-dap) has stopped, using its stack and'
    .. ' variables.',
  args = { { name = 'question', description = 'What you want to know' } },
  run = function(ctx, args)
    local text, missing = describe(ctx)
    if not text then
      -- Not an error: a prompt can ask how to get there.
      return ('I want to debug my program, but it is not stopped in the debugger: %s\n\nHelp me with that.'):format(
        missing
      )
    end
    local question = args.question or 'Explain why it is in this state, which value is wrong, and what to inspect next.'
    return (utf8.repair(('My program is stopped in the debugger. %s\n\n%s'):format(question, text)))
  end,
}
