-- slow
require('lsp_cases.tools')('typescript')
require('lsp_cases.actions')('typescript')
require('lsp_cases.diagnostics')('typescript')
require('lsp_cases.rename')('typescript')
require('symbol_servers')({
  kind = 'typescript',
  name = 'ts_ls',
  ext = 'ts',
  method = 'postEntry',
  ledger = { '  postEntry(account: string, amount: number): number {', '    return amount;', '  }' },
  overview = table.concat({
    'shop/ledger.ts, 15 lines (by ts_ls)',
    'Ledger [class] 2-7',
    '  postEntry 4 [method]',
    'Journal [class] 9-13',
    '  postEntry 10 [method]',
    'Cash [class] 15',
  }, '\n'),
  use = 'return ledger.postEntry("ä€𝄞", 1) + ledger.postEntry("b", 2);',
  use_line = 6,
  replaced = 'postEntry(account: string): string {\n  const replaced = account;\n  return replaced;\n}',
})
it('ends', require('lsp_project').close)
