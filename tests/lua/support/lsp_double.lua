-- A language server inside of the editor that does what a test says: the second implementation of what servers speak.

local t = require('helpers')

local M = {}

---@class LspDouble
---@field answers table<string, any|fun(params: table): any>
---@field asked table[] { method, params }
---@field told table[] { method, params }
---@field client vim.lsp.Client
---@field opens fun()? what it does when a file is opened
local Double = {}
Double.__index = Double

--- Starts one for a buffer.
---@param bufnr integer
---@param root string
---@param capabilities table
---@param answers table<string, any>
---@return LspDouble
function M.start(bufnr, root, capabilities, answers)
  local self = setmetatable({ answers = answers, asked = {}, told = {} }, Double)
  local function answer(method, params)
    if method == 'initialize' then
      return {
        capabilities = vim.tbl_extend('keep', capabilities, { textDocumentSync = 1, positionEncoding = 'utf-8' }),
      }
    end
    local value = self.answers[method]
    if type(value) == 'function' then
      return value(params)
    end
    return value
  end
  local id = vim.lsp.start({
    name = 'double',
    filetypes = { 'text' },
    root_dir = root,
    cmd = function(dispatchers)
      self.dispatchers = dispatchers
      local count, closing = 0, false
      return {
        request = function(method, params, callback, notify_reply)
          count = count + 1
          local number = count
          table.insert(self.asked, { method = method, params = params })
          vim.schedule(function()
            local result = answer(method, params)
            if notify_reply then
              notify_reply(number)
            end
            if type(result) == 'table' and result.fault then
              callback({ code = -32603, message = result.fault })
            elseif result ~= M.SILENT then
              callback(nil, result)
            end
          end)
          return true, number
        end,
        notify = function(method, params)
          table.insert(self.told, { method = method, params = params })
          if method == 'textDocument/didOpen' and self.opens then
            vim.defer_fn(self.opens, 20) -- a server of its own takes its time, too
          end
          if method == 'exit' then
            closing = true
            dispatchers.on_exit(0, 0)
          end
          return true
        end,
        is_closing = function() return closing end,
        terminate = function()
          if not closing then
            closing = true
            dispatchers.on_exit(0, 0)
          end
        end,
      }
    end,
  }, { bufnr = bufnr, reuse_client = t.returns(false) })
  self.client = assert(vim.lsp.get_client_by_id(id))
  t.wait(function() return self.client.initialized and self:heard('textDocument/didOpen') end)
  return self
end

--- What it never answers.
M.SILENT = {}

--- A range, in one line unless a last one is given.
---@return lsp.Range
function M.range(line, character, end_character, end_line)
  return {
    start = { line = line, character = character },
    ['end'] = { line = end_line or line, character = end_character },
  }
end

--- An answer that is an error.
---@param message string
---@return table
function M.fault(message) return { fault = message } end

--- Says something by itself.
---@param method string
---@param params table
function Double:say(method, params) self.dispatchers.notification(method, params) end

---@param kind 'begin'|'report'|'end'
---@param value? table
function Double:progress(kind, value)
  self:say('$/progress', { token = 'work', value = vim.tbl_extend('force', { kind = kind }, value or {}) })
end

--- What it thinks of a text.
---@param bufnr integer
---@param version integer?
---@param messages (string|table)[] texts, or fields of diagnostics
function Double:publish(bufnr, version, messages)
  local list = {}
  for i, message in ipairs(messages) do
    local more = type(message) == 'table' and message or { message = message }
    local each = { range = M.range(0, 0, 1), severity = 1, source = 'double' }
    list[i] = vim.tbl_extend('force', each, more)
  end
  local params = { uri = vim.uri_from_bufnr(bufnr), version = version, diagnostics = list }
  self:say('textDocument/publishDiagnostics', params)
end

--- Has it been told something?
---@param method string
---@return table? params the last
function Double:heard(method)
  for i = #self.told, 1, -1 do
    if self.told[i].method == method then
      return self.told[i].params
    end
  end
end

return M
