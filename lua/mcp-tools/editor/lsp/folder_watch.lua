--- Folder watch: a folder with all below it, watched by the system for files that are made, changed and deleted.

local uv = vim.uv

--- Each takes a handle of the system, of which a user has some ten thousand.
local MAX_FOLDERS = 2000
--- Folders that no server reads for the project's own files; those that begin with a dot are left out as well.
local LEFT_OUT = { ['node_modules'] = true, ['__pycache__'] = true, ['site-packages'] = true }

--- Whether a folder may hold the project's own files, by its name.
---@param name string
---@return boolean
local function is_wanted(name)
  return name:sub(1, 1) ~= '.' and not LEFT_OUT[name]
end

--- `FileChangeType` of the language server protocol.
local MADE, CHANGED, DELETED = 1, 2, 3

---@class mcp-tools.lsp.WatchedFolder
---@field handle uv.uv_fs_event_t
---@field files table<string, true> names of known files
---@field folders table<string, true> names of watched folders

---@class mcp-tools.lsp.FolderWatch
---@field identity string of the folder
---@field folders table<string, mcp-tools.lsp.WatchedFolder> by path
---@field count integer of folders
---@field changed table<string, true> what events have named since it was last looked at
---@field full boolean there are more folders than are watched
---@field ready boolean
local FolderWatch = { MADE = MADE, CHANGED = CHANGED, DELETED = DELETED }
FolderWatch.__index = FolderWatch

---@param identity string
---@return mcp-tools.lsp.FolderWatch that watches nothing yet
function FolderWatch.new(identity)
  local of = { identity = identity, folders = {}, count = 0, changed = {}, full = false, ready = false }
  return setmetatable(of, FolderWatch)
end

---@private
---@param path string
---@return mcp-tools.lsp.WatchedFolder? folder that it is in
---@return string name
function FolderWatch:place(path)
  local folder, name = path:match('^(.*)/([^/]+)$')
  return self.folders[folder or ''], name or ''
end

--- Whether a path is a known file.
---@param path string
---@return boolean
function FolderWatch:knows(path)
  local folder, name = self:place(path)
  return folder ~= nil and folder.files[name] == true
end

---@private
---@param folder string
function FolderWatch:watch(folder)
  if self.folders[folder] then
    return
  elseif self.count >= MAX_FOLDERS then
    self.full = true
    return
  end
  local handle = assert(uv.new_fs_event())
  local ok = handle:start(folder, {}, function(err, name)
    if not err and name then
      self.changed[folder .. '/' .. name] = true
    end
  end)
  if not ok then
    handle:close()
    self.full = true
    return
  end
  self.folders[folder], self.count = { handle = handle, files = {}, folders = {} }, self.count + 1
  local above, name = self:place(folder)
  if above then
    above.folders[name] = true
  end
end

--- Notes a file. Those of a folder that is not watched are not kept.
---@param path string
---@return boolean new
function FolderWatch:note(path)
  local folder, name = self:place(path)
  local new = not folder or not folder.files[name]
  if folder then
    folder.files[name] = true
  end
  return new
end

--- Watches a folder with all below it.
---@param top string
---@param pause fun()
---@param is_ignored fun(path: string): boolean
---@param found fun(path: string) called for each file
function FolderWatch:walk(top, pause, is_ignored, found)
  local todo = { top }
  while #todo > 0 do
    local folder = table.remove(todo)
    self:watch(folder)
    local entries = uv.fs_scandir(folder)
    while entries do
      local name, kind = uv.fs_scandir_next(entries)
      if not name then
        break
      end
      local path = folder .. '/' .. name
      if kind == 'directory' and is_wanted(name) and not self.full and not is_ignored(path) then
        table.insert(todo, path)
      elseif kind == 'file' and not is_ignored(path) then
        found(path)
      end
      pause()
    end
    pause()
  end
end

--- Ends the watches of a folder and of those below it. A folder that was moved does not report what is in it.
---@private
---@param top string
---@param changes table<string, integer> the files that were known there are added
---@param pause fun()
---@return table<string, integer> changes
function FolderWatch:forget_below(top, changes, pause)
  local above, name = self:place(top)
  if above then
    above.folders[name] = nil
  end
  local todo = { top }
  while #todo > 0 do
    local path = table.remove(todo)
    local folder = self.folders[path]
    if folder then
      folder.handle:stop()
      folder.handle:close()
      self.folders[path], self.count = nil, self.count - 1
      for file in pairs(folder.files) do
        changes[path .. '/' .. file] = DELETED
      end
      for below in pairs(folder.folders) do
        table.insert(todo, path .. '/' .. below)
      end
      pause()
    end
  end
  return changes
end

--- What an event has named, as it is now.
---@param path string
---@param pause fun()
---@param is_ignored fun(path: string): boolean of paths that are not known
---@param changes table<string, integer>
function FolderWatch:look(path, pause, is_ignored, changes)
  local stat = uv.fs_stat(path)
  local folder, name = self:place(path)
  local own = stat and stat.type == 'directory' and uv.fs_lstat(path)
  if own and own.type == 'link' then -- it may lead out of the folder, or back to it
    stat = nil
  end
  if not stat then
    self:forget_below(path, changes, pause)
    if folder and folder.files[name] then
      folder.files[name], changes[path] = nil, DELETED
    end
  elseif stat.type == 'directory' then
    if is_wanted(name) and not is_ignored(path) then
      local gone = self:forget_below(path, {}, pause) -- it may be another folder than the one that was watched
      self:walk(path, pause, is_ignored, function(file)
        if self:note(file) and not gone[file] then
          changes[file] = MADE
        end
        gone[file] = nil
      end)
      for file in pairs(gone) do
        changes[file] = DELETED
      end
    end
  elseif stat.type == 'file' and (self:knows(path) or not is_ignored(path)) then
    changes[path] = self:note(path) and MADE or CHANGED
  end
end

--- Ends it.
function FolderWatch:close()
  for _, folder in pairs(self.folders) do
    folder.handle:stop()
    folder.handle:close()
  end
  self.folders, self.count = {}, 0
end

return FolderWatch
