--- Which debug session is meant.
---
--- Receives: `session_id`, or nothing.
--- Sends: an entry, or an error value that says what to do next.
--- Does not know about: what is done with it.

local client = require('mcp-tools.editor.dap.client')
local errors = require('mcp-tools.errors')
local tracker = require('mcp-tools.editor.dap.tracker')

local M = {}

--- The argument that every tool of a session has.
M.ARG = { type = 'integer', description = 'Of dap_sessions; default: the focused session', minimum = 1 }

--- The last session that another one has started: the first often only starts others, and has no program.
---@param entry mcp-tools.dap.Entry
---@return mcp-tools.dap.Entry
local function youngest(entry)
  local family = tracker.family(entry.root)
  for i = #family, 1, -1 do
    if entry.id == entry.root and not family[i].ended then
      return family[i]
    end
  end
  return entry
end

---@param id integer?
---@return mcp-tools.dap.Entry?
local function meant(id)
  if id then
    return tracker.get(id)
  end
  local focused = client.focused()
  local entry = focused and tracker.get(focused.id)
  if entry and not entry.ended then
    return youngest(entry)
  end
  local all = tracker.all()
  for i = #all, 1, -1 do
    if not all[i].ended and all[i].root == all[i].id then
      return youngest(all[i])
    end
  end
  return all[#all]
end

--- A session, be it over.
---@param args { session_id: integer? }
---@return mcp-tools.dap.Entry?
---@return mcp-tools.Error?
function M.any(args)
  if not client.loaded() and not args.session_id then
    return nil, errors.new('not_found', 'no active debug session; dap_run starts one')
  end
  local dap, err = tracker.attach()
  if not dap then
    return nil, err
  end
  local entry = meant(args.session_id)
  if not entry then
    local text = args.session_id
        and ('session_id: there is no debug session %d; dap_sessions lists them'):format(args.session_id)
      or 'no active debug session; dap_run starts one, dap_configurations lists what can be run'
    return nil, errors.new('not_found', text)
  end
  return entry
end

--- A session that lives.
---@param args { session_id: integer? }
---@return mcp-tools.dap.Entry?
---@return mcp-tools.Error?
function M.active(args)
  local entry, err = M.any(args)
  if entry and entry.ended then
    local text = 'no active debug session: the last one has ended%s; dap_program_output has what it printed'
    local code = entry.exit_code and (' (exit code %d)'):format(entry.exit_code) or ''
    return nil, errors.new('not_found', text:format(code))
  end
  return entry, err
end

--- A session that has stopped; of those that one has started, the stopped one.
---@param args { session_id: integer? }
---@return mcp-tools.dap.Entry?
---@return mcp-tools.Error?
function M.stopped(args)
  local entry, err = M.active(args)
  if not entry then
    return nil, err
  end
  local state, which = tracker.state(entry)
  if entry.stop then
    return entry
  elseif state ~= 'stopped' then
    local text = 'no stopped thread: the program runs. dap_wait_until_paused waits for a stop, dap_pause makes one'
    return nil, errors.new('tool_error', text)
  end
  return which
end

--- What is said of a call before it runs; an error value where no session could take it, so that nobody is asked.
---@param find fun(args: table): mcp-tools.dap.Entry?, mcp-tools.Error?
---@param say string|fun(args: table, entry: mcp-tools.dap.Entry): string
---@return fun(args: table): string?, mcp-tools.Error?
function M.preview(find, say)
  return function(args)
    local entry, err = find(args)
    if not entry then
      return nil, err
    end
    return type(say) == 'function' and say(args, entry) or say --[[@as string]]
  end
end

return M
