"""Limiters that each break one promise about clocks and blocks."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from payments_core.clock import Instant
from payments_core.limiters.port import PolicyCheck, PolicyState
from tests.broken_adapters.broken_limiters import Place, Plain, Server

# --- Clocks ---------------------------------------------------------------------------------------


class EndsAMillisecondLate(Plain):
    def window(self, policy_check: PolicyCheck, now: Instant) -> int:
        return (now - 1) // policy_check.window_ms


class Slides(Plain):
    """Half of the window before still counts."""

    def counted(self, policy_check: PolicyCheck, now: Instant) -> PolicyState:
        before = self.server.counters.get(
            (*self.block(policy_check), now // policy_check.window_ms - 1), 0
        )
        policy_state = super().counted(policy_check, now)
        if before // 2 > policy_state.remaining:
            return replace(policy_state, admitted=False, remaining=0)
        return policy_state


class BeginsWithTheFirstRequest(Plain):
    def __init__(self, server: Server) -> None:
        super().__init__(server)
        self.begun: dict[Place, Instant] = {}

    def window(self, policy_check: PolicyCheck, now: Instant) -> int:
        begun = self.begun.setdefault(self.block(policy_check), now)
        if now >= begun + policy_check.window_ms:
            begun = self.begun[self.block(policy_check)] = now
        return begun


class ResetsAWindowFromNow(Plain):
    def window_end(self, policy_check: PolicyCheck, now: Instant) -> Instant:
        return now + policy_check.window_ms


class ForgetsAllButThePresentWindow(Plain):
    def counted(self, policy_check: PolicyCheck, now: Instant) -> PolicyState:
        place = self.place(policy_check, now)
        for other in [other for other in self.server.counters if other[:2] == place[:2]]:
            if other != place:
                del self.server.counters[other]
        return super().counted(policy_check, now)


class ForgetsEarlierWindows(Plain):
    def counted(self, policy_check: PolicyCheck, now: Instant) -> PolicyState:
        place = self.place(policy_check, now)
        for other in [other for other in self.server.counters if other[:2] == place[:2]]:
            if int(str(other[2])) < int(str(place[2])):
                del self.server.counters[other]
        return super().counted(policy_check, now)


class TakesOneStepBackForSkew(Plain):
    """Two windows before the newest it begins again, as if they were new."""

    def __init__(self, server: Server) -> None:
        super().__init__(server)
        self.newest = 0

    def counted(self, policy_check: PolicyCheck, now: Instant) -> PolicyState:
        place, window = self.place(policy_check, now), now // policy_check.window_ms
        if window < self.newest - 2:
            self.server.counters.pop(place, None)
        self.newest = max(window, self.newest)
        return super().counted(policy_check, now)


class NeverGoesBack(Plain):
    def __init__(self, server: Server) -> None:
        super().__init__(server)
        self.newest = 0

    def check(self, policy_checks: Sequence[PolicyCheck], now: Instant) -> Sequence[PolicyState]:
        self.newest = max(now, self.newest)
        return super().check(policy_checks, self.newest)


class DistrustsLeaps(Plain):
    def __init__(self, server: Server) -> None:
        super().__init__(server)
        self.last: Instant | None = None

    def check(self, policy_checks: Sequence[PolicyCheck], now: Instant) -> Sequence[PolicyState]:
        self.last = now if self.last is None else min(now, self.last + 3_600_000)
        return super().check(policy_checks, self.last)


# --- Blocks ---------------------------------------------------------------------------------------


class NeverBlocks(Plain):
    def passed(self, policy_check: PolicyCheck, before: int, count: int) -> bool:
        return False


class BlocksAtTheLimit(Plain):
    def passed(self, policy_check: PolicyCheck, before: int, count: int) -> bool:
        return before < policy_check.limit <= count


class BlocksFromTheEndOfTheWindow(Plain):
    def block_end(self, policy_check: PolicyCheck, now: Instant) -> Instant:
        return self.window_end(policy_check, now) + policy_check.block_ms


class ForgetsTheBlockWithTheWindow(Plain):
    def block_end(self, policy_check: PolicyCheck, now: Instant) -> Instant:
        return min(super().block_end(policy_check, now), self.window_end(policy_check, now))


class EndsTheBlockAMillisecondLate(Plain):
    def blocked(self, policy_check: PolicyCheck, now: Instant, until: Instant) -> bool:
        return until >= now


class BlocksOnlyThoseWhoAskForIt(Plain):
    def blocked(self, policy_check: PolicyCheck, now: Instant, until: Instant) -> bool:
        return bool(policy_check.block_ms) and super().blocked(policy_check, now, until)


class ProlongsTheBlock(Plain):
    def counted(self, policy_check: PolicyCheck, now: Instant) -> PolicyState:
        if self.server.blocks.get(self.block(policy_check), 0) > now and policy_check.cost:
            self.server.blocks[self.block(policy_check)] = self.block_end(policy_check, now)
        return super().counted(policy_check, now)


class LooksBeginBlocks(Plain):
    def passed(self, policy_check: PolicyCheck, before: int, count: int) -> bool:
        return count > policy_check.limit


class BlocksOnlyOneStepBeyond(Plain):
    def passed(self, policy_check: PolicyCheck, before: int, count: int) -> bool:
        return before == policy_check.limit < count


class TheBlockEndsTheWindow(Plain):
    def within(self, policy_check: PolicyCheck, count: int) -> bool:
        return bool(policy_check.block_ms) or super().within(policy_check, count)


class BlocksOnce(Plain):
    def blocked(self, policy_check: PolicyCheck, now: Instant, until: Instant) -> bool:
        return until > now

    def passed(self, policy_check: PolicyCheck, before: int, count: int) -> bool:
        return (
            super().passed(policy_check, before, count)
            and self.block(policy_check) not in self.server.blocks
        )


class BlocksTheWholePolicy(Plain):
    def block(self, policy_check: PolicyCheck) -> Place:
        return (policy_check.key.partition(":")[0], policy_check.window_ms)


class BlocksWindowsOfAllLengths(Plain):
    def block(self, policy_check: PolicyCheck) -> Place:
        return (policy_check.key,)


class TheBlockHasABeginning(Plain):
    def __init__(self, server: Server) -> None:
        super().__init__(server)
        self.lengths: dict[Instant, int] = {}

    def block_end(self, policy_check: PolicyCheck, now: Instant) -> Instant:
        end = super().block_end(policy_check, now)
        self.lengths[end] = policy_check.block_ms
        return end

    def blocked(self, policy_check: PolicyCheck, now: Instant, until: Instant) -> bool:
        return until - self.lengths.get(until, 0) <= now < until


class AlwaysBlocksForTheWindow(Plain):
    def counted(self, policy_check: PolicyCheck, now: Instant) -> PolicyState:
        return super().counted(
            replace(policy_check, block_ms=policy_check.block_ms or 2 * policy_check.window_ms), now
        )
