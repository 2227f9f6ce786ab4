local Call = require('mcp-tools.calls.call')
local audit = require('mcp-tools.approval.audit')
local canonical_json = require('mcp-tools.util.canonical_json')
local t = require('helpers')

local function ended(fields)
  local call = Call.new(vim.tbl_extend('force', {
    id = 'x',
    name = 'do_it',
    host = 'mcp',
    client = { name = 'c\0\255', version = '1' },
    session = 'a-session-id',
  }, fields or {}))
  call.args = { b = { 1, 2.5, true, vim.NIL }, a = 'é/"\n' }
  call.snapshot = canonical_json.snapshot(call.args)
  call.decision = { allowed = true, by = 'ledger' }
  call.project = '/p'
  call:move('start')
  call.started_at = call.created_at
  call:finish('finish', { value = 'v' })
  return call
end

local function entries(count)
  local found
  return t.wait(function()
    audit.tail(100000, function(list) found = list end)
    vim.wait(20, function() return found end)
    return found and #found >= count and found
  end)
end

describe('canonical JSON', function()
  it('has sorted keys, whatever the order in which a table was filled', function()
    for expected, value in pairs({
      ['{"a":[1,2.5,"x"],"b":{"c":null}}'] = { b = { c = vim.NIL }, a = { 1, 2.5, 'x' } },
      ['{"list":[],"map":{}}'] = { list = {}, map = vim.empty_dict() },
      ['"\\"\\\\\\n\\u001b/é"'] = '"\\\n\27/é',
      ['[1763769600123456,9007199254740994,-0.1]'] = { 1763769600123456, 9007199254740994, -0.1 },
      ['true'] = true,
    }) do
      t.eq(expected, canonical_json.text(value))
    end
    t.ok(canonical_json.text({ 'x', [3] = 'x' }) ~= canonical_json.text({ ['1'] = 'x', ['3'] = 'x' }))
  end)

  it('of a snapshot does not change with the arguments', function()
    local args = { text = ('long "'):rep(100), n = 1, deep = { 1 } }
    local before, snapshot = canonical_json.text(args), canonical_json.snapshot(args)
    args.text, args.n, args.deep[1] = 'other', 2, 2
    t.eq({ before, before }, { canonical_json.text_of(snapshot), (canonical_json.text_of(snapshot)) })
  end)

  it('refuses a table that contains itself', function()
    local loop = {}
    loop.loop = loop
    t.raises('too deep', function() canonical_json.text(loop) end)
  end)
end)

describe('the audit log', function()
  it('has a line for each call, with hashes instead of arguments and session', function()
    ended()
    local call = ended({ client = { name = { 'no text' } } })
    call.session = nil
    call.decision = { allowed = false, by = 'user: deny' }
    audit.record(ended())
    audit.record(call)
    local list = entries(2)
    local one = list[1]
    t.has({ tool = 'do_it', decision = 'allow', by = 'ledger', outcome = 'done' }, one)
    t.has({ host = 'mcp', project = '/p', client_version = '1' }, one)
    t.matches('^%d%d%d%d%-%d%d%-%d%dT%d%d:%d%d:%d%d%.%d%d%dZ$', one.time)
    t.eq(vim.fn.sha256('{"a":"é/\\"\\n","b":[1,2.5,true,null]}'), one.args_sha256)
    t.eq(vim.fn.sha256('a-session-id'):sub(1, 12), one.session)
    t.ok(one.ms >= 0)
    t.eq({ 'deny', nil, nil }, { list[2].decision, list[2].session, list[2].client })
    t.eq('600', ('%o'):format(bit.band(vim.uv.fs_stat(audit.path()).mode, 511)))
    local text = table.concat(vim.fn.readfile(audit.path()), '\n')
    t.ok(not text:find('a-session-id', 1, true) and not text:find('[1,2.5', 1, true))
  end)

  it('continues after a call that cannot be written', function()
    local before = #entries(0)
    audit.record(ended({ client = { name = 'first' } }))
    audit.record(ended({ host = function() end }))
    audit.record(ended({ client = { name = 'last' } }))
    local list = entries(before + 2)
    t.eq({ 'first', 'last' }, { list[before + 1].client, list[before + 2].client })
    t.matches('\ncannot format a line: [^\n]+\n', table.concat(vim.fn.readfile(audit.path()), '\n'))
  end)

  it('is limited in size', function()
    local fd = assert(vim.uv.fs_open(audit.path(), 'w', 384))
    vim.uv.fs_ftruncate(fd, 10 * 1024 * 1024)
    vim.uv.fs_close(fd)
    audit.record(ended())
    t.wait(function() return vim.uv.fs_stat(audit.path() .. '.1') and #entries(1) == 1 end)
  end)
end)

describe('the reason for a denial', function()
  it('is shown without what the error tells the model', function()
    local answers = require('mcp-tools.approval.answers')
    local call = { name = 'x' }
    for _, what in ipairs({ 'closed', 'decided', 'refused', 'unanswered', 'changed', 'failed' }) do
      local message = answers.denial(call, 'no. Not now: "a. b"', what).message
      t.eq('no. Not now: "a. b"', answers.reason_in(message))
      t.eq('no. Not now: "a. b"', answers.reason_in(message:sub(1, 52)))
    end
    t.eq('cancelled: quit', answers.reason_in('cancelled: quit'))
  end)
end)
