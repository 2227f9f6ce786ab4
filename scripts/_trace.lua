-- The editor's side of `make trace`: loads the plugin and records calls.

local root = vim.fs.dirname(vim.fs.dirname(debug.getinfo(1, 'S').source:sub(2)))
vim.opt.runtimepath:prepend(root)

jit.off() -- what is compiled calls no hooks

local entries, last = {}, nil
local here = root .. '/lua/mcp-tools/'

local function look()
  local info = debug.getinfo(2, 'Sn')
  local file = info.source:sub(2)
  if file ~= last and vim.startswith(file, here) and info.what ~= 'main' then
    last = file
    entries[#entries + 1] = { vim.uv.hrtime(), file:sub(#root + 2), info.name or '' }
  end
end

_G.Trace = { ready = false }

--- Records every change of the file, also in coroutines.
function Trace.begin()
  entries, last = {}, nil
  debug.sethook(look, 'c')
  return true
end

function Trace.entries()
  debug.sethook() ---@diagnostic disable-line: missing-parameter
  return entries
end

local mcp_tools = require('mcp-tools')

mcp_tools.setup({
  tools = { 'buffer' },
  bridge = { command = vim.json.decode(vim.env.MCP_TOOLS_TRACE_BRIDGE) },
  on_ready = function()
    Trace.ready = true
  end,
})

function Trace.start()
  mcp_tools.start()
  return true
end

function Trace.endpoint()
  return Trace.ready and mcp_tools.endpoint() or vim.NIL
end
