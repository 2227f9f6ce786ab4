--- Roots: the folders in which an agent is to find this editor, by their real paths.
---
--- Receives: the project, the working folders; the files by which git knows the work trees of a repository.
--- Sends: the list, without waiting for a disk.
--- Does not know about: agents, who asks.
---
--- A repository of a stranger claims no folder of others: a work tree counts when it names its repository, too.

local project = require('mcp-tools.files.project')
local task = require('mcp-tools.util.task')

local uv = vim.uv

local M = {}

--- Of one repository; whoever has more starts agents in those that are open.
local MAX_TREES = 64
--- Bytes of a file that holds one path.
local MAX_LINE = 4096

---@param ctx mcp-tools.Task
---@param path string
---@return string? line the first one
local function read_line(ctx, path)
  local stat = ctx:uv(uv.fs_stat, path)
  local fd = stat and stat.type == 'file' and ctx:uv(uv.fs_open, path, 'r', 0)
  if not fd then
    return nil
  end
  local text = ctx:uv(uv.fs_read, fd, MAX_LINE, 0)
  ctx:uv(uv.fs_close, fd)
  return text and text:match('^[^\r\n]+')
end

---@param ctx mcp-tools.Task
---@param path string
---@param base string that a relative one counts from
---@return string?
local function real(ctx, path, base)
  return (ctx:uv(uv.fs_realpath, vim.startswith(path, '/') and path or vim.fs.joinpath(base, path)))
end

--- The repository of a folder: what `.git` is or points to, and in a linked work tree the one that it belongs to.
---@param ctx mcp-tools.Task
---@param folder string
---@return string? real path
local function common_of(ctx, folder)
  local dot_git = vim.fs.joinpath(folder, '.git')
  local stat = ctx:uv(uv.fs_stat, dot_git)
  if not stat then
    return nil
  elseif stat.type == 'directory' then
    return real(ctx, dot_git, folder)
  end
  local line = read_line(ctx, dot_git)
  local gitdir = line and line:match('^gitdir: (.+)$')
  gitdir = gitdir and real(ctx, gitdir, folder)
  local common = gitdir and read_line(ctx, vim.fs.joinpath(gitdir, 'commondir'))
  return common and real(ctx, common, gitdir)
end

--- Work trees of a repository: its own, and those that are linked and say so themselves.
---@param ctx mcp-tools.Task
---@param common string
---@return string[]
local function trees_of(ctx, common)
  local trees = {}
  if vim.fs.basename(common) == '.git' then
    trees[1] = vim.fs.dirname(common)
  end
  local linked = vim.fs.joinpath(common, 'worktrees')
  local scan = ctx:uv(uv.fs_scandir, linked)
  for _ = 1, MAX_TREES do
    local name = scan and uv.fs_scandir_next(scan)
    if not name then
      break
    end
    local gitdir = vim.fs.joinpath(linked, name)
    local line = read_line(ctx, vim.fs.joinpath(gitdir, 'gitdir'))
    local dot_git = line and real(ctx, line, gitdir)
    local tree = dot_git and vim.fs.dirname(dot_git)
    if tree and common_of(ctx, tree) == common then
      trees[#trees + 1] = tree
    end
  end
  return trees
end

--- The working folders: of the editor, and of tabs and windows that have their own.
---@return string[]
local function working_folders()
  local folders = { vim.fn.getcwd(-1, -1) }
  for _, tab in ipairs(vim.api.nvim_list_tabpages()) do
    for _, window in ipairs(vim.api.nvim_tabpage_list_wins(tab)) do
      local number, at = vim.api.nvim_win_get_number(window), vim.api.nvim_tabpage_get_number(tab)
      if vim.fn.haslocaldir(number, at) ~= 0 then
        table.insert(folders, vim.fn.getcwd(number, at))
      end
    end
  end
  return folders
end

--- Finds all of them.
---@param cb fun(roots: string[]) on the main loop; the project first
function M.find(cb)
  local folders, roots, seen = { project.root() }, {}, {}
  vim.list_extend(folders, working_folders())
  task.run({}, function(ctx)
    local function add(path)
      if path and not seen[path] then
        seen[path] = true
        table.insert(roots, path)
      end
    end
    for _, folder in ipairs(folders) do
      add(real(ctx, folder, '/'))
    end
    for _, root in ipairs(vim.deepcopy(roots)) do
      local common = common_of(ctx, root)
      for _, tree in ipairs(common and trees_of(ctx, common) or {}) do
        add(tree)
      end
    end
  end, function()
    cb(roots)
  end)
end

return M
