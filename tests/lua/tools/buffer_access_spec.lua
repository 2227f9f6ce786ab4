-- slow, every Neovim
-- Text that tools refuse to read from a buffer, in every notation and from every window.

local Call = require('mcp-tools.calls.call')
local Ctx = require('mcp-tools.calls.ctx')
local config = require('mcp-tools.config')
local core = require('mcp-tools.core')
local project = require('mcp-tools.instances.project')
local editor = require('editor_project')
local t = require('helpers')

local TEXT = 'text_that_must_not_leave = 1'

--- Ways to open each kind of file; returns its path.
local FILES = {
  sensitive = function() return editor.write('.env', TEXT) end,
  outside = function() return editor.write(editor.base .. '/outside.py', TEXT) end,
  marked = function() return editor.write('marked.py', TEXT) end,
  git = function() return editor.write('.git/config', TEXT) end,
  linked = function()
    editor.write(editor.base .. '/outside.py', TEXT)
    assert(vim.uv.fs_symlink(editor.base .. '/outside.py', editor.root .. '/link.py'))
    return editor.root .. '/link.py'
  end,
}

--- Positions of the cursor.
local WINDOWS = {
  ['in its window'] = function() end,
  ['in a float'] = function()
    local bufnr = vim.api.nvim_create_buf(false, true)
    vim.api.nvim_open_win(bufnr, true, { relative = 'editor', row = 1, col = 1, width = 9, height = 1 })
  end,
  ['in a tool window'] = function()
    vim.cmd.new()
    vim.bo.buftype = 'nofile'
  end,
}

--- Ways to name the buffer in a call.
local ARGUMENTS = {
  zero = function() return { bufnr = 0 } end,
  number = function(bufnr) return { bufnr = bufnr } end,
  path = function(_, path) return { path = path } end,
  both = function(_, path) return { bufnr = 0, path = path } end,
  none = function() return {} end,
}

local function open(kind)
  local path = FILES[kind]()
  vim.cmd.edit(path)
  vim.b.sensitive = kind == 'marked' or nil
  return vim.api.nvim_get_current_buf(), path
end

before_each(function()
  editor.open()
  config.setup({ tools = { 'buffer', 'file', 'analyze_python' } })
  core.get()
  project.fix(editor.root)
end)

after_each(function()
  project.fix(nil)
  vim.cmd('silent! only!')
  editor.close()
  core.get()
end)

for _, tool in ipairs({ 'file_read', 'analyze_python' }) do
  describe(tool, function()
    for kind in pairs(FILES) do
      for where, go in pairs(WINDOWS) do
        for how, arguments in pairs(ARGUMENTS) do
          it(('does not read a %s file, with the cursor %s, by %s'):format(kind, where, how), function()
            local args = arguments(open(kind))
            go()
            local outcome = editor.run('tool', tool, args)
            local named = how ~= 'none' and how ~= 'both'
            t.ok(outcome.error)
            t.eq(named and 'access_denied' or outcome.error.code, outcome.error.code)
            t.ok(not vim.inspect(outcome):find('must_not_leave', 1, true))
          end)
        end
      end
    end
  end)
end

describe('file_read', function()
  local read = require('mcp-tools.tools.file.read').run

  --- The result of a call that was approved for other targets.
  local function answer(targets, bufnr)
    local call = Call.new({ id = 'x', name = 'file_read', host = 'test' })
    call.root, call.targets = editor.root, targets
    local ctx = setmetatable({ call = call }, { __index = Ctx.new(call) })
    ctx.await = function(_, fn)
      local done
      fn(function(...) done = { ... } end)
      t.wait(function() return done end)
      return unpack(done, 1, 2)
    end
    local result, err = t.try(read, ctx, { bufnr = bufnr or 0, start_line = 1, limit = 10 })
    return result and result.text, err and err.code
  end

  it('checks the buffer that it reads: another one may be the current one now', function()
    for kind in pairs(FILES) do
      open(kind)
      t.eq({ nil, 'access_denied' }, { answer({ { given = 'in.py', path = editor.root .. '/in.py' } }) })
      vim.cmd('silent! %bwipeout!')
      os.remove(editor.root .. '/link.py')
    end
    vim.cmd.edit(editor.write('in.py', 'fine'))
    t.eq('fine', (answer({})))
  end)

  it('returns approved files, but never sensitive ones', function()
    local _, path = open('outside')
    t.eq(TEXT, (answer({ { given = path, path = path } })))
    _, path = open('sensitive')
    t.eq({ nil, 'access_denied' }, { answer({ { given = path, path = path } }) })
  end)

  it('returns the text of a special buffer only if that was approved', function()
    vim.cmd.enew()
    vim.bo.buftype = 'nofile'
    vim.api.nvim_buf_set_lines(0, 0, -1, false, { TEXT })
    local bufnr = vim.api.nvim_get_current_buf()
    local place = { given = 'buffer', path = 'buffer', other = true, bufnr = bufnr }
    t.eq(TEXT, (answer({ place }, bufnr)))
    place.bufnr = bufnr + 1
    t.eq({ nil, 'access_denied' }, { answer({ place }, bufnr) })
  end)
end)
