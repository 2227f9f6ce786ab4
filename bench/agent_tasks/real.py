"""Nine of the tasks on a real package: the source distribution of werkzeug 3.1.3, with its tests."""

from __future__ import annotations

import ast
import re
import shutil
import sys
import tarfile
from pathlib import Path

from agent_tasks import project, tasks
from agent_tasks.arms import Arm, Skilled
from tests.support import processes

PACKAGE, NEEDED = "werkzeug==3.1.3", "markupsafe==3.0.2"
MAP, URLS, LINKS = "src/werkzeug/routing/map.py", "src/werkzeug/urls.py", "src/werkzeug/links.py"
UTILS, EXCEPTIONS = "src/werkzeug/utils.py", "src/werkzeug/exceptions.py"
MISTAKE = ('filename = filename.replace(sep, " ")', 'filename = filename.replace(sep, "")')
DESCRIPTION = "This user has exceeded an allotted request count. Try again later."
SCOPE = 'asyncio_default_fixture_loop_scope = "function"'
"""Without it our plugin for pytest warns, and this project turns warnings into errors."""
SECONDS = 180


def fetch(folder: Path) -> tasks.Tree | None:
    """The files of the package, with one error and its dependency; None if pip cannot download them."""
    pip = [Path(sys.base_prefix) / "bin" / "python3", "-m", "pip", "--quiet", "--disable-pip-version-check"]
    for command in (
        ["download", "--no-deps", "--no-binary", ":all:", "-d", folder, PACKAGE],
        ["install", "--no-deps", "-t", folder, NEEDED],
    ):
        if processes.run([*pip, *command], timeout=SECONDS).returncode:
            return None
    with tarfile.open(next(folder.glob("*.tar.gz"))) as archive:
        archive.extractall(folder, filter="data")
    top = next(folder.glob("*/PKG-INFO")).parent
    (top / "tests" / "conftest.py").unlink()  # it needs packages that are not installed
    shutil.move(folder / "markupsafe", top / "src" / "markupsafe")
    found = project.tree(top)
    settings = found["pyproject.toml"].replace(
        "[tool.pytest.ini_options]\n", f"[tool.pytest.ini_options]\n{SCOPE}\n"
    )
    return found | {UTILS: found[UTILS].replace(*MISTAKE), "pyproject.toml": settings}


def find_users(s: Skilled) -> str:
    s.bash(r"rg -n '\.update\(' -C1 -g '*.py'", "Find calls of update")
    return s.grep(r"self\.update\(\)|map\.update\(\)|^class |def update", MAP)


def users_skilled(s: Skilled) -> set[tuple[str, int]]:
    return {(MAP, int(n)) for n in re.findall(r"^(\d+):.*\.update\(\)", find_users(s), re.MULTILINE)}


def rename_skilled(s: Skilled) -> str:
    lines = re.findall(r"^(\d+):.*(?:\.update\(\)|def update)", find_users(s), re.MULTILINE)
    s.bash(
        f"sed -i '{';'.join(f'{n}s/update/refresh/' for n in lines)}' {MAP}", "Rename the method line by line"
    )
    s.bash("basedpyright --level error src/werkzeug/routing | tail -3", "Check the types")
    return s.grep(r"\.update\(|refresh", MAP)


def renamed(texts: tasks.Tree) -> tasks.Changes:
    """Whether only the method of `Map` was renamed, and not those of `_matcher` and `values`."""
    return {MAP: re.sub(r"((self|self\.map)\.|def )update\((?=self|\))", r"\1refresh(", texts[MAP])}


def http_exceptions(arm: Arm) -> set[str]:
    """The names of all subclasses of HTTPException, by syntax."""
    bases: dict[str, set[str]] = {}
    for path, text in project.tree(arm.root).items():
        for node in ast.walk(ast.parse(text if path.endswith(".py") else "")):
            if isinstance(node, ast.ClassDef):
                bases[node.name] = {ast.unparse(base).split(".")[-1] for base in node.bases}
    found = {"HTTPException"}
    while more := {name for name, above in bases.items() if above & found} - found:
        found |= more
    return found - {"HTTPException"}


REAL = [
    tasks.outline("src/werkzeug/serving.py"),
    tasks.body("src/werkzeug/datastructures/etag.py", "ETags/to_header"),
    tasks.users("Map/update", users_skilled, r"\b(self|map)\.update\(\)"),
    tasks.below("HTTPException", http_exceptions),
    tasks.rename("Map/update", "refresh", rename_skilled, renamed),
    tasks.one_line(
        EXCEPTIONS, DESCRIPTION, DESCRIPTION.replace("Try again later", "Please try again in a minute")
    ),
    tasks.everywhere("import pytest", "import pytest  # tests", 21),
    tasks.failing("tests/test_utils.py", "test_secure_filename", "297", "etc_passwd"),
    tasks.move(
        URLS,
        LINKS,
        r"s/^\(from \.*\)urls import/\1links import/;s/^from werkzeug import urls/from werkzeug import links/"
        r";s/\burls\.\([iu]r\|_\)/links.\1/g",
        r"from \.+urls import [_iu]|from werkzeug import urls",
        "python -m pytest -q -W ignore -p no:cacheprovider tests/test_urls.py tests/test_routing.py",
    ),
]
