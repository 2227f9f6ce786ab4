--- Highlights lines for the user, until other lines are highlighted or the text is edited.

local api = vim.api

local namespace = api.nvim_create_namespace('mcp-tools.highlight')
local shown ---@type integer? buffer

local function clear()
  if shown and api.nvim_buf_is_valid(shown) then
    api.nvim_buf_clear_namespace(shown, namespace, 0, -1)
  end
  shown = nil
end

--- Highlights lines of a buffer, instead of those before.
---@param bufnr integer loaded
---@param ranges { [1]: integer, [2]: integer }[] first and last lines
return function(bufnr, ranges)
  clear()
  if #ranges == 0 then
    return
  end
  shown = bufnr
  for _, range in ipairs(ranges) do
    local opts = { end_row = range[2], hl_group = 'Visual', hl_eol = true, strict = false }
    api.nvim_buf_set_extmark(bufnr, namespace, range[1] - 1, 0, opts)
  end
  api.nvim_create_autocmd({ 'TextChanged', 'InsertEnter' }, {
    group = api.nvim_create_augroup('mcp-tools.highlight', {}),
    buffer = bufnr,
    once = true,
    callback = clear,
  })
end
