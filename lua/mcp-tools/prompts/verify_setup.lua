--- Prompt: verify the setup.

local mcp_tools = require('mcp-tools')
local utf8 = require('mcp-tools.util.utf8')

return {
  name = 'verify_setup',
  title = 'Verify the setup',
  description = 'Checks that the connection between this client and the editor works, and reports what is missing.',
  get = function(ctx)
    local report, status = mcp_tools.report(), mcp_tools.status()
    local lines = {
      ('Neovim %s, mcp-tools.nvim %s, project %s'):format(tostring(vim.version()), status.version, ctx.root),
      ('Bridge: %s%s'):format(status.state, status.port and (' on port %d'):format(status.port) or ''),
      ('Registered: %d tools, %d resources, %d templates, %d prompts'):format(
        #report.tools,
        #report.resources,
        #report.templates,
        #report.prompts
      ),
      ('Tool names begin with "%s"'):format(report.tool_prefix),
    }
    if report.no_bundled_tools then
      table.insert(lines, 'No bundled tools are on: require("mcp-tools").setup({ tools = "recommended" }) adds them.')
    end
    if status.last_error then
      table.insert(lines, 'Last error of the bridge: ' .. status.last_error)
    end
    if status.note then
      table.insert(lines, status.note)
    end
    for _, failure in ipairs(report.failures) do
      table.insert(lines, ('Failed to load: %s: %s'):format(failure.source, tostring(failure.error):match('[^\n]*')))
    end
    local text = 'Check that you can work with my editor. The editor reports:\n\n'
      .. table.concat(lines, '\n')
      .. '\n\nDo this: count the tools, resources and prompts that you see and compare them with this report. Read the'
      .. ' resource nvim://status. Call a read-only tool. Then say what works, what does not, and what I should do;'
      .. ' `:checkhealth mcp-tools` in the editor has more details.'
    ctx((utf8.repair(text)))
  end,
}
