"""The Chainlink feeds of each chain, which are data: `feeds.toml`, or an operator's own file."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import attrs

from payments_core.addresses import AddressError, normalize_address
from payments_core.pricing.costs import parse_price

_SHIPPED = Path(__file__).with_name("feeds.toml")
_MAX_HEARTBEAT_S = 7 * 86_400


@attrs.frozen(kw_only=True)
class Feed:
    """A feed of what a token is worth in US dollars, or a unit of a currency.

    It reports at least every `heartbeat_s`. An answer outside of the bounds is a fault of the feed,
    and no price: a feed may also be held at a bound of its own while the market has left it.
    """

    symbol: str
    address: str
    heartbeat_s: int
    lowest_usd: Decimal
    highest_usd: Decimal


@attrs.frozen
class ChainFeeds:
    """The feeds on a chain, by the token's symbol; a rollup's has one of its sequencer. Feeds of
    currencies are by the currency's code (ISO 4217)."""

    by_symbol: Mapping[str, Feed]
    sequencer: str | None
    currencies: Mapping[str, Feed]


@cache
def shipped_feeds() -> Mapping[int, ChainFeeds]:
    """The feeds of `feeds.toml`, by chain."""
    return read_feeds(_SHIPPED)


def read_feeds(path: Path) -> Mapping[int, ChainFeeds]:
    """The feeds of a file, by chain. Raises OSError, and ValueError, which names the row."""
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError("the file of the feeds is not TOML") from error
    return {_parse_chain(number): _parse_table(number, rows) for number, rows in document.items()}


def _parse_chain(number: str) -> int:
    if not (number.isascii() and number.isdigit()):
        raise ValueError(f"[{number}] must be a chain's number")
    return int(number)


def _parse_table(number: str, table: Any) -> ChainFeeds:
    if not isinstance(table, dict) or not table.keys() <= {"feeds", "sequencer", "currencies"}:
        raise ValueError(f"[{number}] must have `feeds`, may have `sequencer` and `currencies`")
    by_symbol = _parse_feeds(number, "feeds", table.get("feeds"))
    currencies = (
        _parse_feeds(number, "currencies", table["currencies"]) if "currencies" in table else {}
    )
    sequencer = table.get("sequencer")
    if sequencer is None:
        return ChainFeeds(by_symbol, None, currencies)
    at = f"[{number}] sequencer"
    fields = _require_fields(at, sequencer, {"address": str, "source": str})
    return ChainFeeds(by_symbol, _parse_address(at, fields["address"]), currencies)


def _parse_feeds(number: str, name: str, rows: Any) -> Mapping[str, Feed]:
    """A list of feeds, by their symbols."""
    if not isinstance(rows, list) or not rows:
        raise ValueError(f"[{number}] must have a list of {name}")
    feeds = [_parse_feed(f"[{number}] {name}[{place}]", row) for place, row in enumerate(rows)]
    by_symbol = {feed.symbol: feed for feed in feeds}
    if len(by_symbol) != len(feeds):
        raise ValueError(f"[{number}] {name} has two feeds of one symbol")
    return by_symbol


def _parse_feed(at: str, row: Any) -> Feed:
    kinds = dict.fromkeys(("symbol", "address", "lowest_usd", "highest_usd", "source"), str)
    fields = _require_fields(at, row, {**kinds, "heartbeat_s": int})
    heartbeat_s = fields["heartbeat_s"]
    if not 0 < heartbeat_s <= _MAX_HEARTBEAT_S:
        raise ValueError(f"{at}.heartbeat_s must be 1 to {_MAX_HEARTBEAT_S}")
    lowest, highest = (
        parse_price(f"{at}.{name}", fields[name]) for name in ("lowest_usd", "highest_usd")
    )
    if lowest >= highest:
        raise ValueError(f"{at}.lowest_usd must be less than highest_usd")
    return Feed(
        symbol=fields["symbol"],
        address=_parse_address(at, fields["address"]),
        heartbeat_s=heartbeat_s,
        lowest_usd=lowest,
        highest_usd=highest,
    )


def _require_fields(at: str, row: Any, kinds: Mapping[str, type]) -> dict[str, Any]:
    """A table with exactly these fields, each of its type."""
    if not isinstance(row, dict) or row.keys() != kinds.keys():
        raise ValueError(f"{at} must have exactly {', '.join(kinds)}")
    for name, kind in kinds.items():
        if type(row[name]) is not kind:
            raise ValueError(f"{at}.{name} must be {'text' if kind is str else 'a whole number'}")
    return row


def _parse_address(at: str, text: str) -> str:
    try:
        return normalize_address("evm", text)
    except AddressError as error:
        raise ValueError(f"{at}.address {error}") from None
