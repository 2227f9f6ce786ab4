--- Word that the bridge is ready: to the person, and by the instance file to other programs.
---
--- Receives: the moment, from control.lua and attachment.lua; what other parts want said then.
--- Sends: a message or a line of the log; the instance file.
--- Does not know about: processes.

local config = require('mcp-tools.config')
local current = require('mcp-tools.bridge.current')
local instances = require('mcp-tools.bridge.instances')
local log = require('mcp-tools.log')
local notify = require('mcp-tools.notify')
local project = require('mcp-tools.files.project')

local M = {}

local extras = {} ---@type (fun(): string?)[]

--- Has something more said whenever the bridge is ready.
---@param fn fun(): string?
function M.on_announce(fn)
  table.insert(extras, fn)
end

--- Brings the instance file up to date.
function M.publish()
  local endpoint = current.endpoint()
  if endpoint then
    instances.publish({
      root = current.prepared.identity.root,
      socket = current.prepared.socket,
      url = endpoint.url,
      port = endpoint.port,
      token = endpoint.token,
      boot = project.boot,
    })
  end
end

--- Says where the bridge listens.
---@param aloud? boolean on the screen; else in the log
function M.ready(aloud)
  notify.forget('bridge')
  local texts = { ('ready: %s'):format(current.endpoint().url) }
  for _, extra in ipairs(extras) do
    table.insert(texts, extra())
  end
  local text = table.concat(texts, '; ')
  if aloud or config.get('bridge.log_level') == 'debug' then
    notify.info(text)
  else
    log.info('%s', text)
  end
end

return M
