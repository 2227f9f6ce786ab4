"""pytest plugin that writes the result of each test to a file, as lines of JSON."""

import json
import os

MAX_MESSAGE = 2000
MAX_DETAIL = 6000
RANK = {"passed": 0, "skipped": 1, "failed": 2, "error": 3}


def pytest_configure(config):
    """Register the plugin, unless this is a worker: its reports reach the main process."""
    path = os.environ.get("MCP_TOOLS_TEST_EVENTS")
    if path and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Events(config, path), "mcp-tools-events")


class Events:
    """Writes the results."""

    def __init__(self, config, path):
        self.root = str(getattr(config, "rootpath", None) or config.rootdir)
        params = getattr(config, "invocation_params", None)
        self.directory = str(params.dir) if params else os.getcwd()
        self.file = open(path, "a", encoding="utf-8")  # noqa: SIM115 - open until pytest ends
        self.seen = {}

    def write(self, **event):
        """Write one event."""
        try:
            self.file.write(json.dumps(event) + "\n")
            self.file.flush()
        except (OSError, TypeError, ValueError):
            pass

    def name(self, nodeid):
        """Return the id as an argument for pytest in this directory."""
        path, separator, rest = nodeid.partition("::")
        whole = os.path.join(self.root, path) if path else self.root
        return os.path.relpath(whole, self.directory) + separator + rest

    def path(self, path):
        """Return a normalized absolute path."""
        return os.path.normpath(os.path.join(self.directory, str(path)))

    def place(self, report):
        """Return where a test failed: the innermost frame in the project, otherwise where it was raised."""
        longrepr = report.longrepr
        crash = getattr(longrepr, "reprcrash", None)
        place = (self.path(crash.path), crash.lineno) if crash else None
        if place and not self.is_ours(place[0]):
            entries = getattr(getattr(longrepr, "reprtraceback", None), "reprentries", None) or []
            for entry in reversed(entries):
                where = getattr(entry, "reprfileloc", None)
                if where and self.is_ours(self.path(where.path)):
                    return self.path(where.path), where.lineno
        return place

    def is_ours(self, path):
        """Return whether a file is in the project and not in one of its environments."""
        return path.startswith(self.directory + os.sep) and "site-packages" not in path

    def failure(self, report, place):
        """Return the fields of a failed test."""
        crash = getattr(report.longrepr, "reprcrash", None)
        detail = str(getattr(report, "longreprtext", "") or report.longrepr or "")
        lines = [line for line in detail.splitlines() if line.strip()]
        message = crash.message if crash else lines[-1] if lines else report.outcome
        place = self.place(report) or place
        return {
            "path": place[0] if place else None,
            "line": place[1] if place else None,
            "message": message[:MAX_MESSAGE],
            "detail": detail[-MAX_DETAIL:],
        }

    def pytest_collection_finish(self, session):
        """Write the number of tests."""
        self.write(total=len(session.items))

    def pytest_collectreport(self, report):
        """Write a collection error."""
        if report.failed:
            fspath = report.nodeid.partition("::")[0]
            place = (os.path.join(self.root, fspath), 1) if fspath else None
            self.write(id=self.name(report.nodeid), outcome="error", **self.failure(report, place))

    def pytest_runtest_logreport(self, report):
        """Write the outcome of a test's phase; the worst one is its result."""
        outcome = report.outcome
        if outcome == "failed" and report.when != "call":
            outcome = "error"
        before = self.seen.get(report.nodeid)
        if report.when == "setup" and outcome == "passed":
            return
        if before is not None and RANK[outcome] <= RANK[before]:
            return
        self.seen[report.nodeid] = outcome
        event = {"id": self.name(report.nodeid), "outcome": outcome}
        if before is not None:
            event["before"] = before
        if outcome in ("failed", "error"):
            location = report.location
            event.update(self.failure(report, (os.path.join(self.root, location[0]), (location[1] or 0) + 1)))
        self.write(**event)

    def pytest_sessionfinish(self, exitstatus):
        """Close the file."""
        self.write(exit=int(exitstatus))
