--- Launch configurations: what the person has set up for nvim-dap, and what the project's `.vscode/launch.json` has.
---
--- Receives: the root of the project.
--- Sends: configurations with where they come from; that file's only when the person trusts it.
--- Does not know about: who runs them. No field of them is called, and nobody is asked.

local buffers = require('mcp-tools.editor.buffer')
local client = require('mcp-tools.editor.dap.client')
local jsonc = require('mcp-tools.editor.dap.jsonc')
local trusted = require('mcp-tools.files.trusted')

local M = {}

M.LAUNCH_JSON = '.vscode/launch.json'

local SYSTEM = { Linux = 'linux', Darwin = 'osx', Windows_NT = 'windows' }

---@class mcp-tools.dap.Known a configuration
---@field config table
---@field source string a filetype of `dap.configurations`, a provider, or the file

---@param root string
---@return mcp-tools.dap.Known[]
---@return string? withheld why that file's are not given
local function of_launch_json(root)
  local path = vim.fs.joinpath(root, M.LAUNCH_JSON)
  if not vim.uv.fs_stat(path) then
    return {}
  end
  local text, why = trusted.read(path)
  if not text then
    return {}, why
  end
  local value, fault = jsonc.decode(text)
  if type(value) ~= 'table' or type(value.configurations) ~= 'table' then
    return {}, 'it is no list of configurations' .. (fault and ': ' .. fault or '')
  end
  local list, system = {}, SYSTEM[vim.uv.os_uname().sysname]
  for _, config in ipairs(value.configurations) do
    if type(config) == 'table' then
      local own = system and config[system]
      for _, name in pairs(SYSTEM) do
        config[name] = nil
      end
      config = vim.tbl_extend('force', config, type(own) == 'table' and own or {})
      table.insert(list, { config = config, source = M.LAUNCH_JSON })
    end
  end
  return list
end

--- What nvim-dap itself provides: `dap.configurations` and launch.json, which are read here.
local BUILT_IN = { ['dap.global'] = true, ['dap.launch.json'] = true }

--- Configurations that plugins provide for the current file (nvim-dap 0.8 and later). A provider runs in a coroutine of
--- its own; one that waits for something, such as the user, is left out.
---@param dap table
---@return mcp-tools.dap.Known[]
local function provided(dap)
  local list = {}
  local bufnr = buffers.current() or vim.api.nvim_get_current_buf()
  for name, provider in vim.spairs(type(dap.providers) == 'table' and dap.providers.configs or {}) do
    local thread = not BUILT_IN[name] and coroutine.create(provider)
    local ok, configs
    if thread then
      ok, configs = coroutine.resume(thread, bufnr)
    end
    if ok and coroutine.status(thread) == 'dead' and type(configs) == 'table' then
      for _, config in ipairs(configs) do
        if type(config) == 'table' then
          table.insert(list, { config = config, source = name })
        end
      end
    end
  end
  return list
end

--- All that are known.
---@param root string
---@return mcp-tools.dap.Known[]
---@return string? withheld why those of launch.json are not among them
function M.all(root)
  local list, dap = {}, client.get()
  for filetype, configs in vim.spairs(dap and dap.configurations or {}) do
    for _, config in ipairs(type(configs) == 'table' and configs or {}) do
      if type(config) == 'table' then
        table.insert(list, { config = config, source = filetype })
      end
    end
  end
  vim.list_extend(list, dap and provided(dap) or {})
  local found, withheld = of_launch_json(root)
  return vim.list_extend(list, found), withheld
end

--- Those of a name; a source tells equal names apart.
---@param root string
---@param name string
---@return mcp-tools.dap.Known[]
---@return string? withheld
function M.named(root, name)
  local list, withheld = M.all(root)
  return vim.tbl_filter(function(known)
    return known.config.name == name
  end, list), withheld
end

--- Names of fields for which somebody at the editor would be asked.
---@param config table
---@return string[]
function M.asks(config)
  local names = {}
  --- These find something out, such as an interpreter, and are called as nvim-dap calls them.
  local quiet = { pythonPath = true, python = true, cwd = true, env = true }
  local function look(key, value, top)
    if type(value) == 'table' then
      for _, item in pairs(value) do
        look(key, item, false)
      end
    elseif
      (type(value) == 'function' or type(value) == 'thread') and not (top and quiet[key])
      or type(value) == 'string' and (value:find('${input:', 1, true) or value:find('${command:', 1, true))
    then
      names[key] = true
    end
  end
  for key, value in pairs(config) do
    look(key, value, true)
  end
  local list = vim.tbl_keys(names)
  table.sort(list)
  return list
end

return M
