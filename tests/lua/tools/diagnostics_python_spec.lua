-- slow
require('lsp_cases.diagnostics')('python')
it('ends', require('lsp_project').close)
