--- Watches a directory tree for files that are created, changed and deleted.

local uv = vim.uv

--- Each directory needs a watch of the operating system, which limits their number per user.
local MAX_DIRECTORIES = 2000
--- Directories without files of the project; hidden ones are skipped as well.
local SKIPPED = { ['node_modules'] = true, ['__pycache__'] = true, ['site-packages'] = true }

--- Whether a directory may have files of the project, by its name.
---@param name string
---@return boolean
local function is_wanted(name)
  return name:sub(1, 1) ~= '.' and not SKIPPED[name]
end

--- `FileChangeType` of the language server protocol.
local CREATED, CHANGED, DELETED = 1, 2, 3

---@class mcp-tools.lsp.WatchedDirectory
---@field handle uv.uv_fs_event_t
---@field files table<string, true> names of known files
---@field directories table<string, true> names of watched subdirectories

---@class mcp-tools.lsp.DirectoryWatch
---@field identity string changes when the root directory is replaced
---@field directories table<string, mcp-tools.lsp.WatchedDirectory> by path
---@field count integer of directories
---@field changed table<string, true> paths of events that have not been checked
---@field is_partial boolean some directories are not watched
---@field ready boolean
local DirectoryWatch = { CREATED = CREATED, CHANGED = CHANGED, DELETED = DELETED }
DirectoryWatch.__index = DirectoryWatch

---@param identity string
---@return mcp-tools.lsp.DirectoryWatch without watched directories
function DirectoryWatch.new(identity)
  local watch = { identity = identity, directories = {}, count = 0, changed = {}, is_partial = false, ready = false }
  return setmetatable(watch, DirectoryWatch)
end

---@private
---@param path string
---@return mcp-tools.lsp.WatchedDirectory? parent
---@return string name
function DirectoryWatch:parent_of(path)
  local directory, name = path:match('^(.*)/([^/]+)$')
  return self.directories[directory or ''], name or ''
end

--- Whether a path is a known file.
---@param path string
---@return boolean
function DirectoryWatch:knows(path)
  local directory, name = self:parent_of(path)
  return directory ~= nil and directory.files[name] == true
end

---@private
---@param directory string
function DirectoryWatch:watch(directory)
  if self.directories[directory] then
    return
  elseif self.count >= MAX_DIRECTORIES then
    self.is_partial = true
    return
  end
  local handle = assert(uv.new_fs_event())
  local ok = handle:start(directory, {}, function(err, name)
    if not err and name then
      self.changed[directory .. '/' .. name] = true
    end
  end)
  if not ok then
    handle:close()
    self.is_partial = true
    return
  end
  self.directories[directory], self.count = { handle = handle, files = {}, directories = {} }, self.count + 1
  local parent, name = self:parent_of(directory)
  if parent then
    parent.directories[name] = true
  end
end

--- Records a file, if its directory is watched.
---@param path string
---@return boolean new the file was not known
function DirectoryWatch:note(path)
  local directory, name = self:parent_of(path)
  local new = not directory or not directory.files[name]
  if directory then
    directory.files[name] = true
  end
  return new
end

--- Watches a directory tree.
---@param top string
---@param pause fun()
---@param is_ignored fun(path: string): boolean
---@param found fun(path: string) called for each file
function DirectoryWatch:walk(top, pause, is_ignored, found)
  local todo = { top }
  while #todo > 0 do
    local directory = table.remove(todo)
    self:watch(directory)
    local entries = uv.fs_scandir(directory)
    while entries do
      local name, kind = uv.fs_scandir_next(entries)
      if not name then
        break
      end
      local path = directory .. '/' .. name
      if kind == 'directory' and is_wanted(name) and not self.is_partial and not is_ignored(path) then
        table.insert(todo, path)
      elseif kind == 'file' and not is_ignored(path) then
        found(path)
      end
      pause()
    end
    pause()
  end
end

--- Ends the watches of a directory tree. No events report the contents of a moved directory.
---@private
---@param top string
---@param changes table<string, integer> the known files of the tree are added
---@param pause fun()
---@return table<string, integer> changes
function DirectoryWatch:forget_below(top, changes, pause)
  local parent, name = self:parent_of(top)
  if parent then
    parent.directories[name] = nil
  end
  local todo = { top }
  while #todo > 0 do
    local path = table.remove(todo)
    local directory = self.directories[path]
    if directory then
      directory.handle:stop()
      directory.handle:close()
      self.directories[path], self.count = nil, self.count - 1
      for file in pairs(directory.files) do
        changes[path .. '/' .. file] = DELETED
      end
      for subdirectory in pairs(directory.directories) do
        table.insert(todo, path .. '/' .. subdirectory)
      end
      pause()
    end
  end
  return changes
end

--- Adds the changes at the path of an event.
---@param path string
---@param pause fun()
---@param is_ignored fun(path: string): boolean for unknown paths
---@param changes table<string, integer>
function DirectoryWatch:check(path, pause, is_ignored, changes)
  local stat = uv.fs_stat(path)
  local directory, name = self:parent_of(path)
  local link_stat = stat and stat.type == 'directory' and uv.fs_lstat(path)
  if link_stat and link_stat.type == 'link' then -- its target may be outside the tree, or contain it
    stat = nil
  end
  if not stat then
    self:forget_below(path, changes, pause)
    if directory and directory.files[name] then
      directory.files[name], changes[path] = nil, DELETED
    end
  elseif stat.type == 'directory' then
    if is_wanted(name) and not is_ignored(path) then
      local gone = self:forget_below(path, {}, pause) -- the directory may have been replaced
      self:walk(path, pause, is_ignored, function(file)
        if self:note(file) and not gone[file] then
          changes[file] = CREATED
        end
        gone[file] = nil
      end)
      for file in pairs(gone) do
        changes[file] = DELETED
      end
    end
  elseif stat.type == 'file' and (self:knows(path) or not is_ignored(path)) then
    changes[path] = self:note(path) and CREATED or CHANGED
  end
end

--- Ends all watches.
function DirectoryWatch:close()
  for _, directory in pairs(self.directories) do
    directory.handle:stop()
    directory.handle:close()
  end
  self.directories, self.count = {}, 0
end

return DirectoryWatch
