-- What is certain to fail is answered with its error: nobody is asked for it first.

local project = require('editor_project')
local t = require('helpers')

local root = project.root

--- A call that would need approval, in an editor that has nobody to ask: the question ends with `access_denied`.
---@param code string
---@param message string pattern
---@param name string
---@param args table
local function answered(code, message, name, args)
  local err = project.run('tool', name, args).error or { code = 'none', message = 'it ran' }
  t.eq({ code, message }, { err.code, err.message:match(message) and message or err.message })
end

before_each(function()
  project.open()
  require('mcp-tools.config').setup({ tools = 'all' })
  project.write('a.lua', 'local one = 1\nlocal two = 2\nreturn one + two\n')
end)

after_each(project.close)

describe('nobody is asked for', function()
  it('an edit of text that is not there, and the nearest is told', function()
    local edits = { { search = 'local won = 1', replace = 'x' } }
    answered('not_found', 'nearest are\nlines 1%-1', 'buffer_edit', { path = 'a.lua', edits = edits })
    edits[1].search = 'local one = 1'
    answered('access_denied', 'needs approval', 'buffer_edit', { path = 'a.lua', edits = edits })
  end)

  it('an edit of a file that is not there, of a text that is another by now, by lines that were not counted', function()
    local edits = { { search = 'one = 1', replace = 'x' } }
    answered('not_found', 'there is no file b.lua', 'buffer_edit', { path = 'b.lua', edits = edits })
    answered('not_found', 'no buffer 999', 'buffer_edit', { bufnr = 999, edits = edits })
    vim.cmd.edit('a.lua')
    answered('stale', 'changed', 'buffer_edit', { path = 'a.lua', changedtick = 1, edits = edits })
    edits = { { start_line = 1, replace = 'x' } }
    answered('validation_error', 'changedtick: needed', 'buffer_edit', { path = 'a.lua', edits = edits })
    edits = { { search = 'one = 1', replace = 'one = 1' } }
    answered('tool_error', 'nothing would change', 'buffer_edit', { path = 'a.lua', edits = edits })
  end)

  it('a file that would be written over another, or a folder', function()
    answered('stale', 'give expected_sha256', 'file_write', { path = 'a.lua', text = 'x' })
    answered('stale', 'does not exist', 'file_write', { path = 'b.lua', text = 'x', expected_sha256 = ('0'):rep(64) })
    answered('tool_error', 'is a directory', 'file_write', { path = '.', text = 'x' })
    answered('access_denied', 'needs approval', 'file_write', { path = 'b.lua', text = 'x' })
  end)

  it('a replacement that was not counted, or is not what was counted', function()
    local args = { query = 'one', replacement = 'x', dry_run = false }
    answered('validation_error', 'expected_count', 'file_replace', args)
    t.ok(project.run('tool', 'file_replace', { query = 'one', replacement = 'x' }).value)
    args.expected_count = 5
    answered('stale', 'expected_count is 5, but there are 2', 'file_replace', args)
    args.expected_count, args.ids = 1, { 'nothing' }
    answered('stale', 'dry run', 'file_replace', args)
    args.expected_count, args.ids = 2, nil
    answered('access_denied', 'needs approval', 'file_replace', args)
  end)

  it('a move of what is not there, or over something', function()
    answered('not_found', 'path: there is no ', 'file_move', { path = 'b.lua', new_path = 'c.lua' })
    project.write('c.lua', 'x')
    answered('tool_error', 'c.lua', 'file_move', { path = 'a.lua', new_path = 'c.lua' })
    answered('access_denied', 'needs approval', 'file_move', { path = 'a.lua', new_path = 'd.lua' })
  end)

  it('an action that is no longer offered, a symbol of a file that is not there', function()
    answered('not_found', 'list them again', 'lsp_code_actions', { apply = 'none' })
    answered('not_found', 'there is no file b.lua', 'symbol_replace', { symbol = 'x', path = 'b.lua', body = 'x' })
    answered('not_found', 'not open', 'undo_restore', { path = 'a.lua', seq = 1 })
    answered('validation_error', 'command', 'shell_run', {})
  end)
end)

describe('the person is asked first', function()
  it('when the reason would speak of a file outside the project', function()
    local path = project.write(project.base .. '/outside.txt', 'a line of it\n')
    local edits = { { search = 'a lime of it', replace = 'x' } }
    local err = project.run('tool', 'buffer_edit', { path = path, edits = edits }).error
    t.eq('access_denied', err.code)
    t.eq(nil, err.message:find('line of it', 1, true))
    -- Also when something else than the place wants the question.
    require('mcp-tools.config').setup({ tools = 'all', approval = { tools = { buffer_edit = 'ask' } } })
    err = project.run('tool', 'buffer_edit', { path = path, edits = edits }).error
    t.eq('access_denied', err.code)
    vim.uv.fs_symlink(path, root .. '/link.txt')
    t.eq('access_denied', project.run('tool', 'buffer_edit', { path = 'link.txt', edits = edits }).error.code)
  end)
end)
