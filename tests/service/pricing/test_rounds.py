"""Which answers of a feed count, and which price they are."""

from __future__ import annotations

from decimal import Decimal

import attrs
import pytest
from eth_hash.auto import keccak

from payments_core.clock import DAY, HOUR, MINUTE, SECOND
from payments_core.pricing import rounds
from payments_core.pricing.feeds import Feed
from payments_core.pricing.rounds import FeedRefused, Round, judge_price, require_sequencer
from tests.service.pricing.feed_answers import encode_round, word

NOW_S = 1_790_000_000
NOW = NOW_S * SECOND
FEED = Feed(
    symbol="USDC",
    address="0x" + "11" * 20,
    heartbeat_s=86_400,
    lowest_usd=Decimal("0.5"),
    highest_usd=Decimal("1.5"),
)
SOUND = Round(7, 99_980_000, NOW_S - 60, NOW_S - 60, 7)
EIGHT = word(8)


def judge(found: Round, *, now: int = NOW, decimals: bytes | None = EIGHT) -> Decimal:
    return judge_price(FEED, encode_round(found), decimals, now)


def test_the_calldata_is_that_of_chainlinks_interface() -> None:
    assert keccak(b"latestRoundData()")[:4] == rounds.LATEST_ROUND_DATA
    assert keccak(b"decimals()")[:4] == rounds.DECIMALS


def test_a_sound_round_is_a_price() -> None:
    assert judge(SOUND) == Decimal("0.9998")
    wei = attrs.evolve(SOUND, answer=999_800_000_000_000_001)
    assert judge(wei, decimals=word(18)) == Decimal("0.999800000000000001")


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"answer": 0}, "its answer is 0"),
        ({"answer": -1}, "its answer is -1"),
        ({"answer": -(2**255)}, "its answer is -"),
        ({"updated_at_s": 0}, "not finished"),
        ({"id": 0, "answered_in": 0}, "not finished"),
        ({"answered_in": 6}, "of an earlier round"),
        ({"updated_at_s": NOW_S + 3}, "from the future"),
        ({"updated_at_s": 2**256 - 1}, "from the future"),
        ({"updated_at_s": NOW_S - 86_400 - 601}, "too old"),
        ({"updated_at_s": 1}, "of 1970-01-01T00:00:01.000Z, and too old"),
        ({"answer": 49_999_999}, "not in 0.5 to 1.5"),
        ({"answer": 150_000_001}, "not in 0.5 to 1.5"),
        ({"answer": 2**255 - 1}, "not in 0.5 to 1.5"),
    ],
)
def test_what_must_not_be_used_is_refused(changes: dict[str, int], says: str) -> None:
    with pytest.raises(FeedRefused, match=says):
        judge(attrs.evolve(SOUND, **changes))


def test_the_bounds_and_the_last_moment_of_the_heartbeat_count() -> None:
    last = NOW_S - 86_400 - 600
    for answer, price in ((50_000_000, "0.5"), (150_000_000, "1.5")):
        assert judge(attrs.evolve(SOUND, answer=answer, updated_at_s=last)) == Decimal(price)


@pytest.mark.parametrize("data", [None, b"", encode_round(SOUND)[:-1], encode_round(SOUND) + b"\0"])
def test_what_is_no_round_is_refused(data: bytes | None) -> None:
    with pytest.raises(FeedRefused, match="it has no round"):
        judge_price(FEED, data, EIGHT, NOW)
    with pytest.raises(FeedRefused, match="it has no round"):
        require_sequencer(data, NOW)


@pytest.mark.parametrize("decimals", [None, b"", b"\x08", word(37), word(2**256 - 1)])
def test_what_are_no_decimals_is_refused(decimals: bytes | None) -> None:
    with pytest.raises(FeedRefused, match="it has no decimals"):
        judge(SOUND, decimals=decimals)


def test_a_sequencer_must_be_up_for_an_hour() -> None:
    up = Round(3, 0, NOW_S, NOW_S, 3)
    require_sequencer(encode_round(up), NOW + HOUR)
    require_sequencer(encode_round(up), NOW + 300 * DAY)  # it reports only a change
    for now in (NOW, NOW + HOUR - 1):
        with pytest.raises(FeedRefused, match=r"up only since 2026-09-21T14:13:20\.000Z"):
            require_sequencer(encode_round(up), now)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"answer": 1}, "the sequencer is down"),
        ({"started_at_s": 0}, "no finished round"),
        ({"started_at_s": NOW_S + 60 * MINUTE}, "no finished round"),
        ({"started_at_s": 2**256 - 1}, "no finished round"),
    ],
)
def test_a_sequencer_that_is_not_known_to_be_up_is_refused(
    changes: dict[str, int], says: str
) -> None:
    up = Round(3, 0, NOW_S - 7_200, NOW_S - 7_200, 3)
    with pytest.raises(FeedRefused, match=says):
        require_sequencer(encode_round(attrs.evolve(up, **changes)), NOW)
