-- Lua inside Neovim: LuaJIT, and `vim` as the one global.
std = 'luajit'
cache = false
codes = true
max_line_length = 120
max_comment_line_length = 120
read_globals = { 'vim' }
-- Options and variables of the editor are set through these fields.
globals = { 'vim.g', 'vim.b', 'vim.w', 'vim.o', 'vim.bo', 'vim.wo', 'vim.go', 'vim.env', 'vim.opt', 'vim.v' }
-- A method's `self` and arguments named `_…` may stay unused.
self = false
ignore = { '212/_.*', '213/_.*' }
-- stylua puts a function on one line that is up to three columns too long.
files['tests'] = {
  max_line_length = 123,
}
files['tests/lua'] = {
  read_globals = { 'describe', 'it', 'before_each', 'after_each' },
  ignore = { '122' }, -- specs replace functions of the editor
}
files['tests/lua/run.lua'] = {
  read_globals = { 'arg' },
}
-- They are run inside the Neovim of a test or a benchmark, which looks into these.
files['tests/e2e'] = {
  globals = { 'Seen', 'Watched', 'callers' },
  read_globals = { 'mcp_tools', 'probe' },
}
files['tests/e2e/tools.lua'] = {
  globals = { 'Seen' },
}
files['bench/read_tools.lua'] = {
  globals = { 'READ_TOOLS' },
}
files['bench/hostile.lua'] = {
  globals = { 'HOSTILE' },
}
files['bench/tools.lua'] = {
  globals = { 'BENCH' },
}
-- wrk calls these functions by their global names.
files['bench/wrk.lua'] = {
  globals = { 'bad', 'client', 'done', 'fault', 'init', 'request', 'response', 'setup', 'threads', 'times', 'wrk' },
}
files['scripts/_demo.lua'] = {
  globals = { 'Demo' },
}
files['scripts/_trace.lua'] = {
  globals = { 'Trace' },
}
