--- What a review came to, in a line: its keys are the person's own again, which they have to know.

--- What a hunk was decided to be, in the order in which it is told; of what is made already it is the reverse.
local PROPOSED = { { 'accepted', 'accepted' }, { 'rejected', 'rejected' } }
local APPLIED = { { 'rejected', 'kept' }, { 'accepted', 'reverted' } }

--- Has a buffer lines that the user has not saved, and that are saved with what was accepted?
---@param review mcp-tools.Review
---@return boolean
local function saves_more(review)
  return review.saves
    and vim.iter(review.files):any(function(file)
      return file.bufnr ~= nil and vim.api.nvim_buf_is_valid(file.bufnr) and vim.bo[file.bufnr].modified
    end)
end

---@param review mcp-tools.Review
---@return string? text nil: whether it can be applied is not known yet, and is told by who asked
return function(review)
  if review.whole and review.ended == 'accepted' then
    return nil
  end
  if review.ended ~= 'accepted' and review.ended ~= 'rejected' then
    return 'the review is over before all was decided'
  end
  local counts = {}
  for _, file in ipairs(review.files) do
    for _, hunk in ipairs(file.hunks) do
      counts[hunk.verdict or ''] = (counts[hunk.verdict or ''] or 0) + 1
    end
  end
  local parts = {}
  for _, word in ipairs(review.applied and APPLIED or PROPOSED) do
    if counts[word[1]] then
      table.insert(parts, ('%d %s'):format(counts[word[1]], word[2]))
    end
  end
  local more = review.ended == 'accepted' and saves_more(review)
  return 'the review is over: '
    .. (#parts > 0 and table.concat(parts, ', ') or 'nothing is left of it')
    .. (more and '; also saved: your other changes in this buffer' or '')
end
