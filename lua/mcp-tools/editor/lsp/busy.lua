--- Whether the process of a language server is at work, as the system sees it: one that computes has not said all.
---
--- Receives: a client, again and again while somebody waits for it.
--- Sends: yes while its process, or one that it started, has just used the processor or waits for it.
--- Does not know about: what servers say. Where the system does not tell (no /proc), nothing is known to be at work.

local M = {}

--- A server that has used no processor for so long waits for something, ns.
local IDLE = 100e6
--- The system counts in hundredths of a second; looking more often tells nothing new, ns.
local EVERY = 20e6
--- Processes below a server that are looked at.
local MAX_PROCESSES = 16

---@class mcp-tools.lsp.Load
---@field pid integer? of the server; none: it is not known
---@field ticks integer used by it and what it started
---@field looked_at integer ns
---@field busy_at integer ns, when it last was seen at work

---@type table<integer, mcp-tools.lsp.Load> by client
local loads = {}

--- What a file of /proc holds, which is made when it is read.
---@param path string
---@return string?
local function read(path)
  local file = io.open(path, 'rb')
  if not file then
    return nil
  end
  local text = file:read('*a')
  file:close()
  return text
end

--- Is this the command of a client? A script stands behind its interpreter.
---@param pid integer
---@param command string[]
---@return boolean
local function runs(pid, command)
  local given = vim.split(read(('/proc/%d/cmdline'):format(pid)) or '', '\0', { plain = true, trimempty = true })
  for i = 2, #command do
    if given[#given - #command + i] ~= command[i] then
      return false
    end
  end
  local program = given[#given - #command + 1]
  return program ~= nil and vim.fs.basename(program) == vim.fs.basename(command[1])
end

---@param client vim.lsp.Client
---@return integer?
local function pid_of(client)
  local command = client.config.cmd
  if type(command) ~= 'table' or not read('/proc/self/stat') then
    return nil -- a function, or an address; or the system does not tell
  end
  for _, pid in ipairs(vim.api.nvim_get_proc_children(vim.uv.os_getpid())) do
    if runs(pid, command) then
      return pid
    end
  end
end

--- What a process and those below it have used of the processor.
---@param pid integer
---@return integer ticks
---@return boolean runs one of them runs, or would if there were a processor free
local function used(pid)
  local ticks, running, list, i = 0, false, { pid }, 1
  while list[i] and i <= MAX_PROCESSES do
    -- The name of the program, in brackets, may hold anything.
    local state, rest = (read(('/proc/%d/stat'):format(list[i])) or ''):match('^.*%) (%S) (.*)$')
    if state then
      local fields = vim.split(rest, ' ', { plain = true })
      ticks = ticks + (tonumber(fields[11]) or 0) + (tonumber(fields[12]) or 0)
      running = running or state == 'R'
      vim.list_extend(list, vim.api.nvim_get_proc_children(list[i]))
    end
    i = i + 1
  end
  return ticks, running
end

--- Is a server at work, or was a moment ago? A first look sees only whether it runs; those that follow compare.
---@param client vim.lsp.Client
---@return boolean
function M.is(client)
  local now, load = vim.uv.hrtime(), loads[client.id]
  if not load then
    load = { pid = pid_of(client), ticks = -1, looked_at = 0, busy_at = 0 }
    loads[client.id] = load
  end
  if not load.pid then
    return false
  elseif now - load.looked_at >= EVERY then
    local ticks, running = used(load.pid)
    local is_known = now - load.looked_at <= 2 * IDLE -- else nobody has looked for a while
    if running or is_known and ticks ~= load.ticks then
      load.busy_at = now
    end
    load.ticks, load.looked_at = ticks, now
  end
  return now - load.busy_at < IDLE
end

return M
