"""What feeds return, as bytes, and feeds that are in a test's hands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from payments_core.chains.port import Chain, ChainUnavailable
from payments_core.pricing.rounds import DECIMALS, LATEST_ROUND_DATA, Round


def word(number: int) -> bytes:
    """A number as a contract returns it."""
    return (number % 2**256).to_bytes(32, "big")


def encode_round(found: Round) -> bytes:
    """What `latestRoundData` returns."""
    words = (found.id, found.answer, found.started_at_s, found.updated_at_s, found.answered_in)
    return b"".join(map(word, words))


class FeedsOnAChain:
    """The part of a chain that prices need: contracts of this test's, which count their calls."""

    def __init__(self) -> None:
        self.rounds: dict[str, Round | None] = {}
        self.is_silent = False
        self.queries = 0
        self.asked: set[str] = set()

    def report(self, address: str, answer: int, at_s: int) -> None:
        """A feed's next round, finished."""
        last = self.rounds.get(address)
        next_id = 1 if last is None else last.id + 1
        self.rounds[address] = Round(next_id, answer, at_s, at_s, next_id)

    def read_contracts(self, asked: Sequence[tuple[str, bytes]]) -> tuple[bytes | None, ...]:
        self.queries += 1
        self.asked |= {address for address, _ in asked}
        if self.is_silent:
            raise ChainUnavailable("no node answers")
        return tuple(self._call(address, data) for address, data in asked)

    def _call(self, address: str, data: bytes) -> bytes | None:
        found = self.rounds.get(address)
        if found is None:
            return None
        return {DECIMALS: word(8), LATEST_ROUND_DATA: encode_round(found)}[data]


def as_chains(chains: Mapping[int, Any]) -> Mapping[int, Chain]:
    """Chains of which nothing but their contracts is called."""
    return cast("Mapping[int, Chain]", chains)
