-- every Neovim
local contents = require('mcp-tools.editor.buffer.contents')
local t = require('helpers')

local api = vim.api

describe('the whole text of a buffer', function()
  local bufnr

  before_each(function()
    bufnr = api.nvim_create_buf(true, false)
  end)

  after_each(function()
    pcall(api.nvim_buf_delete, bufnr, { force = true })
  end)

  local function numbered(count)
    local lines = {}
    for i = 1, count do
      lines[i] = 'line ' .. i
    end
    return lines
  end

  it('is that of all lines, however many pieces they make', function()
    for _, count in ipairs({ 1, 1999, 2000, 2001, 4000, 5001 }) do
      local lines, pauses = numbered(count), 0
      api.nvim_buf_set_lines(bufnr, 0, -1, false, lines)
      local text = contents.of_buffer(bufnr, function()
        pauses = pauses + 1
      end)
      t.eq(table.concat(lines, '\n') .. '\n', text)
      t.eq(math.ceil(count / 2000) - 1, pauses)
    end
    api.nvim_buf_set_lines(bufnr, 0, -1, false, {})
    t.eq('\r\n', contents.of_buffer(bufnr, function() end, '\r\n'))
  end)

  it('is of one moment, also when the text changes meanwhile, once or each time', function()
    api.nvim_buf_set_lines(bufnr, 0, -1, false, numbered(5000))
    for _, times in ipairs({ 1, math.huge }) do
      local changed = 0
      local text = contents.of_buffer(bufnr, function()
        if changed < times then
          changed = changed + 1
          api.nvim_buf_set_lines(bufnr, 0, 1, false, { 'change ' .. changed })
        end
      end)
      t.eq(table.concat(api.nvim_buf_get_lines(bufnr, 0, -1, false), '\n') .. '\n', text)
    end
  end)

  it('is none when the buffer goes meanwhile', function()
    api.nvim_buf_set_lines(bufnr, 0, -1, false, numbered(5000))
    t.eq(
      nil,
      contents.of_buffer(bufnr, function()
        if api.nvim_buf_is_valid(bufnr) then
          api.nvim_buf_delete(bufnr, { force = true })
        end
      end)
    )
  end)
end)
