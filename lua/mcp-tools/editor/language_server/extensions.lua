--- Lists the file extensions that have a language server, for the configuration of LSP clients.

local time_slice = require('mcp-tools.util.time_slice')

local M = {}

--- Neovim's module with a local table of extensions. No function returns them, so its source is read.
local SOURCE = 'lua/vim/filetype.lua'

--- Returns the known extensions.
---@return string[]
local function candidates()
  local path, list, inside = vim.api.nvim_get_runtime_file(SOURCE, false)[1], {}, false
  for line in path and io.lines(path) or function() end do
    if inside and line:find('^}') then
      break
    end
    inside = inside or line:find('^local extension = {') ~= nil
    table.insert(list, inside and (line:match('^  ([%w_]+) = ') or line:match("^  %['([^']+)'%] = ")) or nil)
  end
  return list
end

--- Returns the filetypes of enabled configurations, of those of nvim-lspconfig, and of running servers.
---@return table<string, true>
local function filetypes()
  local found = {}
  local function add(config)
    for _, filetype in ipairs(type(config) == 'table' and config.filetypes or {}) do
      found[filetype] = true
    end
  end
  for name in pairs(vim.lsp._enabled_configs or {}) do ---@diagnostic disable-line -- no public function in 0.11
    add(vim.lsp.config[name])
  end
  for _, config in pairs(package.loaded['lspconfig.configs'] or {}) do
    add(type(config) == 'table' and config.manager and config or nil)
  end
  for _, client in ipairs(vim.lsp.get_clients()) do
    add(client.config)
    for bufnr in pairs(client.attached_buffers) do
      found[vim.bo[bufnr].filetype] = true
    end
  end
  return found
end

--- Returns the extensions, with their dot, and their filetypes.
---@param ctx mcp-tools.Ctx inside a coroutine
---@return table<string, string>
function M.of(ctx)
  local served, found, pause = filetypes(), vim.empty_dict(), time_slice.of(ctx)
  local empty = vim.api.nvim_create_buf(false, true) -- some filetypes depend on the text
  for _, extension in ipairs(candidates()) do
    local ok, filetype = pcall(vim.filetype.match, { filename = 'name.' .. extension, buf = empty })
    if ok and filetype and served[filetype] then
      found['.' .. extension] = filetype
    end
    pause()
  end
  vim.api.nvim_buf_delete(empty, { force = true })
  return found
end

return M
