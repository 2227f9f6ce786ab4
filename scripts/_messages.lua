--- Texts of errors in the Lua sources that a person may meet, found in their syntax (run by _doc_data.lua).
---
--- Receives: the folder of the sources. Sends: every such text with its file, `…` for what is filled in.
--- Does not know about: what is said of an error in the documentation (errors.toml).
---
--- Counted are `notify.error|warn|once(…)`, tables with `message` and `advice`, faults that are gathered in config/ and
--- mounts/, `error(…)` there, words of mounts/ that begin with `mount '`, and what bridge/ gives to a `cb` in place of
--- a value. A text that only passes through is none.

local M = {}

--- An expression gives rarely more; a longer list would be a mistake of this file.
local MOST = 16

---@param text string a string literal's content, perhaps a format
---@return string
local function template(text)
  text = text:gsub('%%%-?%d*[sdgq]', '…'):gsub('%%%%', '%%')
  return (text:gsub("\\'", "'"):gsub('\\n', ' '))
end

---@param list string[]
---@param more string[]
---@return string[]
local function both(list, more)
  local out = {}
  for _, a in ipairs(list) do
    for _, b in ipairs(more) do
      assert(#out < MOST, 'too many texts in one expression')
      out[#out + 1] = a .. b
    end
  end
  return out
end

---@param root TSNode
---@param source string
---@return { type: string, [string]: any } reader
local function reader_of(root, source)
  local reader = {}

  function reader.text(node)
    return vim.treesitter.get_node_text(node, source)
  end

  --- The last value that a name was given before a place.
  local function value_of(name, before)
    local found
    local query = vim.treesitter.query.parse(
      'lua',
      '(assignment_statement (variable_list . (_) @name) (expression_list . (_) @value)) @all'
    )
    for _, match in query:iter_matches(root, source, 0, -1, { all = true }) do
      local at = {}
      for id, nodes in pairs(match) do
        at[query.captures[id]] = type(nodes) == 'table' and nodes[#nodes] or nodes
      end
      if reader.text(at.name) == name and select(3, at.all:start()) < before then
        found = at.value
      end
    end
    return found
  end

  --- What an expression may be as a text.
  function reader.texts(node, depth)
    local kind = node:type()
    depth = depth or 0
    if depth > 8 then
      return { '…' }
    elseif kind == 'string' then
      local content = node:field('content')[1]
      return { content and template(reader.text(content)) or '' }
    elseif kind == 'parenthesized_expression' then
      return reader.texts(node:named_child(0), depth + 1)
    elseif kind == 'binary_expression' then
      local left, right = node:named_child(0), node:named_child(1)
      local operator = vim.trim(reader.text(node:child(1)))
      if operator == '..' then
        return both(reader.texts(left, depth + 1), reader.texts(right, depth + 1))
      elseif operator == 'or' then
        return vim.list_extend(reader.texts(left, depth + 1), reader.texts(right, depth + 1))
      end
      return operator == 'and' and reader.texts(right, depth + 1) or { '…' }
    elseif kind == 'function_call' then
      local name = node:field('name')[1]
      if name:type() == 'method_index_expression' and reader.text(name:field('method')[1]) == 'format' then
        return reader.texts(name:field('table')[1], depth + 1)
      end
    elseif kind == 'identifier' or kind == 'dot_index_expression' then
      local value = value_of(reader.text(node), select(3, node:start()))
      return value and reader.texts(value, depth + 1) or { '…' }
    end
    return { '…' }
  end

  return reader
end

--- Which argument of a call is a message.
local NOTIFIES = { ['notify.error'] = 1, ['notify.warn'] = 1, ['notify.once'] = 3 }
local GATHERS = { ['table.insert'] = 2, add = 1, error = 1 }

---@param path string from the folder of the sources
---@param name string of what is called
---@param text string of its arguments
---@return integer?
local function argument_of(path, name, text)
  local short = name:match('notify[%w_.]*$') or name:match('(%a+)$')
  if name:find('notify') and text:find("'info'", 1, true) then
    return nil
  elseif name:find('notify') then
    return NOTIFIES['notify.' .. (name:match('(%w+)$') or '')] or NOTIFIES[short]
  elseif vim.startswith(path, 'config/') or vim.startswith(path, 'mounts/') then
    return (name ~= 'table.insert' or text:find('^%(%s*faults')) and GATHERS[name] or nil
  elseif name == 'cb' and vim.startswith(path, 'bridge/') and text:find('^%(%s*nil,') then
    return 2
  end
end

---@param path string
---@param source string
---@param found fun(text: string)
local function look(path, source, found)
  local root = vim.treesitter.get_string_parser(source, 'lua'):parse()[1]:root()
  local reader = reader_of(root, source)
  local function visit(node)
    local kind = node:type()
    if kind == 'function_call' then
      local arguments = node:field('arguments')[1]
      local at = argument_of(path, reader.text(node:field('name')[1]), reader.text(arguments))
      local argument = at and arguments:named_child(at - 1)
      if argument then
        vim.iter(reader.texts(argument)):each(found)
      end
    elseif kind == 'table_constructor' then
      local fields = {}
      for field in node:iter_children() do
        local name = field:type() == 'field' and field:field('name')[1]
        if name then
          fields[reader.text(name)] = field:field('value')[1]
        end
      end
      if fields.message and (fields.advice or vim.startswith(path, 'bridge/interpreter')) then
        vim.iter(reader.texts(fields.message)):each(found)
      end
    elseif kind == 'string' and vim.startswith(path, 'mounts/') then
      local text = reader.texts(node)[1]
      if vim.startswith(text, "mount '") then
        found(text)
      end
    end
    for child in node:iter_children() do
      visit(child)
    end
  end
  visit(root)
end

--- Every text, with the file that it stands in.
---@param folder string `lua/mcp-tools`
---@return { text: string, file: string }[]
function M.find(folder)
  local list, seen = {}, {}
  for path, kind in vim.fs.dir(folder, { depth = 8 }) do
    if kind == 'file' and path:find('%.lua$') then
      local file = assert(io.open(vim.fs.joinpath(folder, path)))
      look(path, file:read('*a'), function(text)
        text = vim.trim((text:gsub('%s+', ' ')))
        local key = path .. '\n' .. text
        if not seen[key] and text:gsub('…', ''):find('%a%a') then
          seen[key] = true
          list[#list + 1] = { text = text, file = 'lua/mcp-tools/' .. path }
        end
      end)
      file:close()
    end
  end
  table.sort(list, function(a, b)
    return a.file .. a.text < b.file .. b.text
  end)
  return list
end

return M
