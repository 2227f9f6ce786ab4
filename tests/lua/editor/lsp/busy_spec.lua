local config = require('mcp-tools.config')
local mcp_tools = require('mcp-tools')
local t = require('helpers')

--- A server without versions that speaks at once, computes for a while, and then speaks again.
local SERVER = [[
import json, sys, time

def send(**message):
    body = json.dumps({"jsonrpc": "2.0", **message}).encode()
    sys.stdout.buffer.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
    sys.stdout.buffer.flush()

def publish(uri, *messages):
    place = {"line": 0, "character": 0}
    items = [{"range": {"start": place, "end": place}, "severity": 1, "message": text} for text in messages]
    send(method="textDocument/publishDiagnostics", params={"uri": uri, "diagnostics": items})

while True:
    length = 0
    while (line := sys.stdin.buffer.readline().strip()):
        if line.lower().startswith(b"content-length:"):
            length = int(line.split(b":")[1])
    if not length:
        break
    message = json.loads(sys.stdin.buffer.read(length))
    if message.get("method") == "initialize":
        send(id=message["id"], result={"capabilities": {"textDocumentSync": 1}})
    elif message.get("method") == "textDocument/didOpen":
        uri = message["params"]["textDocument"]["uri"]
        publish(uri)
        end = time.monotonic() + 1.5
        while time.monotonic() < end:
            pass
        publish(uri, "late")
    elif "id" in message:
        send(id=message["id"], result=None)
]]

describe('a server that computes', function()
  it('has not said all, however long it is silent', function()
    local root = vim.uv.fs_realpath(vim.fs.dirname(vim.fn.tempname())) .. '/busy'
    vim.fn.mkdir(root .. '/.git', 'p')
    vim.fn.writefile(vim.split(SERVER, '\n'), root .. '/server.py')
    vim.fn.writefile({ 'text' }, root .. '/a.busy')
    require('mcp-tools.files.project').fix(root)
    config.setup({ tools = { 'diagnostics' }, bridge = { autostart = false } })
    vim.cmd('filetype on')
    vim.filetype.add({ extension = { busy = 'busy' } })
    vim.api.nvim_create_autocmd('FileType', {
      pattern = 'busy',
      callback = function(args)
        vim.lsp.start(
          { name = 'busy', cmd = { 'python3', root .. '/server.py' }, root_dir = root },
          { bufnr = args.buf }
        )
      end,
    })
    local result, err
    mcp_tools.call('diagnostics_list', { path = root .. '/a.busy', wait_ms = 10000 }, {}, function(...)
      result, err = ...
    end)
    t.wait(function()
      return result or err
    end, 15000)
    t.eq(nil, err)
    t.eq({ 'yes', 1 }, { result.checked, result.total })
    require('mcp-tools.files.project').fix(nil)
    vim.fn.delete(root, 'rf')
  end)
end)
