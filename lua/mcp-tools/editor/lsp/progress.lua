--- Progress of language servers: the work that they say they are at (`$/progress`).
---
--- Receives: what a server says of its work, into its record (notifications.lua).
--- Sends: what is under way, and whether something has begun since.
--- Does not know about: what the work is, who waits for its end.
---
--- Neovim's own record of progress has no percentages.

local M = {}

--- Progress of our own requests is marked so; it says nothing about the server.
local OURS = 'mcp-tools:'
--- Progress that is announced begins by then, or never, ns.
local BEGINS = 1e9
--- What has said nothing for so long has been forgotten by its server, ns.
local FORGOTTEN = 60e9

---@class mcp-tools.lsp.Progress
---@field title string?
---@field message string?
---@field percentage number?
---@field at integer ns, when it was last heard of
---@field begun integer ns
---@field of_change boolean a changed text has set it off

--- A server that looks at a changed text begins by then, ns.
local LOOKS = 2e9
--- A server that reads the project of a file that was opened begins by then, or when it has answered a question that
--- was asked later; ns.
local READS = 1e9

--- Is work that begins now about a text that was changed, and not about files of which the server has learned?
---@param of mcp-tools.lsp.Heard
---@param now integer ns
---@return boolean
local function is_of_change(of, now)
  local is_read = of.answered_at > of.opened_at and now - of.opened_at > READS and now > (of.unsettled or 0)
  return is_read and now - of.changed_at < LOOKS
end

--- A server says something of its work.
---@param of mcp-tools.lsp.Heard
---@param params table of `$/progress`
function M.take(of, params)
  local token, value = params.token, params.value
  if type(value) ~= 'table' or vim.startswith(tostring(token), OURS) then
    return
  end
  local now = vim.uv.hrtime()
  of.announced[token] = nil
  if value.kind == 'end' then
    if of.progress[token] then
      of.progress[token], of.ended_at = nil, now
    end
  elseif value.kind == 'begin' or of.progress[token] then
    local entry = of.progress[token] or { title = value.title, begun = now, of_change = is_of_change(of, now) }
    entry.message = value.message or entry.message
    entry.percentage = value.percentage or entry.percentage
    entry.at = now
    of.progress[token] = entry
  end
end

--- A server is about to begin something.
---@param of mcp-tools.lsp.Heard
---@param params table of `window/workDoneProgress/create`
function M.announce(of, params)
  if params.token ~= nil then
    of.announced[params.token] = vim.uv.hrtime()
  end
end

--- What a server is at that was there before anybody listened.
---@param client vim.lsp.Client
---@param now integer ns
---@return table<any, mcp-tools.lsp.Progress>
function M.pending(client, now)
  local progress = {}
  for token, title in pairs(client.progress.pending) do
    progress[token] = { title = title, at = now, begun = now, of_change = false }
  end
  return progress
end

---@param entry mcp-tools.lsp.Progress
---@return number
local function percent(entry)
  return entry.percentage or 101
end

--- What the server is at, the slowest first to name: nil when it is at nothing.
---@param of mcp-tools.lsp.Heard
---@param reading? boolean without what a changed text has set off
---@return mcp-tools.lsp.Progress?
function M.busy(of, reading)
  local now, found = vim.uv.hrtime(), nil
  for token, entry in pairs(of.progress) do
    if now - entry.at > FORGOTTEN then
      of.progress[token] = nil
    elseif not (reading and entry.of_change) and (not found or percent(entry) < percent(found)) then
      found = entry
    end
  end
  return found
end

--- What the server is at that may be the reading of the project. One that has read it answers from the text that it was
--- told of last, whatever else it makes of a change; it is not waited for.
---@param of mcp-tools.lsp.Heard
---@return mcp-tools.lsp.Progress?
function M.reads(of)
  return M.busy(of, of.ready)
end

--- Has it begun some work since then that it has not ended? It may be about what it was told then.
---@param of mcp-tools.lsp.Heard
---@param since integer ns
---@return boolean
function M.works_since(of, since)
  if not M.busy(of) and not next(of.announced) then
    return false
  end
  local now = vim.uv.hrtime()
  for token, at in pairs(of.announced) do
    if now - at > BEGINS then
      of.announced[token] = nil
    elseif at > since then
      return true
    end
  end
  for _, entry in pairs(of.progress) do
    if entry.begun > since then
      return true
    end
  end
  return false
end

local count = 0

--- A token for the progress of a request of ours.
---@return string
function M.token()
  count = count + 1
  return OURS .. count
end

return M
