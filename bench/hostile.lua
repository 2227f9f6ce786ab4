-- Calls tools, prompts and the registry with hostile input and measures the main thread. Loaded by the measured Neovim.
-- `HOSTILE.found` has the results once all are done.

local here = vim.fs.dirname(debug.getinfo(1, 'S').source:sub(2))
local held = dofile(here .. '/held.lua')
local language_server = dofile(here .. '/language_server.lua')

local tools = require('mcp-tools')
local uv = vim.uv

local M = {}

--- Time after a call until its work is done, ms.
local SETTLE = 50
local SPACES = (' '):rep(200000)

---@param name string
---@param text string
---@return string path
local function write(name, text)
  local path = vim.fs.joinpath(uv.cwd(), name)
  vim.fn.mkdir(vim.fs.dirname(path), 'p')
  local file = assert(io.open(path, 'wb'))
  file:write(text)
  file:close()
  return path
end

---@param count integer
---@param line fun(i: integer): string
---@return string
local function lines(count, line)
  local list = {}
  for i = 1, count do
    list[i] = line(i)
  end
  return table.concat(list, '\n') .. '\n'
end

local function tool(name, args)
  return function(done)
    tools.call(name, args, { timeout = 20000 }, done)
  end
end

local function prompt(name, args)
  return function(done)
    local core = require('mcp-tools.core').get()
    local listener = {
      done = function(_, call)
        done(nil, call.outcome.error)
      end,
    }
    core.executor:execute(name, args, { kind = 'prompt', host = 'bench', listener = listener })
  end
end

--- Not included: what Neovim itself does in one step. It copies a whole register (200 MB: 95 ms), which no client or
--- project can fill, and reads a whole file (4 MB: 58 ms).
--- Each case: a name, the preparation, and the measured function, which calls its argument at the end. Cases without
--- `refused`, the code of an error, must succeed.
---@type { [1]: string, [2]: (fun(): fun(done: fun())), refused: string? }[]
local CASES = {
  {
    'output: one long line, then a carriage return',
    function()
      return tool('shell_run', { command = [[printf '%0200000d\rdone\n' 1]], max_bytes = 262144 })
    end,
  },
  {
    'output: 100 000 characters and as many backspaces',
    function()
      local command = [[head -c 100000 /dev/zero | tr '\0' a; head -c 100000 /dev/zero | tr '\0' '\b']]
      return tool('shell_run', { command = command, max_bytes = 262144 })
    end,
  },
  {
    'prompt: a module of one long line',
    function()
      return prompt('analyze_module', { path = write('minified.js', ('var a=1;'):rep(15000)) })
    end,
  },
  {
    'hover at the end of a long line',
    function()
      local path = write('wide.lua', 'local x = ' .. ('a'):rep(200000))
      vim.cmd.edit(path)
      language_server.start(0, 1, { path })
      return tool('symbol_info', { path = path, line = 1, column = 200000 })
    end,
  },
  {
    'code_format: 6 000 edits of a line of 200 KB',
    function()
      local path = write('one_line.txt', ('foo bar,+'):rep(22000) .. '\n')
      vim.cmd.edit(path)
      local edits = {}
      for i = 1, 6000 do
        local from = (i - 1) * 9
        local range = { start = { line = 0, character = from }, ['end'] = { line = 0, character = from + 3 } }
        edits[i] = { range = range, newText = 'x' }
      end
      language_server.start(0, 1, { path }, { ['textDocument/formatting'] = edits })
      return tool('code_format', { path = path })
    end,
  },
  {
    'diagnostics_list: 2 000 diagnostics of a line of 200 KB',
    function()
      local path = write('one_line.txt', ('foo bar,+'):rep(22000) .. '\n')
      vim.cmd.edit(path)
      local list = {}
      for i = 1, 2000 do
        list[i] = { lnum = 0, col = i * 9, message = 'Finding ' .. i }
      end
      vim.diagnostic.set(vim.api.nvim_create_namespace('bench'), 0, list)
      return tool('diagnostics_list', { path = path })
    end,
  },
  {
    'symbol_references by the word: 10 000 in one line',
    function()
      local path = write('uses.lua', 'local x = {' .. ('needed(bar),'):rep(10000) .. '}\n')
      return tool('symbol_references', { path = path, line = 1, symbol = 'needed' })
    end,
  },
  {
    'symbol_overview of a line of 2 MB',
    function()
      return tool('symbol_overview', { path = write('numbers.lua', 'return {' .. ('123456,'):rep(300000) .. '}\n') })
    end,
  },
  {
    'treesitter_query in a line of 2 MB',
    function()
      local path = write('numbers.lua', 'return {' .. ('123456,'):rep(300000) .. '}\n')
      return tool('treesitter_query', { path = path, query = '(number) @x' })
    end,
    refused = 'tool_error',
  },
  {
    'treesitter_query with a pattern of the client',
    function()
      local path = write('strings.lua', ('local x = "%s"\n'):format(('a'):rep(240)))
      return tool('treesitter_query', { path = path, query = '((string) @x (#gsub! @x "a-a-a-a-a-b" ""))' })
    end,
    refused = 'validation_error',
  },
  {
    'treesitter_query with 10 000 underscores',
    function()
      local path = write('strings.lua', 'local x = 1\n')
      return tool('treesitter_query', { path = path, query = '(identifier) @' .. ('_'):rep(9900) })
    end,
  },
  {
    'treesitter_query without a query in a wide tree: parentheses',
    function()
      return tool('treesitter_query', { path = write('wide.c', ('('):rep(20000)), start_line = 1, column = 10000 })
    end,
  },
  {
    'symbol_overview of a wide tree: #if',
    function()
      return tool('symbol_overview', { path = write('if.c', ('#if 1\n'):rep(20000)) })
    end,
  },
  {
    'symbol_insert of blanks',
    function()
      local path = write('blanks.lua', 'local function one()\nend\n')
      return tool('symbol_insert', { path = path, symbol = 'one', text = SPACES .. 'x', where = 'after' })
    end,
  },
  {
    'symbol_find among 60 000 functions',
    function()
      local text = lines(60000, function(i)
        return ('local function name_%d() end'):format(i)
      end)
      return tool('symbol_find', { path = write('many.lua', text), symbol = 'nmae_59999' })
    end,
  },
  {
    'editor_quickfix with paths that no buffer has',
    function()
      local places = {}
      for i = 1, 120 do
        places[i] = ('none/%d.lua:1: x'):format(i)
      end
      return tool('editor_quickfix', { places = places, title = 'bench' })
    end,
  },
  {
    'prompt: a diagnostic of blanks',
    function()
      vim.cmd.edit(write('blank.lua', 'local x = 1\n'))
      local message = 'a' .. SPACES .. '\n' .. SPACES .. 'b'
      vim.diagnostic.set(vim.api.nvim_create_namespace('bench'), 0, { { lnum = 0, col = 0, message = message } })
      return prompt('explain_diagnostics', {})
    end,
  },
  {
    'file_replace, listed matches in a line of 3 MB',
    function()
      local path = write('minified.txt', (('x'):rep(15000) .. 'needle'):rep(200))
      return tool('file_replace', { query = 'needle', replacement = 'pin', path = path })
    end,
  },
  {
    'file_search in a line of 3 MB',
    function()
      return tool('file_search', { query = 'needle', path = vim.fs.joinpath(uv.cwd(), 'minified.txt') })
    end,
  },
  {
    'file_edit: 200 edits of a text of 4 MB',
    function()
      local path = write(
        'large.txt',
        lines(50000, function(i)
          return ('line %d %s'):format(i, ('x'):rep(70))
        end)
      )
      vim.cmd.edit(path) -- Neovim reads a file in one step
      local edits = {}
      for i = 1, 200 do
        edits[i] = { search = ('line %d x'):format(i * 200), replace = ('LINE %d x'):format(i * 200) }
      end
      return tool('file_edit', { path = path, edits = edits })
    end,
  },
  {
    'file_replace in 300 files beside 1 000 buffers',
    function()
      for i = 1, 300 do
        write(('part/%d.txt'):format(i), 'the needle\n')
      end
      for i = 1, 1000 do
        vim.fn.bufadd(('%s/other/%d.txt'):format(uv.cwd(), i))
      end
      return tool('file_replace', { query = 'needle', replacement = 'pin', path = 'part', expected_count = 300 })
    end,
  },
  {
    'change_list, unsaved: every 10th of 100 000 lines has changed',
    function()
      local path = write(
        'long.txt',
        lines(100000, function(i)
          return 'line ' .. i
        end)
      )
      vim.cmd.edit(path)
      local text = vim.api.nvim_buf_get_lines(0, 0, -1, false)
      for i = 1, #text, 10 do
        text[i] = 'changed ' .. i
      end
      vim.api.nvim_buf_set_lines(0, 0, -1, false, text)
      return tool('change_list', { path = path, unsaved = true })
    end,
  },
  {
    'registry: 100 new resources beside 1 000 subscriptions',
    function()
      local subscriptions = require('mcp-tools.rpc.channels').subscriptions()
      for i = 1, 1000 do
        local uri = 'bench://' .. i
        tools.register_resource({ uri = uri, name = uri, description = 'x', read = function() end })
        subscriptions:subscribe(vim.api.nvim_list_chans()[1].id, uri)
      end
      return function(done)
        for i = 1, 100 do
          local uri = 'bench://new/' .. i
          tools.register_resource({ uri = uri, name = uri, description = 'x', read = function() end })
        end
        vim.defer_fn(done, 200)
      end
    end,
  },
  {
    'a handler that never answers, with a large heap',
    function()
      M.heap = {}
      for i = 1, 1500000 do
        M.heap[i] = { i }
      end
      tools.register({
        name = 'never',
        description = 'x',
        annotations = { read_only = true },
        execute = function()
          return 'result'
        end,
      })
      return function(done)
        tools.call('never', {}, { timeout = 5000 }, function()
          M.heap = nil
          done()
        end)
      end
    end,
  },
  {
    'symbol_references after a build wrote and removed 6 000 ignored files',
    function()
      write('.gitignore', 'target/\n')
      local path = write('used.lua', ('local function step_1()\nend\n'):rep(10))
      vim.cmd.edit(path)
      language_server.start(0, 10, { path })
      local references = tool('symbol_references', { path = path, line = 1, symbol = 'step_1' })
      return function(done)
        local build = { 'sh', '-c', 'mkdir target && cd target && seq -f %g.o 6000 | xargs touch' }
        local function after(command, step)
          vim.system(command, {}, vim.schedule_wrap(step))
        end
        references(function()
          after(build, function()
            references(function()
              after({ 'rm', '-r', 'target' }, function()
                references(done)
              end)
            end)
          end)
        end)
      end
    end,
  },
  {
    'file_json of 4 MB of line breaks',
    function()
      return tool('file_json', { path = write('breaks.json', '[1' .. ('\n'):rep(4000000) .. ']'), query = '0' })
    end,
  },
  {
    'editor_lookup with 20 000 maps',
    function()
      for i = 1, 20000 do
        vim.api.nvim_set_keymap('n', '<F12>' .. i, 'x', {})
      end
      return tool('editor_lookup', { what = 'mappings' })
    end,
  },
  {
    'review of a proposal that removes 200 000 lines',
    function()
      local review = require('mcp-tools.editor.review')
      local path = write(
        'removed.txt',
        lines(200000, function(i)
          return 'line ' .. i
        end)
      )
      vim.cmd.edit(path)
      return function(done)
        local handle = review.open({
          client = { name = 'bench' },
          key = 'bench',
          title = 'a change',
          files = { { path = path, text = 'kept\n' } },
          on_end = function(outcome)
            done(nil, outcome.kind == 'busy' and { code = 'busy', message = 'no review' } or nil)
          end,
        })
        local timer = assert(uv.new_timer())
        timer:start(
          20,
          20,
          vim.schedule_wrap(function()
            if review.current() and not timer:is_closing() then
              timer:close()
              vim.defer_fn(handle.close, 500) -- its marks are drawn then
            end
          end)
        )
      end
    end,
  },
  {
    'completions: 1 000 of a path, with 2 000 buffers',
    function()
      for i = 1, 2000 do
        vim.bo[vim.fn.bufadd(('%s/listed/%d.txt'):format(uv.cwd(), i))].buflisted = true
      end
      local executor = require('mcp-tools.core').get().executor
      local args = {
        ref = { type = 'ref/prompt', name = 'explain_diagnostics' },
        argument = { name = 'path', value = 'listed' },
      }
      return function(done)
        local left, failure = 1000, nil
        local listener = {
          done = function(_, call)
            left, failure = left - 1, failure or call.outcome.error
            if left == 0 then
              done(nil, failure)
            end
          end,
        }
        for _ = 1, left do -- each is a separate message
          vim.defer_fn(function()
            executor:execute('completion', args, { kind = 'completion', host = 'bench', listener = listener })
          end, 1)
        end
      end
    end,
  },
  {
    'symbol_insert of lines of tabs',
    function()
      local path = write('indented.lua', 'local function one()\nend\n')
      local text = (('\t'):rep(2000) .. 'x\n'):rep(100)
      return tool('symbol_insert', { path = path, symbol = 'one', text = text, where = 'after' })
    end,
  },
  {
    'a structured result of a mount with 40 000 keys',
    function()
      local structured = {}
      for i = 1, 40000 do
        structured['key' .. i] = i
      end
      local text = vim.json.encode({ content = {}, structuredContent = structured })
      tools.register({
        name = 'structured',
        description = 'x',
        annotations = { read_only = true },
        execute = function(ctx)
          ctx(require('mcp-tools.content').raw('content', text, #text)) -- as calls/remote.lua does
        end,
      })
      return tool('structured', {})
    end,
  },
  {
    'arguments: 20 000 objects that must differ',
    function()
      tools.register({
        name = 'checked',
        description = 'x',
        annotations = { read_only = true },
        input_schema = {
          type = 'object',
          properties = {
            list = {
              type = 'array',
              uniqueItems = true,
              items = { type = 'object', properties = { name = { type = 'string' } } },
            },
          },
        },
        execute = function(ctx)
          ctx('ok')
        end,
      })
      local list = {}
      for i = 1, 20000 do
        list[i] = { name = 'name' .. i }
      end
      return function(done)
        local listener = {
          done = function(_, call)
            done(nil, call.outcome.error)
          end,
        }
        local core = require('mcp-tools.core').get()
        -- Like a client; Lua may do more.
        local opts = { host = 'bench', listener = listener, exact_args = true }
        core.executor:execute('checked', { list = list }, opts)
      end
    end,
    refused = 'validation_error',
  },
}

--- Runs all cases, one after the other.
function M.start()
  held.watch()
  local found = {}
  local function following()
    local case = CASES[#found + 1]
    if not case then
      M.found = found
      return
    end
    M.at = case[1]
    local ok, run = pcall(case[2])
    collectgarbage() -- garbage of earlier inputs
    vim.defer_fn(function()
      held.reset()
      local ended = false
      local function done(_, err)
        if ended then
          return
        end
        ended = true
        vim.defer_fn(function()
          local code, failure = type(err) == 'table' and err.code or nil, nil
          if code ~= case.refused then
            failure = code and ('%s: %s'):format(code, err.message) or 'it was not refused'
          end
          table.insert(found, { name = case[1], held = held.longest(), err = failure })
          vim.cmd('silent! %bwipeout!')
          vim.defer_fn(following, SETTLE)
        end, SETTLE)
      end
      if not ok then
        return done(nil, { code = 'bench', message = tostring(run) })
      end
      run(done)
    end, SETTLE)
  end
  following()
end

HOSTILE = M
