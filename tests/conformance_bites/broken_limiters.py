"""Limiters that each break one promise of the port, made from one that keeps them all."""

from __future__ import annotations

import struct
import threading
import time
from collections.abc import Iterator, MutableMapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext

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


# --- Clocks ---------------------------------------------------------------------------------------


class EndsAMillisecondLate(Plain):
    def window(self, ask: Ask, now: Instant) -> int:
        return (now - 1) // ask.window_ms


class Slides(Plain):
    """Half of the window before still counts."""

    def counted(self, ask: Ask, now: Instant) -> Standing:
        before = self.server.counters.get((*self.block(ask), now // ask.window_ms - 1), 0)
        standing = super().counted(ask, now)
        if before // 2 > standing.remaining:
            return replace(standing, admitted=False, remaining=0)
        return standing


class BeginsWithTheFirstRequest(Plain):
    def __init__(self, server: Server) -> None:
        super().__init__(server)
        self.begun: dict[Place, Instant] = {}

    def window(self, ask: Ask, now: Instant) -> int:
        begun = self.begun.setdefault(self.block(ask), now)
        if now >= begun + ask.window_ms:
            begun = self.begun[self.block(ask)] = now
        return begun


class ResetsAWindowFromNow(Plain):
    def window_end(self, ask: Ask, now: Instant) -> Instant:
        return now + ask.window_ms


class ForgetsAllButThePresentWindow(Plain):
    def counted(self, ask: Ask, now: Instant) -> Standing:
        place = self.place(ask, now)
        for other in [other for other in self.server.counters if other[:2] == place[:2]]:
            if other != place:
                del self.server.counters[other]
        return super().counted(ask, now)


class ForgetsEarlierWindows(Plain):
    def counted(self, ask: Ask, now: Instant) -> Standing:
        place = self.place(ask, now)
        for other in [other for other in self.server.counters if other[:2] == place[:2]]:
            if int(str(other[2])) < int(str(place[2])):
                del self.server.counters[other]
        return super().counted(ask, now)


class TakesOneStepBackForSkew(Plain):
    """Two windows before the newest it begins again, as if they were new."""

    def __init__(self, server: Server) -> None:
        super().__init__(server)
        self.newest = 0

    def counted(self, ask: Ask, now: Instant) -> Standing:
        place, window = self.place(ask, now), now // ask.window_ms
        if window < self.newest - 2:
            self.server.counters.pop(place, None)
        self.newest = max(window, self.newest)
        return super().counted(ask, now)


class NeverGoesBack(Plain):
    def __init__(self, server: Server) -> None:
        super().__init__(server)
        self.newest = 0

    def check(self, asks: Sequence[Ask], now: Instant) -> Sequence[Standing]:
        self.newest = max(now, self.newest)
        return super().check(asks, self.newest)


class DistrustsLeaps(Plain):
    def __init__(self, server: Server) -> None:
        super().__init__(server)
        self.last: Instant | None = None

    def check(self, asks: Sequence[Ask], now: Instant) -> Sequence[Standing]:
        self.last = now if self.last is None else min(now, self.last + 3_600_000)
        return super().check(asks, self.last)


# --- Blocks ---------------------------------------------------------------------------------------


class NeverBlocks(Plain):
    def passed(self, ask: Ask, before: int, count: int) -> bool:
        return False


class BlocksAtTheLimit(Plain):
    def passed(self, ask: Ask, before: int, count: int) -> bool:
        return before < ask.limit <= count


class BlocksFromTheEndOfTheWindow(Plain):
    def block_end(self, ask: Ask, now: Instant) -> Instant:
        return self.window_end(ask, now) + ask.block_ms


class ForgetsTheBlockWithTheWindow(Plain):
    def block_end(self, ask: Ask, now: Instant) -> Instant:
        return min(super().block_end(ask, now), self.window_end(ask, now))


class EndsTheBlockAMillisecondLate(Plain):
    def blocked(self, ask: Ask, now: Instant, until: Instant) -> bool:
        return until >= now


class BlocksOnlyThoseWhoAskForIt(Plain):
    def blocked(self, ask: Ask, now: Instant, until: Instant) -> bool:
        return bool(ask.block_ms) and super().blocked(ask, now, until)


class ProlongsTheBlock(Plain):
    def counted(self, ask: Ask, now: Instant) -> Standing:
        if self.server.blocks.get(self.block(ask), 0) > now and ask.cost:
            self.server.blocks[self.block(ask)] = self.block_end(ask, now)
        return super().counted(ask, now)


class LooksBeginBlocks(Plain):
    def passed(self, ask: Ask, before: int, count: int) -> bool:
        return count > ask.limit


class BlocksOnlyOneStepBeyond(Plain):
    def passed(self, ask: Ask, before: int, count: int) -> bool:
        return before == ask.limit < count


class TheBlockEndsTheWindow(Plain):
    def within(self, ask: Ask, count: int) -> bool:
        return bool(ask.block_ms) or super().within(ask, count)


class BlocksOnce(Plain):
    def blocked(self, ask: Ask, now: Instant, until: Instant) -> bool:
        return until > now

    def passed(self, ask: Ask, before: int, count: int) -> bool:
        return super().passed(ask, before, count) and self.block(ask) not in self.server.blocks


class BlocksTheWholePolicy(Plain):
    def block(self, ask: Ask) -> Place:
        return (ask.key.partition(":")[0], ask.window_ms)


class BlocksWindowsOfAllLengths(Plain):
    def block(self, ask: Ask) -> Place:
        return (ask.key,)


class TheBlockHasABeginning(Plain):
    def __init__(self, server: Server) -> None:
        super().__init__(server)
        self.lengths: dict[Instant, int] = {}

    def block_end(self, ask: Ask, now: Instant) -> Instant:
        end = super().block_end(ask, now)
        self.lengths[end] = ask.block_ms
        return end

    def blocked(self, ask: Ask, now: Instant, until: Instant) -> bool:
        return until - self.lengths.get(until, 0) <= now < until


class AlwaysBlocksForTheWindow(Plain):
    def counted(self, ask: Ask, now: Instant) -> Standing:
        return super().counted(replace(ask, block_ms=ask.block_ms or 2 * ask.window_ms), now)


# --- Crowds ---------------------------------------------------------------------------------------


class Racy(Plain):
    """Reads, and writes later."""

    def exclusion(self) -> AbstractContextManager[object]:
        return nullcontext()

    def cost(self, ask: Ask, before: int) -> int:
        time.sleep(0)
        return super().cost(ask, before)


class LocksKeyByKey(Plain):
    """And keeps the locks until the end, in the order in which the caller names the keys."""

    def __init__(self, server: Server) -> None:
        super().__init__(server)
        self.locks: dict[str, threading.Lock] = {}

    def check(self, asks: Sequence[Ask], now: Instant) -> Sequence[Standing]:
        with self.in_order(asks):
            return super().check(asks, now)

    @contextmanager
    def in_order(self, asks: Sequence[Ask]) -> Iterator[None]:
        taken = []
        for ask in asks:
            lock = self.locks.setdefault(ask.key, threading.Lock())
            lock.acquire()
            taken.append(lock)
            time.sleep(0)
        yield
        for lock in taken:
            lock.release()


class CountsForItself(Plain):
    """Each handle."""

    def __init__(self, server: Server) -> None:
        super().__init__(Server())


class ClosingForgets(Plain):
    def close(self) -> None:
        super().close()
        self.server.counters.clear()


# --- Failures -------------------------------------------------------------------------------------


class AnswersAfterClosing(Plain):
    def close(self) -> None:
        pass


class CannotBeClosedTwice(Plain):
    def close(self) -> None:
        assert not self.closed
        super().close()


class RaisesWhatTheDriverRaises(Plain):
    def check(self, asks: Sequence[Ask], now: Instant) -> Sequence[Standing]:
        try:
            return super().check(asks, now)
        except LimiterUnavailable:
            raise ConnectionError from None


class AdmitsWhereItCannotSay(Plain):
    def check(self, asks: Sequence[Ask], now: Instant) -> Sequence[Standing]:
        try:
            return super().check(asks, now)
        except LimiterUnavailable:
            return [Standing(True, ask.limit, ask.limit, self.window_end(ask, now)) for ask in asks]


class TakesItsTime(Plain):
    def check(self, asks: Sequence[Ask], now: Instant) -> Sequence[Standing]:
        if self.server.silent:
            threading.Event().wait(0.2)
        return super().check(asks, now)


class NeverComesBack(Plain):
    failed = False

    def check(self, asks: Sequence[Ask], now: Instant) -> Sequence[Standing]:
        self.failed = self.failed or self.server.silent
        if self.failed:
            raise LimiterUnavailable
        return super().check(asks, now)


class ComesBackEmpty(Plain):
    def check(self, asks: Sequence[Ask], now: Instant) -> Sequence[Standing]:
        if self.server.silent:
            self.server.counters.clear()
        return super().check(asks, now)


class CountsAloneMeanwhile(Plain):
    """After many failures it takes the counting into its own hands."""

    failures = 0

    def check(self, asks: Sequence[Ask], now: Instant) -> Sequence[Standing]:
        self.failures = self.failures + 1 if self.server.silent else 0
        if self.failures > 30:
            return Plain(Server()).check(asks, now)
        return super().check(asks, now)
