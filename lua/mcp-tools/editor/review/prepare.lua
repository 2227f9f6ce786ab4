--- A proposal for a file, made so that the editor has its turns meanwhile.
---
--- Receives: the text that is proposed, and what it is for.
--- Sends: the proposal. Does not know about: reviews, what is said of it.

local Proposal = require('mcp-tools.editor.review.proposal')
local buffers = require('mcp-tools.editor.buffer')
local hunk_list = require('mcp-tools.editor.text.hunks')
local text = require('mcp-tools.files.text')
local time_slice = require('mcp-tools.util.time_slice')

local api = vim.api

--- Bytes; of shorter ones a proposal is made at once.
local LONG = 128 * 1024

--- Makes a proposal. Long texts are compared beside the main loop.
---@param fields mcp-tools.ProposalFields
---@param cb fun(proposal: mcp-tools.Proposal?) at once where nothing is long; nil: its buffer was closed meanwhile
return function(fields, cb)
  local bufnr = fields.bufnr
  local size = math.max(#fields.text, fields.base and #fields.base or 0, bufnr and buffers.size(bufnr) or 0)
  if size < LONG or fields.made then
    return cb(Proposal.new(fields))
  end
  local known = {} ---@type mcp-tools.ProposalKnown
  if bufnr and not fields.base then -- as it is now: what is typed from now on was not proposed to go
    known.base, known.tick = api.nvim_buf_get_lines(bufnr, 0, -1, false), api.nvim_buf_get_changedtick(bufnr)
  end
  time_slice.run(function(pause)
    known.proposed, known.new_ends = text.lines_of(fields.text, pause)
    if fields.base then
      known.base, known.ends = text.lines_of(fields.base, pause)
    end
    known.base = known.base or {}
    hunk_list.compare(known.base, known.proposed, function(hunks)
      known.hunks = hunks
      cb((not bufnr or api.nvim_buf_is_loaded(bufnr)) and Proposal.new(fields, known) or nil)
    end)
  end)
end
