-- A project with one text file and a scripted language server (lsp_double.lua).

local double = require('lsp_double')
local files = require('editor_project')
local project = require('lsp_project')
local t = require('helpers')

local M = {}

local path

--- A new project without a real server. Closed by `project.close`.
---@return string path of its file
function M.open()
  project.open('python')
  pcall(vim.api.nvim_del_augroup_by_name, 'lsp_project')
  path = project.write('text.txt', 'one\n')
  return path
end

--- Opens the file and starts a server for it.
---@param capabilities table
---@param answers? table<string, any>
---@return LspDouble
---@return integer bufnr
function M.server(capabilities, answers)
  files.age()
  local bufnr = vim.fn.bufadd(path)
  vim.fn.bufload(bufnr)
  vim.bo[bufnr].buflisted = true
  return double.start(bufnr, project.root, capabilities, answers or {}), bufnr
end

--- The same; the server has published that the file has no diagnostics, so that it is ready.
---@return LspDouble
---@return integer bufnr
function M.ready(capabilities, answers)
  local s, bufnr = M.server(capabilities, answers)
  s:publish(bufnr, vim.lsp.util.buf_versions[bufnr], {})
  return s, bufnr
end

--- `server` and `ready` for a spec that keeps the number of the buffer.
---@param keep fun(bufnr: integer)
function M.starters(keep)
  local function starter(begin)
    return function(...)
      local s, bufnr = begin(...)
      keep(bufnr)
      return s
    end
  end
  return starter(M.server), starter(M.ready)
end

--- A call that has not ended.
---@return mcp-tools.Call
function M.start(name, args)
  local call = project.start(name, args)
  vim.wait(30, function() return call:ended() end, 5)
  t.ok(not call:ended(), name .. ' did not wait')
  return call
end

--- Waits for the result of a call.
---@param call mcp-tools.Call
---@param ms? integer
function M.result_of(call, ms)
  t.ended(call, ms or 8000)
  t.eq(nil, call.outcome.error)
  return vim.json.decode(vim.json.encode(call.outcome.value), { luanil = { object = true, array = true } })
end

return M
