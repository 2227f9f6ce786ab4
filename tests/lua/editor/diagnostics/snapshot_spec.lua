-- every Neovim
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

describe('a hundred thousand diagnostics', function()
  local project = require('editor_project')
  before_each(project.open)
  after_each(project.close)

  it('block the editor only for short times, in prompts and resources', function()
    vim.cmd.edit(project.write('a.lua', 'x\n'))
    local list = {}
    for i = 1, 100000 do
      list[i] = { lnum = 0, col = 0, severity = i % 4 + 1, message = 'Finding ' .. (i * 7919) % 100000 }
    end
    list[1].message, list[1].severity = 'a' .. (' '):rep(20000) .. '\nb', 1
    vim.diagnostic.set(namespace, 0, list)
    local longest, last = 0, vim.uv.hrtime()
    local timer = assert(vim.uv.new_timer())
    timer:start(0, 1, function()
      local now = vim.uv.hrtime()
      longest, last = math.max(longest, now - last), now
    end)
    for _, work in ipairs({
      function()
        t.eq(100000, project.data('nvim://diagnostics').total)
      end,
      function()
        t.matches('and 99960 more', project.prompt('explain_diagnostics'))
      end,
      function()
        t.matches('24999 warning', project.prompt('project_status'))
      end,
    }) do
      last = vim.uv.hrtime()
      work()
      longest = math.max(longest, vim.uv.hrtime() - last)
    end
    timer:stop()
    timer:close()
    t.ok(longest < 400e6, ('blocked for %.0f ms'):format(longest / 1e6))
  end)
end)
