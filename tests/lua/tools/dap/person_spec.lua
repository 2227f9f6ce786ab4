-- slow
-- What the person notices of a session that tools have going: nothing but what they do themselves.

local dap = require('dap_project')
local t = require('helpers')

before_each(dap.open)
after_each(dap.close)

--- Two windows, the cursor in the second one, a file beside it, a register and a search of the person.
local function person()
  vim.cmd.edit(dap.write('notes.txt', ('line\n'):rep(30)))
  vim.cmd.vsplit(dap.write('other.txt', ('other\n'):rep(30)))
  vim.cmd.edit(dap.root .. '/notes.txt')
  vim.api.nvim_win_set_cursor(0, { 7, 2 })
  vim.fn.setreg('a', 'kept')
  vim.fn.setreg('/', 'searched')
end

--- What of the person must stay as it is.
local function state()
  local windows = {}
  for _, win in ipairs(vim.api.nvim_list_wins()) do
    local view = vim.api.nvim_win_call(win, vim.fn.winsaveview)
    table.insert(windows, { win, vim.api.nvim_win_get_buf(win), vim.api.nvim_win_get_cursor(win), view })
  end
  return {
    windows = windows,
    current = { vim.api.nvim_get_current_win(), vim.api.nvim_get_current_buf(), vim.api.nvim_get_current_tabpage() },
    mode = vim.api.nvim_get_mode(),
    alternate = vim.fn.bufnr('#'),
    registers = { vim.fn.getreg('a'), vim.fn.getreg('"'), vim.fn.getreg('/') },
    jumps = vim.fn.getjumplist(),
    listed = vim.tbl_filter(function(bufnr)
      return vim.bo[bufnr].buflisted and vim.api.nvim_buf_get_name(bufnr) ~= ''
    end, vim.api.nvim_list_bufs()),
  }
end

describe('the person', function()
  it('keeps window, cursor, files and registers through a whole session of tools', function()
    local path = dap.write('loop.py', dap.LOOP)
    person()
    vim.cmd('normal! 3j') -- a count of theirs is no count of a step
    local before = state()
    dap.ok('dap_set_breakpoint', { filename = path, line = 6 })
    t.eq('total (loop.py:6)', dap.run(path).at)
    t.eq(before, state())
    t.eq('total (loop.py:7)', dap.ok('dap_step_over').at)
    dap.ok('dap_run_to', { filename = path, line = 8 })
    dap.ok('dap_step_out')
    dap.ok('dap_evaluate', { expression = '1' })
    dap.ok('dap_remove_breakpoint', { filename = path, line = 6 })
    t.eq('ended', dap.ok('dap_continue').status)
    t.eq(before, state())
  end)

  it('is brought to a stop after a step of their own, as ever', function()
    local path = dap.write('loop.py', dap.LOOP)
    person()
    dap.ok('dap_set_breakpoint', { filename = path, line = 6 })
    dap.run(path)
    local session = dap.dap().session()
    session:request('next', { threadId = session.stopped_thread_id }, function() end)
    t.wait(function()
      return vim.api.nvim_buf_get_name(0) == path and vim.api.nvim_win_get_cursor(0)[1] == 7
    end, 10000, 'the jump to the stop')
    local told = dap.ok('dap_wait_until_paused')
    t.eq({ 'step', 'total (loop.py:7)' }, { told.reason, told.at })
  end)
end)
