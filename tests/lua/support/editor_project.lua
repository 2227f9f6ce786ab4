-- A project in its own directory, with files, for specs about what the editor shows of it.

local config = require('mcp-tools.config')
local core = require('mcp-tools.core')
local t = require('helpers')

local M = {}

M.base = vim.uv.fs_realpath(vim.fn.tempname():match('^(.*)/')) .. '/editor-project'
M.root = M.base .. '/project'

---@param name string relative to the project, or absolute
---@param text string
---@return string path
function M.write(name, text)
  local path = name:sub(1, 1) == '/' and name or M.root .. '/' .. name
  vim.fn.mkdir(vim.fs.dirname(path), 'p')
  local file = assert(io.open(path, 'wb'))
  file:write(text)
  file:close()
  return path
end

--- Gives all files a time before the start of a server, which is then not notified of them.
function M.age()
  for name, kind in vim.fs.dir(M.root, { depth = 8 }) do
    if kind == 'file' then
      vim.uv.fs_utime(vim.fs.joinpath(M.root, name), 1e9, 1e9)
    end
  end
end

--- Writes a file and opens it in the current window.
---@return string path
function M.edit(name, text)
  local path = M.write(name, text)
  vim.cmd('silent edit ' .. path)
  return path
end

--- The bytes of a file.
---@param name string relative to the project, or absolute
---@return string
function M.disk(name) return vim.fn.readblob(name:sub(1, 1) == '/' and name or M.root .. '/' .. name) end

--- Creates an empty project and changes to its directory.
function M.open()
  vim.fn.delete(M.base, 'rf')
  vim.fn.mkdir(M.root .. '/.git', 'p')
  vim.cmd.cd(M.root)
  config.reset()
  core.get()
end

function M.close()
  vim.cmd('silent! %bwipeout!')
  pcall(vim.api.nvim_del_augroup_by_name, 'editor-project')
  vim.diagnostic.reset()
  vim.fn.setqflist({}, 'f')
  vim.cmd.cd('/')
  vim.fn.delete(M.base, 'rf')
  config.reset()
end

--- Opens a project before each test of this group, and closes it after each.
---@param groups? string[] tools to enable
---@param fn? fun() what else is done before each test
function M.each(groups, fn)
  before_each(function()
    M.open()
    if groups then
      M.offer(groups)
    end
    if fn then
      fn()
    end
  end)
  after_each(M.close)
end

--- Runs git in the project, and returns its output.
function M.git(...)
  local settings = { '-c', 'user.name=A Person', '-c', 'user.email=a@example.org', '-c', 'protocol.file.allow=always' }
  local done = vim.system(vim.list_extend({ 'git', unpack(settings) }, { ... }), { cwd = M.root, text = true }):wait()
  assert(done.code == 0, done.stderr)
  return vim.trim(done.stdout)
end

--- Makes the project an empty repository.
function M.init()
  vim.fn.delete(M.root .. '/.git', 'rf')
  M.git('init', '-q', '-b', 'main')
end

---@param message string
function M.commit(message)
  M.git('add', '-A')
  M.git('commit', '-q', '-m', message)
end

--- The data of all `User` events of a name from now on, until the project is closed.
---@param name string
---@return table[] list that grows
function M.events(name)
  local list = {}
  local function note(args) table.insert(list, args.data) end
  local group = vim.api.nvim_create_augroup('editor-project', { clear = false })
  vim.api.nvim_create_autocmd('User', { pattern = name, group = group, callback = note })
  return list
end

--- Runs a function, or a command, at the next event of files that match.
---@param event string
---@param pattern string
---@param fn string|fun(args: table)
function M.once(event, pattern, fn)
  local key = type(fn) == 'string' and 'command' or 'callback'
  vim.api.nvim_create_autocmd(event, { pattern = pattern, once = true, [key] = fn })
end

---@return mcp-tools.Outcome
function M.run(kind, name, args)
  local call = core.get().executor:execute(name, args or {}, { kind = kind, host = 'test' })
  return t.ended(call, 20000, kind .. ' ' .. name)
end

--- Enables groups of tools and allows all calls.
---@param groups string[]
function M.offer(groups)
  config.setup({ tools = groups, approval = { rule = t.returns('allow') } })
  core.get()
end

--- Begins a call of a tool.
---@return mcp-tools.Call
function M.start(name, args) return core.get().executor:execute(name, args, { kind = 'tool', host = 'test' }) end

--- The text of a tool's answer.
---@return string? text, mcp-tools.Error? err
function M.text(name, args)
  local call = M.start(name, args)
  local outcome = t.ended(call, 20000, name)
  return outcome.payload and outcome.payload.text, outcome.error
end

--- The preview of a call in a question, once it is complete.
---@param definition mcp-tools.Definition
---@return string?, mcp-tools.Error?
function M.previewed(definition, args)
  local fault, text, err
  local is_due = true
  local function again(why)
    fault, is_due = fault or why, true
  end
  t.wait(function()
    if is_due then
      is_due = false
      text, err = t.try(definition.preview, args, again)
    end
    return fault or not text or not text:find('diff appears here')
  end, 8000, 'the preview')
  if fault then
    return nil, fault
  end
  return text, err
end

--- Calls a tool.
---@return any value, mcp-tools.Error? err
function M.call(name, args)
  local outcome = M.run('tool', name, args)
  return outcome.value, outcome.error
end

--- Asserts that a tool refuses a call.
---@param name string
---@param code string
---@param pattern string in its message
---@param args table
function M.refused(name, code, pattern, args) t.fails(code, pattern, M.call(name, args)) end

--- The state of the editor that no tool may change: windows, cursors, mode, registers, search, jumps.
---@return table
function M.view()
  vim.cmd.redraw() -- without a screen the first line of a window is not settled before
  local windows = {}
  for _, window in ipairs(vim.api.nvim_list_wins()) do
    windows[window] = {
      vim.api.nvim_win_get_buf(window),
      vim.api.nvim_win_get_cursor(window),
      vim.fn.getjumplist(window),
      vim.api.nvim_win_call(window, vim.fn.winsaveview),
    }
  end
  local registers = {}
  for name in ([["-/:.0123456789abc]]):gmatch('.') do
    registers[name] = { vim.fn.getreg(name), vim.fn.getregtype(name) }
  end
  return {
    windows = windows,
    current = vim.api.nvim_get_current_win(),
    tab = vim.api.nvim_get_current_tabpage(),
    mode = vim.api.nvim_get_mode(),
    alternate = vim.fn.bufnr('#'),
    registers = registers,
    search = { vim.v.searchforward, vim.fn.searchcount({ maxcount = 0 }), vim.v.hlsearch },
    buffers = vim.api.nvim_list_bufs(),
    messages = vim.api.nvim_exec2('messages', { output = true }).output,
    errmsg = vim.v.errmsg,
  }
end

--- The contents of a resource, of which there must be one.
function M.contents(uri)
  local outcome = M.run('resource', uri)
  t.eq(nil, outcome.error)
  local list = vim.json.decode(outcome.payload.text).contents
  t.eq(1, #list)
  return list[1]
end

--- The decoded contents of a JSON resource.
function M.data(uri)
  local contents = M.contents(uri)
  t.eq('application/json', contents.mimeType)
  return vim.json.decode(contents.text)
end

--- The texts of a prompt, including embedded ones, joined by line breaks.
function M.prompt(name, args)
  local outcome = M.run('prompt', name, args)
  t.eq(nil, outcome.error)
  local texts = {}
  for i, message in ipairs(vim.json.decode(outcome.payload.text).messages) do
    t.eq('user', message.role)
    texts[i] = message.content.text or message.content.resource.text
  end
  return table.concat(texts, '\n')
end

--- Completes an argument and returns the values.
function M.complete(ref, name, value, arguments)
  local outcome = M.run('completion', 'completion', {
    ref = ref,
    argument = { name = name, value = value },
    context = { arguments = arguments },
  })
  t.eq(nil, outcome.error)
  return vim.json.decode(outcome.payload.text).values
end

return M
