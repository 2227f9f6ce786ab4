--- Subcommands for calls and jobs: call, cancel, jobs.

local call_line = require('mcp-tools.ui.call_line')
local call_view = require('mcp-tools.ui.call_view')
local core = require('mcp-tools.core')
local jobs = require('mcp-tools.editor.shell.jobs')
local notify = require('mcp-tools.notify')
local user = require('mcp-tools.callers.user')
local report = require('mcp-tools.loading.report')
local sanitize = require('mcp-tools.util.sanitize')
local scratch = require('mcp-tools.ui.window.scratch')
local suggest = require('mcp-tools.util.suggest')

---@type table<string, mcp-tools.Subcommand>
local M = {}

---@return mcp-tools.Registry
local function registry()
  return core.get().registry
end

---@param definition mcp-tools.Definition?
---@return table<string, any> properties of the schema
local function properties_of(definition)
  local schema = definition and definition.input_schema
  return type(schema) == 'table' and type(schema.properties) == 'table' and schema.properties or {}
end

--- Reads arguments such as `path=a.lua limit=5 query="two words"`. Values are JSON, except unquoted ones of string
--- arguments; what is not valid JSON is a string.
---@param text string
---@param properties table<string, any>
---@return table? args, string? err
local function read_words(text, properties)
  local args = {}
  while text ~= '' do
    local name, rest = text:match('^([%w_%-]+)=(.*)$')
    if not name then
      return nil, ('neither JSON nor NAME=VALUE at %q'):format(text:sub(1, 20))
    end
    local quoted = rest:match('^"[^"\\]*"') or rest:match('^".-[^\\]"')
    local value = quoted or rest:match('^%S*')
    local is_text = (type(properties[name]) == 'table' and properties[name].type) == 'string' and not quoted
    local ok, decoded = pcall(vim.json.decode, value)
    args[name] = value ---@type any
    if ok and not is_text then
      args[name] = decoded
    end
    text = vim.trim(rest:sub(#value + 1))
  end
  return args
end

---@param text string
---@param definition mcp-tools.Definition?
---@return table? args, string? err
local function decode(text, definition)
  if text == '' then
    return vim.empty_dict()
  elseif not vim.startswith(text, '{') then
    return read_words(text, properties_of(definition))
  end
  local ok, decoded = pcall(vim.json.decode, text)
  if not ok then
    return nil, (tostring(decoded):gsub('^.-:%d+: ', ''))
  end
  return decoded --[[@as table]]
end

---@return string[] bare names
local function names()
  return vim.tbl_map(function(tool)
    return tool.name
  end, registry():list('tools'))
end

--- Maximum number of failures in a hint; with more, the error would not fit on the screen.
local MAX_FAILURES = 3

--- Returns hints about an unknown tool: it is off, or its file could not be loaded.
---@param name string
---@return string[]
local function unknown_tool(name)
  for _, item in ipairs(report.members(registry(), 'tools', name)) do
    if item.name == name then
      return { ('it is off; turn it on with :McpTools tools enable %s'):format(name) }
    end
  end
  local failures, hints = report.failures(registry()), { ':McpTools tools lists all tools' }
  for i = 1, math.min(#failures, MAX_FAILURES) do
    local failure = failures[i]
    local text = failure.error:match('[^\n]*')
    if not text:find((" '%s': "):format(failure.source), 1, true) then -- otherwise the text has the name
      text = ('%s: %s'):format(vim.fn.fnamemodify(failure.source, ':~:.'), text)
    end
    table.insert(hints, 'not loaded: ' .. text)
  end
  if #failures > MAX_FAILURES then
    table.insert(hints, (':checkhealth mcp-tools lists %d more'):format(#failures - MAX_FAILURES))
  end
  return hints
end

--- Finds arguments that the tool does not know. The call may accept and ignore them.
---@param definition mcp-tools.Definition
---@param args table
---@return string[]
local function unknown_arguments(definition, args)
  local schema, hints = definition.input_schema, {}
  if schema.additionalProperties ~= nil or schema.patternProperties then
    return hints -- the schema decides about other arguments
  end
  local known = schema.properties or {}
  local candidates = vim.tbl_filter(function(name)
    return args[name] == nil
  end, vim.tbl_keys(known))
  for name in vim.spairs(args) do
    if not known[name] then
      local near = suggest(name, candidates)
      local hint = near and (', did you mean %s?'):format(near) or ''
      table.insert(hints, ('the tool has no argument %s%s'):format(name, hint))
    end
  end
  return hints
end

local SAMPLES = { integer = '1', number = '1', boolean = 'true', array = '[]', object = '{}' }

--- Makes an example of the tool's arguments, with a required one if there is any.
---@param definition mcp-tools.Definition
---@return string JSON text
local function example(definition)
  local schema = definition.input_schema
  local known = schema.properties or {}
  local all = vim.tbl_keys(known)
  table.sort(all)
  local name = (schema.required or {})[1] or all[1]
  if not name then
    return '{}'
  end
  local property = type(known[name]) == 'table' and known[name] or {}
  local sample = name:find('path') and '"a.txt"' or SAMPLES[property.type] or '"text"'
  return ('{%s: %s}'):format(
    vim.json.encode(name),
    type(property.enum) == 'table' and vim.json.encode(property.enum[1]) or sample
  )
end

---@type mcp-tools.Subcommand
M.call = {
  usage = 'TOOL [NAME=VALUE … | JSON]',
  description = 'run a tool; the window shows its progress, questions and result as a client would get them, and the'
    .. ' traceback of an error',
  run = function(rest)
    local name, text = rest:match('^(%S+)%s*(.*)$')
    if not name then
      return notify.error('which tool? :McpTools call TOOL [NAME=VALUE … | JSON]')
    end
    local definition = registry():find_tool(name)
    local args, fault = decode(text, definition)
    if not args then
      local lines = { 'The arguments must be NAME=VALUE or a JSON object: ' .. fault }
      table.insert(lines, definition and ('An example: %s. Yours:'):format(example(definition)))
      table.insert(lines, '  ' .. text)
      return call_view.new(name, {}).refuse(lines)
    end
    local hints = definition and unknown_arguments(definition, args) or unknown_tool(name)
    local view = call_view.new(name, hints)
    if not user.call(name, args, view):ended() then
      view.waits()
    end
  end,
  arguments = 20,
  complete = function(_, rest)
    local name = rest:match('^(%S+)%s')
    if not name then
      return names()
    end
    local list = vim.tbl_keys(properties_of(registry():find_tool(name)))
    table.sort(list)
    return vim.tbl_map(function(argument)
      return argument .. '='
    end, list)
  end,
}

local function executor()
  return core.get().executor
end

---@generic T: { id: string, name: string? }
---@param list T[]
---@param id string or the name, or 'all'
---@return T[]
local function matching(list, id)
  return vim.tbl_filter(function(each)
    return id == 'all' or each.id == id or each.name == id
  end, list)
end

---@param list { id: string }[]
---@return string[] candidates
local function ids_of(list)
  local ids = vim.tbl_map(function(each)
    return each.id
  end, list)
  table.insert(ids, 'all')
  return ids
end

---@param calls mcp-tools.Call[]
local function cancel_calls(calls)
  for _, call in ipairs(calls) do
    executor():cancel(call.id, 'user')
  end
  notify.info(
    #calls == 1 and ('cancelled %s (%s)'):format(calls[1].name, calls[1].id) or ('%d calls cancelled'):format(#calls)
  )
end

---@type mcp-tools.Subcommand
M.cancel = {
  usage = '[TOOL | ID | all]',
  description = 'cancel a running call that you choose from a list, or the given ones; with `!` all of them',
  bang = true,
  run = function(rest, bang)
    local calls = executor():pending()
    local found = matching(calls, bang and 'all' or rest)
    if #calls == 0 then
      notify.info('no call is running')
    elseif #found > 0 then
      cancel_calls(found)
    elseif rest ~= '' then
      notify.error(("no running call has the name or id '%s'"):format(rest))
    else
      vim.ui.select(calls, {
        prompt = 'Cancel which call?',
        format_item = call_line.of,
      }, function(call)
        if call then
          cancel_calls({ call })
        end
      end)
    end
  end,
  complete = function()
    return ids_of(executor():pending())
  end,
}

local api = vim.api

local REFRESH_MS = 500

---@param job mcp-tools.shell.Job
---@return string
local function row_of(job)
  local since = os.date('%H:%M:%S', job.started_at)
  local text = ('%-6s %s  %s: %s'):format(job.id, since, job.owner.client, job.command.shown)
  return sanitize.line(job.result and text .. ' (ended)' or text)
end

---@param list mcp-tools.shell.Job[]
local function stop_jobs(list)
  for _, job in ipairs(list) do
    job:stop()
  end
  notify.info(#list == 1 and ('stopping %s'):format(list[1].id) or ('stopping %d jobs'):format(#list))
end

--- Returns the message that no job is running. A running call is not a job.
---@return string
local function no_job()
  local calls = #executor():pending()
  return calls == 0 and 'no job is running'
    or ('no job is running, but calls are (%d): `:McpTools cancel` lists them'):format(calls)
end

local function show_jobs()
  local list = jobs.running()
  -- Ended jobs keep their rows until `r`, so that a key never acts on another job than the one under the cursor.
  local function rows()
    for _, job in ipairs(jobs.running()) do
      if not vim.list_contains(list, job) then
        table.insert(list, job)
      end
    end
    return #list > 0 and vim.tbl_map(row_of, list) or { no_job() }
  end
  local keys = {
    {
      lhs = 'x',
      word = 'stop',
      description = 'stop this job',
      run = function()
        local job = list[api.nvim_win_get_cursor(0)[1]]
        if job and not job.result then
          stop_jobs({ job })
        end
      end,
    },
  }
  scratch.show('jobs', rows, { title = 'jobs of clients', keys = keys, again = show_jobs, every = REFRESH_MS })
end

---@type mcp-tools.Subcommand
M.jobs = {
  usage = '[stop ID | stop all]',
  description = 'list the commands that clients have left running (`shell_jobs`), also those of ended sessions; stop'
    .. ' one or all of them',
  run = function(rest)
    if rest == '' then
      return show_jobs()
    end
    local id = rest:match('^stop%s+(%S+)$')
    local found = matching(jobs.running(), id)
    if not id then
      notify.error(':McpTools jobs [stop ID | stop all]')
    elseif #found == 0 then
      notify.info(id == 'all' and no_job() or ("no running job has the id '%s'"):format(id))
    else
      stop_jobs(found)
    end
  end,
  arguments = 2,
  complete = function(_, rest)
    if not rest:find('%S') then
      return { 'stop' }
    end
    return ids_of(jobs.running())
  end,
}

return M
