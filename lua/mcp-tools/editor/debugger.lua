--- The program that nvim-dap has stopped, looked at without touching it.
---
--- Receives: the call's ctx.
--- Sends: where it is and what its variables are, or what is missing.
--- Does not know about: prompts. nvim-dap is only looked at when something else has loaded it.

local access = require('mcp-tools.files.access')
local redact = require('mcp-tools.files.redact')
local excerpt = require('mcp-tools.editor.excerpt')
local turns = require('mcp-tools.util.turns')

local M = {}

--- An adapter that takes longer is not asked further.
local TIMEOUT_MS = 3000
local FRAMES, SCOPES, VARIABLES, MAX_VALUE = 20, 3, 40, 200
local AROUND = 5

--- One request to the adapter. In a coroutine.
---@param ctx mcp-tools.Ctx
---@param session table
---@param command string
---@param arguments table
---@return table? body
---@return string? fault
local function request(ctx, session, command, arguments)
  return ctx:await(function(done)
    session:request(command, arguments, function(err, body)
      done(not err and body or nil, err and (err.message or vim.inspect(err)) or nil)
    end)
    vim.defer_fn(function()
      done(nil, 'no answer within 3 s')
    end, TIMEOUT_MS)
  end)
end

---@param frame table
---@param root string
---@return string
local function place_of(frame, root)
  local path = frame.source and frame.source.path
  return ('%s:%d'):format(path and access.shown(path, root) or (frame.source or {}).name or '?', frame.line or 0)
end

---@param ctx mcp-tools.Ctx
---@param session table
---@param frame table
---@return string
local function variables(ctx, session, frame)
  local parts = {}
  local scopes, fault = request(ctx, session, 'scopes', { frameId = frame.id })
  for i, scope in ipairs(scopes and scopes.scopes or {}) do
    if i <= SCOPES and not scope.expensive then
      local body = request(ctx, session, 'variables', { variablesReference = scope.variablesReference })
      table.insert(parts, scope.name .. ':')
      for n, variable in ipairs(body and body.variables or {}) do
        if n > VARIABLES then
          table.insert(parts, '  …')
          break
        end
        local value = tostring(variable.value):gsub('%s+', ' ')
        if #value > MAX_VALUE then
          value = value:sub(1, MAX_VALUE) .. '…'
        end
        table.insert(parts, ('  %s = %s'):format(variable.name, value))
      end
    end
  end
  return #parts > 0 and redact.text(table.concat(parts, '\n'), turns.of(ctx))
    or ('not to be had: ' .. (fault or 'no scopes'))
end

--- Why there is nothing to look at, and what to do.
---@return table? session a stopped one
---@return string? missing
local function stopped_session()
  local dap = package.loaded.dap
  if not dap then
    return nil,
      'nvim-dap is not loaded in this editor. Install mfussenegger/nvim-dap, configure an adapter for this language,'
        .. ' set a breakpoint (:DapToggleBreakpoint) and start the program (:DapContinue).'
  end
  local session = dap.session()
  if not session then
    return nil, 'nvim-dap has no session. Set a breakpoint (:DapToggleBreakpoint) and start the program (:DapContinue).'
  elseif not session.stopped_thread_id then
    return nil, 'the program runs and is not stopped. Set a breakpoint where it comes by, or pause it (:DapPause).'
  end
  return session
end

--- The stopped program as text. In a coroutine.
---@param ctx mcp-tools.Ctx
---@return string? text
---@return string? missing what there should be
function M.describe(ctx)
  local session, missing = stopped_session()
  if not session then
    return nil, missing
  end
  local stack, fault = request(ctx, session, 'stackTrace', {
    threadId = session.stopped_thread_id,
    startFrame = 0,
    levels = FRAMES,
  })
  local frames = stack and stack.stackFrames or {}
  local frame = session.current_frame or frames[1]
  if not frame then
    return nil, 'the debug adapter gives no stack: ' .. (fault or 'it is empty')
  end
  local lines = {}
  for i, item in ipairs(frames) do
    lines[i] = ('%s %s (%s)'):format(item.id == frame.id and '>' or ' ', item.name, place_of(item, ctx.root))
  end
  local parts = {
    ('Stopped in %s, %s.'):format(frame.name or '?', place_of(frame, ctx.root)),
    'Stack:\n' .. excerpt.fenced(table.concat(lines, '\n')),
    'Variables:\n' .. excerpt.fenced(variables(ctx, session, frame)),
  }
  local path = frame.source and frame.source.path
  local source = path and excerpt.find(ctx, path, frame.line - AROUND)
  if source then
    local code = excerpt.numbered(source, frame.line - AROUND, frame.line + AROUND, frame.line)
    table.insert(parts, 'Code:\n' .. excerpt.fenced(code, source.filetype))
  end
  return table.concat(parts, '\n\n')
end

return M
