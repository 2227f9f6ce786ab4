-- Recorded calls of real agents are replayed, and must get the recorded answers.
-- tests/data/agents has the frames as they were sent.

local agents = require('agent_sessions')
local project = require('editor_project')
local t = require('helpers')

local DATA = t.CHECKOUT .. '/tests/data/agents/'
local FIRST = 'line one\nline two\nline three\n'

--- The messages of a recording, with the directory of the test.
local function frames(name)
  local list = {}
  for line in io.lines(('%s/%s.jsonl'):format(DATA, name)) do
    local frame = vim.json.decode((line:gsub('BASE/w', project.root)))
    if frame.m then
      table.insert(list, frame)
    end
  end
  return list
end

--- The recorded answers by the id of their call.
local function answers(list)
  local by_id = {}
  for _, frame in ipairs(list) do
    if frame.dir == 'out' and frame.m.id and frame.m.result then
      by_id[frame.m.id] = frame.m.result
    end
  end
  return by_id
end

local function texts(result) return t.field('text', result.content) end

local function write(path, text) project.write(path, text) end

--- Decides on a proposal like the user did.
local function decide(review, verdict, text)
  if verdict == 'accepted' then
    local lines = vim.split(text:gsub('\n$', ''), '\n')
    if text ~= table.concat(review.files[1]:proposed(), '\n') .. '\n' then
      t.ok(review:rewrite(1, lines))
    end
    review:decide_rest('accepted')
  else
    review:decide_rest('rejected')
  end
end

local session

after_each(function()
  if session then
    agents.close(session)
  end
end)
project.each(nil, function() write('a.txt', FIRST) end)

--- Calls of the recording in order, each with its recorded answer.
local function replay(name, on_call)
  local list = frames(name)
  local by_id = answers(list)
  local calls = vim.tbl_filter(function(frame) return frame.dir == 'in' and frame.m.method == 'tools/call' end, list)
  t.ok(#calls > 5)
  for i, frame in ipairs(calls) do
    on_call(frame.m.params, by_id[frame.m.id], calls[i + 1])
  end
end

it('Claude Code gets the answers that it understands', function()
  session = agents.open('claude', 'claude-code')
  local pending ---@type { call: mcp-tools.Call, expected: table }?
  replay('claude', function(call, expected)
    local started = agents.begin(session, call.name, call.arguments)
    if call.name == 'openDiff' then
      local said = texts(expected)
      local review = agents.review(session, call.arguments.tab_name)
      t.eq('running', started.state)
      if call.arguments.new_file_path:find('a.txt') then
        decide(review, said[1] == 'FILE_SAVED' and 'accepted' or 'rejected', said[2])
        t.eq(said, texts(agents.result(started)))
        if said[1] == 'FILE_SAVED' then
          write('a.txt', said[2])
        end
      else
        pending = { call = started, expected = said } -- it is answered in the terminal
      end
      return
    end
    local result = agents.result(started)
    if call.name == 'close_tab' and pending then
      t.eq({ pending.expected, 'DIFF_REJECTED' }, { texts(agents.result(pending.call)), pending.expected[1] })
      pending = nil
    end
    if call.name ~= 'getDiagnostics' then -- there is no linter here
      t.eq(texts(expected), texts(result))
    end
  end)
end)

for _, name in ipairs({ 'gemini', 'qwen' }) do
  describe(name, function()
    it('gets the answers that it understands', function()
      session = agents.open(name)
      local outcomes = vim.tbl_filter(
        function(frame) return frame.dir == 'out' and (frame.m.method or ''):find('^ide/diff') end,
        frames(name)
      )
      replay(name, function(call, expected, next_call)
        local result = agents.result(agents.begin(session, call.name, call.arguments))
        if call.name == 'closeDiff' then
          t.eq(vim.json.decode(expected.content[1].text), vim.json.decode(result.content[1].text))
          t.eq(0, #session.pushed)
          return
        end
        t.eq({ content = {} }, result)
        if next_call and next_call.m.params.name == 'closeDiff' then
          return agents.review(session, call.arguments.filePath) -- it is answered in the terminal
        end
        local outcome = table.remove(outcomes, 1).m
        local verdict = outcome.method == 'ide/diffAccepted' and 'accepted' or 'rejected'
        decide(agents.review(session, call.arguments.filePath), verdict, outcome.params.content)
        t.wait(function() return #session.pushed > 0 end, 5000, 'the outcome')
        t.eq({ { outcome.method, outcome.params } }, session.pushed)
        session.pushed = {}
        if verdict == 'accepted' then
          write('a.txt', outcome.params.content)
        end
      end)
      t.eq({}, outcomes)
    end)
  end)
end

it('Copilot CLI gets the answers that it understands', function()
  session = agents.open('copilot', 'copilot-cli')
  local pending
  replay('copilot', function(call, expected)
    local started = agents.begin(session, call.name, call.arguments)
    local function value(result)
      local decoded = vim.json.decode(result.content[1].text)
      decoded.message = nil -- for people
      return decoded
    end
    if call.name == 'get_diagnostics' then
      return t.eq({}, vim.json.decode(agents.result(started).content[1].text))
    elseif call.name ~= 'open_diff' then
      t.eq(value(expected), value(agents.result(started)))
      if pending then
        t.eq(pending.expected, value(agents.result(pending.call)))
        pending = nil
      end
      return
    end
    local review = agents.review(session, call.arguments.tab_name)
    if value(expected).trigger == 'closed_via_tool' then
      pending = { call = started, expected = value(expected) }
      return
    end
    local verdict = value(expected).result == 'SAVED' and 'accepted' or 'rejected'
    decide(review, verdict, call.arguments.new_file_contents)
    t.eq(value(expected), value(agents.result(started)))
    if verdict == 'accepted' then
      write('a.txt', call.arguments.new_file_contents)
    end
  end)
end)
