-- For every bundled tool: the size of its definition, and what a model learns from it.

local bundled = require('mcp-tools.loading.bundled')
local config = require('mcp-tools.config')
local core = require('mcp-tools.core')
local every = require('every_tool')
local t = require('helpers')
local wire = require('mcp-tools.rpc')

--- Maximum number of characters of a description.
local MAX_DESCRIPTION, MAX_ARGUMENT = 300, 200
local MAX_TITLE = 30 -- characters

after_each(function()
  config.reset()
  core.get().registry:clear('tools')
end)

--- Arguments without a description, at every level.
local function mute(schema, path, list)
  for name, property in pairs(schema.properties or {}) do
    local place = path .. '.' .. name
    if not property.description or #property.description > MAX_ARGUMENT then
      table.insert(list, place)
    end
    mute(property, place, list)
    if type(property.items) == 'table' then
      mute(property.items, place .. '[]', list)
    end
  end
  return list
end

describe('every tool', function()
  before_each(every.offer)

  it('has a short description, and so has each of its arguments', function()
    local wrong = {}
    for _, tool in ipairs(every.tools()) do
      if vim.fn.strchars(tool.description) > MAX_DESCRIPTION then
        table.insert(wrong, ('%s: %d characters'):format(tool.name, vim.fn.strchars(tool.description)))
      end
      mute(tool.input_schema, tool.name, wrong)
    end
    t.eq({}, wrong)
  end)

  it('has its own short title', function()
    local wrong, owners = {}, {}
    for _, tool in ipairs(every.tools()) do
      local title = tool.title or ''
      if title == '' or vim.fn.strchars(title) > MAX_TITLE or owners[title] then
        table.insert(wrong, ("%s: '%s'"):format(tool.name, title))
      end
      owners[title] = tool.name
    end
    t.eq({}, wrong)
  end)

  it('is well formed, without lint', function()
    local wrong = {}
    for _, file in ipairs(bundled.files('tools')) do
      -- As the definition of another plugin, which is checked fully.
      local tool = assert(require('mcp-tools.registry.definition.tool').normalize(require(file.module)))
      if #tool.lint > 0 then
        table.insert(wrong, ('%s: %s'):format(tool.name, vim.inspect(tool.lint)))
      end
    end
    t.eq({}, wrong)
  end)

  it('declares whether it only reads, and asks if it does not', function()
    local wrong = {}
    for _, tool in ipairs(every.tools()) do
      local annotations = tool.annotations or {}
      if type(annotations.read_only) ~= 'boolean' then
        table.insert(wrong, tool.name .. ': annotations.read_only is not said')
      elseif annotations.read_only and annotations.destructive then
        table.insert(wrong, tool.name .. ': it only reads and destroys')
      elseif not annotations.read_only and tool.needs_approval == nil and not annotations.destructive then
        table.insert(wrong, tool.name .. ': whether it asks is left to approval.default')
      end
    end
    t.eq({}, wrong)
  end)
end)

describe('tools = "recommended"', function()
  it('and explicit tools are known without being loaded', function()
    for _, file in ipairs(bundled.files('tools')) do
      for _, field in ipairs({ 'recommended', 'explicit' }) do
        t.eq(require(file.module)[field] == true, bundled.named[field][file.name] == true, file.name .. ' ' .. field)
      end
    end
  end)

  it('has at most 34 tools, and 22 kB', function()
    config.setup({ tools = false })
    core.get()
    config.setup({ tools = 'recommended' })
    core.get()
    local text = wire.list('tools', nil, { client = 'any' }).json
    local names = t.field('name', vim.json.decode(text))
    t.ok(#names > 0 and #names <= 34, ('%d tools: %s'):format(#names, table.concat(names, ' ')))
    t.ok(#text <= 22 * 1000, ('%d bytes'):format(#text))
  end)
end)
