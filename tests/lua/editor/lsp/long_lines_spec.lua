-- slow, every Neovim
-- Thousands of positions in one long line: edits, locations and diagnostics of servers.

local double = require('lsp_double')
local double_project = require('double_project')
local matches_text = require('mcp-tools.editor.search.matches_text')
local position = require('mcp-tools.editor.position')
local project = require('lsp_project')
local t = require('helpers')

local UNIT = 'foo bar,+'
local UNITS = 20000
local LONG = UNIT:rep(UNITS) .. 'é' -- at the end: whether a line is ASCII is known late
local COUNT = 6000

local path, bufnr

local _, ready = double_project.starters(function(number) bufnr = number end)

--- The range of `foo` in the `i`th unit.
local function range_of(i) return double.range(0, (i - 1) * 9, (i - 1) * 9 + 3) end

--- Runs a call while the main thread is watched.
local function watched(name, args)
  local check_turns = t.watch_turns()
  local call = project.start(name, args)
  t.ended(call, 10000)
  check_turns()
  t.eq(nil, call.outcome.error)
  return call.outcome.value
end

--- A server that renames `foo` in the first units.
local function renaming(new)
  local edits = t.list(COUNT, function(i) return { range = range_of(i), newText = new } end)
  ready(
    { renameProvider = true, hoverProvider = true, positionEncoding = 'utf-16' },
    { ['textDocument/rename'] = { changes = { [vim.uri_from_fname(path)] = edits } } }
  )
end

before_each(function()
  path = double_project.open()
  project.write('text.txt', LONG .. '\nsecond\n')
end)
after_each(project.close)

it('positions in a long line are the same whether it is scanned once or each time', function()
  math.randomseed(3)
  local parts = { 'a', 'é', '€', '𝄞', '\128', '\255', 'e\204\129', ('x'):rep(500) }
  for _ = 1, 20 do
    local list = t.list(2000, function() return parts[math.random(#parts)] end)
    local line, known = table.concat(list), position.known()
    for _ = 1, 100 do
      local at = math.random(0, #line + 3)
      for _, encoding in ipairs({ 'utf-8', 'utf-16', 'utf-32' }) do
        local units = position.units(line, at, encoding)
        t.eq(units, position.units(line, at, encoding, known))
        t.eq(position.byte(line, units, encoding), position.byte(line, units, encoding, known))
        t.eq(position.byte(line, at, encoding), position.byte(line, at, encoding, known))
      end
    end
  end
end)

it('a rename in a long line is previewed and made with pauses', function()
  renaming('baz')
  local args = { path = path, symbol = 'foo', line = 1, new_name = 'baz' }
  watched('symbol_rename', vim.tbl_extend('force', args, { preview = true }))
  watched('symbol_rename', args)
  local line = vim.api.nvim_buf_get_lines(bufnr, 0, 1, false)[1]
  t.ok(line == ('baz bar,+'):rep(COUNT) .. UNIT:rep(UNITS - COUNT) .. 'é', 'the line is different')
end)

it('edits with line breaks in a long line are made at once', function()
  renaming('a\nb')
  watched('symbol_rename', { path = path, symbol = 'foo', line = 1, new_name = 'baz' })
  local lines = vim.api.nvim_buf_get_lines(bufnr, 0, -1, false)
  t.eq({ COUNT + 2, 'a', 'b bar,+a', 'second' }, { #lines, lines[1], lines[2], lines[#lines] })
  t.eq('b bar,+', lines[COUNT + 1]:sub(1, 7))
  vim.api.nvim_buf_call(bufnr, function() vim.cmd('silent undo') end)
  t.ok(vim.api.nvim_buf_get_lines(bufnr, 0, 1, false)[1] == LONG, 'the undo is different')
end)

it('places in a long line are listed with pauses, and its text is made once', function()
  local places = t.list(COUNT, function(i) return { uri = vim.uri_from_fname(path), range = range_of(i) } end)
  local capabilities = { referencesProvider = true, hoverProvider = true, positionEncoding = 'utf-16' }
  ready(capabilities, { ['textDocument/references'] = places })
  local texts = t.calls(matches_text, 'shown', function()
    local found = watched('symbol_references', { path = path, line = 1, symbol = 'foo' })
    t.eq(COUNT, found.total)
  end)
  t.eq(1, texts)
end)

describe('diagnostics of a long line', function()
  local context = require('mcp-tools.editor.context')

  before_each(function()
    vim.cmd.edit(path)
    bufnr = vim.api.nvim_get_current_buf()
    vim.diagnostic.set(
      vim.api.nvim_create_namespace('long lines'),
      bufnr,
      t.list(COUNT, function(i)
        local col = (i - 1) * 9
        return { lnum = 0, col = col, end_col = col + 3, severity = 1, message = 'wrong ' .. i }
      end)
    )
  end)
  after_each(function() vim.diagnostic.reset() end)

  it('are listed with pauses', function()
    local found = watched('diagnostics_list', { path = path, limit = 2 })
    t.eq({ COUNT, '1:10 error: wrong 2' }, { found.total, found.diagnostics[2] })
  end)

  it('are sent to agents and LSP clients without reading the line for each', function()
    local reads = t.calls(vim.api, 'nvim_buf_get_lines', function()
      local list = context.diagnostics(vim.uv.fs_realpath(path))[1].diagnostics
      t.eq({ 1000, { line = 0, character = 999 * 9 + 3 } }, { #list, list[1000].range['end'] })
    end)
    t.ok(reads < 10, reads .. ' reads')
  end)
end)
