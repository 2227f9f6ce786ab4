"""Progress of long calls and the statusline at a real terminal."""

from __future__ import annotations

import pytest

from tests.support import terminal
from tests.support.terminal import Terminal

pytestmark = [pytest.mark.every_nvim, terminal.needed]

WATCH = """
Seen = {}
if vim.fn.has('nvim-0.12') == 1 then
  vim.api.nvim_create_autocmd('Progress', {
    pattern = 'mcp-tools',
    callback = function(args)
      local data = args.data
      table.insert(Seen, { text = data.text[1], percent = data.percent, status = data.status, id = data.id })
    end,
  })
else
  vim.notify = function(text, level, opts)
    local n = #Seen + 1
    table.insert(Seen, { text = text, id = opts.id, replace = opts.replace, stays = opts.timeout == false })
    return n
  end
end
mcp_tools.register({
  name = 'long_one',
  description = 'Takes long.',
  annotations = { read_only = true },
  execute = function(ctx)
    ctx:progress(1, 4, 'reading\\nfiles')
    Finish = ctx
  end,
})
"""


@pytest.mark.slow
async def test_a_long_call_is_shown_updated_and_ended(idle: Terminal) -> None:
    nvim = idle.nvim
    await nvim.lua(WATCH)
    native = await nvim.lua("return vim.fn.has('nvim-0.12') == 1")

    await nvim.lua("vim.o.laststatus = 2")
    await nvim.lua("vim.o.statusline = '[%{%v:lua.mcp_tools.statusline()%}] <%{g:mcp_tools_status}>'")
    await nvim.lua("mcp_tools.call('test_echo', { text = 'x' }, function() Echoed = true end)")
    await nvim.wait_for("return Echoed")
    await nvim.lua("mcp_tools.call('long_one', {}, function() end)")
    await nvim.wait_for("return Seen[1]", timeout=5_000)
    if native:
        await idle.shows("mcp-tools:  25% long_one: reading files")
    await idle.shows("[long_one 25%] <long_one 25%>")
    await nvim.lua("Finish:progress(2, 4, 'writ\\226\\128\\139ing')")
    await nvim.wait_for("return Seen[2]", timeout=5_000)
    await nvim.lua("Finish('done')")
    await nvim.wait_for("return Seen[3]", timeout=5_000)

    seen = await nvim.lua("return Seen")
    assert len({each["id"] for each in seen}) == 1, "one message for the whole call"
    if native:
        assert [(each["text"], each["percent"], each["status"]) for each in seen[:2]] == [
            ("long_one: reading files", 25, "running"),
            ("long_one: writ<U+200B>ing", 50, "running"),
        ]
        assert (seen[2]["percent"], seen[2]["status"]) == (100, "success")
    else:
        texts = ["long_one: reading files (25%)", "long_one: writ<U+200B>ing (50%)"]
        assert [each["text"] for each in seen[:2]] == texts
        assert [each.get("replace") for each in seen] == [None, 1, 2]
        assert [each["stays"] for each in seen] == [True, True, False]
    assert seen[2]["text"].startswith("long_one: done, ")
    await idle.shows("[] <>")


@pytest.mark.slow
async def test_progress_can_be_disabled(idle: Terminal) -> None:
    nvim = idle.nvim
    await nvim.lua(WATCH)
    await nvim.lua("mcp_tools.setup({ ui = { progress = false } })")
    await nvim.lua("mcp_tools.call('long_one', {}, function() end)")
    await nvim.lua("Began = vim.uv.hrtime()")
    await nvim.wait_for("return vim.uv.hrtime() - Began > 1.6e9", timeout=5_000)
    assert await nvim.lua("return { #Seen, vim.g.mcp_tools_status }") == [0, "long_one 25%"]
    await nvim.lua("Finish('done')")
    await nvim.wait_for("return vim.g.mcp_tools_status == ''")
    assert await nvim.lua("return #Seen") == 0
