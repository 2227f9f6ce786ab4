-- slow
require('lsp_cases.tools')('python')
require('lsp_cases.actions')('python')
require('lsp_cases.diagnostics')('python')
require('lsp_cases.rename')('python')
require('symbol_servers')({
  kind = 'python',
  name = 'basedpyright',
  ext = 'py',
  method = 'post_entry',
  ledger = {
    '    def post_entry(self, account: str, amount: int) -> int:',
    '        """Posts one."""',
    '        return amount',
  },
  overview = table.concat({
    'shop/ledger.py, 18 lines (by basedpyright)',
    'Ledger [class] 4-9',
    '  post_entry 7 [method]',
    'Journal [class] 12-14',
    '  post_entry 13 [method]',
    'Cash [class] 17-18',
  }, '\n'),
  use = 'return ledger.post_entry("ä€𝄞", 1) + ledger.post_entry("b", 2)',
  use_line = 7,
  replaced = 'def post_entry(self, account: str) -> str:\n    replaced = account\n    return replaced',
})
it('ends', require('lsp_project').close)
