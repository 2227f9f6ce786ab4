-- every Neovim
local diff = require('mcp-tools.ui.window.diff')
local t = require('helpers')

local function groups(lines)
  local found = {}
  for _, row in ipairs(diff.lines(lines, 0, 'Added', 80)) do
    for _, chunk in ipairs(row) do
      for _, group in ipairs(type(chunk[2]) == 'table' and chunk[2] or { chunk[2] }) do
        found[group] = true
      end
    end
  end
  return found
end

describe('a proposed line', function()
  it('has the colours of its language, unless there is so much that the person would wait for them', function()
    vim.bo.filetype = 'lua'
    t.ok(groups({ 'local x = 1' })['@keyword.lua'])
    t.eq(nil, groups({ 'local x = { ' .. ('1, '):rep(20000) .. '}' })['@keyword.lua'])
    local many = {}
    for i = 1, 300 do
      many[i] = ('local x = { %s }'):format(('1, '):rep(100))
    end
    t.eq(nil, groups(many)['@keyword.lua'])
  end)
end)
