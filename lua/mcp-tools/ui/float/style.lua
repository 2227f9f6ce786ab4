--- Highlight groups of a kind of floating window, each linked to one of the colour scheme.
---
--- Receives: the beginning of their names, and what each is linked to; rows with marks; texts for a frame.
--- Sends: groups that a colour scheme may define itself; a buffer with those rows; chunks for `nvim_open_win`.
--- Does not know about: windows, what the texts say.

local api = vim.api

local M = {}

---@class mcp-tools.FloatStyle
---@field prefix string
---@field links table<string, string> what follows the prefix → group of the colour scheme; '' is the text
---@field namespace integer
local Style = {}
Style.__index = Style

--- Makes one. `Hidden` is for characters that cannot be seen, and `Key`, `Heading`, `Cut` are for the frame.
---@param prefix string
---@param links table<string, string>
---@return mcp-tools.FloatStyle
function M.new(prefix, links)
  local all = { [''] = 'NormalFloat', Key = 'Special', Heading = 'Title', Cut = 'WarningMsg', Hidden = 'ErrorMsg' }
  local namespace = api.nvim_create_namespace(prefix)
  return setmetatable({ prefix = prefix, links = vim.tbl_extend('force', all, links), namespace = namespace }, Style)
end

--- Defines the groups, where the colour scheme does not.
function Style:define()
  for name, link in pairs(self.links) do
    api.nvim_set_hl(0, self.prefix .. name, { link = link, default = true })
  end
  -- The frame stands on the background of the text, whatever the colour scheme has for frames.
  local border = api.nvim_get_hl(0, { name = 'FloatBorder', link = false })
  local normal = api.nvim_get_hl(0, { name = 'NormalFloat', link = false })
  local own = { fg = border.fg, ctermfg = border.ctermfg, bg = normal.bg, ctermbg = normal.ctermbg, default = true }
  api.nvim_set_hl(0, self.prefix .. 'Border', own)
end

--- As the option 'winhighlight' takes them.
---@return string
function Style:winhighlight()
  return ('Normal:%s,FloatBorder:%sBorder'):format(self.prefix, self.prefix)
end

--- Writes rows into a buffer that the person cannot change.
---@param buffer integer
---@param page mcp-tools.Page
function Style:write(buffer, page)
  vim.bo[buffer].modifiable = true
  api.nvim_buf_set_lines(buffer, 0, -1, false, page.rows)
  vim.bo[buffer].modifiable = false
  api.nvim_buf_clear_namespace(buffer, self.namespace, 0, -1)
  for _, mark in ipairs(page.marks) do
    local where = { end_col = mark.to, hl_group = self.prefix .. mark.name }
    api.nvim_buf_set_extmark(buffer, self.namespace, mark.row, mark.from, where)
  end
end

--- A part of a frame, on the background of the text.
---@param text string
---@param name string of its group, without the prefix
---@return table
function Style:chunk(text, name)
  return { text, { self.prefix, self.prefix .. name } }
end

--- Adds to a title how much there is to read.
---@param chunks table[]
---@param below integer rows that are not on the screen
---@return table[] chunks
function Style:with_more(chunks, below)
  if below > 0 then
    table.insert(chunks, self:chunk(('… %d more line%s '):format(below, below == 1 and '' or 's'), 'Cut'))
  end
  return chunks
end

--- A footer that names keys; of these as many as there is room for.
---@param list { [1]: string, [2]: string }[] keys, and what they do
---@param width integer
---@return table[] chunks
function Style:keys(list, width)
  local used, chunks = 0, {}
  for _, part in ipairs(list) do
    local cells = api.nvim_strwidth(part[1] .. part[2]) + 3
    if used + cells <= width then
      used = used + cells
      table.insert(chunks, self:chunk((' %s '):format(part[1]), 'Key'))
      table.insert(chunks, self:chunk(part[2] .. ' ', ''))
    end
  end
  return chunks
end

return M
