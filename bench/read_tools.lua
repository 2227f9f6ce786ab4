-- Calls every read-only tool in a large project and a large buffer, and measures the main thread. Loaded by the
-- measured Neovim. `READ_TOOLS.found` has the results once all are done.

local here = vim.fs.dirname(debug.getinfo(1, 'S').source:sub(2))
local arguments = dofile(here .. '/arguments.lua')
local held = dofile(here .. '/held.lua')
local language_server = dofile(here .. '/language_server.lua')

local uv = vim.uv

local M = {}

--- Time after a call until its work is done, ms.
local SETTLE = 25
--- A call that takes longer than this is repeated once, ms.
local SLOW = 300

--- Opens the large file and creates many edits and diagnostics.
---@param project { lua: string, others: string[] }
---@param functions integer
function M.prepare(project, functions)
  M.project = project
  vim.cmd.edit(vim.fn.fnameescape(project.lua))
  local bufnr = vim.api.nvim_get_current_buf()
  language_server.start(bufnr, functions, project.others)
  for i = 1, 100 do
    vim.api.nvim_buf_set_lines(bufnr, i * 5 + 1, i * 5 + 2, false, { '  -- edit ' .. i })
    vim.bo[bufnr].undolevels = vim.bo[bufnr].undolevels -- a separate undo block
  end
  local list = {}
  for i = 1, 100000 do
    list[i] = { bufnr = bufnr, lnum = i, text = 'entry ' .. i }
  end
  vim.fn.setqflist(list)
  for i = 1, 500 do
    vim.api.nvim_echo({ { ('message %d%s'):format(i, (' word'):rep(1600)) } }, true, {})
  end
  vim.fn.setreg('a', ('a line of a register\n'):rep(2 ^ 20))
  for i = 1, 2000 do
    vim.bo[vim.fn.bufadd(('%s.%d'):format(project.lua, i))].buflisted = true
  end
  local findings = {}
  for i = 1, 20000 do
    findings[i] = { lnum = i, col = 0, severity = i % 4 + 1, code = 'c' .. i, message = 'Finding ' .. i }
  end
  vim.diagnostic.set(vim.api.nvim_create_namespace('bench'), bufnr, findings)
  vim.api.nvim_win_set_cursor(0, { 2500, 0 })
end

---@return { name: string, args: table }[]
local function cases()
  local list = {}
  for name, definition in vim.spairs(require('mcp-tools.core').get().registry.entries.tools) do
    local only_reads = definition.annotations and definition.annotations.read_only
    if only_reads and not arguments.left_out[name] then
      for how, args in vim.spairs(arguments.of(definition, M.project)) do
        table.insert(list, { tool = name, name = name .. how, args = args })
      end
    end
  end
  return list
end

local function median(list)
  list = vim.list_slice(list)
  table.sort(list)
  return list[math.ceil(#list / 2)]
end

---@param case table
---@param done fun(sample: table)
local function once(case, done)
  local before, begun = held.reset(), uv.hrtime()
  require('mcp-tools').call(case.tool, case.args, { timeout = 10000 }, function(_, err)
    local ms = (uv.hrtime() - begun) / 1e6
    vim.defer_fn(function()
      local longest, ran, whole, start = held.longest()
      local failure = err and ('%s: %s'):format(err.code, err.message)
      done({ ms = ms, held = longest, whole = whole, start = start, ran = ran - before, err = failure })
    end, SETTLE)
  end)
end

---@param case table
---@param times integer
---@param done fun(row: table)
local function repeated(case, times, done)
  local samples = {}
  local function another()
    once(case, function(sample)
      table.insert(samples, sample)
      local slow = sample.ms > SLOW
      if #samples < (slow and math.min(times, 2) or times) then
        return another()
      end
      local row = { tool = case.tool, name = case.name, first = samples[1].held, err = sample.err }
      for _, field in ipairs({ 'ms', 'held', 'whole', 'start', 'ran' }) do
        row[field] = median(vim.tbl_map(function(each)
          return each[field]
        end, samples))
      end
      done(row)
    end)
  end
  another()
end

--- Calls each tool this number of times.
---@param times integer
function M.start(times)
  local list, found = cases(), {}
  held.watch()
  local function following()
    local case = list[#found + 1]
    if not case then
      M.found = found
      return
    end
    M.at = case.name
    repeated(case, times, function(row)
      table.insert(found, row)
      following()
    end)
  end
  vim.defer_fn(following, 200)
end

--- Loads all definitions, like the list of a bridge, and polls until they are loaded.
function M.load()
  held.watch()
  local wire, begun = require('mcp-tools.rpc'), nil
  local function ask()
    begun = begun or (held.reset() and uv.hrtime())
    local reply = wire.list('tools')
    vim.defer_fn(reply.loading and ask or function()
      M.loaded = { held = held.longest(), ms = (uv.hrtime() - begun) / 1e6, count = #vim.json.decode(reply.json) }
    end, reply.loading and 10 or 50)
  end
  vim.defer_fn(ask, 100)
end

READ_TOOLS = M
