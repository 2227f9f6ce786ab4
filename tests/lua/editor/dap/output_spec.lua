local Output = require('mcp-tools.editor.dap.output')
local t = require('helpers')

local function texts(output, category, since)
  return vim.tbl_map(function(line)
    return line.text
  end, output:after(category or 'all', since or 0))
end

describe('output', function()
  it('becomes lines, whatever pieces it comes in', function()
    local output = Output.new()
    output:add('stdout', 'one')
    output:add('stdout', ' more\r\ntwo\n\nth')
    output:add('stderr', 'bad\n')
    output:add('stdout', 'ree')
    t.eq({ 'one more', 'two', '', 'three', 'bad' }, texts(output))
    t.eq({ 'bad' }, texts(output, 'stderr'))
    t.eq({ 'three', 'bad' }, texts(output, 'all', 3))
    output.reported = output.count
    output:add('stdout', ' four\n')
    t.eq({ ' four' }, texts(output, 'all', output.reported), 'what was told does not change')
  end)

  it('keeps the last lines, and no endless one', function()
    local output = Output.new()
    for i = 1, Output.MAX_LINES + 5 do
      output:add('stdout', i .. '\n')
    end
    t.eq({ Output.MAX_LINES, '6' }, { #texts(output), texts(output)[1] })
    output:add('stdout', ('x'):rep(10000))
    output:add('stdout', ('x'):rep(10000))
    t.eq(4000, #texts(output, 'all', output.count - 1)[1])
  end)
end)
