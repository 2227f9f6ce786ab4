-- What is mistyped in a definition: it is taken in, and its author hears of it.
local notifications = require('notifications')
local t = require('helpers')
local mcp_tools = require('mcp-tools')

local function tool(name, fields)
  mcp_tools.register(vim.tbl_extend('force', {
    name = name,
    description = 'x',
    execute = function(ctx)
      ctx(true)
    end,
  }, fields))
end

local function said(text)
  return t.wait(function()
    for _, item in ipairs(notifications.list) do
      if item.text:find(text, 1, true) then
        return item
      end
    end
  end, 2000, text)
end

describe('what is mistyped in a definition', function()
  before_each(function()
    notifications.collect()
  end)

  after_each(function()
    notifications.restore()
  end)

  it('is told once, with what was meant', function()
    tool('slips', {
      need_approval = true,
      annotations = { readonly = true },
    })
    local item = said("did you mean needs_approval? (tool 'slips'); ")
    t.eq(vim.log.levels.WARN, item.level)
    for _, text in ipairs({
      'need_approval: did you mean needs_approval?',
      'annotations.readonly: did you mean read_only?',
    }) do
      t.ok(item.text:find(text, 1, true), ('"%s" in "%s"'):format(text, item.text))
    end
    tool('slips', { need_approval = true })
    tool('slips', { need_approval = true })
    tool('last', { need_approval = true })
    said("need_approval: did you mean needs_approval? (tool 'last')")
    t.eq(3, #notifications.list)
  end)

  it('of a resource and a prompt is told as well', function()
    local function read(ctx)
      ctx('x')
    end
    mcp_tools.register_resource({
      uri = 'x://slip',
      name = 'slip',
      description = 'x',
      mimetype = 'text/plain',
      read = read,
    })
    said('did you mean mime_type?')
    local args = { a = { descripton = 'y' } }
    mcp_tools.register_prompt({ name = 'slip', description = 'x', titel = 'X', args = args, get = read })
    said("titel: did you mean title? (prompt 'slip'); args.a.descripton: did you mean description?")
  end)

  it('is not what only looks strange', function()
    tool('strange', {
      tags = { 'one' },
      category = 'x',
      args = { a = { ['x-order'] = 1, nullable = true, id = 'a', kind = 'b', enumNames = { 'A' }, const = 1 } },
    })
    tool('last', { nedes_approval = true })
    said("(tool 'last')")
    t.eq(1, #notifications.list)
  end)

  it('stands in health, with the file that it is to be corrected in', function()
    tool('sick', { need_approval = true })
    vim.cmd('checkhealth mcp-tools')
    local text = table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), '\n')
    t.matches('WARNING tool sick: need_approval: did you mean needs_approval%?', text)
    t.matches('Correct it in [^\n]*typos_spec.lua', text)
    vim.cmd('bwipeout!')
  end)

  it('is told where it is refused for what is missing', function()
    local function nothing() end
    for hint, def in pairs({
      ["tool 'slip': execut: did you mean execute"] = { 'register', description = 'x', execut = nothing },
      ["tool 'slip': descripton: did you mean description"] = { 'register', descripton = 'x', execute = nothing },
      ["resource 'slip://x': raed: did you mean read"] = { 'register_resource', uri = 'slip://x', raed = nothing },
      ["prompt 'slip': descripton: did you mean description"] = {
        'register_prompt',
        descripton = 'x',
        get = nothing,
      },
    }) do
      local register = mcp_tools[table.remove(def, 1)]
      def.name = 'slip'
      t.raises(hint, function()
        register(def)
      end)
    end
  end)
end)
