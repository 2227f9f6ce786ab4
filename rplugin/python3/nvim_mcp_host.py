"""The remote plugin: runs tools that are written in Python.

The plugin starts its own process with this file. A person's `:UpdateRemotePlugins` may register it as well;
that changes nothing, and the file imports nothing but pynvim until it is called.
"""

import os
import sys
import traceback

import pynvim

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
READY = "pcall(require('mcp-tools.python_worker.worker').ready, ...)"
POST = "require('mcp-tools.calls.remote').receive(...)"


class PynvimWire:
    """The editor as bridge/mcp_tools_nvim/python_tools/worker/client_messages.py expects it (`Wire`)."""

    def __init__(self, nvim):
        self.nvim = nvim

    def post(self, verb, *args):
        """Tell lua/mcp-tools/calls/remote.lua something, from any thread."""

        def send():
            try:
                self.nvim.exec_lua(POST, verb, *args, async_=True)
            except Exception as error:  # noqa: BLE001 (the channel is closed: nobody is there to hear)
                sys.stderr.write(f"{verb} did not go out: {error!r}\n")

        self._soon(send)

    def lua(self, code, args, done):
        """Run Lua and tell `done` what came of it, from any thread."""

        def ask():
            try:
                value = self.nvim.exec_lua(code, *args)
            except Exception as error:  # noqa: BLE001 (whatever Lua raised is the tool's to see)
                done(None, RuntimeError(str(error)))
            else:
                done(value, None)

        # Requests need a greenlet, which async_call makes.
        self._soon(lambda: self.nvim.async_call(ask))

    def _soon(self, function):
        try:
            self.nvim.loop.call_soon_threadsafe(function)
        except RuntimeError:
            pass  # the loop has ended, and this process with it


@pynvim.plugin
class McpToolsHost:
    """The calls of this process; made when its first event comes."""

    def __init__(self, nvim):
        sys.path.insert(0, os.path.join(ROOT, "bridge"))  # first: another version may be installed
        from mcp_tools_nvim.python_tools.worker.host import Host
        from mcp_tools_nvim.python_tools.worker.serve import end_when_told

        end_when_told(nvim.loop)
        self.host = Host(PynvimWire(nvim), nvim.loop)
        info = {
            "pid": os.getpid(),
            "python": sys.version.split()[0],
            "pynvim": ".".join(map(str, (pynvim.VERSION.major, pynvim.VERSION.minor, pynvim.VERSION.patch))),
        }
        nvim.exec_lua(READY, nvim.channel_id, info, async_=True)

    @pynvim.function("McpToolsHost", sync=False)
    def handle(self, args):
        """An event of the editor."""
        try:
            self.host.handle(*args)
        except Exception:  # noqa: BLE001 (pynvim would show it to the person; this goes to the log)
            traceback.print_exc()
