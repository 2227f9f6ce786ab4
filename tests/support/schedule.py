"""Which tests run in the same worker: those that share processes, so that these are started once."""

from __future__ import annotations

from xdist.scheduler import LoadScopeScheduling

TOGETHER = {
    "a bridge that clients of others use": ("tests/clients/",),
    "a bridge that is used well": tuple(
        f"tests/e2e/test_{name}.py" for name in ("calls", "inputs", "resources", "prompts")
    ),
    "a person who is asked": ("tests/e2e/test_approval.py", "tests/e2e/test_trust.py"),
    "an editor that is held up": ("tests/faults/test_editor.py", "tests/faults/test_tools.py"),
    "a bridge that is misused": (
        "tests/fuzz/",
        "tests/faults/test_clients_gone.py",
        "tests/faults/test_http_",
        "tests/faults/test_load.py",
        "tests/faults/test_messages.py",
        "tests/faults/test_registry.py",
    ),
}
"""Beginnings of the ids that are one unit. Otherwise a file is one."""

ALONE = (
    "tests/conformance/",
    "tests/e2e/test_approval_terminal.py",
    "tests/e2e/test_install.py",
    "tests/e2e/test_terminal.py",
    "tests/faults/test_bridge_death.py",
    "tests/faults/test_ports.py",
    "tests/faults/test_start_stop.py",
    "tests/lua/",
    "tests/tooling/test_install_env.py",
    "tests/unit/process/test_lifecycle.py",
)
"""Where every test starts what it needs: each is a unit, and they even out what the large ones leave."""


class Schedule(LoadScopeScheduling):
    """A worker gets whole units, the largest come first."""

    def _split_scope(self, nodeid: str) -> str:
        for unit, beginnings in TOGETHER.items():
            if nodeid.startswith(beginnings):
                return unit
        return nodeid if nodeid.startswith(ALONE) else nodeid.partition("::")[0]
