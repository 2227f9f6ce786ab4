-- What the specs about renames rename, and how the project looks afterwards.

local project = require('lsp_project')
local t = require('helpers')

local M = {}

M.KINDS = {
  python = {
    ledger = 'shop/ledger.py',
    user = 'shop/user%d.py',
    old = 'post_entry',
    new = 'add_entry',
    use_line = 7,
    journal_line = 12,
  },
  typescript = {
    ledger = 'shop/ledger.ts',
    user = 'shop/user%d.ts',
    old = 'postEntry',
    new = 'addEntry',
    use_line = 6,
    journal_line = 9,
  },
}

---@param path string in the project
---@return string
function M.text_of(path)
  return table.concat(vim.fn.readfile(project.root .. '/' .. path), '\n')
end

---@param text string
---@param name string
---@return integer
function M.count(text, name)
  return select(2, text:gsub(vim.pesc(name), ''))
end

--- Is one name in place of another, and nothing else changed?
---@param here table of KINDS
---@param from string
---@param to string
function M.check(here, from, to)
  local text_of, count = M.text_of, M.count
  t.eq({ 1, 1 }, { count(text_of(here.ledger), from), count(text_of(here.ledger), to) })
  for i = 1, 4 do
    local text = text_of(here.user:format(i))
    t.eq({ i, 2 }, { i, count(text, 'ledger.' .. to .. '(') })
    t.eq({ i, 1, 0 }, { i, count(text, 'journal.' .. here.old .. '('), count(text, 'ledger.' .. from .. '(') })
  end
end

return M
