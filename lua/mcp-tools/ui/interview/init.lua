--- Interviews: series of questions to the user. One interview is on the screen, others wait.

local answers = require('mcp-tools.ui.interview.answers')
local errors = require('mcp-tools.errors')
local float = require('mcp-tools.ui.interview.float')
local log = require('mcp-tools.log')
local notify = require('mcp-tools.notify')
local sessions = require('mcp-tools.util.session')

local M = {}

---@class mcp-tools.Interview
---@field answers mcp-tools.Answers
---@field from string? who asks
---@field session string? whose interviews are counted together
---@field waiting integer number of interviews behind it
---@field why_not string? why the next question is not shown
---@field entered boolean? see mcp-tools.FloatSubject
---@field closed boolean?
---@field is_kept boolean? its text is in the unnamed register
---@field cb fun(result: mcp-tools.InterviewResult?, err: mcp-tools.Error?)
local Interview = {}
Interview.__index = Interview

---@type mcp-tools.Interview[] the first is on the screen
local open = {}

local function advance()
  if open[1] then
    open[1].waiting = #open - 1
  end
  float:show(open[1])
  vim.schedule(function() -- after the current request was answered
    local opts = { pattern = 'McpToolsInterview', modeline = false, data = { open = #open } }
    log.guard('an autocommand for User McpToolsInterview', vim.api.nvim_exec_autocmds, 'User', opts)
  end)
end

--- Closes the interview.
---@return boolean was_open
function Interview:close()
  if self.closed then
    return false
  end
  self.closed = true
  open = vim.tbl_filter(function(other)
    return other ~= self
  end, open)
  float:hide(self)
  advance()
  return true
end

--- Ends the interview with a result.
---@param result mcp-tools.InterviewResult
function Interview:finish(result)
  if self:close() then
    self.cb(result)
  end
end

--- Copies what the user typed to the unnamed register.
---@return boolean kept
function Interview:keep_text()
  local typed = self.answers:typed()
  if typed ~= '' then
    vim.fn.setreg('"', typed)
  end
  self.is_kept = typed ~= ''
  return self.is_kept
end

--- Closes the interview without a result. What the user typed is in the unnamed register.
---@return boolean was_open
function Interview:cancel()
  if not self.closed and self.answers then
    float:save(self)
    if self:keep_text() then
      notify.info('the questions are closed; your text is in register "')
    end
  end
  return self:close()
end

--- Starts an interview. `cb` is called once, asynchronously; after `cancel` it is not called.
---@param questions mcp-tools.InterviewQuestion[]
---@param opts { from: string?, session: string? }
---@param cb fun(result: mcp-tools.InterviewResult?, err: mcp-tools.Error?)
---@return { cancel: fun(self): boolean } handle
function M.ask(questions, opts, cb)
  local interview = setmetatable({ from = opts.from, session = opts.session, waiting = 0, cb = cb }, Interview)
  local fault, err = answers.fault(questions), nil
  local clients = vim.tbl_map(function(other)
    return other.session or false
  end, open)
  local count = sessions.crowd(clients, opts.session or false, 'interviews')
  if fault then
    err = errors.new('validation_error', fault)
  elseif #vim.api.nvim_list_uis() == 0 then
    err = errors.new('capability_missing', 'nobody can be asked: the editor has no UI')
  elseif count then
    err = errors.new('busy', count .. ' are open; try again later')
  end
  if err then
    vim.schedule(function()
      if not interview.closed then
        interview.closed = true
        cb(nil, err)
      end
    end)
    return interview
  end
  interview.answers = answers.new(questions)
  table.insert(open, interview)
  advance()
  return interview
end

--- Returns the number of open interviews.
---@return integer
function M.count()
  return #open
end

--- Moves the cursor to the interview on the screen.
function M.focus()
  float:focus()
end

return M
