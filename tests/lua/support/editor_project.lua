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
  vim.diagnostic.reset()
  vim.fn.setqflist({}, 'f')
  vim.cmd.cd('/')
  vim.fn.delete(M.base, 'rf')
  config.reset()
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
function M.refused(name, code, pattern, args)
  local value, err = M.call(name, args)
  t.eq({ nil, code }, { value, err and err.code })
  t.matches(pattern, err.message)
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
