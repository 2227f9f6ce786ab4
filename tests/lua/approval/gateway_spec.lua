local Call = require('mcp-tools.calls.call')
local Gateway = require('mcp-tools.approval.gateway')
local Ledger = require('mcp-tools.approval.ledger')
local approval = require('mcp-tools.ui.approval')
local config = require('mcp-tools.config')
local errors = require('mcp-tools.errors')
local notifications = require('notifications')
local t = require('helpers')

local root = vim.uv.fs_realpath(vim.fn.tempname():match('^(.*)/')) .. '/gateway-root'
local outside = root .. '-outside'

local function write(path) require('editor_project').write(path, 'x') end

local state = root .. '-state'

local function new_gateway(ask)
  return Gateway.new({
    ask = ask or function() end,
    root = function() return root end,
    ledger = Ledger.new({ dir = t.returns(state) }),
  })
end

local gateway = new_gateway()

local function judge(definition, args)
  local call = Call.new({ id = 'x', name = 'x', host = 'test', client = { name = 'c' } })
  call.definition = vim.tbl_extend('force', { name = 'x', description = 'x' }, definition)
  call.args = args or {}
  local decision = gateway:judge(call)
  return decision.action, decision.reason
end

local function rule(fn) config.setup({ approval = { rule = fn } }) end

local function throws() error('x') end

before_each(function()
  config.reset()
  write(root .. '/in.txt')
  write(outside .. '/out.txt')
  write(root .. '/.env')
  vim.uv.fs_symlink(outside, root .. '/link')
end)

after_each(function()
  config.reset()
  vim.fn.delete(root, 'rf')
  vim.fn.delete(outside, 'rf')
  vim.fn.delete(state, 'rf')
end)

describe('a map whose keys are files', function()
  local reader = { source = { group = 'g', origin = 'bundled' }, annotations = { read_only = true } }

  for _, key in ipairs({
    '/etc/passwd',
    'file:///etc/passwd',
    outside .. '/out.txt',
    '../' .. vim.fs.basename(outside) .. '/out.txt',
    '~/x',
  }) do
    it('is judged by its keys: ' .. vim.fs.basename(key), function()
      t.eq('ask', (judge(reader, { edits = { [key] = { { text = 'x' } } } })))
      t.eq('ask', (judge(reader, { edits = { [key] = 'x' } })))
      t.eq('ask', (judge(reader, { list = { { [key] = {} } } })))
    end)
  end

  it('is judged for all file names, if its own name means files', function()
    t.eq('deny', (judge(reader, { edits = { [root .. '/.env'] = {} } })))
    t.eq('deny', (judge(reader, { edits = { ['.env'] = 'x' } })))
    t.eq('deny', (judge(reader, { files = { [root .. '/.env'] = 'x' } })))
  end)

  it('is not assumed if the keys are names', function()
    local options = { tabstop = 4, ['no-wrap'] = true, ['editor.size'] = 1 }
    t.eq('allow', (judge(reader, { options = options, text = '/etc/passwd' })))
    t.eq('allow', (judge(reader, { edits = { [root .. '/in.txt'] = {} } })))
  end)
end)

it('an error in the approved work does not change the decision', function()
  local call = Call.new({ id = 'x', name = 'x', host = 'test' })
  call.definition, call.args = { name = 'x', description = 'x', needs_approval = false }, {}
  t.raises('on purpose', function()
    gateway:decide(call, function() error('on purpose') end)
  end)
  t.eq({ allowed = true, by = 'needs_approval' }, call.decision)
end)

describe('the order of decision', function()
  it('ends with the default, which asks', function()
    t.eq('ask', judge({}))
    config.setup({ approval = { default = 'allow' } })
    t.eq('allow', judge({}))
  end)

  it('puts annotations before the default', function()
    t.eq('allow', judge({ annotations = { read_only = true } }))
    config.setup({ approval = { default = 'allow' } })
    t.eq('ask', judge({ annotations = { destructive = true } }))
  end)

  it('puts needs_approval before annotations', function()
    t.eq('ask', judge({ needs_approval = true, annotations = { read_only = true } }))
    t.eq('allow', judge({ needs_approval = false, annotations = { destructive = true } }))
    local action, reason = judge({ needs_approval = 'it costs money' })
    t.eq({ 'ask', 'it costs money' }, { action, reason })
    local by_args = function(args) return args.n > 1 and 'more than one' end
    t.eq('allow', judge({ needs_approval = by_args }, { n = 1 }))
    t.eq('ask', judge({ needs_approval = by_args }, { n = 2 }))
    t.eq('ask', judge({ needs_approval = throws, annotations = { read_only = true } }))
  end)

  it("puts the user's rules first: function, tool, group", function()
    local read_only = { annotations = { read_only = true }, source = { group = 'g', origin = 'bundled' } }
    config.setup({ approval = { groups = { g = 'ask' } } })
    t.eq('ask', judge(read_only))
    config.setup({ approval = { tools = { x = 'allow' } } })
    t.eq('allow', judge(read_only))
    rule(function(tool, args, ctx) return tool == 'x' and args.n == 1 and ctx.client.name == 'c' and 'ask' or nil end)
    t.eq({ 'ask', 'allow' }, { judge(read_only, { n = 1 }), (judge(read_only, { n = 2 })) })
  end)

  it('lets any denial win', function()
    config.setup({ approval = { tools = { x = 'allow' }, groups = { g = 'deny' } } })
    t.eq('deny', judge({ source = { group = 'g', origin = 'bundled' } }))
    config.setup({ approval = { groups = { g = 'allow' } } })
    t.eq('deny', judge({ source = { group = 'g', origin = 'bundled' } }, { path = root .. '/.env' }))
  end)

  it('lets a rule allow everything except sensitive files and tools that are always denied', function()
    local hard = { needs_approval = true, annotations = { destructive = true } }
    config.setup({ approval = { default = 'allow' } })
    t.eq({ 'ask', 'ask' }, { (judge(hard)), (judge({}, { path = outside .. '/out.txt' })) })
    rule(t.returns('allow'))
    t.eq({ 'allow', 'allow' }, { (judge(hard)), (judge(hard, { path = outside .. '/out.txt' })) })
    t.eq('deny', (judge(hard, { path = root .. '/.env' })))
    assert(gateway.ledger:set(root, { name = 'x', description = 'x' }, 'denied'))
    t.eq('deny', (judge(hard)))
    assert(gateway.ledger:reset(root))
  end)

  it('denies when a rule throws or returns an invalid value', function()
    rule(throws)
    t.eq('deny', judge({ annotations = { read_only = true } }))
    rule(t.returns('perhaps'))
    t.eq('deny', judge({ annotations = { read_only = true } }))
  end)
end)

describe('files', function()
  local reader = { annotations = { read_only = true } }

  it('that are sensitive are denied, in any letter case and through a link', function()
    vim.uv.fs_symlink(root .. '/.env', root .. '/harmless.txt')
    for _, path in ipairs({ '/.env', '/.ENV', '/sub/.env.local', '/key.PEM', '/harmless.txt', '/.ssh/config' }) do
      t.eq({ path, 'deny' }, { path, (judge(reader, { path = root .. path })) })
    end
    t.eq('deny', judge(reader, { path = root .. '/in.txt\0.env' }))
  end)

  it('with a sensitive buffer are denied, by number and by path', function()
    vim.cmd.edit(root .. '/in.txt')
    vim.b.sensitive = true
    t.eq('deny', judge(reader, { bufnr = vim.api.nvim_get_current_buf() }))
    t.eq('deny', judge(reader, { path = root .. '/in.txt' }))
    t.eq('deny', judge(reader, { path = root .. '/sub/../in.txt' }))
    t.eq('allow', judge(reader, { path = root .. '/other.txt' }))
    t.eq('allow', judge(reader, { bufnr = 9999 }))
    vim.cmd('%bwipeout!')
  end)

  it('are not affected by a sensitive buffer without a file', function()
    vim.cmd.cd(root)
    vim.cmd.enew()
    vim.b.sensitive = true
    t.eq('allow', judge(reader, { path = root }))
    vim.cmd.cd('/')
    vim.cmd('%bwipeout!')
  end)

  it('beside a terminal or float are judged as the current file, as bundled tools use them', function()
    local bundled = { annotations = { read_only = true }, source = { origin = 'bundled' } }
    vim.cmd.edit(root .. '/.env')
    vim.cmd.new()
    vim.bo.buftype = 'nofile'
    t.eq({ 'deny', 'deny' }, { judge(reader, { bufnr = 0 }), (judge(reader, { bufnrs = { 0 } })) })
    t.eq('deny', judge(bundled, { bufnr = 0 }))
    vim.cmd('%bwipeout!')
    vim.cmd.edit(root .. '/in.txt')
    vim.cmd.new()
    vim.bo.buftype = 'nofile'
    t.eq('allow', judge(bundled, { bufnr = 0 }))
    local action, reason = judge(reader, { bufnr = 0 }) -- others may take it for the float
    t.eq('ask', action)
    t.matches('buffer %d+ is not a regular file', reason)
    vim.cmd('%bwipeout!')
  end)

  it('are judged as the current buffer in its own window, by tools of any source', function()
    write(root .. '/.git/config')
    local bundled = { annotations = { read_only = true }, source = { origin = 'bundled' } }
    local files = { [root .. '/.env'] = 'deny', [root .. '/.git/config'] = 'deny', [outside .. '/out.txt'] = 'ask' }
    for path, action in pairs(files) do
      vim.cmd.edit(path)
      for _, definition in ipairs({ reader, bundled }) do
        for _, args in ipairs({ { bufnr = 0 }, { bufnrs = { 0 } }, { bufnr = vim.fn.bufnr() }, { path = path } }) do
          t.eq({ path, args, action }, { path, args, (judge(definition, args)) })
        end
      end
      vim.cmd('%bwipeout!')
    end
    vim.cmd.edit(root .. '/in.txt')
    t.eq({ 'allow', 'allow' }, { (judge(reader, { bufnr = 0 })), (judge(bundled, { bufnr = 0 })) })
    vim.b.sensitive = true
    t.eq({ 'deny', 'deny' }, { (judge(reader, { bufnr = 0 })), (judge(bundled, { bufnr = 0 })) })
    vim.cmd('%bwipeout!')
  end)
end)

describe('a preview', function()
  local asked

  local function decide(preview, args, source)
    asked = 0
    local call = Call.new({ id = 'x', name = 'x', host = 'test' })
    call.definition = { name = 'x', description = 'x', needs_approval = true, preview = preview, source = source }
    call.args = args or {}
    local answer
    new_gateway(function() asked = asked + 1 end):decide(call, function(allowed, err) answer = { allowed, err } end)
    return answer
  end

  local function failing() return nil, errors.new('stale', 'too late') end

  it(
    'that returns an error ends the call before any question',
    function() t.eq({ { false, errors.new('stale', 'too late') }, 0 }, { decide(failing), asked }) end
  )

  it('that returns a text or nothing, or throws, still asks', function()
    local function text() return 'x' end
    for _, each in ipairs({ text, function() end, throws }) do
      t.eq({ nil, 1 }, { decide(each), asked })
    end
  end)

  it('does not run before a question about a file, and never if its tool comes from the project', function()
    t.eq({ nil, 1 }, { decide(failing, { path = outside .. '/out.txt' }), asked })
    decide(failing, {}, { origin = 'python', file = root .. '/mcp_tools/x.py' })
    t.eq(1, asked)
  end)
end)

it('asking is refused without a UI; the client and the user get different messages', function()
  local function waiting_call()
    local call = Call.new({ id = 'x', name = 'x', host = 'test' })
    call.args = {}
    return call
  end

  local answer
  notifications.collect()
  local function answered(...) answer = { ... } end
  approval.ask({ call = waiting_call(), reason = 'the option y' }, answered)
  notifications.wait('x was denied: it needs approval, and the editor has no UI to ask in')
  notifications.restore()
  t.eq({ nil, 'nobody to ask', 'access_denied' }, { answer[1], answer[3], answer[2].code })
  t.matches('no UI to ask in. Tell the user', answer[2].message)
  t.ok(not answer[2].message:find('option', 1, true) and not answer[2].message:find('setup', 1, true))
  t.eq(0, approval.count())
end)

describe('approval.groups', function()
  local mounted = { source = { origin = 'mounted', name = 'fs' } }

  it('applies to mounts and to files of tools by their names in lists', function()
    local file = { source = { origin = 'registered', name = 'mine', found_in = outside .. '/mine.lua' } }
    config.setup({ approval = { default = 'allow', groups = { fs = 'deny', mine = 'deny' } } })
    t.eq({ 'deny', 'deny' }, { (judge(mounted)), (judge(file)) })
    config.reset()
    config.setup({ approval = { groups = { fs = 'allow', mine = 'allow' } } })
    t.eq({ 'allow', 'allow' }, { (judge(mounted)), (judge(file)) })
  end)

  it('does not allow a mount that is named like a bundled group, or a file of the project', function()
    local git = { source = { origin = 'mounted', name = 'git' } }
    local file = { source = { origin = 'python', name = 'mine', found_in = root .. '/mcp_tools/mine.py' } }
    config.setup({ approval = { groups = { git = 'allow', mine = 'allow' } } })
    t.eq({ 'ask', 'ask' }, { (judge(git)), (judge(file)) })
    config.reset()
    config.setup({ approval = { default = 'allow', groups = { git = 'deny' } } })
    t.eq('deny', (judge(git)))
  end)

  it('accepts the name of a mount', function()
    local registry = require('mcp-tools.registry.store').new()
    local tool = { name = 'fs__x', description = 'x', execute = function() end }
    assert(registry:add('tools', tool, { origin = 'mounted', name = 'fs' }))
    config.setup({ approval = { groups = { fs = 'deny' } } })
    t.eq({}, require('mcp-tools.loading.report').unknown_names(registry))
  end)
end)

describe('an argument is judged as a file', function()
  local trusted = { source = { origin = 'mounted', name = 'fs' } }

  before_each(function() config.setup({ approval = { tools = { x = 'allow' } } }) end)

  local NAMES = [[
    source src from repo_path notebookPath input-file output_dir outputdir log_file config_paths file2 path_list
    fileList path_or_url target location base_uri
    a_very_long_name_that_nobody_would_give_to_an_argument_of_any_tool_path
  ]]
  for name in NAMES:gmatch('%S+') do
    it('when it is called ' .. name, function()
      t.eq('deny', (judge(trusted, { [name] = root .. '/.env' })))
      t.eq('deny', (judge(trusted, { [name] = '.env' })))
      t.eq('deny', (judge(trusted, { list = { { [name] = { root .. '/.env' } } } })))
    end)
  end

  it('when it is a URL of a file', function()
    t.eq('deny', (judge(trusted, { url = 'file://' .. root .. '/.env' })))
    t.eq('allow', (judge(trusted, { url = 'https://example.com/.env' })))
    t.eq('allow', (judge(trusted, { url = 'example.com/a.html' })))
  end)

  it('with surrounding white space, which the server may remove', function()
    local file = root .. '/.env'
    for name, value in pairs({ path = '.env ', source = '\n' .. file, url = ' file://' .. file }) do
      t.eq('deny', (judge(trusted, { [name] = value })), name)
    end
    t.eq('allow', (judge(trusted, { path = ' ', url = ' https://example.com ' })))
  end)

  it('only when its value looks like a path, if its name can mean anything', function()
    config.reset()
    for _, value in ipairs({ ('print("x")\n'):rep(1000), '2024-01-01', '#general', 'owner/repo', '{"a": [1]}' }) do
      local decision = gateway:judge(setmetatable({
        definition = vim.tbl_extend('force', { name = 'x', description = 'x' }, trusted),
        args = { source = value, profile = value },
        client = {},
        host = 'test',
      }, { __index = Call }))
      t.eq({}, decision.targets)
    end
  end)

  it('when only resolving `..` as text finds it', function()
    for _, path in ipairs({
      'x\n/../.env',
      'no such\tdirectory/./../.env',
      root .. '/\n/../.env',
      ('./'):rep(3000) .. '.env',
      ('x/../'):rep(20000) .. '.env',
    }) do
      t.eq('deny', (judge(trusted, { source = path })), path:sub(1, 40))
    end
    t.eq('allow', (judge(trusted, { source = ('#!/bin/sh\ncd ../x && ls ../../y\n'):rep(1000) })))
  end)

  it('when it is an object, by every string in it', function()
    local file = root .. '/.env'
    for _, value in ipairs({
      { value = '.env' },
      { value = file },
      { kind = 'file', ref = { list = { 'in.txt', { id = file } } } },
      { buffer = '.env' },
      { profile = '.env' },
      { value = root .. '/x\n/../.env' },
      { { value = file } },
      { { { value = { '.env' } } } },
    }) do
      for _, name in ipairs({ 'path', 'files', 'source' }) do
        t.eq('deny', (judge(trusted, { [name] = value })), vim.inspect({ [name] = value }))
      end
    end
    t.eq('deny', (judge(trusted, { uri = { href = 'file://' .. file } })))
    t.eq('deny', (judge(trusted, { url = { href = file } })))
    t.eq('allow', (judge(trusted, { url = { href = 'https://example.com/.env' } })))
    config.reset()
    local reader = { source = { origin = 'registered' }, annotations = { read_only = true } }
    t.eq('ask', (judge(reader, { path = { value = outside .. '/out.txt' } })))
    local text = ('local x = "/etc/passwd"\n'):rep(10000)
    t.eq('allow', (judge(reader, { files = { { path = root .. '/in.txt', content = text, mode = 'w' } } })))
  end)

  it('when it is a buffer by its name, its number as a string, or in an object', function()
    vim.cmd.edit(root .. '/.env')
    local bufnr = vim.api.nvim_get_current_buf()
    vim.cmd.edit(root .. '/in.txt')
    local spellings = { root .. '/.env', '.env', tostring(bufnr), { id = bufnr }, { { ref = { id = bufnr } } } }
    for _, value in ipairs(spellings) do
      t.eq('deny', (judge(trusted, { buffer = value })), vim.inspect(value))
    end
    t.eq('allow', (judge(trusted, { buffers = { { id = vim.api.nvim_get_current_buf() } } })))
    vim.cmd('%bwipeout!')
  end)

  it('and is denied when its path cannot be resolved', function()
    t.eq('deny', (judge(trusted, { repo_path = '/' .. ('x'):rep(1000) })))
    t.eq('deny', (judge(trusted, { repo_path = { value = root .. '/' .. ('x/'):rep(2000) .. '../.env' } })))
  end)
end)
