-- slow
-- For every bundled tool: an extreme text or number gets a result or a short error, and does not block or throw.

local editor = require('editor_project')
local every = require('every_tool')
local t = require('helpers')

describe('every tool', function()
  local VALUES = {
    '',
    (' '):rep(20000),
    ('a'):rep(100000),
    ('a/'):rep(50000),
    ('\n'):rep(10000),
    ('%'):rep(300),
    'a\0b',
    '\255\254',
    '-rf',
    '{{{{[((*',
  }
  local FILES = {
    (' '):rep(100000) .. '\n',
    ('sample_3 '):rep(20000) .. '\n',
    ('('):rep(5000) .. ('def sample_3():'):rep(100) .. '\n' .. (')'):rep(5000) .. '\n',
    ('\t'):rep(2000) .. 'def sample_3():\n' .. ('\t \n'):rep(5000),
  }
  --- Maximum size of an error for a model, in bytes.
  local MAX_ERROR = 4000
  --- Tools that run their arguments, or show them to the user.
  local LEFT_OUT =
    { editor_command = true, editor_eval_lua = true, shell_run = true, shell_jobs = true, ask_user = true }

  local NUMBERS = { 0, -1, 2 ^ 31, 2 ^ 53 - 1, 2 ^ 53, 1e308, -1e308 }

  ---@param schema table
  ---@return boolean
  local function is_text(schema) return every.takes(schema, 'string') and not schema.enum end

  ---@param schema table
  ---@return boolean
  local function is_number(schema) return every.takes(schema, 'integer', 'number') end

  local limit, world = every.LIMIT, nil

  --- Opens a file with this text.
  local function look_at(text)
    local path = editor.edit('sample.py', text)
    world = { path = 'sample.py', uri = vim.uri_from_fname(path), glob = '*.py', word = 'sample_3', other = 'other.py' }
    world.bufnr = vim.api.nvim_get_current_buf()
  end

  before_each(function()
    every.LIMIT = 300
    editor.open()
    look_at('def sample_3():\n    return 3\n')
    every.offer()
  end)

  after_each(function()
    every.LIMIT = limit
    editor.close()
  end)

  it('accepts extreme texts', function()
    local trial = every.trial()
    for _, tool in ipairs(every.tools()) do
      for number, value in ipairs(LEFT_OUT[tool.name] and {} or VALUES) do
        for place, args in pairs(every.with_value(tool.input_schema, world, value, is_text)) do
          local at = ('%s.%s = value %d'):format(tool.name, place, number)
          local err = trial:call(at, tool.name, args).outcome.error
          if err and #err.message > MAX_ERROR then
            local text = '%s: an error of %d bytes: %s'
            table.insert(trial.wrong, text:format(at, #err.message, err.message:sub(1, 100)))
          end
        end
      end
    end
    trial:ends_well()
  end)

  it('accepts extreme files', function()
    local trial = every.trial()
    for number, text in ipairs(FILES) do
      vim.cmd('%bwipeout!')
      look_at(text)
      for _, tool in ipairs(every.tools()) do
        if tool.annotations and tool.annotations.read_only and not LEFT_OUT[tool.name] then
          for _, args in ipairs(every.ways(tool.input_schema, world)) do
            trial:call(('%s of file %d'):format(tool.name, number), tool.name, args)
          end
        end
      end
    end
    trial:ends_well()
  end)

  it('accepts extreme numbers', function()
    local lines = t.lines(120, 'def sample_%d(): return %d')
    vim.cmd('%bwipeout!')
    look_at(table.concat(lines, '\n') .. '\n')
    local trial = every.trial()
    for _, tool in ipairs(every.tools()) do
      for _, value in ipairs(NUMBERS) do
        for place, args in pairs(every.with_value(tool.input_schema, world, value, is_number)) do
          trial:call(('%s.%s = %g'):format(tool.name, place, value), tool.name, args)
        end
      end
    end
    trial:ends_well()
  end)
end)
