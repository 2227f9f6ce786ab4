--- What an agent was let write, and has written by itself: among the changes of agents, as an edit of a tool is.
---
--- Receives: what the person has accepted of a proposal; word that the file was written, and its text.
--- Sends: the change to those that are kept; `User McpToolsEdit` to others.
--- Does not know about: how files are looked out for, what a buffer takes over. It changes no text.

local buffers = require('mcp-tools.editor.buffer')
local change = require('mcp-tools.editor.edit.change')
local changes = require('mcp-tools.editor.edit.changes')
local text_diff = require('mcp-tools.editor.text.diff')

local M = {}

--- What stands for the name of a tool: agents write with one of their own.
local TOOL = 'proposal'

---@param one string[]
---@param other string[]
---@return boolean
local function are_same(one, other)
  return #one == #other and text_diff.same_lines(one, other) == #one
end

--- What was accepted, by places of the new text.
---@param proposal mcp-tools.Proposal
---@return mcp-tools.EditHunk[]
local function hunks_of(proposal)
  local hunks, shift = {}, 0
  for _, hunk in ipairs(proposal.hunks) do
    if hunk.verdict == 'accepted' and not hunk.changed and not hunk.form then
      local line = hunk.start + shift - (#hunk.new == 0 and 1 or 0)
      table.insert(hunks, { line = line, removed = hunk.count, added = #hunk.new })
      shift = shift + #hunk.new - hunk.count
    end
  end
  return hunks
end

--- Keeps in mind what is to be written: once it is, the text before is nowhere else.
---@param session mcp-tools.companion.Session
---@param accepted mcp-tools.ReviewOutcome of one file
---@return fun(now: string[]) note to be called with the text of the file, after it was written
function M.expect(session, accepted)
  local proposal = accepted.proposals[1]
  local lines = proposal:final() or {}
  local before, path, is_new, hunks = proposal.base, proposal.path, proposal.is_new, hunks_of(proposal)
  local client = { name = session.client ~= '' and session.client or session.companion, version = session.version }
  return function(now)
    if #hunks == 0 or not are_same(lines, now) then
      return -- somebody else has written it
    end
    local ctx = { call = { name = TOOL }, client = client, session = session.key } --[[@as mcp-tools.Ctx]]
    local bufnr = buffers.of_path(path)
    local fields = { path = path, bufnr = bufnr, before = before, hunks = hunks, is_new = is_new }
    local id = changes.note(ctx, fields, function(first, count)
      return vim.list_slice(lines, first, first + count - 1)
    end)
    change.announce(path, bufnr, hunks, ctx, id)
  end
end

return M
