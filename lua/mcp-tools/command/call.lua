-- Metatables of content values say nothing to a reader.
local function plain(item, path)
  if path[#path] ~= vim.inspect.METATABLE then
    return item
  end
end

---@param value any
---@return string[] lines, string? filetype
local function shown(value)
  if value == nil then
    return { '(no result)' }
  elseif type(value) == 'string' then
    return { value }
  end
  return { vim.inspect(value, { process = plain }) }, 'lua'
end

---@param err mcp-tools.Error
---@return string[]
local function failure(err)
  local lines = { ('Error (%s): %s'):format(err.code, err.message) }
  for _, fault in ipairs(err.errors or {}) do
    table.insert(lines, ('  %s: %s'):format(fault.field, fault.message))
  end
  return lines
end

---@type mcp-tools.Subcommand
return {
  description = 'TOOL [JSON]: run a tool and show its result',
  run = function(rest)
    local notify = require('mcp-tools.notify')
    local name, text = rest:match('^(%S+)%s*(.*)$')
    if not name then
      return notify.error('which tool? :McpTools call TOOL [JSON]')
    end
    local args = vim.empty_dict()
    if text ~= '' then
      local ok, decoded = pcall(vim.json.decode, text)
      if not ok or type(decoded) ~= 'table' or (vim.islist(decoded) and #decoded > 0) then
        return notify.error(
          ('the arguments are no JSON object: %s'):format(ok and text or tostring(decoded):gsub('^.-:%d+: ', ''))
        )
      end
      args = decoded
    end
    require('mcp-tools').call(name, args, {}, function(result, err)
      local lines, filetype
      if err then
        lines = failure(err)
      else
        lines, filetype = shown(result)
      end
      require('mcp-tools.ui.scratch').show('call ' .. name, lines, { filetype = filetype })
    end)
  end,
  complete = function()
    return vim.tbl_map(function(tool)
      return tool.name
    end, require('mcp-tools.core').get().registry:list('tools'))
  end,
}
