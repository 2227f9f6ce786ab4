--- State machine of a call: what may follow what, and why a call was told to stop, in words.
---
--- Receives: a state and an event. Sends: the state that follows, if any.
--- Does not know about: calls, what a move brings about.

local M = {}

---@alias mcp-tools.CallState
---| 'received'          # found, not yet decided
---| 'waiting_approval'  # a person is being asked, by the client perhaps; the tool's time has not begun
---| 'running'           # the tool has it
---| 'waiting_input'     # the tool waits for its client; its time stands still
---| 'done' | 'failed' | 'timed_out' | 'cancelled'

--- state → event → next state
M.TRANSITIONS = {
  received = { ask = 'waiting_approval', start = 'running', fail = 'failed', cancel = 'cancelled' },
  waiting_approval = {
    await_input = 'waiting_approval',
    input = 'waiting_approval',
    start = 'running',
    fail = 'failed',
    cancel = 'cancelled',
  },
  running = {
    await_input = 'waiting_input',
    finish = 'done',
    fail = 'failed',
    time_out = 'timed_out',
    cancel = 'cancelled',
  },
  waiting_input = {
    input = 'running',
    finish = 'done',
    fail = 'failed',
    time_out = 'timed_out',
    cancel = 'cancelled',
  },
  done = {},
  failed = {},
  timed_out = {},
  cancelled = {},
}

--- The reasons to stop that the wire knows, for whoever reads the error.
M.REASONS = {
  client = 'the client cancelled it',
  disconnected = 'the client disconnected',
  session_closed = 'the session was closed',
  client_gone = 'the client has been silent and without a connection for too long',
  bridge_gone = 'the bridge ended',
  shutdown = 'the bridge is shutting down',
  user = 'the person at the editor cancelled it',
  parent = 'the tool that called it was told to stop',
  timeout = 'its time was up',
  blocked = 'the editor did not get to it in time',
  unreadable = 'what the editor said of it could not be read',
}

return M
