--- Deletes a file that an agent created, if it still has the text that the agent wrote.

local access = require('mcp-tools.privacy.access')
local buffers = require('mcp-tools.editor.buffer')
local disk = require('mcp-tools.editor.buffer.disk')
local errors = require('mcp-tools.errors')
local open = require('mcp-tools.editor.buffer.open')
local project = require('mcp-tools.instances.project')
local read = require('mcp-tools.privacy.read')
local text = require('mcp-tools.files.text')

local api, uv = vim.api, vim.uv

--- `FileChangeType` of the protocol.
local DELETED = 3

---@param path string
---@return mcp-tools.Error
local function changed(path)
  local fault = '%s was changed after it was created, so it is not deleted; delete it yourself if you no longer need it'
  return errors.new('stale', fault:format(access.shown(path, project.root())))
end

--- Checks that the file still has these lines, in its buffer and on disk.
---@param path string
---@param lines string[]
---@param cb fun(err: mcp-tools.Error?)
local function check(path, lines, cb)
  local bufnr = buffers.of_path(path)
  if not bufnr then
    return read.read(path, open.MAX_BYTES, function(bytes, err)
      local is_same = bytes and vim.deep_equal((text.lines_of(text.decode(bytes))), lines)
      cb(err or not is_same and changed(path) or nil)
    end)
  end
  disk.refresh(bufnr, function(state)
    local is_current = api.nvim_buf_is_loaded(bufnr) and (state == 'same' or state == 'reloaded')
    local is_same = is_current and vim.deep_equal(api.nvim_buf_get_lines(bufnr, 0, -1, false), lines)
    cb(not is_same and changed(path) or nil)
  end)
end

--- Cleans up after the file was deleted. A buffer in a window stays, marked as modified.
---@param path string
local function close_buffer(path)
  disk.tell_servers(path, DELETED)
  local bufnr = buffers.of_path(path)
  if not bufnr then
    return
  elseif #vim.fn.win_findbuf(bufnr) > 0 then
    vim.bo[bufnr].modified = true
  else
    vim.bo[bufnr].modified = false
    open.drop(bufnr)
  end
end

--- Deletes the file.
---@param path string resolved
---@param lines string[] as the agent wrote them; for an empty file none, or one empty line
---@param cb fun(err: mcp-tools.Error?) on the main loop
return function(path, lines, cb)
  check(path, #lines > 0 and lines or { '' }, function(err)
    if err then
      return cb(err)
    end
    uv.fs_unlink(path, function(problem)
      vim.schedule(function()
        if problem then
          local fault = '%s cannot be deleted: %s'
          return cb(errors.new('tool_error', fault:format(access.shown(path, project.root()), problem)))
        end
        close_buffer(path)
        cb()
      end)
    end)
  end)
end
