-- slow, every Neovim
-- Holds for every bundled tool: what does not fit its schema is a `validation_error`. Where nothing is to be had the
-- answer is an error that is told, or empty. It never throws.

local editor = require('editor_project')
local every = require('every_tool')
local t = require('helpers')

local NONE =
  { path = 'nowhere/none.txt', uri = 'file:///nowhere/none.txt', glob = '*.none', word = 'nothing', bufnr = 999 }
NONE.other = 'nowhere/other.txt'

--- Values, each of a type of its own.
local VALUES = {
  string = 'x',
  array = { 'x' },
  boolean = true,
  object = { x = 1 },
  number = 1.5,
}

---@param property table
---@return any value of a type that the property does not allow; nil when it allows all
local function misfit(property)
  local kinds = type(property.type) == 'table' and property.type or { property.type }
  if #kinds == 0 then
    return nil
  end
  for _, kind in ipairs({ 'object', 'boolean', 'string', 'number', 'array' }) do
    if not vim.list_contains(kinds, kind) then
      return VALUES[kind]
    end
  end
end

before_each(function()
  editor.open()
  every.offer()
end)

after_each(editor.close)

describe('every tool', function()
  it('refuses arguments of a wrong type by name, before anything runs', function()
    local wrong, tried = {}, 0
    for _, tool in ipairs(every.tools()) do
      for name, property in pairs(tool.input_schema.properties or {}) do
        local value = misfit(property)
        if value ~= nil then
          tried = tried + 1
          local args = every.arguments(tool.input_schema, NONE)
          args[name] = value
          local err = every.call(tool.name, args).outcome.error or {}
          local field = err.errors and err.errors[1].field or ''
          if err.code ~= 'validation_error' or not vim.startswith(field, name) then
            table.insert(wrong, ('%s.%s: %s'):format(tool.name, name, vim.inspect(err)))
          end
        end
      end
      if #(tool.input_schema.required or {}) > 0 then
        local err = every.call(tool.name, vim.empty_dict()).outcome.error or {}
        if err.code ~= 'validation_error' then
          table.insert(wrong, ('%s without arguments: %s'):format(tool.name, vim.inspect(err)))
        end
      end
    end
    t.eq({}, wrong)
    t.ok(tried > 10)
  end)

  it('refuses an argument that it does not have, with the nearest of those that it has', function()
    local wrong, tried = {}, 0
    for _, tool in ipairs(every.tools()) do
      local misspelt = { nothing_like_it = 'is not allowed' }
      for name in pairs(tool.input_schema.properties or {}) do
        misspelt[name .. 'x'] = 'did you mean ' .. name
      end
      for name, told in pairs(misspelt) do
        tried = tried + 1
        local args = every.arguments(tool.input_schema, NONE)
        args[name] = true
        local err = every.call(tool.name, args).outcome.error or {}
        local fault = (err.errors or {})[1] or {}
        if err.code ~= 'validation_error' or fault.field ~= name or not fault.message:find(told, 1, true) then
          table.insert(wrong, ('%s.%s: %s'):format(tool.name, name, vim.inspect(err)))
        end
      end
      if tool.input_schema.additionalProperties ~= false then
        table.insert(wrong, tool.name .. ': clients are not told that it takes no other arguments')
      end
    end
    t.eq({}, wrong)
    t.ok(tried > 200)
  end)

  it('refuses what one entry of a list does not have', function()
    local edits = { { start_line = 1, replace = '', end_lien = 3 } }
    local err = every.call('buffer_edit', { path = 'x.txt', edits = edits }).outcome.error
    t.eq({ 'validation_error', 'edits[0].end_lien' }, { err.code, err.errors[1].field })
    t.matches('did you mean end_line', err.errors[1].message)
  end)

  it('has every argument of the plugin that the names come from', function()
    local wait = { 'wait_until_paused', 'wait_timeout_ms' }
    local names = {
      diagnostics_list = { 'bufnr', 'severity' },
      undo_tree = { 'bufnr' },
      interview = { 'questions' },
      test_async_prompt = { 'prompt', 'options' },
      test_sync_buffers = {},
      dap_status = {},
      dap_run = vim.list_extend({ 'type', 'request', 'name', 'program', 'args', 'cwd', 'env', 'host', 'port' }, wait),
      dap_terminate = {},
      dap_disconnect = { 'terminate_debuggee' },
      dap_continue = wait,
      dap_step_over = wait,
      dap_step_into = wait,
      dap_step_out = wait,
      dap_run_to = { 'filename', 'line', 'wait_until_paused', 'wait_timeout_ms' },
      dap_wait_until_paused = { 'timeout_ms', 'check_interval_ms' },
      dap_set_breakpoint = { 'filename', 'line', 'condition', 'hit_condition', 'log_message' },
      dap_remove_breakpoint = { 'filename', 'line' },
      dap_clear_breakpoints = {},
      dap_breakpoints = {},
      dap_stacktrace = { 'thread_id', 'levels', 'timeout_ms' },
      dap_scopes = { 'frame_id', 'timeout_ms' },
      dap_variables = { 'variables_reference', 'filter', 'start', 'count', 'timeout_ms' },
      dap_evaluate = { 'expression', 'frame_id', 'context' },
      dap_threads = { 'timeout_ms' },
      dap_current_location = { 'context_lines' },
      dap_program_output = { 'category', 'lines', 'include_metadata' },
    }
    local schemas, missing = {}, {}
    for _, tool in ipairs(every.tools()) do
      schemas[tool.name] = tool.input_schema
    end
    for tool, args in pairs(names) do
      for _, name in ipairs(args) do
        if not ((schemas[tool] or {}).properties or {})[name] then
          table.insert(missing, tool .. '.' .. name)
        end
      end
    end
    t.eq({}, missing)
    local one = schemas.interview.properties.questions.items.properties
    for _, name in ipairs({ 'question', 'choices', 'multiselect', 'default_choice' }) do
      t.ok(one[name], 'interview.questions[].' .. name)
    end
  end)

  it('tells what is not there, and never throws', function()
    local broken = {}
    for _, tool in ipairs(every.tools()) do
      local waiting = {}
      for _, args in ipairs(every.ways(tool.input_schema, NONE)) do
        table.insert(waiting, every.begin('tool', tool.name, args))
      end
      for _, finish in ipairs(waiting) do
        local done = finish()
        if every.is_broken(done) then
          table.insert(broken, ('%s %s: %s'):format(done.name, vim.inspect(done.args), done.text))
        end
      end
    end
    t.eq({}, broken)
  end)
end)
