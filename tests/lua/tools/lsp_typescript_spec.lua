-- slow
require('lsp_cases.tools')('typescript')
require('lsp_cases.actions')('typescript')
require('lsp_cases.rename')('typescript')
it('ends', require('lsp_project').close)
