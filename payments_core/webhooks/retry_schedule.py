"""When a failed delivery is tried again (interface "Events", retry handling)."""

from __future__ import annotations

import re
from datetime import UTC
from email.utils import parsedate_to_datetime

from payments_core.clock import HOUR, MINUTE, SECOND, Instant

RETRY_DELAYS_MS = (
    30 * SECOND,
    1 * MINUTE,
    2 * MINUTE,
    4 * MINUTE,
    8 * MINUTE,
    16 * MINUTE,
    32 * MINUTE,
    1 * HOUR,
)
"""The wait after failed attempt 1, 2, ...; the last one also after every later attempt."""

MAX_RETRY_DELAY_MS = 1 * HOUR
MIN_RETRY_DELAY_MS = 1 * SECOND
"""`Retry-After: 0` would otherwise spend every attempt within a moment."""

_SECONDS = re.compile(r"[0-9]+")
# The three forms of RFC 9110 5.6.7, which are always in GMT.
_DATE = re.compile(
    r"[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} [1-9]\d{3} \d{2}:\d{2}:\d{2} GMT"
    r"|[A-Z][a-z]{5,8}, \d{2}-[A-Z][a-z]{2}-\d{2} \d{2}:\d{2}:\d{2} GMT"
    r"|[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d{2}:\d{2}:\d{2} [1-9]\d{3}",
    re.ASCII,
)


def retry_delay_ms(attempts: int, retry_after: str | None, real_now: Instant) -> int:
    """How long to wait after failed attempt number `attempts`.

    `retry_after` is the response's header: if it can be read, it replaces the table's wait,
    from a second up to an hour. Its dates are real dates, so they are compared with `real_now`.
    """
    asked = None if retry_after is None else parse_retry_after(retry_after, real_now)
    if asked is not None:
        return max(asked, MIN_RETRY_DELAY_MS)
    return RETRY_DELAYS_MS[min(attempts, len(RETRY_DELAYS_MS)) - 1]


def parse_retry_after(text: str, real_now: Instant) -> int | None:
    """The wait that a Retry-After header asks for, 0 to an hour in ms; None if unreadable."""
    text = text.strip(" \t")
    if _SECONDS.fullmatch(text):
        # More digits than this is more than an hour, and int() refuses very long texts.
        seconds = int(text.lstrip("0")[:10] or "0")
        return min(seconds * SECOND, MAX_RETRY_DELAY_MS)
    if not _DATE.fullmatch(text):
        return None
    try:
        moment = parsedate_to_datetime(text)
    except ValueError:
        return None
    instant = int(moment.replace(tzinfo=UTC).timestamp()) * SECOND
    return max(0, min(instant - real_now, MAX_RETRY_DELAY_MS))
