-- Chooses which programs that search a spec finds: `use('rg')` has ripgrep and git, `use('git')` git alone.

local M = {}

local path, folder

--- Programs that the tests themselves need beside.
local OTHERS = { 'sh', 'cat' }

---@param name 'rg'|'git'|'none'
function M.use(name)
  M.restore()
  path, folder = vim.env.PATH, vim.fn.tempname()
  vim.fn.mkdir(folder, 'p')
  local programs = { git = name ~= 'none' and vim.fn.exepath('git') or nil }
  programs.rg = name == 'rg' and require('helpers').CHECKOUT .. '/.deps/venv/bin/rg' or nil
  for _, other in ipairs(OTHERS) do
    programs[other] = vim.fn.exepath(other)
  end
  for program, target in pairs(programs) do
    assert(vim.uv.fs_stat(target), target)
    assert(vim.uv.fs_symlink(target, folder .. '/' .. program))
  end
  vim.env.PATH = folder
end

--- Takes the choice back.
function M.restore()
  vim.env.PATH = path or vim.env.PATH
  path = nil
end

return M
