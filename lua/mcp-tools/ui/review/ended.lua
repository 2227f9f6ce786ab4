--- What a review came to, in a line: its keys are the person's own again, which they have to know.
---
--- Receives: a review that has ended.
--- Sends: a text.
--- Does not know about: how it is told, what becomes of a verdict.

--- What a hunk was decided to be, in the order in which it is told; of what is made already it is the reverse.
local PROPOSED = { { 'accepted', 'accepted' }, { 'rejected', 'rejected' } }
local APPLIED = { { 'rejected', 'kept' }, { 'accepted', 'reverted' } }

---@param review mcp-tools.Review
---@return string
return function(review)
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
  return 'the review is over: ' .. (#parts > 0 and table.concat(parts, ', ') or 'nothing is left of it')
end
