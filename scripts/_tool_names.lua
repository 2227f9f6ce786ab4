--- Names that tools have had, and what replaces them: `name: the new call`, for the help. A name alone is still that of
--- a tool. Whether an old name is still accepted is taken from the tools.
return [[
analyze_python
bridge_refresh
bridge_status
buffer_close
buffer_diff: change_list with `unsaved`
buffer_edit: file_edit; `search` → `old_text`, `replace` → `new_text`, `write` → `save`
buffer_list
buffer_read: file_read
buffer_write: file_save; `path` → `paths`
dap_breakpoints: debug_breakpoints
dap_clear_breakpoints: debug_breakpoints with `clear`
dap_configurations: removed: debug_run names them if `configuration` is wrong
dap_continue: debug_step with `how = "continue"`
dap_current_location: debug_inspect
dap_disconnect: debug_step with `how = "detach"`
dap_evaluate: debug_inspect with `expressions`
dap_exceptions: debug_run with `exceptions`
dap_pause: debug_step with `how = "pause"`
dap_program_output: debug_inspect
dap_remove_breakpoint: debug_breakpoints with `remove`
dap_restart: debug_step with `how = "restart"`
dap_run: debug_run
dap_run_to: debug_step with `how = "to_line"`
dap_scopes: debug_inspect
dap_sessions: debug_inspect
dap_set_breakpoint: debug_breakpoints with `set`
dap_set_variable: debug_inspect; an expression that assigns
dap_snapshot: debug_inspect
dap_stacktrace: debug_inspect
dap_status: debug_inspect
dap_step_into: debug_step with `how = "into"`
dap_step_out: debug_step with `how = "out"`
dap_step_over: debug_step with `how = "over"`
dap_terminate: debug_step with `how = "stop"`
dap_threads: debug_inspect
dap_variables: debug_inspect
dap_wait_until_paused: debug_step with `how = "wait"`
diagnostics_delta: diagnostics_list; `new` and `fixed` since the last question
diagnostics_list
diagnostics_wait: diagnostics_list
editor_command
editor_eval_lua
editor_help: editor_lookup with `what = "help"`; `topic` → `query`
editor_keymaps: editor_lookup with `what = "mappings"`
editor_marks
editor_messages: editor_lookup with `what = "messages"`
editor_notify
editor_open
editor_registers
editor_selection: editor_state
editor_state
file_checksum
file_json
file_list
file_move
file_read
file_replace
file_search
file_write
git_blame
git_diff
git_log
git_show
git_status
interview: ask_user
lsp_calls: symbol_callers
lsp_code_actions: code_actions
lsp_declaration: symbol_info
lsp_definition: symbol_info, or symbol_find
lsp_format: code_format
lsp_hover: symbol_info
lsp_implementation: symbol_implementations
lsp_inlay_hints: symbol_info
lsp_references: symbol_references
lsp_rename: symbol_rename
lsp_restart: editor_servers with `restart`
lsp_signature: symbol_info
lsp_status: editor_servers
lsp_symbols: symbol_overview
lsp_type_definition: symbol_info
lsp_types: symbol_implementations; `direction = "up"` for what it derives from
lsp_workspace_symbols: symbol_find with `substring`
plugin_call
plugin_functions: plugin_info with `module`
plugin_info
plugin_list: editor_lookup with `what = "plugins"`
plugin_readme: plugin_info with `readme`
quickfix_get: editor_quickfix
quickfix_set: editor_quickfix with `places`
runner_debug: debug_run with `test`
runner_discover: removed: test_run suggests names, symbol_overview lists the tests of a file
runner_results: test_run with `run`
runner_run: test_run
shell_jobs
shell_run
symbol_delete
symbol_find
symbol_insert
symbol_overview
symbol_read: file_read with `symbol`
symbol_references
symbol_replace
test_async_prompt
test_echo
test_progress
test_sync_buffers
treesitter_outline: symbol_overview
treesitter_query
treesitter_scope: treesitter_query without `query`; `line` → `start_line`
undo_diff: change_list with `path`
undo_restore: change_revert with `change`
undo_tree: change_list with `path`
workflow_list
]]
