return {
  name = 'explain_diagnostics',
  title = 'Explain diagnostics',
  description = 'Explains the errors and warnings that the editor shows, with the code around them.',
  get = function(ctx)
    ctx('Explain the diagnostics of the editor.')
  end,
}
