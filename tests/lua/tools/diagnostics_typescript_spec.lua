-- slow
require('lsp_cases.diagnostics')('typescript')
it('ends', require('lsp_project').close)
