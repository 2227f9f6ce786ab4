--- Corrects Python imports of a moved module: basedpyright changes only the last name of the dotted path, even if the
--- directory changes. The tool file_move reports what cannot be corrected.

local M = {}

---@param path string
---@return string[]
local function segments(path)
  return vim.split(path, '/', { plain = true, trimempty = true })
end

--- Returns a directory as a relative import from another one: `..core`.
---@param from string
---@param to string
---@return string
local function relative(from, to)
  local here, there, common = segments(from), segments(to), 0
  while here[common + 1] and here[common + 1] == there[common + 1] do
    common = common + 1
  end
  return ('.'):rep(#here - common + 1) .. table.concat(there, '.', common + 1)
end

--- Returns the new package name with which a file imports a moved module.
---@param package string the old one, such as `shop.util`, `.` or `..util`
---@param file string the importing file
---@param old string directory of the module
---@param new string
---@return string? nil: it is another package
local function moved_package(package, file, old, new)
  local dots, names = package:match('^(%.*)([%w_.]*)$')
  local parts = vim.split(names or '', '.', { plain = true, trimempty = true })
  if dots and dots ~= '' then
    local dir = vim.fs.dirname(file)
    for _ = 2, #dots do
      dir = vim.fs.dirname(dir)
    end
    return table.concat({ dir, unpack(parts) }, '/') == old and relative(vim.fs.dirname(file), new) or nil
  end
  local root = old:sub(1, -#names - 2)
  local is_top = #parts > 0 and old == root .. '/' .. table.concat(parts, '/')
  if not is_top or vim.uv.fs_stat(root .. '/__init__.py') or not vim.startswith(new, root .. '/') then
    return nil
  end
  return (new:sub(#root + 2):gsub('/', '.'))
end

--- Returns the edit of the package in front of the module's name, if the server left it out.
---@param line string
---@param each mcp-tools.Edit edit of the module's name
---@param new_package fun(package: string): string?
---@return mcp-tools.Edit?
local function package_edit(line, each, new_package)
  local before, after = line:sub(1, each.start_col), line:sub(each.end_col + 1)
  local function edit(first, old, new)
    return {
      start_line = each.start_line,
      end_line = each.end_line,
      start_col = first - 1,
      end_col = first - 1 + #old,
      text = new,
    }
  end
  local first, package = before:match('^%s*from%s+()(%S+)%s+import%s+$') ---@type integer?, string
  if first then
    local alone = after:find('^%s*$') or after:find('^%s*#') or after:find('^%s+as%s')
    local new = alone and new_package(package)
    return new and edit(first, package, new) or nil
  end
  local dotted = before:match('^.*[^%w_.](.*)$') or before
  local start = dotted:find('.', 1, true)
  if not start or not before:find('^%s*from%s+%.') then
    start = dotted:sub(-1) == '.' and dotted:find('[%w_]') or nil
  end
  if not start then
    return nil
  end
  first, package = #before - #dotted + start, dotted:sub(start)
  if package:find('^[%w_]') and before:sub(first - 1, first - 1) == '.' then
    return nil
  end
  local names = package:gsub('([%w_])%.$', '%1')
  local new = new_package(names)
  return new and edit(first, package, new:find('[%w_]$') and new .. '.' or new) or nil
end

--- Adds the missing edits to a server's edits.
---@param files mcp-tools.lsp.FileChange[]
---@param from string resolved path of the module
---@param to string
function M.correct(files, from, to)
  local old, new = vim.fs.dirname(from), vim.fs.dirname(to)
  local stem = vim.fs.basename(to):match('^([%w_]+)%.pyi?$')
  if old == new or not stem or not from:find('%.pyi?$') then
    return
  end
  for _, file in ipairs(files) do
    local more, taken = {}, {}
    for _, each in ipairs(file.edits) do
      local line = each.text == stem and each.start_line == each.end_line and file.before[each.start_line + 1]
      local edit = line
        and package_edit(line, each, function(package)
          return moved_package(package, file.resolved, old, new)
        end)
      if edit and not taken[edit.start_line .. ' ' .. edit.start_col] then
        taken[edit.start_line .. ' ' .. edit.start_col] = true
        table.insert(more, edit)
      end
    end
    vim.list_extend(file.edits, more)
  end
end

return M
