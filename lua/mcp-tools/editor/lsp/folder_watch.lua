--- Folder watch: a folder with all below it, watched by the system for files that are made, changed and deleted.
---
--- Receives: file events.
--- Sends: what has happened to the files that events have named, when it is asked.
--- Does not know about: language servers, which folders are worth watching.

local uv = vim.uv

--- Each takes a handle of the system, of which a user has some ten thousand.
local MAX_FOLDERS = 2000
--- Folders that no server reads for the project's own files; those that begin with a dot are left out as well.
local LEFT_OUT = { ['node_modules'] = true, ['__pycache__'] = true, ['site-packages'] = true }

--- `FileChangeType` of the language server protocol.
local MADE, CHANGED, DELETED = 1, 2, 3

---@class mcp-tools.lsp.FolderWatch
---@field identity string of the folder
---@field folders table<string, uv.uv_fs_event_t>
---@field count integer of folders
---@field files table<string, true> known ones
---@field changed table<string, true> what events have named since it was last looked at
---@field full boolean there are more folders than are watched
---@field ready boolean
local FolderWatch = { MADE = MADE, CHANGED = CHANGED, DELETED = DELETED }
FolderWatch.__index = FolderWatch

---@param identity string
---@return mcp-tools.lsp.FolderWatch that watches nothing yet
function FolderWatch.new(identity)
  local of = { identity = identity, folders = {}, count = 0, files = {}, changed = {}, full = false, ready = false }
  return setmetatable(of, FolderWatch)
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
  self.folders[folder], self.count = handle, self.count + 1
end

---@private
---@param folder string
function FolderWatch:forget(folder)
  local handle = self.folders[folder]
  if handle then
    handle:stop()
    handle:close()
    self.folders[folder], self.count = nil, self.count - 1
  end
end

--- Watches a folder with all below it.
---@param top string
---@param pause fun()
---@param found fun(path: string) called for each file
function FolderWatch:walk(top, pause, found)
  local todo = { top }
  while #todo > 0 do
    local folder = table.remove(todo)
    self:watch(folder)
    local entries = uv.fs_scandir(folder)
    while entries do
      local name, kind = uv.fs_scandir_next(entries)
      if not name then
        break
      elseif kind == 'directory' and name:sub(1, 1) ~= '.' and not LEFT_OUT[name] and not self.full then
        table.insert(todo, folder .. '/' .. name)
      elseif kind == 'file' then
        found(folder .. '/' .. name)
      end
      pause()
    end
    pause()
  end
end

--- Ends the watches of a folder and of those below it. A folder that was moved says nothing of what is in it.
---@private
---@param top string
---@param changes table<string, integer> the files that were known there are added
---@return table<string, integer> changes
function FolderWatch:forget_below(top, changes)
  self:forget(top)
  for _, folder in ipairs(vim.tbl_keys(self.folders)) do
    if vim.startswith(folder, top .. '/') then
      self:forget(folder)
    end
  end
  for _, file in ipairs(vim.tbl_keys(self.files)) do
    if vim.startswith(file, top .. '/') then
      self.files[file], changes[file] = nil, DELETED
    end
  end
  return changes
end

--- What an event has named, as it is now.
---@param path string
---@param pause fun()
---@param changes table<string, integer>
function FolderWatch:look(path, pause, changes)
  local stat = uv.fs_stat(path)
  if not stat then
    self:forget_below(path, changes)
    if self.files[path] then
      self.files[path], changes[path] = nil, DELETED
    end
  elseif stat.type == 'directory' then
    local name = vim.fs.basename(path)
    if name:sub(1, 1) ~= '.' and not LEFT_OUT[name] then
      local gone = self:forget_below(path, {}) -- it may be another folder than the one that was watched
      self:walk(path, pause, function(file)
        if gone[file] then
          gone[file], self.files[file] = nil, true
        elseif not self.files[file] then
          self.files[file], changes[file] = true, MADE
        end
      end)
      for file in pairs(gone) do
        changes[file] = DELETED
      end
    end
  elseif stat.type == 'file' then
    changes[path] = self.files[path] and CHANGED or MADE
    self.files[path] = true
  end
end

--- Ends it.
function FolderWatch:close()
  for _, folder in ipairs(vim.tbl_keys(self.folders)) do
    self:forget(folder)
  end
end

return FolderWatch
