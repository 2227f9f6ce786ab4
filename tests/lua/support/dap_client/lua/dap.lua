-- A small debug adapter client with the face of nvim-dap's module, as far as the tools use it.

local uv = vim.uv

local M = { adapters = {}, configurations = {} }

local function made_on_demand()
  return setmetatable({}, {
    __index = function(tbl, key)
      rawset(tbl, key, {})
      return rawget(tbl, key)
    end,
  })
end

M.listeners = { before = made_on_demand(), on_session = {} }
M.defaults = made_on_demand()

local sessions, focused, next_id = {}, nil, 1

function M.sessions() return sessions end

function M.session() return focused end

local function focus(session)
  local old = focused
  focused = session or select(2, next(sessions))
  for _, fn in pairs(M.listeners.on_session) do
    fn(old, focused)
  end
end

local function call(listeners, ...)
  for key, fn in pairs(listeners) do
    if fn(...) then
      listeners[key] = nil
    end
  end
end

local Session = {}
Session.__index = Session

function Session:send(message)
  self.seq = self.seq + 1
  message.seq = self.seq
  local text = vim.json.encode(message)
  self.write(('Content-Length: %d\r\n\r\n%s'):format(#text, text))
  return self.seq
end

function Session:request(command, arguments, cb)
  assert(cb, 'the tools wait for every answer')
  local seq = self:send({ type = 'request', command = command, arguments = arguments })
  self.waiting[seq] = { cb = cb, arguments = arguments }
end

function Session:close()
  if self.closed then
    return
  end
  self.closed = true
  sessions[self.id] = nil
  if self.parent then
    self.parent.children[self.id] = nil
    self.parent = nil
  end
  for _, fn in pairs(self.on_close) do
    pcall(fn, self)
  end
  if focused == self then
    focus(nil)
  end
  self.stop()
end

function Session:disconnect(opts, cb)
  local ended
  local function finish()
    if not ended then
      ended = true
      self:close()
      cb()
    end
  end
  self:request('disconnect', opts, finish)
  vim.defer_fn(finish, 3000)
end

function Session:set_breakpoints(by_buffer, cb)
  local left = vim.tbl_count(by_buffer)
  if left == 0 then
    return cb()
  end
  for bufnr, points in pairs(by_buffer) do
    local source = { path = vim.api.nvim_buf_get_name(bufnr) }
    self:request('setBreakpoints', { source = source, breakpoints = points }, function()
      left = left - 1
      if left == 0 then
        cb()
      end
    end)
  end
end

local EVENTS = {
  initialized = function(self)
    local function ready()
      self:request('configurationDone', nil, function() self.initialized = true end)
    end
    self:set_breakpoints(require('dap.breakpoints').get(), function()
      local default = {}
      for _, filter in ipairs(self.capabilities.exceptionBreakpointFilters or {}) do
        if filter.default then
          table.insert(default, filter.filter)
        end
      end
      self:request('setExceptionBreakpoints', { filters = default }, ready)
    end)
  end,
  stopped = function(self, body)
    self.stopped_thread_id = body.threadId
    if not (focused and focused.stopped_thread_id) then
      focus(self)
    end
    if not body.preserveFocusHint then
      self:request('stackTrace', { threadId = body.threadId }, function(_, answer)
        local frame = answer and answer.stackFrames[1]
        if frame then -- as nvim-dap does for the person
          vim.cmd.edit(vim.fn.fnameescape(frame.source.path))
          vim.api.nvim_win_set_cursor(0, { frame.line, 0 })
        end
      end)
    end
  end,
  continued = function(self) self.stopped_thread_id = nil end,
  terminated = function(self) self:close() end,
}

function Session:take(message)
  if message.type == 'response' then
    local waiting = self.waiting[message.request_seq]
    self.waiting[message.request_seq] = nil
    local err = not message.success and { message = message.message, body = message.body } or nil
    call(M.listeners.before[message.command], self, err, message.body, waiting.arguments, message.request_seq)
    waiting.cb(err, message.body)
  elseif message.type == 'event' then
    call(M.listeners.before['event_' .. message.event], self, message.body)
    if EVENTS[message.event] then
      EVENTS[message.event](self, message.body)
    end
  elseif message.command == 'startDebugging' then
    local config = message.arguments.configuration
    config.request = message.arguments.request
    M.run(config, { new = true, parent = self })
    self:send({ type = 'response', request_seq = message.seq, success = true, command = message.command })
  end
end

--- Cuts messages out of what comes.
function Session:read(chunk)
  self.unread = self.unread .. chunk
  while true do
    local _, head, length = self.unread:find('^.-Content%-Length: (%d+)\r\n\r\n')
    local last = head and head + tonumber(length)
    if not head or #self.unread < last then
      return
    end
    local message = vim.json.decode(self.unread:sub(head + 1, last), { luanil = { object = true } })
    self.unread = self.unread:sub(last + 1)
    vim.schedule(function() self:take(message) end)
  end
end

local function on_data(self)
  return function(_, chunk)
    if chunk then
      self:read(chunk)
    else
      vim.schedule(function() self:close() end)
    end
  end
end

local function spawn(self, adapter, cb)
  local input, out = uv.new_pipe(), uv.new_pipe()
  local handle
  handle = uv.spawn(adapter.command, { args = adapter.args, stdio = { input, out } }, function() handle:close() end)
  self.write = function(text) input:write(text) end
  self.stop = function()
    input:close()
    if not handle:is_closing() then
      handle:kill('sigint')
    end
  end
  out:read_start(on_data(self))
  cb()
end

local function connect(self, adapter, cb)
  local tcp = uv.new_tcp()
  self.write = function(text) tcp:write(text) end
  self.stop = function() tcp:close() end
  tcp:connect(adapter.host or '127.0.0.1', adapter.port, function(err)
    vim.schedule(function()
      if err then
        return self:close()
      end
      tcp:read_start(on_data(self))
      cb()
    end)
  end)
end

function M.run(config, opts)
  assert(opts.new, 'the tools never restart by their name what runs')
  local adapter = M.adapters[config.type]
  local self = setmetatable({
    id = next_id,
    config = vim.deepcopy(config),
    adapter = adapter,
    capabilities = {},
    threads = {},
    children = {},
    parent = opts.parent,
    on_close = {},
    waiting = {},
    unread = '',
    seq = 0,
    initialized = false,
    closed = false,
  }, Session)
  next_id = next_id + 1
  (adapter.type == 'server' and connect or spawn)(self, adapter, function()
    local about = { adapterID = 'test', linesStartAt1 = true, columnsStartAt1 = true, pathFormat = 'path' }
    self:request('initialize', about, function(_, capabilities)
      self.capabilities = capabilities or {}
      self:request(config.request, config, function(err)
        if err then
          self:close()
        end
      end)
    end)
  end)
  if self.parent then
    self.parent.children[self.id] = self
  else
    sessions[self.id] = self
    focus(self)
  end
end

return M
