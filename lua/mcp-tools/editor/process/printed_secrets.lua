--- Learns the lines of sensitive files in a command's directory, such as `.env`, so that they are redacted from its
--- output.

local sensitive_lines = require('mcp-tools.privacy.sensitive_lines')
local sensitive = require('mcp-tools.privacy.sensitive')
local read = require('mcp-tools.privacy.read')

local uv = vim.uv

local M = {}

--- Maximum size of a file in bytes, and number of sensitive files and of directory entries considered.
local MAX_FILE, MAX_FILES, MAX_ENTRIES = 64 * 1024, 20, 5000

---@type table<string, integer> path → modification time when its lines were learned
local learned = {}

---@param ctx mcp-tools.Ctx
---@param directory string
---@return string[]
local function sensitive_in(ctx, directory)
  return ctx:await(function(done)
    uv.fs_scandir(directory, function(_, handle)
      local names = {}
      for _ = 1, handle and MAX_ENTRIES or 0 do
        local name, kind = uv.fs_scandir_next(handle)
        if not name then
          break
        elseif kind ~= 'directory' then
          names[#names + 1] = name
        end
      end
      vim.schedule(function() -- reads an option, which needs the main loop
        done(vim.tbl_filter(function(name)
          return sensitive.is_sensitive(directory .. '/' .. name)
        end, names))
      end)
    end)
  end)
end

--- Learns the sensitive lines of a directory. Runs in a coroutine.
---@param ctx mcp-tools.Ctx
---@param directory string
function M.learn(ctx, directory)
  for i, name in ipairs(sensitive_in(ctx, directory)) do
    local path = directory .. '/' .. name
    local stat = i <= MAX_FILES and uv.fs_stat(path)
    if stat and stat.type == 'file' and learned[path] ~= stat.mtime.sec * 1e9 + stat.mtime.nsec then
      learned[path] = stat.mtime.sec * 1e9 + stat.mtime.nsec
      local text = ctx:await(function(done)
        read.read(path, MAX_FILE, done, function()
          return true
        end)
      end)
      sensitive_lines.learn(vim.split(text or '', '\r?\n'))
    end
  end
end

return M
