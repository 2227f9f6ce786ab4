-- slow
require('lsp_cases.tools')('python')
require('lsp_cases.actions')('python')
require('lsp_cases.rename')('python')
it('ends', require('lsp_project').close)
