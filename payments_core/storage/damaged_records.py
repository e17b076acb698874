"""Jobs whose stored body cannot be read: they are set aside, and must not stop their queue.

An adapter leases such a row for ever, by its column and with its body as it was, and alarms.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

from payments_core.storage import documents
from payments_core.storage.records import R

_log = logging.getLogger(__name__)


def try_decode(kind: type[R], body: bytes | str) -> R | None:
    """The record of a stored body, or None."""
    try:
        return documents.decode(kind, body)
    except Exception:  # whatever is wrong with it
        return None


def log_damaged_jobs(jobs: Iterable[tuple[str, str]]) -> None:
    """Tell the operator which jobs were set aside, by partition and id."""
    for partition, id in jobs:
        _log.critical("ALARM: job %s of %s cannot be read and is set aside", id, partition)
