--- The directories in which an agent finds this editor: project, working directories and git work trees.
---
--- A hostile repository must not claim the directory of another project, where an agent would then connect to this
--- editor: a directory is a work tree only if the repository and the work tree refer to each other.

local project = require('mcp-tools.instances.project')
local repository = require('mcp-tools.editor.git.repository')
local task = require('mcp-tools.util.task')

local uv = vim.uv

local M = {}

--- Maximum number of work trees of one repository.
local MAX_TREES = 64
--- Maximum size in bytes of a file that holds one path.
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
---@param base string directory of a relative path
---@return string?
local function real(ctx, path, base)
  return (ctx:uv(uv.fs_realpath, vim.startswith(path, '/') and path or vim.fs.joinpath(base, path)))
end

--- Returns the work trees of a repository whose own `.git` names this repository.
---@param ctx mcp-tools.Task
---@param common string its common directory (`git rev-parse --git-common-dir`)
---@return string[]
local function trees_of(ctx, common)
  local trees = {}
  local function add(tree)
    local found = tree and repository.at(tree)
    if found and found.common == common then
      table.insert(trees, found.worktree)
    end
  end
  if vim.fs.basename(common) == '.git' then
    add(vim.fs.dirname(common))
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
    add(dot_git and vim.fs.dirname(dot_git))
  end
  return trees
end

--- Returns the working directories of the editor, and those of tabs and windows that have their own.
---@return string[]
local function working_directories()
  local directories = { vim.fn.getcwd(-1, -1) }
  for _, tab in ipairs(vim.api.nvim_list_tabpages()) do
    for _, window in ipairs(vim.api.nvim_tabpage_list_wins(tab)) do
      local number, tab_number = vim.api.nvim_win_get_number(window), vim.api.nvim_tabpage_get_number(tab)
      if vim.fn.haslocaldir(number, tab_number) ~= 0 then
        table.insert(directories, vim.fn.getcwd(number, tab_number))
      end
    end
  end
  return directories
end

--- Finds all roots.
---@param cb fun(roots: string[]) called on the main loop; real paths, the project first
function M.find(cb)
  local directories, roots, seen = { project.root() }, {}, {}
  vim.list_extend(directories, working_directories())
  task.run({}, function(ctx)
    local function add(path)
      if path and not seen[path] then
        seen[path] = true
        table.insert(roots, path)
      end
    end
    for _, directory in ipairs(directories) do
      add(real(ctx, directory, '/'))
    end
    for _, root in ipairs(vim.deepcopy(roots)) do
      local found = repository.at(root)
      for _, tree in ipairs(found and trees_of(ctx, found.common) or {}) do
        add(tree)
      end
    end
  end, function()
    cb(roots)
  end)
end

return M
