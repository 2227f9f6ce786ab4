-- every Neovim
local t = require('helpers')

local namespace = vim.api.nvim_create_namespace('copies')

after_each(function()
  vim.diagnostic.reset()
  vim.cmd('silent! %bwipeout!')
end)

describe('twenty thousand diagnostics', function()
  local project = require('editor_project')
  before_each(project.open)
  after_each(project.close)

  it('block the editor only for short times, in prompts and resources', function()
    vim.cmd.edit(project.write('a.lua', 'x\n'))
    local list = {}
    for i = 1, 20000 do
      list[i] = { lnum = 0, col = 0, severity = i % 4 + 1, message = 'Finding ' .. (i * 7919) % 20000 }
    end
    list[1].message, list[1].severity = 'a' .. (' '):rep(20000) .. '\nb', 1
    vim.diagnostic.set(namespace, 0, list)
    local longest, last = 0, os.clock() -- not the time of other processes
    local timer = assert(vim.uv.new_timer())
    timer:start(0, 1, function()
      local now = os.clock()
      longest, last = math.max(longest, now - last), now
    end)
    for _, work in ipairs({
      function()
        t.eq(20000, project.data('nvim://diagnostics').total)
      end,
      function()
        t.matches('and 19960 more', project.prompt('explain_diagnostics'))
      end,
      function()
        t.matches('4999 warning', project.prompt('project_status'))
      end,
    }) do
      last = os.clock()
      work()
      longest = math.max(longest, os.clock() - last)
    end
    timer:stop()
    timer:close()
    t.ok(longest < 0.2, ('blocked for %.0f ms'):format(longest * 1e3))
  end)
end)
