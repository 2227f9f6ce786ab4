"""The short-lived process that reads modules and prints the definitions of their tools."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from tempfile import TemporaryFile
from types import ModuleType
from typing import Any, TextIO

from .. import modules
from .schema import definition


def described(module: ModuleType) -> tuple[list[dict[str, Any]], list[str]]:
    """Definitions of the tools of a module, and what is wrong with the others."""
    definitions: list[dict[str, Any]] = []
    faults = modules.overlooked(module)
    for name, function in modules.tools_of(module).items():
        try:
            made = definition(function)
            json.dumps(made, allow_nan=False)
            definitions.append(made)
        except Exception as error:  # noqa: BLE001 (a person's hints and defaults may raise anything)
            text = str(error).splitlines()[0] if str(error) else type(error).__name__
            text = text if text.startswith("tool '") else f"tool '{name}': {text}"
            faults.append(modules.at_line(function.__code__.co_firstlineno, text))
    return definitions, faults


def described_error(error: BaseException, path: str | None) -> str:
    """An exception in a line, with the line of the source that it comes from."""
    text = "".join(traceback.format_exception_only(error)).strip().splitlines()[-1].strip()
    file, line = path, None
    if isinstance(error, SyntaxError):
        file, line = error.filename, error.lineno
    else:
        frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == path]
        line = frames[-1].lineno if frames else None
    if not line:
        return text
    return modules.at_line(line, text) if file == path else f"{file}:{line}: {text}"


def scan(fields: dict[str, Any]) -> dict[str, Any]:
    """What a source holds: `tools`, `faults`, its `path`, or the `error` that kept it from being read."""
    begin = time.perf_counter()
    found: dict[str, Any] = {"key": fields["key"], "tools": []}
    try:
        module = modules.load(modules.Source.of(fields))
        found["path"] = modules.file_of(module)
        found["tools"], found["faults"] = described(module)
    except modules.UntrustedError as error:
        found["error"] = str(error)
    except (Exception, SystemExit) as error:  # noqa: BLE001 (a module may raise anything when it is imported)
        found["error"] = described_error(error, fields.get("path"))
        found["trace"] = traceback.format_exc()
    found["ms"] = round((time.perf_counter() - begin) * 1000)
    return found


def own_output() -> TextIO:
    """Our stdout, which nothing that a module prints gets into: that goes to stderr."""
    output = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return output


def main(argument: str) -> None:
    """Scan what the argument names; what modules start ends with that."""
    supervised(lambda: read(argument))


def read(argument: str) -> None:
    """Scan, and end this process."""
    wanted = json.loads(argument)
    sys.path.extend(wanted["import_paths"])
    modules.prepare_process()
    with own_output() as output:
        for fields in wanted["sources"]:
            print(json.dumps({"begin": fields["key"]}), file=output, flush=True)
            print(json.dumps(scan(fields)), file=output, flush=True)
        output.flush()
        with contextlib.suppress(OSError):
            sys.stderr.flush()
        os._exit(0)  # threads that a module has started must not hold it up


LOOK_EVERY = 0.2
"""s between two looks at whether the editor is still there, and how much was printed."""
MAX_PRINTED = 64 * 1024 * 1024
"""Bytes; a module that prints more is ended, as one that prints for ever would fill the disk."""
HANDED_ON = {1: MAX_PRINTED, 2: 65_536}
"""Bytes of stdout and stderr; what is left of the latter goes to the log."""


def supervised(work: Callable[[], None]) -> None:
    """Run `work` in a child, wait for its end, end all that it has started, and end as it did."""
    if not hasattr(os, "fork"):
        work()
        return
    editor = os.getppid()
    with TemporaryFile() as output, TemporaryFile() as errors:
        files = {1: output.fileno(), 2: errors.fileno()}
        child = os.fork()
        if child == 0:
            os.setsid()
            for number, file in files.items():
                os.dup2(file, number)
            work()
            os._exit(0)

        def watch() -> None:
            while os.getppid() == editor and max(os.fstat(f).st_size for f in files.values()) < MAX_PRINTED:
                time.sleep(LOOK_EVERY)
            end_group(child)

        signal.signal(signal.SIGTERM, lambda *_: end_group(child))
        threading.Thread(target=watch, daemon=True).start()
        _, status = os.waitpid(child, 0)
        end_group(child)
        for number, file in files.items():
            hand_on(os.pread(file, HANDED_ON[number], 0), number)
        end_as(os.waitstatus_to_exitcode(status))


def hand_on(data: bytes, number: int) -> None:
    """Print what the child has printed, unless nobody is there to read it."""
    with contextlib.suppress(OSError):
        while data:
            data = data[os.write(number, data) :]


def end_group(child: int) -> None:
    """End the child and all that it has started."""
    with contextlib.suppress(OSError):
        os.killpg(child, signal.SIGKILL)


def end_as(code: int) -> None:
    """End with an exit code, or by a signal where it is negative."""
    if code < 0:
        with contextlib.suppress(OSError):
            signal.signal(-code, signal.SIG_DFL)  # SIGKILL has no other way
        os.kill(os.getpid(), -code)
    os._exit(code if code >= 0 else 1)
