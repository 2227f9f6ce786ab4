-- Stands where a notification plugin stands: takes the place of `vim.notify`, which is made to be replaced, and keeps
-- what it is given. `local notifications = require('notifications')`.
local t = require('helpers')

local M = {}

local original

---Collect from now on. `fail_with` makes it throw instead, as a broken plugin does.
---@param fail_with string?
---@param as_table boolean? in the form of a module that can be called, as that of nvim-notify
---@return { text: string, level: integer, title: string? }[] list that grows
function M.collect(fail_with, as_table)
  original = original or vim.notify
  M.list = {}
  local function show(text, level, opts)
    if fail_with then
      error(fail_with)
    end
    table.insert(M.list, { text = text, level = level, title = opts and opts.title })
  end
  vim.notify = not as_table and show or setmetatable({}, { __call = function(_, ...) show(...) end })
  return M.list
end

---Collect notifications in each test of this group.
function M.each()
  before_each(function() M.collect() end)
  after_each(M.restore)
end

---Everything that was shown since `collect`.
---@return string
function M.text() return table.concat(t.field('text', M.list), '\n') end

---Wait until something that contains `text` was shown.
---@param text string
function M.wait(text)
  t.wait(function() return M.text():find(text, 1, true) end, 5000, ('a notification with "%s"'):format(text))
end

---Run a command, and wait for a notification that contains `text`.
---@param command string
---@param text string
function M.after(command, text)
  vim.cmd(command)
  M.wait(text)
end

---Give `vim.notify` back.
function M.restore() vim.notify = original or vim.notify end

return M
