local snapshot = require('mcp-tools.editor.diagnostics.snapshot')
local t = require('helpers')

local namespace = vim.api.nvim_create_namespace('copies')
local other = vim.api.nvim_create_namespace('copies of another')

---@param count integer
local function findings(count)
  local list = {}
  for i = 1, count do
    list[i] = { lnum = i, col = 0, severity = i % 4 + 1, message = 'Finding ' .. i }
  end
  return list
end

local function no_pause() end

after_each(function()
  vim.diagnostic.reset()
  vim.cmd('silent! %bwipeout!')
end)

describe('copies of diagnostics', function()
  it('are all that there are, never copied in one go when there are many', function()
    vim.diagnostic.set(namespace, 0, findings(8000))
    vim.diagnostic.set(other, 0, findings(3))
    local most, pauses = 0, 0
    t.calls(vim.diagnostic, 'get', function()
      for _, bufnr in ipairs({ vim.api.nvim_get_current_buf(), false }) do
        local list = snapshot.of(bufnr or nil, function()
          pauses = pauses + 1
        end)
        t.eq(8003, #list)
      end
    end, function(list)
      most = math.max(most, #list)
    end)
    t.eq(2000, most)
    t.eq(10, pauses)
  end)

  it('are of one moment: begun anew when a server speaks meanwhile', function()
    vim.diagnostic.set(namespace, 0, findings(4000))
    local pauses = 0
    local list = snapshot.of(0, function()
      pauses = pauses + 1
      if pauses == 2 then
        vim.diagnostic.set(namespace, 0, findings(40))
      end
    end)
    t.eq(40, #list)
    local asked = 0
    list = snapshot.of(0, function() -- one that does not stop is not waited for
      asked = asked + 1
      vim.diagnostic.set(namespace, 0, findings(asked))
    end)
    t.eq(asked, #list)
  end)

  it('are none where there is none', function()
    t.eq({}, snapshot.of(0, no_pause))
    t.eq({}, snapshot.of(nil, no_pause))
  end)
end)
