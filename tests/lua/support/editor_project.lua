-- A project in a folder of its own, with files, for specs about what the editor shows of one.

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

--- The bytes of a file.
---@param name string relative to the project, or absolute
---@return string
function M.disk(name) return vim.fn.readblob(name:sub(1, 1) == '/' and name or M.root .. '/' .. name) end

--- An empty project, which the editor is in.
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

---@return mcp-tools.Outcome
function M.run(kind, name, args)
  local call = core.get().executor:execute(name, args or {}, { kind = kind, host = 'test' })
  return t.ended(call, 20000, kind .. ' ' .. name)
end

--- Offers groups of tools; what would ask is let through.
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

--- What a question about a tool shows of it, once all is known.
---@param definition mcp-tools.Definition
---@return string?, mcp-tools.Error?
function M.previewed(definition, args)
  local fault, text, err
  local function again(why) fault = fault or why end
  t.wait(function()
    text, err = definition.preview(args, again)
    return fault or not text or not text:find('diff appears here')
  end, 8000, 'what a preview shows')
  if fault then
    return nil, fault
  end
  return text, err
end

--- What a tool gives.
---@return any value, mcp-tools.Error? err
function M.call(name, args)
  local outcome = M.run('tool', name, args)
  return outcome.value, outcome.error
end

--- Fails when a tool does not refuse a call.
---@param name string
---@param code string
---@param pattern string in its message
---@param args table
function M.refused(name, code, pattern, args)
  local value, err = M.call(name, args)
  t.eq({ nil, code }, { value, err and err.code })
  t.matches(pattern, err.message)
end

--- The only contents of a resource.
function M.contents(uri)
  local outcome = M.run('resource', uri)
  t.eq(nil, outcome.error)
  local list = vim.json.decode(outcome.payload.text).contents
  t.eq(1, #list)
  return list[1]
end

--- A resource that is data.
function M.data(uri)
  local contents = M.contents(uri)
  t.eq('application/json', contents.mimeType)
  return vim.json.decode(contents.text)
end

--- Texts of a prompt, one below the other; embedded ones too.
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

--- Values of a completion.
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
