--- Notifies the user when an agent has left edits unsaved, because other programs do not see them.

local notify = require('mcp-tools.notify')
local sanitize = require('mcp-tools.util.sanitize')
local timer = require('mcp-tools.util.timer')

local api = vim.api

local M = {}

--- Edits are reported together, this long after the last one, ms.
M.QUIET = 1000
--- Maximum number of files that are named.
local MAX_NAMED = 3

---@type table<integer, true> buffers that were reported
local known = {}
---@type table<string, integer|false> path → buffer of edits that were not reported yet
local edited = {}
---@type table<string, true> names of the agents that made them
local agents = {}
local due ---@type mcp-tools.Timer?

---@param bufnr integer
---@return boolean
local function is_modified(bufnr)
  return api.nvim_buf_is_loaded(bufnr) and vim.bo[bufnr].modified
end

local function report()
  due = nil
  local files, names_of_agents = edited, vim.tbl_keys(agents)
  edited, agents = {}, {}
  local names, is_new = {}, false
  for path, bufnr in pairs(files) do
    if bufnr and is_modified(bufnr) then
      is_new = is_new or not known[bufnr]
      known[bufnr] = true
      table.insert(names, sanitize.line(vim.fs.basename(path)))
    end
  end
  if not is_new then
    return
  end
  table.sort(names)
  local count = vim.tbl_count(files)
  local named = table.concat(names, ', ', 1, math.min(#names, MAX_NAMED))
  if #names > MAX_NAMED then
    named = ('%s and %d more'):format(named, #names - MAX_NAMED)
  end
  local what = count > 1 and ('%d files'):format(count) or named
  local left = count > 1 and named .. (#names > 1 and ' are' or ' is') or 'it is'
  local who = #names_of_agents == 1 and names_of_agents[1] or #names_of_agents > 1 and 'several agents' or 'an agent'
  notify.info(('%s changed %s; %s unsaved'):format(sanitize.line(who), what, left))
end

--- Reports edits from now on.
function M.follow()
  local group = api.nvim_create_augroup('mcp-tools.unsaved', {})
  api.nvim_create_autocmd({ 'BufWritePost', 'BufUnload' }, {
    group = group,
    desc = 'mcp-tools: report the buffer again when it is unsaved again',
    callback = function(args)
      known[args.buf] = nil
    end,
  })
  api.nvim_create_autocmd('User', {
    group = group,
    pattern = 'McpToolsEdit',
    desc = 'mcp-tools: report edits that are left unsaved',
    callback = function(args)
      local data = args.data or {}
      if not data.tool then
        return
      end
      edited[data.path] = data.bufnr or false
      if data.client and data.client.name then
        agents[data.client.name] = true
      end
      if due then
        due:stop()
      end
      due = timer.after(M.QUIET, report)
    end,
  })
end

return M
