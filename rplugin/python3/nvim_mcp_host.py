"""The remote plugin that runs Python tools.

The plugin starts its own worker process with this file. `:UpdateRemotePlugins` may also register it,
which has no effect: the file imports only pynvim until it is called.
"""

import os
import sys
import traceback

import pynvim

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
READY = "pcall(require('mcp-tools.python_worker.worker').ready, ...)"
POST = "require('mcp-tools.calls.remote').receive(...)"


class PynvimWire:
    """The editor in the form that python_tools/worker/client_messages.py expects (`Wire`)."""

    def __init__(self, nvim):
        self.nvim = nvim

    def post(self, verb, *args):
        """Send a message to lua/mcp-tools/calls/remote.lua; may be called from any thread."""

        def send():
            try:
                self.nvim.exec_lua(POST, verb, *args, async_=True)
            except Exception as error:  # noqa: BLE001 (the channel is closed, so the message has no receiver)
                sys.stderr.write(f"{verb} was not sent: {error!r}\n")

        self._soon(send)

    def lua(self, code, args, done):
        """Run Lua and call `done` with the result or error; may be called from any thread."""

        def ask():
            try:
                value = self.nvim.exec_lua(code, *args)
            except Exception as error:  # noqa: BLE001 (the tool handles errors of Lua)
                done(None, RuntimeError(str(error)))
            else:
                done(value, None)

        # A request needs a greenlet, which async_call creates.
        self._soon(lambda: self.nvim.async_call(ask))

    def _soon(self, function):
        try:
            self.nvim.loop.call_soon_threadsafe(function)
        except RuntimeError:
            pass  # the loop has ended, and the process ends with it


@pynvim.plugin
class McpToolsHost:
    """The calls of this process; created for its first event."""

    def __init__(self, nvim):
        sys.path.insert(0, os.path.join(ROOT, "bridge"))  # first: another version may be installed
        from mcp_tools_nvim.python_tools.worker.host import Host
        from mcp_tools_nvim.python_tools.worker.serve import end_on_sigterm

        end_on_sigterm(nvim.loop)
        self.host = Host(PynvimWire(nvim), nvim.loop)
        info = {
            "pid": os.getpid(),
            "python": sys.version.split()[0],
            "pynvim": ".".join(map(str, (pynvim.VERSION.major, pynvim.VERSION.minor, pynvim.VERSION.patch))),
        }
        nvim.exec_lua(READY, nvim.channel_id, info, async_=True)

    @pynvim.function("McpToolsHost", sync=False)
    def handle(self, args):
        """Handle an event from the editor."""
        try:
            self.host.handle(*args)
        except Exception:  # noqa: BLE001 (pynvim would show it to the user; stderr goes to the log)
            traceback.print_exc()
