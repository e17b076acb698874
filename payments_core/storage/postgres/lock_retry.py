"""Lock retries of a migration: it gives up a lock that it cannot get soon, and tries again."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

import psycopg

T = TypeVar("T")

DDL_LOCK_MS = 500
"""A query behind a table change that waits for its lock waits for both."""

DISABLE_TIMEOUTS = b"""
    SELECT set_config(name, '0', true) FROM pg_settings WHERE name IN
    ('statement_timeout', 'idle_in_transaction_session_timeout', 'transaction_timeout')
"""
"""For one transaction that may take long; the third setting exists since PostgreSQL 17."""

MAX_TRIES = 120
RETRY_PAUSE_S = 0.5
_RETRYABLE = ("55P03", "40001", "40P01")


def retry_on_lock(change: Callable[[], T]) -> T:
    """Try until no lock, deadlock or race interferes, or for a minute or two."""
    for _ in range(MAX_TRIES - 1):
        try:
            return change()
        except psycopg.Error as error:
            if error.sqlstate not in _RETRYABLE:
                raise
        time.sleep(RETRY_PAUSE_S)
    return change()
