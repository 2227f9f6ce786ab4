--- From hunk to hunk of a review, through all of its files.

local M = {}

--- The hunk after a place, or before it, round and round the files; one to decide on if there is any.
---@param view mcp-tools.ReviewView
---@param step 1|-1
---@param from? { [1]: integer, [2]: integer } file and hunk; default: where the person is
---@return integer? file
---@return integer? hunk
function M.neighbour(view, step, from)
  local files, places, at = view.review.files, {}, 0
  local file_now, hunk_now = unpack(from or { view.file, view.hunk })
  local open_only = view.review:undecided() > 0
  for i, file in ipairs(files) do
    for j, hunk in ipairs(file.gone and {} or file.hunks) do
      local is_before = i < file_now or i == file_now and (j < hunk_now or step > 0 and j == hunk_now)
      if not open_only or not hunk.verdict then
        table.insert(places, { i, j })
        at = is_before and #places or at
      end
    end
  end
  if #places > 0 then
    local found = places[(step > 0 and at or at - 1) % #places + 1]
    return found[1], found[2]
  end
end

--- Where the hunk is that the person gave the latest verdict on.
---@param view mcp-tools.ReviewView
---@return integer? file
---@return integer? hunk
function M.latest(view)
  while #view.said > 0 do
    local wanted = table.remove(view.said)
    for i, file in ipairs(view.review.files) do
      for j, hunk in ipairs(file.gone and {} or file.hunks) do
        if hunk == wanted and hunk.verdict then
          return i, j
        end
      end
    end
  end
end

return M
