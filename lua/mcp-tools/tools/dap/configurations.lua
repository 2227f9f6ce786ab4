--- Lists launch configurations.

local nvim_dap = require('mcp-tools.editor.dap.nvim_dap')
local launch = require('mcp-tools.editor.dap.launch')
local variables = require('mcp-tools.editor.dap.variables')

--- Maximum length of a value, in characters.
local MAX = 200

return {
  name = 'dap_configurations',
  title = 'Launch configurations',
  description = "Lists launch configurations for dap_run: from nvim-dap and from the project's .vscode/launch.json, if"
    .. ' the user trusts that file. `asks` names fields that dap_run must be given.',
  args = {
    limit = { type = 'integer', description = 'Maximum number of results', default = 50, minimum = 1, maximum = 500 },
    offset = { type = 'integer', description = 'Number of configurations to skip', default = 0, minimum = 0 },
  },
  annotations = { read_only = true, idempotent = true },
  run = function(ctx, args)
    local dap, err = nvim_dap.get()
    if not dap then
      return nil, err
    end
    local all, withheld = launch.all(ctx.root)
    local list = {}
    variables.refresh(ctx)
    local function text(value)
      return type(value) == 'string' and variables.text(value, MAX) or nil
    end
    for i = args.offset + 1, math.min(args.offset + args.limit, #all) do
      local config = all[i].config
      local asks = launch.interactive_fields(config)
      table.insert(list, {
        name = text(config.name),
        type = text(config.type),
        request = text(config.request),
        program = text(config.program) or text(config.module),
        source = all[i].source,
        asks = #asks > 0 and asks or nil,
        no_adapter = dap.adapters[config.type] == nil or nil,
      })
    end
    local adapters = vim.tbl_keys(dap.adapters)
    table.sort(adapters)
    local last = args.offset + #list
    return {
      configurations = list,
      total = #all,
      next_offset = last < #all and last or nil,
      adapters = adapters,
      withheld = withheld and { { path = launch.LAUNCH_JSON, why = withheld } } or nil,
    }
  end,
}
