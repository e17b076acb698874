"""Limiters that each break one promise of counting, made from one that keeps them all."""

from __future__ import annotations

import struct
import threading
from collections.abc import MutableMapping, Sequence
from contextlib import AbstractContextManager

import attrs
from msgspec.structs import replace

from payments_core.clock import Instant
from payments_core.limiters.port import LimiterUnavailable, PolicyCheck, PolicyState

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

    def check(self, policy_checks: Sequence[PolicyCheck], now: Instant) -> Sequence[PolicyState]:
        if self.closed or self.server.silent:
            raise LimiterUnavailable
        with self.exclusion():
            return [self.counted(policy_check, now) for policy_check in policy_checks]

    def close(self) -> None:
        self.closed = True

    def exclusion(self) -> AbstractContextManager[object]:
        return self.server.lock

    def counted(self, policy_check: PolicyCheck, now: Instant) -> PolicyState:
        counters, blocks = self.server.counters, self.server.blocks
        place, block = self.place(policy_check, now), self.block(policy_check)
        before = counters.get(place, 0)
        count = self.stored(counters, place, before, self.cost(policy_check, before))
        until = blocks.get(block, 0)
        if (
            not self.blocked(policy_check, now, until)
            and policy_check.block_ms
            and self.passed(policy_check, before, count)
        ):
            until = blocks[block] = self.block_end(policy_check, now)
        over = not self.within(policy_check, count)
        ends = self.window_end(policy_check, now)
        if self.blocked(policy_check, now, until):
            return PolicyState(False, policy_check.limit, 0, max(until, ends) if over else until)
        return PolicyState(not over, policy_check.limit, self.left(policy_check, count), ends)

    def stored(
        self, counters: MutableMapping[Place, int], place: Place, before: int, cost: int
    ) -> int:
        counters[place] = max(0, before + cost)
        return counters[place]

    def place(self, policy_check: PolicyCheck, now: Instant) -> Place:
        return (policy_check.key, policy_check.window_ms, self.window(policy_check, now))

    def block(self, policy_check: PolicyCheck) -> Place:
        return (policy_check.key, policy_check.window_ms)

    def window(self, policy_check: PolicyCheck, now: Instant) -> int:
        return now // policy_check.window_ms

    def window_end(self, policy_check: PolicyCheck, now: Instant) -> Instant:
        return (now // policy_check.window_ms + 1) * policy_check.window_ms

    def cost(self, policy_check: PolicyCheck, before: int) -> int:
        return policy_check.cost

    def within(self, policy_check: PolicyCheck, count: int) -> bool:
        return count <= policy_check.limit

    def left(self, policy_check: PolicyCheck, count: int) -> int:
        return max(0, policy_check.limit - count)

    def passed(self, policy_check: PolicyCheck, before: int, count: int) -> bool:
        return before <= policy_check.limit < count

    def blocked(self, policy_check: PolicyCheck, now: Instant, until: Instant) -> bool:
        return until > now

    def block_end(self, policy_check: PolicyCheck, now: Instant) -> Instant:
        return now + policy_check.block_ms


# --- Counting -------------------------------------------------------------------------------------


class AdmitsOneTooMany(Plain):
    def within(self, policy_check: PolicyCheck, count: int) -> bool:
        return count <= policy_check.limit + 1


class AdmitsOneTooFew(Plain):
    def within(self, policy_check: PolicyCheck, count: int) -> bool:
        return count < policy_check.limit


class RefusedAreNotCounted(Plain):
    def cost(self, policy_check: PolicyCheck, before: int) -> int:
        return policy_check.cost if before + policy_check.cost <= policy_check.limit else 0

    def within(self, policy_check: PolicyCheck, count: int) -> bool:
        return self.admitted

    def counted(self, policy_check: PolicyCheck, now: Instant) -> PolicyState:
        before = self.server.counters.get(self.place(policy_check, now), 0)
        self.admitted = before + policy_check.cost <= policy_check.limit
        return super().counted(policy_check, now)


class GivesNothingBack(Plain):
    """Takes a cost below zero for a look."""

    def cost(self, policy_check: PolicyCheck, before: int) -> int:
        return max(0, policy_check.cost)


class CountsBelowZero(Plain):
    """Gives back what was never counted: a later window's worth is admitted in this one."""

    def stored(
        self, counters: MutableMapping[Place, int], place: Place, before: int, cost: int
    ) -> int:
        counters[place] = before + cost
        return counters[place]


class LooksCount(Plain):
    def cost(self, policy_check: PolicyCheck, before: int) -> int:
        return max(1, policy_check.cost)


class EveryCostIsOne(Plain):
    def cost(self, policy_check: PolicyCheck, before: int) -> int:
        return min(1, policy_check.cost)


class RemainsBelowZero(Plain):
    def left(self, policy_check: PolicyCheck, count: int) -> int:
        return policy_check.limit - count


class TellsWhatWasLeftBefore(Plain):
    def left(self, policy_check: PolicyCheck, count: int) -> int:
        return max(0, policy_check.limit - count + 1)


class TellsWhatIsLeftForTheLimit(Plain):
    def counted(self, policy_check: PolicyCheck, now: Instant) -> PolicyState:
        policy_state = super().counted(policy_check, now)
        return replace(policy_state, limit=policy_state.remaining)


class LooksAreRefusedAtTheLimit(Plain):
    def counted(self, policy_check: PolicyCheck, now: Instant) -> PolicyState:
        policy_state = super().counted(policy_check, now)
        if policy_check.cost == 0 and policy_state.remaining == 0:
            return replace(policy_state, admitted=False)
        return policy_state


class StopsAtTheFirstRefusal(Plain):
    def check(self, policy_checks: Sequence[PolicyCheck], now: Instant) -> Sequence[PolicyState]:
        policy_states: list[PolicyState] = []
        for policy_check in policy_checks:
            refused = any(not policy_state.admitted for policy_state in policy_states)
            policy_states += super().check(
                [replace(policy_check, cost=0) if refused else policy_check], now
            )
        return policy_states


class AnswersTheMostConstrainedFirst(Plain):
    def check(self, policy_checks: Sequence[PolicyCheck], now: Instant) -> Sequence[PolicyState]:
        return sorted(
            super().check(policy_checks, now), key=lambda policy_state: policy_state.remaining
        )


class CountsAKeyOnce(Plain):
    def check(self, policy_checks: Sequence[PolicyCheck], now: Instant) -> Sequence[PolicyState]:
        distinct = list(dict.fromkeys(policy_checks))
        policy_states = dict(zip(distinct, super().check(distinct, now), strict=True))
        return [policy_states[policy_check] for policy_check in policy_checks]


class NeedsAnAsk(Plain):
    def check(self, policy_checks: Sequence[PolicyCheck], now: Instant) -> Sequence[PolicyState]:
        assert policy_checks[0]
        return super().check(policy_checks, now)


class FoldsKeys(Plain):
    def place(self, policy_check: PolicyCheck, now: Instant) -> Place:
        return (policy_check.key.strip().lower(), *super().place(policy_check, now)[1:])


class CutsKeys(Plain):
    def place(self, policy_check: PolicyCheck, now: Instant) -> Place:
        return (policy_check.key[:255], *super().place(policy_check, now)[1:])


class EndsKeysAtANull(Plain):
    def place(self, policy_check: PolicyCheck, now: Instant) -> Place:
        return (policy_check.key.partition("\x00")[0], *super().place(policy_check, now)[1:])


class AllShareACounter(Plain):
    def place(self, policy_check: PolicyCheck, now: Instant) -> Place:
        return super().place(policy_check, now)[1:]


class LengthsShareACounter(Plain):
    def place(self, policy_check: PolicyCheck, now: Instant) -> Place:
        return (policy_check.key,)


class KeepsTheFirstLimit(Plain):
    def __init__(self, server: Server) -> None:
        super().__init__(server)
        self.limits: dict[str, int] = {}

    def counted(self, policy_check: PolicyCheck, now: Instant) -> PolicyState:
        return super().counted(
            replace(
                policy_check, limit=self.limits.setdefault(policy_check.key, policy_check.limit)
            ),
            now,
        )


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
