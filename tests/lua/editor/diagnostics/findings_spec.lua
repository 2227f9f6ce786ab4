-- every Neovim
local t = require('helpers')

local namespace = vim.api.nvim_create_namespace('copies')

after_each(function()
  vim.diagnostic.reset()
  vim.cmd('silent! %bwipeout!')
end)

describe('a message with a secret', function()
  local project = require('editor_project')
  project.each()

  it('is redacted in tools, resources, prompts and the context of agents', function()
    vim.cmd.edit(project.write('a.lua', 'x\n'))
    local message = 'login failed: password=hunter2secret\nAPI_TOKEN: "hunter2secret"'
    vim.diagnostic.set(namespace, 0, { { lnum = 0, col = 0, severity = 1, message = message } })
    project.offer({ 'diagnostics_list' })
    local context = require('mcp-tools.editor.context')
    for _, text in ipairs({
      project.text('diagnostics_list', {}),
      vim.inspect(project.data('nvim://diagnostics')),
      project.prompt('explain_diagnostics'),
      vim.inspect(context.diagnostics()),
    }) do
      t.matches('login failed: password=%[secret%]', text)
      t.ok(not text:find('hunter2secret', 1, true), text)
    end
  end)
end)

describe('twenty thousand diagnostics', function()
  local project = require('editor_project')
  project.each()

  it('block the editor only for short times, in prompts and resources', function()
    vim.cmd.edit(project.write('a.lua', 'x\n'))
    local list = {}
    for i = 1, 20000 do
      list[i] = { lnum = 0, col = 0, severity = i % 4 + 1, message = 'Finding ' .. (i * 7919) % 20000 }
    end
    list[1].message, list[1].severity = 'a' .. (' '):rep(20000) .. '\nb', 1
    vim.diagnostic.set(namespace, 0, list)
    local check_turns = t.watch_turns()
    for _, work in ipairs({
      function() t.eq(20000, project.data('nvim://diagnostics').total) end,
      function() t.matches('and 19960 more', project.prompt('explain_diagnostics')) end,
      function() t.matches('4999 warning', project.prompt('project_status')) end,
    }) do
      work()
    end
    check_turns()
  end)
end)
