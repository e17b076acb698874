"""Whether the answer of a Chainlink feed may be used, and which price it is. Pure.

Source: docs.chain.link, "Data Feeds API Reference" and "L2 Sequencer Uptime Feeds". A call of
`latestRoundData` succeeds also if nobody has reported for a day, if the round has no answer of its
own, or if it is the last one before a rollup stopped.
"""

from __future__ import annotations

from decimal import Decimal, localcontext

import attrs

from payments_core.clock import MINUTE, SECOND, Instant, format_iso, is_ahead
from payments_core.pricing.feeds import Feed

LATEST_ROUND_DATA = bytes.fromhex("feaf968c")
"""The calldata of `latestRoundData()`."""

DECIMALS = bytes.fromhex("313ce567")
"""The calldata of `decimals()`."""

MAX_LATE_MS = 10 * MINUTE
"""How much later than the heartbeat a report may be: its transaction must get into a block."""

GRACE_MS = 60 * MINUTE
"""How long prices of a rollup are refused after its sequencer has come back: reports that waited
for it come in first. Chainlink's own example waits as long."""

_MAX_DECIMALS = 36
_INT256_DIGITS = 78


class FeedRefused(Exception):
    """The answer must not be used; the text says why."""


@attrs.frozen
class Round:
    """What `latestRoundData` returns; instants in seconds."""

    id: int
    answer: int
    started_at_s: int
    updated_at_s: int
    answered_in: int

    @classmethod
    def parse(cls, data: bytes | None) -> Round:
        """Five words. Raises FeedRefused for anything else, and for a revert, which is None."""
        if data is None or len(data) != 160:
            raise FeedRefused("it has no round")
        words = [data[start : start + 32] for start in range(0, 160, 32)]
        return cls(
            int.from_bytes(words[0], "big"),
            int.from_bytes(words[1], "big", signed=True),
            *(int.from_bytes(word, "big") for word in words[2:]),
        )


def judge_price(feed: Feed, data: bytes | None, decimals: bytes | None, now: Instant) -> Decimal:
    """The price of a whole token in US dollars. Raises FeedRefused."""
    found = Round.parse(data)
    _require_finished(found)
    _require_fresh(feed, found, now)
    if found.answer <= 0:
        raise FeedRefused(f"its answer is {found.answer}")
    with localcontext(prec=_INT256_DIGITS):
        price = Decimal(found.answer).scaleb(-_parse_decimals(decimals))
    if not feed.lowest_usd <= price <= feed.highest_usd:
        raise FeedRefused(f"its answer {price} is not in {feed.lowest_usd} to {feed.highest_usd}")
    return price


def require_sequencer(data: bytes | None, now: Instant) -> None:
    """Raise FeedRefused unless a rollup's sequencer is up, and has been for long enough.

    Its feed's answer is 0 if it is up, and `startedAt` is when that last changed.
    """
    found = Round.parse(data)
    started = _to_instant(found.started_at_s)
    if started == 0 or is_ahead(started, now):
        raise FeedRefused("the feed of the sequencer has no finished round")
    if found.answer != 0:
        raise FeedRefused("the sequencer is down")
    if now < started + GRACE_MS:
        raise FeedRefused(f"the sequencer is up only since {format_iso(started)}")


def _require_finished(found: Round) -> None:
    if found.id == 0 or found.updated_at_s == 0:
        raise FeedRefused("its round is not finished")
    if found.answered_in < found.id:
        raise FeedRefused("its answer is of an earlier round")


def _require_fresh(feed: Feed, found: Round, now: Instant) -> None:
    updated = _to_instant(found.updated_at_s)
    if is_ahead(updated, now):
        raise FeedRefused("its answer is from the future")
    if now - updated > feed.heartbeat_s * SECOND + MAX_LATE_MS:
        raise FeedRefused(f"its answer is of {format_iso(updated)}, and too old")


def _parse_decimals(data: bytes | None) -> int:
    if data is None or len(data) != 32 or int.from_bytes(data, "big") > _MAX_DECIMALS:
        raise FeedRefused("it has no decimals")
    return int.from_bytes(data, "big")


def _to_instant(seconds: int) -> Instant:
    return seconds * SECOND
