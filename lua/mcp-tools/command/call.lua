-- Metatables of content values say nothing to a reader.
local function plain(item, path)
  if path[#path] ~= vim.inspect.METATABLE then
    return item
  end
end

local core = require('mcp-tools.core')
local mcp_tools = require('mcp-tools')
local notify = require('mcp-tools.notify')
local scratch = require('mcp-tools.ui.scratch')
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

---@param text string
---@return table? args, string? err
local function decode(text)
  if text == '' then
    return vim.empty_dict()
  end
  local ok, decoded = pcall(vim.json.decode, text)
  if not ok then
    return nil, (tostring(decoded):gsub('^.-:%d+: ', ''))
  elseif type(decoded) ~= 'table' or (vim.islist(decoded) and #decoded > 0) then
    return nil, 'they are of another type'
  end
  return decoded
end

---@type mcp-tools.Subcommand
return {
  description = 'TOOL [JSON]: run a tool and show its result',
  run = function(rest)
    local name, text = rest:match('^(%S+)%s*(.*)$')
    if not name then
      return notify.error('which tool? :McpTools call TOOL [JSON]')
    end
    local function show(lines, opts)
      scratch.show('call ' .. name, lines, vim.tbl_extend('error', { wrap = true }, opts or {}))
    end
    local args, fault = decode(text)
    if not args then
      return show({ 'The arguments are no JSON object: ' .. fault, '  ' .. text })
    end
    local typed = true -- the person has just pressed Enter and waits
    mcp_tools.call(name, args, { host = 'command' }, function(result, err)
      local lines, filetype
      if err then
        lines = failure(err)
      else
        lines, filetype = shown(result)
      end
      if typed then
        return show(lines, { filetype = filetype })
      end
      vim.schedule(function()
        show(lines, { filetype = filetype, stay = true })
      end)
    end)
    typed = false
  end,
  complete = function()
    return vim.tbl_map(function(tool)
      return tool.name
    end, core.get().registry:list('tools'))
  end,
}
