"""Which tests run in the same worker: those that share processes, so that these are started once.

Receives: the id of a test. Sends: the name of its unit; a worker gets whole units, the largest come first.
Does not know about: what a test does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from xdist.scheduler import LoadScopeScheduling

if TYPE_CHECKING:
    from xdist.workermanage import WorkerController

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
    """xdist's own way, with these units, and a worker that dies takes one test along, not the run."""

    def _split_scope(self, nodeid: str) -> str:
        for unit, beginnings in TOGETHER.items():
            if nodeid.startswith(beginnings):
                return unit
        return nodeid if nodeid.startswith(ALONE) else nodeid.partition("::")[0]

    def remove_node(self, node: WorkerController) -> str | None:
        """Takes a worker out; what it had not done is done by the others, but for the test it died in.

        xdist hands that test out again, so that it kills one worker after the other, and units that were
        done as well: whoever gets such an empty one waits for ever.
        """
        units = self.assigned_work[node]
        left = [(unit, test) for unit in units.values() for test, done in unit.items() if not done]
        if not left:
            return super().remove_node(node)
        unit, fatal = left[0]
        unit[fatal] = True
        self.assigned_work[node] = {}
        super().remove_node(node)
        self.workqueue.update({name: unit for name, unit in units.items() if False in unit.values()})
        for other in self.assigned_work:
            self._reschedule(other)
        return fatal
