--- Sensitive files that lie where programs run, such as `.env`: what a program prints of them is left out.

local guarded = require('mcp-tools.privacy.sensitive_lines')
local sensitive = require('mcp-tools.privacy.sensitive')
local read = require('mcp-tools.privacy.read')

local uv = vim.uv

local M = {}

--- Larger ones are no lists of secrets; more than so many lie in no folder by right.
local MAX_FILE, MAX_FILES, MAX_ENTRIES = 64 * 1024, 20, 5000

---@type table<string, integer> path → time of its last change when its lines were taken
local taken = {}

---@param ctx mcp-tools.Ctx
---@param folder string
---@return string[]
local function sensitive_in(ctx, folder)
  return ctx:await(function(done)
    uv.fs_scandir(folder, function(_, handle)
      local names = {}
      for _ = 1, handle and MAX_ENTRIES or 0 do
        local name, kind = uv.fs_scandir_next(handle)
        if not name then
          break
        elseif kind ~= 'directory' then
          names[#names + 1] = name
        end
      end
      vim.schedule(function() -- the patterns are an option
        done(vim.tbl_filter(function(name)
          return sensitive.is_sensitive(folder .. '/' .. name)
        end, names))
      end)
    end)
  end)
end

--- Learns what must not be told of what programs print here. In a coroutine.
---@param ctx mcp-tools.Ctx
---@param folder string
function M.learn(ctx, folder)
  for i, name in ipairs(sensitive_in(ctx, folder)) do
    local path = folder .. '/' .. name
    local stat = i <= MAX_FILES and uv.fs_stat(path)
    if stat and stat.type == 'file' and taken[path] ~= stat.mtime.sec * 1e9 + stat.mtime.nsec then
      taken[path] = stat.mtime.sec * 1e9 + stat.mtime.nsec
      local text = ctx:await(function(done)
        read.read(path, MAX_FILE, done, function()
          return true
        end)
      end)
      guarded.learn(vim.split(text or '', '\r?\n'))
    end
  end
end

return M
