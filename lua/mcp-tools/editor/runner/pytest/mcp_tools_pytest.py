"""pytest plugin that selects tests by name and writes the result of each one to a file, as lines of JSON."""

import difflib
import json
import os

import pytest

MAX_MESSAGE = 2000
MAX_DETAIL = 6000
RANK = {"passed": 0, "skipped": 1, "failed": 2, "error": 3}


def pytest_configure(config):
    """Register the plugins. A worker does not report: its reports reach the main process."""
    path = os.environ.get("MCP_TOOLS_TEST_EVENTS")
    if path and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Events(config, path), "mcp-tools-events")
    names = os.environ.get("MCP_TOOLS_TESTS")
    if names:
        config.pluginmanager.register(Selection(config, json.loads(names), path), "mcp-tools-selection")


class Project:
    """Knows the project's directories."""

    def __init__(self, config):
        self.root = str(getattr(config, "rootpath", None) or config.rootdir)
        params = getattr(config, "invocation_params", None)
        self.directory = str(params.dir) if params else os.getcwd()

    def name(self, nodeid):
        """Return the id as an argument for pytest in this directory."""
        path, separator, rest = nodeid.partition("::")
        whole = os.path.join(self.root, path) if path else self.root
        return os.path.relpath(whole, self.directory) + separator + rest


class Selection(Project):
    """Selects tests by name or id: of directories, files, classes, functions, with or without parameters."""

    def __init__(self, config, names, events):
        super().__init__(config)
        self.names = names
        self.events = events
        self.is_worker = hasattr(config, "workerinput")

    @staticmethod
    def matches(test, name):
        """Return whether a name means a test, or a group of tests that it is in."""
        base = test.partition("[")[0]
        if "/" not in name and "::" not in name and not name.endswith(".py"):
            start, bracket, rest = name.partition("[")
            name = start.replace(".", "::") + bracket + rest
        inside = f"::{name}::"
        return inside in f"::{test}::" or inside in f"::{base}::" or base.startswith(name + "/")

    def near(self, name, tests):
        """Return the ids of tests with similar names."""
        bases = {}
        for test in tests:
            base = test.partition("[")[0]
            bases.setdefault(base.rpartition("::")[2], base)
        short = name.partition("[")[0].replace(".", "::").rpartition("::")[2]
        return [bases[found] for found in difflib.get_close_matches(short, bases, n=2)]

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, config, items):
        """Deselect the other tests; an unknown name is an error, but would crash a worker."""
        tests = {item: self.name(item.nodeid) for item in items}
        for name in self.names:
            if not any(self.matches(test, name) for test in tests.values()):
                near = self.near(name, tests.values())
                if self.events:
                    with open(self.events, "a", encoding="utf-8") as file:
                        file.write(json.dumps({"unknown": name, "near": near}) + "\n")
                if not self.is_worker:
                    raise pytest.UsageError(f"unknown test {name!r}, similar ones: {near}")
                tests = {}
                break
        chosen = [item for item in tests if any(self.matches(tests[item], name) for name in self.names)]
        config.hook.pytest_deselected(items=list(set(items) - set(chosen)))
        items[:] = chosen


class Events(Project):
    """Writes the results."""

    def __init__(self, config, path):
        super().__init__(config)
        self.file = open(path, "a", encoding="utf-8")  # noqa: SIM115 - open until pytest ends
        self.seen = {}

    def write(self, **event):
        """Write one event."""
        try:
            self.file.write(json.dumps(event) + "\n")
            self.file.flush()
        except (OSError, TypeError, ValueError):
            pass

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
        last = lines[-1] if lines else report.outcome
        message = crash.message if crash else last[2:].strip() if last.startswith("E ") else last
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
