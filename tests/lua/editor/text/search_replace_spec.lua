-- every Neovim
local search_replace = require('mcp-tools.editor.text.search_replace')
local t = require('helpers')
local text_edits = require('mcp-tools.editor.text.edits')

--- Every place of a text in another, overlapping ones too.
local function count(text, search)
  local found, at = 0, text:find(search, 1, true)
  while at do
    found, at = found + 1, text:find(search, at + 1, true)
  end
  return found
end

describe('edits by search', function()
  it('find what is in the text once, wherever it begins and ends', function()
    math.randomseed(7)
    local function random(max, alphabet)
      local made = {}
      for i = 1, math.random(max) do
        local at = math.random(#alphabet)
        made[i] = alphabet:sub(at, at)
      end
      return table.concat(made)
    end
    for _ = 1, 4000 do
      local whole, search = random(14, 'ab\n\n'), random(5, 'ab\n\n')
      local lines = vim.split(whole, '\n', { plain = true })
      local edits, err = search_replace.edits(lines, { { search = search, replace = 'X\n' } }, { brief = true })
      local expected = count(whole .. '\n', search)
      t.eq({ whole, search, expected == 1 }, { whole, search, edits ~= nil })
      if edits then
        local list = t.ok(text_edits.ordered(edits, #lines, function(row)
          return lines[row + 1]
        end))
        local at, last = (whole .. '\n'):find(search, 1, true)
        local after = (whole .. '\n'):sub(1, at - 1) .. 'X\n' .. (whole .. '\n'):sub(last + 1)
        t.eq({ whole, search, (after:gsub('\n$', '')) }, {
          whole,
          search,
          table.concat(text_edits.applied(lines, list), '\n'),
        })
      else
        local times = expected > 10 and 'more than 10' or tostring(expected)
        t.matches(expected == 0 and 'not found' or 'occurs ' .. times .. ' times', err.message)
      end
    end
  end)

  it('find what crosses the pieces in which a long line is searched', function()
    local line = ('x'):rep(300000) .. 'needle' .. ('y'):rep(300000)
    for shift = 0, 6 do
      local lines = { ('z'):rep(256 * 1024 - 300000 % 7 + shift) .. line }
      local at = lines[1]:find('needle', 1, true) - 1
      local edits = t.ok(search_replace.edits(lines, { { search = 'needle', replace = '' } }))
      t.eq({ at, at + 6 }, { edits[1].start_col, edits[1].end_col })
    end
    local lines = { ('a'):rep(256 * 1024 - 3) .. 'bcdefg' .. ('a'):rep(1000) }
    t.ok(search_replace.edits(lines, { { search = 'bcdefg', replace = '' } }))
  end)

  it('take a time that grows with the text, not with what is looked for', function()
    local lines = {}
    for i = 1, 200000 do
      lines[i] = '    return same_line(again)'
    end
    lines[#lines] = 'last'
    local search = table.concat(lines, '\n', 1, 100000) .. '\nnot there'
    local begun = vim.uv.hrtime()
    t.eq(nil, (search_replace.edits(lines, { { search = search, replace = '' } }, { brief = true })))
    t.ok(vim.uv.hrtime() - begun < 2e9)
  end)
end)
