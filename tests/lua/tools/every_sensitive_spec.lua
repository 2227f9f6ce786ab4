-- slow
-- For every bundled tool, resource and prompt: no line of a sensitive file is returned, in whatever way it is requested
-- and wherever else in the editor it is quoted.

local core = require('mcp-tools.core')
local editor = require('editor_project')
local every = require('every_tool')
local sensitive = require('mcp-tools.privacy.sensitive')
local t = require('helpers')

--- The secret part of the line. A client may get back what it has sent.
local SECRET = 'XyZZy9'
local LINE = 'PLAIN_SETTING=hunter2-' .. SECRET
local WORDS = { 'PLAIN_SETTING', 'hunter2', '.env', '*', '.*' }

local env ---@type integer the buffer

--- A project with the file in its history, and its line wherever an editor keeps or shows lines.
local function spread()
  editor.open()
  editor.init()
  editor.write('notes.txt', 'one\ntwo\n')
  local path = editor.write('.env', LINE .. '\nOTHER=1\n')
  editor.git('add', '-f', '.')
  editor.git('commit', '-qm', 'first')
  editor.write('.env', 'CHANGED=1\n' .. LINE .. '\nOTHER=1\n')
  editor.write('notes.txt', 'one\ntwo\nthree\n')
  every.offer()
  vim.cmd.edit(editor.root .. '/notes.txt')
  vim.cmd.split(path)
  env = vim.api.nvim_get_current_buf()
  vim.api.nvim_buf_set_lines(env, 0, 1, false, { 'CHANGED=2', LINE .. '-unsaved' })
  vim.cmd('normal! 2GmA')
  vim.cmd('normal! 2GV3G' .. vim.keycode('<Esc>'))
  vim.cmd('silent 2yank | silent 2yank q')
  local quoted = { bufnr = env, lnum = 2, col = 1, text = LINE }
  vim.fn.setqflist({ quoted, { filename = editor.root .. '/notes.txt', lnum = 1, text = 'see ' .. LINE } })
  vim.fn.setloclist(0, { quoted })
  vim.diagnostic.set(vim.api.nvim_create_namespace('every'), env, {
    { lnum = 1, col = 0, message = 'bad line: ' .. LINE, source = 'lint' },
  })
  vim.api.nvim_echo({ { 'read ' .. LINE } }, true, {})
  t.matches(SECRET, vim.api.nvim_exec2('messages', { output = true }).output)
end

--- References to the file.
local function worlds()
  local path = editor.root .. '/.env'
  local list = {}
  for _, word in ipairs(WORDS) do
    for _, named in ipairs({ '.env', path }) do
      table.insert(list, {
        path = named,
        uri = vim.uri_from_fname(path),
        glob = '**/.env',
        other = 'copy.txt',
        word = word,
        bufnr = env,
      })
    end
  end
  table.insert(list, { path = 'notes.txt', uri = 'nvim://messages', glob = '*', other = 'o', word = 'HEAD', bufnr = 0 })
  return list
end

--- Arguments with each reference.
---@param schema table
---@return table[]
local function arguments_of(schema)
  local list, seen, whole = {}, {}, {}
  for name, property in pairs(schema.properties or {}) do
    -- Switches for more text are on.
    whole[name] = property.type ~= 'boolean' or nil
  end
  for _, world in ipairs(worlds()) do
    local ways = every.ways(schema, world)
    local all = every.arguments(schema, world, whole)
    table.insert(ways, all)
    for _, one in ipairs({ 'path', 'bufnr' }) do
      local apart = vim.deepcopy(all)
      apart[one] = nil
      table.insert(ways, apart)
    end
    for _, args in ipairs(ways) do
      for name, property in pairs(schema.properties or {}) do
        if property.type == 'boolean' and args[name] == nil then
          args[name] = true
        end
      end
      local key = vim.inspect(args)
      if not seen[key] then
        seen[key] = true
        table.insert(list, args)
      end
    end
  end
  return list
end

---@param leaks table<string, string>
---@param done EveryCall
local function look(leaks, done)
  local at = done.text:find(SECRET, 1, true)
  if at and not leaks[done.name] then
    local around = done.text:sub(math.max(1, at - 200), at + 100)
    leaks[done.name] = ('%s: …%s…'):format(vim.inspect(done.args), around)
  end
end

--- Calls in batches, so that they do not wait for each other.
---@param kind 'tool'|'resource'|'prompt'
---@param name string
---@param list table[]
---@param leaks table<string, string>
local function try_all(kind, name, list, leaks)
  for i = 1, #list, 16 do
    local waiting = {}
    for k = i, math.min(i + 15, #list) do
      table.insert(waiting, every.begin(kind, name, list[k]))
    end
    for _, finish in ipairs(waiting) do
      look(leaks, finish())
    end
  end
end

describe('no line of a sensitive file is returned', function()
  local limit = every.LIMIT

  before_each(function()
    every.LIMIT = 1000
    spread()
    t.ok(sensitive.is_sensitive(editor.root .. '/.env'))
  end)

  after_each(function()
    every.LIMIT = limit
    vim.cmd('silent! delmarks A')
    editor.close()
  end)

  it('by any tool', function()
    local leaks = {}
    for _, tool in ipairs(every.tools()) do
      try_all('tool', tool.name, arguments_of(tool.input_schema), leaks)
      if not vim.api.nvim_buf_is_loaded(env) or not (tool.annotations or {}).read_only then
        editor.close()
        spread() -- what it changed is there again for the next
      end
    end
    t.eq({}, leaks)
  end)

  it('by any resource', function()
    local leaks = {}
    for _, kind in ipairs({ 'resources', 'templates' }) do
      for _, entry in ipairs(core.get().registry:list(kind)) do
        for _, value in ipairs({ '.env', editor.root .. '/.env', (editor.root .. '/.env'):sub(2), tostring(env) }) do
          local uri = entry.key:gsub('{%+?[%w_]+}', function() return value end)
          try_all('resource', uri, { vim.empty_dict() }, leaks)
        end
      end
    end
    t.eq({}, leaks)
  end)

  it('by any prompt', function()
    local leaks = {}
    for _, entry in ipairs(core.get().registry:list('prompts')) do
      local list = { vim.empty_dict() }
      for _, value in ipairs(vim.list_extend({ editor.root .. '/.env', tostring(env), 'HEAD' }, WORDS)) do
        local args = vim.empty_dict()
        for _, arg in ipairs(entry.args) do
          args[arg.name] = value
        end
        table.insert(list, args)
      end
      try_all('prompt', entry.name, list, leaks)
    end
    t.eq({}, leaks)
  end)
end)
