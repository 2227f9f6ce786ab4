-- slow, every Neovim
-- For every bundled tool: arguments that do not match its schema are a `validation_error`. If there is nothing to
-- return, the result is an error or empty. It never throws.

local editor = require('editor_project')
local every = require('every_tool')
local t = require('helpers')

local NONE =
  { path = 'nowhere/none.txt', uri = 'file:///nowhere/none.txt', glob = '*.none', word = 'nothing', bufnr = 999 }
NONE.other = 'nowhere/other.txt'

--- Values of each type.
local VALUES = { string = 'x', array = { 'x' }, boolean = true, object = { x = 1 }, number = 1.5 }

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

editor.each(nil, function() every.offer() end)

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

  it('refuses an unknown argument, with the nearest known one', function()
    local wrong, tried = {}, 0
    for _, tool in ipairs(every.tools()) do
      local misspelt = { nothing_like_it = 'is not allowed' }
      for name, property in pairs(tool.input_schema.properties or {}) do
        misspelt[name .. 'x'] = not property.hidden and 'did you mean ' .. name or nil
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

  it('refuses an unknown field in an entry of a list', function()
    local edits = { { start_line = 1, replace = '', end_lien = 3 } }
    local err = every.call('file_edit', { path = 'x.txt', edits = edits }).outcome.error
    t.eq({ 'validation_error', 'edits[0].end_lien' }, { err.code, err.errors[1].field })
    t.matches('did you mean end_line', err.errors[1].message)
  end)

  it("accepts every argument of guill/mcp-tools.nvim's tools", function()
    local wait = { wait_until_paused = true, wait_timeout_ms = 1000 }
    local run = { type = 'python', request = 'launch', name = 'x', program = NONE.path, args = { 'x' }, cwd = '.' }
    local refused = {}
    for name, args in pairs({
      diagnostics_list = { bufnr = NONE.bufnr, severity = 'ERROR' },
      undo_tree = { bufnr = NONE.bufnr },
      interview = { questions = { { question = 'x', choices = { 'a' }, multiselect = true, default_choice = 0 } } },
      test_async_prompt = { prompt = 'x', options = { 'a' } },
      test_sync_buffers = {},
      dap_status = {},
      dap_run = vim.tbl_extend('error', run, { env = { A = 'b' }, host = 'x', port = 1 }, wait),
      dap_terminate = {},
      dap_disconnect = { terminate_debuggee = true },
      dap_continue = wait,
      dap_step_over = wait,
      dap_step_into = wait,
      dap_step_out = wait,
      dap_run_to = vim.tbl_extend('error', { filename = NONE.path, line = 1 }, wait),
      dap_wait_until_paused = { timeout_ms = 1000, check_interval_ms = 10 },
      dap_set_breakpoint = { filename = NONE.path, line = 1, condition = 'x', hit_condition = '1', log_message = 'x' },
      dap_remove_breakpoint = { filename = NONE.path, line = 1 },
      dap_clear_breakpoints = {},
      dap_breakpoints = {},
      dap_stacktrace = { thread_id = 1, levels = 2, timeout_ms = 1000 },
      dap_scopes = { frame_id = 1, timeout_ms = 1000 },
      dap_variables = { variables_reference = 1, filter = 'named', start = 0, count = 1, timeout_ms = 1000 },
      dap_evaluate = { expression = 'x', frame_id = 1, context = 'repl' },
      dap_threads = { timeout_ms = 1000 },
      dap_current_location = { context_lines = 2 },
      dap_program_output = { category = 'all', lines = 2, include_metadata = true },
      lsp_hover = { bufnr = NONE.bufnr, line = 1, col = 1 },
      lsp_symbols = { bufnr = NONE.bufnr },
    }) do
      local err = every.call(name, next(args) and args or vim.empty_dict()).outcome.error
      if err and (err.code == 'validation_error' or err.message:find('[Uu]nknown tool')) then
        refused[name] = err
      end
    end
    t.eq({}, refused)
  end)

  it('reports what does not exist, and never throws', function()
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
