--- Uses of a symbol as text: the path of a file once, then `line around: text` for each line.
---
--- Receives: references.
--- Sends: text that stays within bounds.
--- Does not know about: how they were found.

local fit = require('mcp-tools.editor.result.fit')
local matches_text = require('mcp-tools.editor.search.matches_text')
local trim = require('mcp-tools.util.trim')

local M = {}

---@param found mcp-tools.References
---@param opts { limit: integer, offset: integer }
---@param with_text boolean
---@return string[]
local function rows(found, opts, with_text)
  local out, passed, last = {}, 0, opts.offset + opts.limit
  for _, file in ipairs(found.files) do
    local named, around = false, nil
    for _, row in ipairs(file.rows) do
      if passed >= opts.offset and passed < last then
        if not named then
          table.insert(out, file.shown .. (file.why and (' (lines withheld: %s)'):format(file.why) or ''))
          named, around = true, nil
        end
        local name = row.around and row.around ~= around and (' ' .. row.around) or ''
        around = row.around
        local text = with_text and row.text and trim(row.text)
        local shown = text and ': ' .. matches_text.shown(text) or ''
        table.insert(out, ('  %d%s%s'):format(row.row + 1, name, shown))
      end
      passed = passed + 1
    end
  end
  return out
end

--- The answer.
---@param found mcp-tools.References
---@param name string path of the symbol
---@param opts { limit: integer, offset: integer }
---@return string
function M.of(found, name, opts)
  local lines = 0
  for _, file in ipairs(found.files) do
    lines = lines + #file.rows
  end
  local head = ('%d references to %s in %d files (by %s)'):format(found.total, name, #found.files, found.by)
  if found.guessed then
    head = head .. '; no language server says what is meant: others of that name, strings and comments are among them'
  elseif found.incomplete then
    head = ('%s; %s, so there may be more'):format(head, found.incomplete)
  end
  local last = math.min(opts.offset + opts.limit, lines)
  if opts.offset > 0 or last < lines then
    head = ('%s; lines %d-%d of %d'):format(head, math.min(opts.offset + 1, last), last, lines)
    head = head .. (last < lines and (', offset=%d goes on'):format(last) or '')
  end
  local function variant(with_text, without)
    return {
      without = without,
      text = function()
        local list = rows(found, opts, with_text)
        table.insert(list, 1, head)
        return table.concat(list, '\n')
      end,
    }
  end
  return fit.longest({
    variant(true),
    variant(false, 'the text of the lines'),
    {
      without = 'lines, so counts per file',
      text = function()
        local list = { head }
        for _, file in ipairs(found.files) do
          table.insert(list, ('%s: %d'):format(file.shown, file.count))
        end
        return table.concat(list, '\n')
      end,
    },
    {
      without = 'files to be named, so the total',
      text = function()
        return head
      end,
    },
  }, 'narrow it with limit and offset')
end

return M
