local t = require('helpers')
local text = require('mcp-tools.ui.approval.text')

local function lines_of(args)
  local call = { name = 'x', host = 'mcp', client = {}, definition = { name = 'x', description = 'x' } }
  return text.lines({ call = call, args = args, reason = 'it can destroy', places = {}, root = '/p' })
end

local function shown(args)
  return table.concat(lines_of(args), '\n')
end

local function has(args, part)
  local all = shown(args)
  t.ok(all:find(part, 1, true), ('%q is not in %s'):format(part, all:sub(1, 500)))
end

describe('arguments in a question', function()
  it('are all there, however long the first ones are', function()
    for _, long in ipairs({ ('a'):rep(3e6), ('a\n'):rep(1e6), { ('a'):rep(1e5), ('b'):rep(1e5) } }) do
      has({ a = long, b = long, command = 'rm -r /' }, 'command: "rm -r /"')
      has({ a = long, b = long, command = 'rm -r /' }, 'arguments, CUT: 2 of 3 are too long to be shown whole')
    end
    t.ok(#shown({ a = ('a'):rep(3e6), b = ('b\n'):rep(1e6) }) < 2e5)
  end)

  it('are said to be cut wherever the cut falls', function()
    for first = 1, 400, 7 do
      local value = ('a'):rep(first) .. '\n' .. ('b'):rep(70000) .. 'rm -r /'
      t.eq(
        { first, 'arguments, CUT: 1 of 1 are too long to be shown whole' },
        { first, lines_of({ value = value })[7] }
      )
    end
    t.eq('arguments', lines_of({ value = ('a\n'):rep(1000) })[7])
  end)

  it('are counted where there are too many', function()
    local args = {}
    for i = 1, 50000 do
      args[('key%05d'):format(i)] = i
    end
    local all = shown(args)
    t.ok(#all < 2e6)
    t.ok(all:find('arguments, CUT: %d+ of 50000 are too long'))
    t.ok(all:find('… CUT: %d+ more'))
  end)

  it('cannot look like two: quotes and backslashes are escaped', function()
    has({ a = [[x\", b: "y]] }, [[a: "x\\\", b: \"y"]])
    has({ [ [[a"\]] ] = 1 }, [["a\"\\": 1]])
  end)
end)
