"""Logs for operators: one record per line on standard error, without secrets.

Every record of the process goes through one handler, and all its content through `redaction`: the
message with its arguments, the exception with its trace, and the extras. Uncaught exceptions, which
Python itself would write there, go the same way.
"""

from __future__ import annotations

import contextlib
import json
import logging
import sys
import threading
import traceback
from functools import lru_cache
from types import TracebackType
from typing import Any, Literal, TextIO

from payments_core.clock import SECOND, format_iso
from payments_core_http.redaction import redact, redact_named_value

Format = Literal["json", "text"]

ALARM = "ALARM"
"""The beginning of a message that needs attention now."""

_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
_RESERVED = ("ts", "level", "logger", "message", "alarm", "exception", "stack")

_encode = json.JSONEncoder(separators=(",", ":")).encode
"""In ASCII, so that no special character ends a line, and none makes a record unwritable; `msgspec`
would refuse half a surrogate pair."""

_uncaught_log = logging.getLogger("payments_core_http.uncaught")


def configure(level: str = "INFO", format: Format = "json", stream: TextIO | None = None) -> None:
    """Write every record of the process from now on, in place of what the root logger did before.

    `level` is the lowest level that is written. `stream` is standard error unless given. Raises
    ValueError for an unknown level or format.
    """
    known = logging.getLevelNamesMapping()
    if level.upper() not in known:
        raise ValueError(f"the log level must be one of {', '.join(known)}")
    if format not in _FORMATTERS:
        raise ValueError(f"the log format must be one of {', '.join(_FORMATTERS)}")
    handler = _Handler(sys.stderr if stream is None else stream)
    handler.setFormatter(_FORMATTERS[format]())
    logging.basicConfig(level=known[level.upper()], handlers=[handler], force=True)
    logging.captureWarnings(True)
    sys.excepthook = _log_uncaught
    threading.excepthook = _log_uncaught_in_thread
    sys.unraisablehook = _log_unraisable


def name_process(number: int) -> None:
    """Add to every record from now on which process wrote it; `configure` keeps it."""
    make = logging.LogRecord

    def make_named(*arguments: Any, **named: Any) -> logging.LogRecord:
        record = make(*arguments, **named)
        record.process_number = number
        return record

    logging.setLogRecordFactory(make_named)


class _Handler(logging.StreamHandler[TextIO]):
    """Report only that a record could not be written: the standard library would show the record
    as it was, with its arguments."""

    def handleError(self, record: logging.LogRecord) -> None:
        failed = logging.makeLogRecord({"name": __name__, "levelno": 40, "levelname": "ERROR"})
        failed.msg = "a record could not be written"
        with contextlib.suppress(Exception):  # the stream may be gone
            self.stream.write(self.format(failed) + self.terminator)


class JsonLines(logging.Formatter):
    """One JSON object per line: ts, level, logger, message, then the record's extras."""

    def format(self, record: logging.LogRecord) -> str:
        facts: dict[str, Any] = {
            "ts": _format_time(record),
            "level": record.levelname,
            "logger": record.name,
            "message": _format_message(record),
        }
        if _is_alarm(record):
            facts["alarm"] = True
        if trace := _format_trace(record):
            facts["exception"] = trace
        if record.stack_info:
            facts["stack"] = redact(record.stack_info)
        for name, value in _redact_extras(record).items():
            facts[f"{name}_" if name in _RESERVED else name] = value
        return _encode(facts)


class TextLines(logging.Formatter):
    """For people: one line, and the lines of a trace after a bar, so that none can be forged."""

    def format(self, record: logging.LogRecord) -> str:
        extras = "".join(
            f" {_escape_text(name)}={_escape_text(str(it))}"
            for name, it in _redact_extras(record).items()
        )
        first, *rest = _format_message(record).split("\n")
        time, text = _format_time(record), _escape_text(first)
        head = f"{time} {record.levelname:8} {record.name}: {text}{extras}"
        for block in (_format_trace(record), redact(record.stack_info or "")):
            rest += block.split("\n") if block else []
        return "\n".join([head, *(f"  | {_escape_text(line)}" for line in rest)])


_FORMATTERS: dict[str, type[logging.Formatter]] = {"json": JsonLines, "text": TextLines}


def _format_time(record: logging.LogRecord) -> str:
    return format_iso(int(record.created * SECOND))


def _format_message(record: logging.LogRecord) -> str:
    try:
        text = record.getMessage()
    except Exception:  # arguments that do not fit: show what can be shown
        text = f"{record.msg} (with arguments that do not match it)"
    return redact(text)


def _is_alarm(record: logging.LogRecord) -> bool:
    return str(record.msg).startswith(ALARM)


def _format_trace(record: logging.LogRecord) -> str:
    """The trace, from the exception itself: the text that another formatter left in the record may
    contain anything."""
    if not record.exc_info or record.exc_info[1] is None:
        return ""
    return redact("".join(traceback.format_exception(*record.exc_info)).rstrip("\n"))


def _redact_extras(record: logging.LogRecord) -> dict[str, Any]:
    return {
        _redact_name(name): redact_named_value(name, value)
        for name, value in vars(record).items()
        if name not in _STANDARD
    }


@lru_cache(maxsize=1_000)
def _redact_name(name: str) -> str:
    """The name of an extra; there are few, all of them defined in the code."""
    return redact(name)


def _escape_text(text: str) -> str:
    """Without control characters, which could end a line or change the terminal."""
    return text if text.isprintable() else "".join(map(_escape_character, text))


def _escape_character(character: str) -> str:
    if character.isprintable():
        return character
    return character.encode("unicode_escape").decode()


# What Python would otherwise write by itself.


def _log_uncaught(
    kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    if issubclass(kind, KeyboardInterrupt):  # the user pressed Ctrl-C, and knows
        return
    _uncaught_log.critical("the process ends with an exception", exc_info=(kind, error, trace))


def _log_uncaught_in_thread(args: threading.ExceptHookArgs) -> None:
    if args.exc_value is None or issubclass(args.exc_type, SystemExit):
        return
    _uncaught_log.critical(
        "a thread ended with an exception",
        exc_info=(args.exc_type, args.exc_value, args.exc_traceback),
        extra={"thread_": args.thread.name if args.thread else "?"},
    )


def _log_unraisable(args: Any) -> None:
    _uncaught_log.error(
        "an exception could not be raised",
        exc_info=(args.exc_type, args.exc_value, args.exc_traceback),
    )
