--- Loads the texts of a review and follows their changes until it ends.

local Proposal = require('mcp-tools.editor.review.proposal')
local buffers = require('mcp-tools.editor.buffer')
local disk = require('mcp-tools.editor.buffer.disk')
local open = require('mcp-tools.editor.buffer.open')
local timer = require('mcp-tools.util.timer')

local api = vim.api

local M = {}

--- Delay after the last change until the review follows the text, in ms.
local DEBOUNCE_MS = 100

local group = api.nvim_create_augroup('mcp-tools.review', {})

--- Creates the proposal for a file from its buffer, which is loaded if necessary.
---@param file mcp-tools.ReviewFile
---@param ctx mcp-tools.Ctx of the review, which uses the buffer
---@param cb fun(proposal: mcp-tools.Proposal?, why_not: string?)
function M.propose(file, ctx, cb)
  local function create(bufnr, is_new)
    local fields = {
      path = file.path,
      bufnr = bufnr,
      base = file.base,
      text = file.text,
      editable = file.editable,
      differs = file.differs,
      is_new = is_new,
      made = file.made,
    }
    Proposal.new(fields, function(proposal)
      cb(proposal, not proposal and 'its buffer was closed' or nil)
    end)
  end
  local bufnr = file.bufnr or buffers.of_path(file.path)
  if bufnr then
    open.use(bufnr, ctx)
    return disk.refresh(bufnr, function(_, err)
      if err then
        return cb(nil, err.message)
      elseif not api.nvim_buf_is_loaded(bufnr) then
        return cb(nil, 'its buffer was closed')
      end
      create(bufnr)
    end)
  end
  vim.uv.fs_lstat(file.path, function(_, stat)
    vim.schedule(function()
      if not stat then
        return create(nil, true)
      end
      open.load(file.path, function(loaded, err)
        if not loaded then
          return cb(nil, err and err.message or 'it cannot be read')
        end
        create(loaded, false)
      end, ctx)
    end)
  end)
end

--- Follows changes and the closing of a file's buffer.
---@param file mcp-tools.Proposal
---@param changed fun() called when the text has changed or the buffer is gone
---@return fun() stop
function M.follow(file, changed)
  local bufnr, debounce = file.bufnr, nil ---@type integer?, mcp-tools.Timer?
  if not bufnr then
    return function() end
  end
  local over, attached = false, false
  -- With 'nohidden', Neovim would unload it as soon as its window shows another buffer.
  local kept = not vim.o.hidden and vim.bo[bufnr].bufhidden == ''
  if kept then
    vim.bo[bufnr].bufhidden = 'hide'
  end
  local function later()
    if over then
      return true -- detaches
    end
    if debounce then
      debounce:stop()
    end
    debounce = timer.after(DEBOUNCE_MS, function()
      if file:sync() then
        changed()
      end
    end)
  end
  local function attach()
    attached = attached
      or api.nvim_buf_attach(bufnr, false, {
        on_lines = later,
        on_reload = later,
        on_detach = function()
          attached = false
        end,
      })
  end
  attach()
  local function leave(why)
    file:mark_gone(why)
    vim.schedule(changed)
  end
  local ids = {}
  local function on(events, callback)
    table.insert(ids, api.nvim_create_autocmd(events, { group = group, buffer = bufnr, callback = callback }))
  end
  on('BufReadPost', function() -- `:edit!` detaches
    attach()
    later()
  end)
  on({ 'BufUnload', 'BufWipeout' }, function()
    vim.schedule(function() -- `:edit` unloads and reloads
      if not over and not api.nvim_buf_is_loaded(bufnr) then
        leave('its buffer was closed')
      end
    end)
  end)
  on('BufFilePost', function()
    leave('its buffer was renamed')
  end)
  return function()
    over = true
    if kept and api.nvim_buf_is_valid(bufnr) and vim.bo[bufnr].bufhidden == 'hide' then
      vim.bo[bufnr].bufhidden = ''
    end
    if debounce then
      debounce:stop()
    end
    for _, id in ipairs(ids) do
      pcall(api.nvim_del_autocmd, id)
    end
  end
end

return M
