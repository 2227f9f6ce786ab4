"""Runs tests that share processes in the same worker."""

from __future__ import annotations

from xdist.scheduler import LoadScopeScheduling

TOGETHER = {
    "third-party clients of one bridge": ("tests/clients/",),
    "ordinary use of one bridge": tuple(
        f"tests/e2e/test_{name}.py" for name in ("calls", "inputs", "resources", "prompts")
    ),
    "a blocked editor": ("tests/faults/test_editor.py", "tests/faults/test_tools.py"),
    "misuse of one bridge": (
        "tests/fuzz/",
        "tests/faults/test_clients_gone.py",
        "tests/faults/test_http_",
        "tests/faults/test_load.py",
        "tests/faults/test_messages.py",
        "tests/faults/test_registry.py",
    ),
}
"""Prefixes of test ids that form one unit; otherwise a file is a unit."""

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
"""Prefixes of tests that share nothing: each test is a unit."""


class Schedule(LoadScopeScheduling):
    """Distributes whole units, the largest first."""

    def _split_scope(self, nodeid: str) -> str:
        for unit, beginnings in TOGETHER.items():
            if nodeid.startswith(beginnings):
                return unit
        return nodeid if nodeid.startswith(ALONE) else nodeid.partition("::")[0]
