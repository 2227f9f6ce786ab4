-- slow
require('lsp_cases.cold')('python')
it('ends', require('lsp_project').close)
