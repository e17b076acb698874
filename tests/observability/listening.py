"""What the tests listen with: the process's log, in a text that they can search."""

from __future__ import annotations

import io
import json
import logging
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal

from payments_core_http.observability import logs


class Log:
    """All that is logged from now on, in one format."""

    def __init__(self, format: Literal["json", "text"], level: str = "DEBUG") -> None:
        self.format = format
        self._stream = io.StringIO()
        logs.configure(level, format, self._stream)
        self._handlers = logging.getLogger().handlers[:]

    @property
    def text(self) -> str:
        return self._stream.getvalue()

    @property
    def records(self) -> list[dict[str, Any]]:
        """Each line, which must be an object of its own; only in JSON."""
        return [json.loads(line) for line in self.text.split("\n")[:-1]]

    @property
    def heads(self) -> list[str]:
        """The lines that begin a record; only in text."""
        return [line for line in self.text.splitlines() if not line.startswith("  | ")]

    def clear(self) -> None:
        """Begin again, and alone: pytest's handlers come when a test begins, and raise faults."""
        logging.getLogger().handlers = self._handlers[:]
        self._stream.seek(0)
        self._stream.truncate()


@contextmanager
def logging_as_before() -> Iterator[None]:
    """Give back whatever `configure` changes in the process."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    hooks = sys.excepthook, threading.excepthook, sys.unraisablehook
    showing = warnings.showwarning
    root.handlers = []  # pytest's own, which would be closed
    try:
        yield
    finally:
        root.handlers = handlers
        root.setLevel(level)
        logging.captureWarnings(False)
        sys.excepthook, threading.excepthook, sys.unraisablehook = hooks
        warnings.showwarning = showing
