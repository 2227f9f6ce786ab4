-- slow
require('lsp_cases.cold')('typescript')
it('ends', require('lsp_project').close)
