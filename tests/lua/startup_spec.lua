-- every Neovim
-- The number of modules that the start of an editor loads: start-up time grows with it.

local t = require('helpers')

---@return string[]
local function loaded()
  local names = {}
  for name in pairs(package.loaded) do
    if name:find('^mcp%-tools') then
      table.insert(names, name)
    end
  end
  table.sort(names)
  return names
end

--- A tool as another plugin would define it, with several types of arguments.
local TOOL = {
  name = 'word_count',
  description = 'Counts words.',
  args = {
    text = { type = 'string', description = 'what is counted', required = true, minLength = 1 },
    least = { type = 'integer', description = 'letters of a word', default = 1, minimum = 1 },
    languages = { type = 'array', items = { type = 'string', enum = { 'en', 'de' } } },
  },
  output_schema = { type = 'object', properties = { words = { type = 'integer' } }, required = { 'words' } },
  annotations = { read_only = true },
  execute = t.answers({ words = 1 }),
}

---@param most integer
local function at_most(most)
  local names = loaded()
  t.ok(#names <= most, ('%d modules, not %d:\n%s'):format(#names, most, table.concat(names, '\n')))
end

describe('the start of an editor', function()
  before_each(function()
    for _, name in ipairs(loaded()) do
      package.loaded[name] = nil
    end
    vim.g.loaded_mcp_tools = nil
  end)

  it('loads nothing for plugin/', function()
    vim.cmd.runtime('plugin/mcp-tools.lua')
    t.eq({ 2, {} }, { vim.fn.exists(':McpTools'), (loaded()) })
  end)

  it('loads nothing for agents that are off', function()
    require('mcp-tools').setup({ agents = false, bridge = { autostart = false } })
    local turned = false
    vim.schedule(function() turned = true end) -- after what setup() has scheduled
    t.wait(function() return turned end)
    t.eq(nil, package.loaded['mcp-tools.agents'])
  end)

  it('loads little for the first register()', function()
    require('mcp-tools').register(TOOL)
    at_most(30)
  end)

  it('applies later removals of definitions that are not loaded yet', function()
    local tools = require('mcp-tools')
    tools.setup({ tools = 'all', resources = true, prompts = true })
    tools.unregister_resource('nvim://cursor')
    tools.unregister_prompt('write_tests')
    tools.unregister('buffer_list')
    local entries = require('mcp-tools.core').get().registry.entries
    t.eq({}, { entries.resources['nvim://cursor'], entries.prompts.write_tests, entries.tools.buffer_list })
    t.ok(entries.resources['nvim://buffers'] and entries.prompts.review_changes and entries.tools.file_read)
  end)

  it('loads little for setup()', function()
    require('mcp-tools').setup({ tools = 'recommended' })
    at_most(15)
  end)

  it('loads few more modules for a register() after it', function()
    require('mcp-tools').setup({ tools = 'recommended' })
    local before = #loaded()
    require('mcp-tools').register(TOOL)
    at_most(before + 20)
  end)
end)
