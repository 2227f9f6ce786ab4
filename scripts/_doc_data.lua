-- Prints the data of the generated documentation as JSON (`nvim -l`, run by gen_doc).

local root = vim.fs.dirname(vim.fs.dirname(debug.getinfo(1, 'S').source:sub(2)))
vim.opt.runtimepath:prepend(root)

--- Formats a Lua value as in a call of `setup()`.
local function written(value)
  return value == nil and 'nil' or vim.inspect(value, { newline = ' ', indent = '' })
end

local function options()
  local list = {}
  for _, option in ipairs(require('mcp-tools.config.options')) do
    local entry = vim.tbl_extend('force', option, { default = written(option.default) })
    table.insert(list, entry)
  end
  return list
end

local function commands()
  local list = {}
  for _, name in ipairs(require('mcp-tools.command').names()) do
    local command = require('mcp-tools.command').find(name)
    table.insert(list, {
      name = name,
      bang = command.bang == true,
      usage = command.usage,
      description = command.description,
    })
  end
  return list
end

--- Returns a definition without its functions.
local function tool(file)
  local def = require(file.module)
  return {
    name = def.name,
    aliases = vim.tbl_keys(def.aliases or {}),
    group = file.group,
    description = def.description,
    recommended = def.recommended == true,
    explicit = def.explicit == true,
    asks = def.needs_approval ~= nil and def.needs_approval ~= false,
    annotations = def.annotations,
  }
end

--- A bundled resource or prompt.
local function other(file)
  local def = require(file.module)
  local args = {}
  for i, arg in ipairs(def.args or {}) do
    args[i] = { name = arg.name, description = arg.description, required = arg.required == true }
  end
  return {
    name = def.name,
    key = def.uri or def.uri_template or def.name,
    description = def.description,
    args = args,
  }
end

local bundled = require('mcp-tools.loading.bundled')

io.stdout:write(vim.json.encode({
  options = options(),
  commands = commands(),
  tools = vim.tbl_map(tool, require('mcp-tools.loading.bundled').files('tools')),
  names = dofile(root .. '/scripts/_tool_names.lua'),
  resources = vim.tbl_map(other, bundled.files('resources')),
  prompts = vim.tbl_map(other, bundled.files('prompts')),
  highlights = require('mcp-tools.ui.window.render').groups,
  prefix = require('mcp-tools.config').get('tool_prefix'),
}))
