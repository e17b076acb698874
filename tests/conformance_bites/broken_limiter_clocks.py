"""Limiters that each break one promise about clocks and blocks."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from payments_core.clock import Instant
from payments_core.limiters.port import Ask, Standing
from tests.conformance_bites.broken_limiters import Place, Plain, Server

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
