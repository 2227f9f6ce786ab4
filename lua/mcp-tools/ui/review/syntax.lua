--- Lines that no buffer has, coloured as a buffer of their language would be.
---
--- Receives: lines and a file type.
--- Sends: each as chunks of text with groups, for virtual lines; one chunk where there is no parser.
--- Does not know about: where they are shown.

local api = vim.api

local M = {}

--- More lines of one hunk are not parsed while the person waits.
local MAX_LINES = 400

---@alias mcp-tools.Chunk { [1]: string, [2]: string|string[] }

--- The group of each byte: `rows[row][col]`, both from 0.
---@param text string
---@param language string
---@return table<integer, table<integer, string>>?
local function groups_of(text, language)
  local ok, parser = pcall(vim.treesitter.get_string_parser, text, language)
  local query = ok and vim.treesitter.query.get(language, 'highlights')
  if not query then
    return nil
  end
  local rows = {}
  local tree = parser:parse()[1]
  local lines = vim.split(text, '\n', { plain = true })
  for id, node in query:iter_captures(tree:root(), text) do
    local name = query.captures[id]
    if not vim.startswith(name, '_') and name ~= 'spell' and name ~= 'nospell' and name ~= 'conceal' then
      local group = ('@%s.%s'):format(name, language)
      local row, col, end_row, end_col = node:range()
      for at = row, end_row do
        local first, last = at == row and col or 0, at == end_row and end_col or #(lines[at + 1] or '')
        rows[at] = rows[at] or {}
        for byte = first, last - 1 do
          rows[at][byte] = group
        end
      end
    end
  end
  return rows
end

---@param line string
---@param groups table<integer, string>?
---@param below string group of the whole line
---@return mcp-tools.Chunk[]
local function chunks_of(line, groups, below)
  local chunks, from = {}, 1
  for at = 1, groups and #line or 0 do
    ---@cast groups -?
    if at == #line or groups[at] ~= groups[at - 1] then
      local group = groups[at - 1]
      table.insert(chunks, { line:sub(from, at), group and { below, group } or below })
      from = at + 1
    end
  end
  if from <= #line then
    table.insert(chunks, { line:sub(from), below })
  end
  return chunks
end

---@param line string
---@param width integer of a tab
---@return string
local function without_tabs(line, width)
  local out, cells = {}, 0
  for text, tab in line:gmatch('([^\t]*)(\t?)') do
    table.insert(out, text)
    cells = cells + api.nvim_strwidth(text)
    if tab ~= '' then
      local count = width - cells % width
      table.insert(out, (' '):rep(count))
      cells = cells + count
    end
  end
  return table.concat(out)
end

--- The lines as chunks, each as wide as the screen, so that its background reaches the edge.
---@param lines string[]
---@param bufnr integer whose file type and tabs count
---@param below string group of all of it
---@return mcp-tools.Chunk[][]
function M.lines(lines, bufnr, below)
  local shown = vim.tbl_map(function(line)
    return without_tabs(line, vim.bo[bufnr].tabstop)
  end, lines)
  local language = vim.treesitter.language.get_lang(vim.bo[bufnr].filetype)
  local ok, groups = false, nil
  if language and #shown <= MAX_LINES then
    ok, groups = pcall(groups_of, table.concat(shown, '\n'), language)
  end
  local out = {}
  for i, line in ipairs(shown) do
    out[i] = chunks_of(line, ok and groups and groups[i - 1] or nil, below)
    table.insert(out[i], { (' '):rep(math.max(1, vim.o.columns - api.nvim_strwidth(line))), below })
  end
  return out
end

return M
