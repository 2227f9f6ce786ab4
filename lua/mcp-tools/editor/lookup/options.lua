--- Finds options and their values.

local buffers = require('mcp-tools.editor.buffer')
local focus = require('mcp-tools.editor.user.focus')
local redact = require('mcp-tools.privacy.redact')
local script = require('mcp-tools.editor.lookup.script')
local utf8 = require('mcp-tools.util.utf8')

local api = vim.api

--- Maximum length of a value, in bytes.
local MAX_VALUE = 500
local SCOPES = { buf = 'buffer', win = 'window', global = 'global' }

---@param value any
---@return string
local function shown(value)
  return redact.line(utf8.cut(tostring(value), MAX_VALUE))
end

--- Returns options; without a query, those whose value is not the default.
---@param query string? an option's name or a part of it; lower case
---@param pause fun()
---@return string[] rows
return function(query, pause)
  local rows, source, bufnr = {}, script(), buffers.current()
  local window = bufnr and focus.window(bufnr)
  redact.refresh(pause)
  for name, about in vim.spairs(api.nvim_get_all_options_info()) do
    local where = {} -- for global-local options, the value in effect
    if not about.global_local then
      where = about.scope == 'buf' and { buf = bufnr } or about.scope == 'win' and { win = window } or {}
    end
    local ok, value = pcall(api.nvim_get_option_value, name, where) -- Neovim 0.10 lists options that it has not
    local is_wanted = value ~= about.default
    if query then
      is_wanted = name:find(query, 1, true) ~= nil or about.shortname == query
    end
    if ok and is_wanted then
      local info = api.nvim_get_option_info2(name, where)
      local place = source(info.last_set_sid, info.last_set_linenr)
      local row = ('%s=%s (%s; default %s%s)'):format(
        name,
        shown(value),
        SCOPES[about.scope],
        shown(about.default),
        place and '; set in ' .. place or ''
      )
      table.insert(rows, (name == query or about.shortname == query) and 1 or #rows + 1, row)
    end
    pause()
  end
  return rows
end
