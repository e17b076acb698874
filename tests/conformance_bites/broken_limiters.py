"""Limiters that each break one promise of counting, made from one that keeps them all."""

from __future__ import annotations

import struct
import threading
from collections.abc import MutableMapping, Sequence
from contextlib import AbstractContextManager

import attrs
from msgspec.structs import replace

from payments_core.clock import Instant
from payments_core.limiters.port import Ask, LimiterUnavailable, Standing

Place = tuple[object, ...]


@attrs.define
class Server:
    """What handles have together; silent where a suite made it fail."""

    counters: dict[Place, int] = attrs.field(factory=dict)
    blocks: dict[Place, Instant] = attrs.field(factory=dict)
    lock: threading.RLock = attrs.field(factory=threading.RLock)
    silent: bool = False


class Plain:
    """As simple as the port allows; each broken one overrides a step of it."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.closed = False

    def check(self, asks: Sequence[Ask], now: Instant) -> Sequence[Standing]:
        if self.closed or self.server.silent:
            raise LimiterUnavailable
        with self.exclusion():
            return [self.counted(ask, now) for ask in asks]

    def close(self) -> None:
        self.closed = True

    def exclusion(self) -> AbstractContextManager[object]:
        return self.server.lock

    def counted(self, ask: Ask, now: Instant) -> Standing:
        counters, blocks = self.server.counters, self.server.blocks
        place, block = self.place(ask, now), self.block(ask)
        before = counters.get(place, 0)
        count = self.stored(counters, place, before, self.cost(ask, before))
        until = blocks.get(block, 0)
        if not self.blocked(ask, now, until) and ask.block_ms and self.passed(ask, before, count):
            until = blocks[block] = self.block_end(ask, now)
        over = not self.within(ask, count)
        ends = self.window_end(ask, now)
        if self.blocked(ask, now, until):
            return Standing(False, ask.limit, 0, max(until, ends) if over else until)
        return Standing(not over, ask.limit, self.left(ask, count), ends)

    def stored(
        self, counters: MutableMapping[Place, int], place: Place, before: int, cost: int
    ) -> int:
        counters[place] = before + cost
        return counters[place]

    def place(self, ask: Ask, now: Instant) -> Place:
        return (ask.key, ask.window_ms, self.window(ask, now))

    def block(self, ask: Ask) -> Place:
        return (ask.key, ask.window_ms)

    def window(self, ask: Ask, now: Instant) -> int:
        return now // ask.window_ms

    def window_end(self, ask: Ask, now: Instant) -> Instant:
        return (now // ask.window_ms + 1) * ask.window_ms

    def cost(self, ask: Ask, before: int) -> int:
        return ask.cost

    def within(self, ask: Ask, count: int) -> bool:
        return count <= ask.limit

    def left(self, ask: Ask, count: int) -> int:
        return max(0, ask.limit - count)

    def passed(self, ask: Ask, before: int, count: int) -> bool:
        return before <= ask.limit < count

    def blocked(self, ask: Ask, now: Instant, until: Instant) -> bool:
        return until > now

    def block_end(self, ask: Ask, now: Instant) -> Instant:
        return now + ask.block_ms


# --- Counting -------------------------------------------------------------------------------------


class AdmitsOneTooMany(Plain):
    def within(self, ask: Ask, count: int) -> bool:
        return count <= ask.limit + 1


class AdmitsOneTooFew(Plain):
    def within(self, ask: Ask, count: int) -> bool:
        return count < ask.limit


class RefusedAreNotCounted(Plain):
    def cost(self, ask: Ask, before: int) -> int:
        return ask.cost if before + ask.cost <= ask.limit else 0

    def within(self, ask: Ask, count: int) -> bool:
        return self.admitted

    def counted(self, ask: Ask, now: Instant) -> Standing:
        before = self.server.counters.get(self.place(ask, now), 0)
        self.admitted = before + ask.cost <= ask.limit
        return super().counted(ask, now)


class LooksCount(Plain):
    def cost(self, ask: Ask, before: int) -> int:
        return max(1, ask.cost)


class EveryCostIsOne(Plain):
    def cost(self, ask: Ask, before: int) -> int:
        return min(1, ask.cost)


class RemainsBelowZero(Plain):
    def left(self, ask: Ask, count: int) -> int:
        return ask.limit - count


class TellsWhatWasLeftBefore(Plain):
    def left(self, ask: Ask, count: int) -> int:
        return max(0, ask.limit - count + 1)


class TellsWhatIsLeftForTheLimit(Plain):
    def counted(self, ask: Ask, now: Instant) -> Standing:
        standing = super().counted(ask, now)
        return replace(standing, limit=standing.remaining)


class LooksAreRefusedAtTheLimit(Plain):
    def counted(self, ask: Ask, now: Instant) -> Standing:
        standing = super().counted(ask, now)
        if ask.cost == 0 and standing.remaining == 0:
            return replace(standing, admitted=False)
        return standing


class StopsAtTheFirstRefusal(Plain):
    def check(self, asks: Sequence[Ask], now: Instant) -> Sequence[Standing]:
        standings: list[Standing] = []
        for ask in asks:
            refused = any(not standing.admitted for standing in standings)
            standings += super().check([replace(ask, cost=0) if refused else ask], now)
        return standings


class AnswersTheMostConstrainedFirst(Plain):
    def check(self, asks: Sequence[Ask], now: Instant) -> Sequence[Standing]:
        return sorted(super().check(asks, now), key=lambda standing: standing.remaining)


class CountsAKeyOnce(Plain):
    def check(self, asks: Sequence[Ask], now: Instant) -> Sequence[Standing]:
        distinct = list(dict.fromkeys(asks))
        standings = dict(zip(distinct, super().check(distinct, now), strict=True))
        return [standings[ask] for ask in asks]


class NeedsAnAsk(Plain):
    def check(self, asks: Sequence[Ask], now: Instant) -> Sequence[Standing]:
        assert asks[0]
        return super().check(asks, now)


class FoldsKeys(Plain):
    def place(self, ask: Ask, now: Instant) -> Place:
        return (ask.key.strip().lower(), *super().place(ask, now)[1:])


class CutsKeys(Plain):
    def place(self, ask: Ask, now: Instant) -> Place:
        return (ask.key[:255], *super().place(ask, now)[1:])


class EndsKeysAtANull(Plain):
    def place(self, ask: Ask, now: Instant) -> Place:
        return (ask.key.partition("\x00")[0], *super().place(ask, now)[1:])


class AllShareACounter(Plain):
    def place(self, ask: Ask, now: Instant) -> Place:
        return super().place(ask, now)[1:]


class LengthsShareACounter(Plain):
    def place(self, ask: Ask, now: Instant) -> Place:
        return (ask.key,)


class KeepsTheFirstLimit(Plain):
    def __init__(self, server: Server) -> None:
        super().__init__(server)
        self.limits: dict[str, int] = {}

    def counted(self, ask: Ask, now: Instant) -> Standing:
        return super().counted(replace(ask, limit=self.limits.setdefault(ask.key, ask.limit)), now)


class CountsInSingleFloats(Plain):
    def stored(
        self, counters: MutableMapping[Place, int], place: Place, before: int, cost: int
    ) -> int:
        (rounded,) = struct.unpack("f", struct.pack("f", before + cost))
        return super().stored(counters, place, 0, int(rounded))


class KeepsTenKeys(Plain):
    def stored(
        self, counters: MutableMapping[Place, int], place: Place, before: int, cost: int
    ) -> int:
        if place not in counters and len(counters) >= 10:
            del counters[next(iter(counters))]
        return super().stored(counters, place, before, cost)
