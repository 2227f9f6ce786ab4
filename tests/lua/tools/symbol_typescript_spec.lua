require('symbol_servers')({
  kind = 'typescript',
  name = 'ts_ls',
  ext = 'ts',
  method = 'postEntry',
  ledger = {
    '  postEntry(account: string, amount: number): number {',
    '    return amount;',
    '  }',
  },
  overview = table.concat({
    'shop/ledger.ts, 15 lines (by ts_ls)',
    'Ledger [class] 2-7',
    '  postEntry(account, amount) 4',
    'Journal [class] 9-13',
    '  postEntry(account) 10',
    'Cash [class] 15',
  }, '\n'),
  use = 'return ledger.postEntry("ä€𝄞", 1) + ledger.postEntry("b", 2);',
  use_line = 6,
  renamed = 'renamed(account: string): string {\n  return account;\n}',
})
