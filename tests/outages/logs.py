"""What the processes wrote to their logs: what a storm explains, and what nothing does."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

_PARTICULARS = re.compile(r"0x\w+|\w+_[-\w]{24}|\w+/[-\w]{24}|\d+")
OUTAGES = re.compile("StorageUnavailable|LockTimeout|CommitUnknown|Unavailable|StorageError")
"""What an error says that is the database's."""
REFUSED_START = "Error: The storage cannot be used"
"""How a process ends that found no database at its start; it is started again."""


def tally(logs: Iterable[Path]) -> Counter[str]:
    """How often which kind of record from WARNING on was written, without its particulars."""
    counted: Counter[str] = Counter()
    for record in _records(logs):
        if record["level"] not in ("DEBUG", "INFO"):
            text = _PARTICULARS.sub("*", record["message"])
            counted[f"{record['level']} {text}"] += 1
    return counted


def alarming(logs: Iterable[Path]) -> Iterator[str]:
    """Alarms, and errors that the outages do not explain."""
    for record in _records(logs):
        message = record["message"]
        trace = record.get("exception", "")
        if record.get("alarm") or record["level"] == "CRITICAL":
            yield f"{record['log']}: {record['level']} {message} {trace}"
        elif record["level"] == "ERROR" or trace:
            last = trace.rpartition("\n")[2]
            if not OUTAGES.search(last if trace else message):
                yield f"{record['log']}: {record['level']} {message} {trace}"


def refused_starts(log: Path) -> int:
    """How often a process ended since it found no database."""
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    return sum(line.startswith(REFUSED_START) for line in lines)


def _records(logs: Iterable[Path]) -> Iterator[dict[str, Any]]:
    """Each line of each log; one that is not a record is an error of its own."""
    for log in logs:
        for line in log.read_text(encoding="utf-8", errors="replace").splitlines():
            try:
                record = json.loads(line)
            except ValueError:
                if not line.strip():
                    continue
                level = "WARNING" if line.startswith(REFUSED_START) else "ERROR"
                record = {"level": level, "message": line}
            yield {**record, "log": log.name}
