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
    """Returns the definitions of the tools of a module, and faults of invalid ones."""
    definitions: list[dict[str, Any]] = []
    faults = modules.definition_faults(module)
    for name, function in modules.tools_of(module).items():
        try:
            made = definition(function)
            json.dumps(made, allow_nan=False)
            definitions.append(made)
        except Exception as error:  # noqa: BLE001 - boundary: hints and defaults may raise anything
            text = str(error).splitlines()[0] if str(error) else type(error).__name__
            text = text if text.startswith("tool '") else f"tool '{name}': {text}"
            faults.append(modules.at_line(function.__code__.co_firstlineno, text))
    return definitions, faults


def described_error(error: BaseException, path: str | None) -> str:
    """Returns an exception as one line of text, with its line in the source."""
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
    """Returns the contents of a source: `tools`, `faults`, `path`, or the `error` of its import."""
    begin = time.perf_counter()
    found: dict[str, Any] = {"key": fields["key"], "tools": []}
    try:
        module = modules.load(fields)
        found["path"] = getattr(module, "__file__", None)
        found["tools"], found["faults"] = described(module)
    except modules.UntrustedError as error:
        found["error"] = str(error)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - boundary: a module may raise anything
        found["error"] = described_error(error, fields.get("path"))
        found["trace"] = traceback.format_exc()
    found["ms"] = round((time.perf_counter() - begin) * 1000)
    return found


def own_output() -> TextIO:
    """Returns our stdout; output of modules goes to stderr from now on."""
    output = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return output


def main(argument: str) -> None:
    """Scan the sources in the argument, in a child process."""
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
        os._exit(0)  # do not wait for threads of modules


CHECK_EVERY = 0.2
"""Seconds between checks whether Neovim is running, and of the size of the output."""
MAX_PRINTED = 64 * 1024 * 1024
"""Maximum bytes of output; a module that prints more is ended, before it fills the disk."""
PASSED_ON = {1: MAX_PRINTED, 2: 65_536}
"""Maximum bytes of stdout and stderr that are passed on."""


def supervised(work: Callable[[], None]) -> None:
    """Run `work` in a child process, end all of its processes, and exit like it."""
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
                time.sleep(CHECK_EVERY)
            end_group(child)

        signal.signal(signal.SIGTERM, lambda *_: end_group(child))
        threading.Thread(target=watch, daemon=True).start()
        _, status = os.waitpid(child, 0)
        end_group(child)
        for number, file in files.items():
            pass_on(os.pread(file, PASSED_ON[number], 0), number)
        end_as(os.waitstatus_to_exitcode(status))


def pass_on(data: bytes, number: int) -> None:
    """Print the output of the child, unless the reader has closed the pipe."""
    with contextlib.suppress(OSError):
        while data:
            data = data[os.write(number, data) :]


def end_group(child: int) -> None:
    """End the child and its processes."""
    with contextlib.suppress(OSError):
        os.killpg(child, signal.SIGKILL)


def end_as(code: int) -> None:
    """Exit with a code, or by a signal if it is negative."""
    if code < 0:
        with contextlib.suppress(OSError):
            signal.signal(-code, signal.SIG_DFL)  # fails for SIGKILL, which needs no handler
        os.kill(os.getpid(), -code)
    os._exit(code if code >= 0 else 1)
