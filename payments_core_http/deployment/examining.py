"""What `payments doctor` looks at: each check says what it found, and what to do about a fault.

A check asks the real thing and changes nothing. A fault is what payments cannot work with, a
warning what somebody should know.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal

import attrs

from payments_core.chains.opening import Checkable
from payments_core.chains.port import Chain, ChainError, ChainMismatch
from payments_core.clock import (
    MINUTE,
    SECOND,
    Clock,
    Instant,
    SystemClock,
    TellsTime,
    apart_ms,
)
from payments_core.limiters.port import Ask, Limiter, LimiterUnavailable
from payments_core.service import QUEUES, PaymentsService
from payments_core.storage.port import Storage, StorageError, TellsFaults
from payments_core.tenants.listing import has_apps
from payments_core.tenants.master_keys import UnknownKeyRing, missing, require_recognised
from payments_core_http.deployment import assembling
from payments_core_http.deployment.configuration import Configuration
from payments_core_http.deployment.reading import ConfigurationRefused
from payments_core_http.deployment.weaknesses import require_strong, warnings

Level = Literal["ok", "warning", "fault"]

SLOW_MS = 20
"""A storage or limiter that takes longer for one round trip is not beside this machine."""
SKEW_MS = 1 * SECOND
LATE_MS = 1 * MINUTE
ROUNDS = 5


@attrs.frozen
class Finding:
    """What one check found. `remedy` is empty where nothing is wrong."""

    check: str
    level: Level
    says: str
    remedy: str = ""


def examine(
    configuration: Configuration,
    *,
    now: Callable[[PaymentsService], Instant] = lambda service: service.clock.now(),
) -> Iterator[Finding]:
    """Every finding, as it is made. Settings that open nothing end it.

    `now` is when jobs are judged to be late.
    """
    clock = SystemClock()
    yield from _settings(configuration)
    opened = _opened(configuration)
    if isinstance(opened, Finding):
        yield opened
        return
    service, limiter = opened
    with contextlib.closing(service), contextlib.closing(limiter):
        reachable = list(_storage(service.storage, clock))
        yield from reachable
        yield from _limiter(limiter, clock)
        stored = all(finding.level != "fault" for finding in reachable)
        if stored:
            yield from _keys(service)
        if stored or not configuration.simulated_chains:
            for number, chain in service.chains.items():
                yield from _chain(number, chain)
        if stored:
            service.refresh()
            yield from _queues(service, configuration.mode, now(service))


def _settings(configuration: Configuration) -> Iterator[Finding]:
    try:
        require_strong(configuration)
    except ConfigurationRefused as refusal:
        for fault in refusal.faults:
            says = f"{fault.path} {fault.message}"
            yield Finding("settings", "fault", says, "docs/reference/settings.md")
    else:
        yield Finding("settings", "ok", f"fit to start in mode {configuration.mode}")
    for warning in warnings(configuration):
        says = f"{warning.path} {warning.message}"
        yield Finding("settings", "warning", says, "docs/reference/settings.md")


def _opened(configuration: Configuration) -> tuple[PaymentsService, Limiter] | Finding:
    file = configuration.storage.url.removeprefix("sqlite:///")
    if file != configuration.storage.url and not Path(file).exists():
        says = "there is no such file yet"  # to open it would make it
        return Finding("storage", "fault", says, "run `payments admin migrate`")
    try:
        key_ring = assembling.key_ring(configuration)
        limiter = assembling.limiter(configuration)
        storage = assembling.storage(configuration)
        return assembling.service(configuration, storage, key_ring), limiter
    except ConfigurationRefused as refusal:
        (fault,) = refusal.faults
        remedy = "docs/reference/settings.md has each setting's form"
        return Finding("settings", "fault", f"{fault.path} {fault.message}", remedy)


def _keys(service: PaymentsService) -> Iterator[Finding]:
    """Whether the key ring is the storage's own, and whole."""
    try:
        require_recognised(service.storage, service.key_ring)
    except UnknownKeyRing as error:
        remedy = "put the right ring back; a new key goes in front of the others"
        yield Finding("keys", "fault", f"the key ring is another's: {error}", remedy)
        return
    for name in missing(service.storage, service.key_ring):
        says = f"the key {name}, which has sealed what is stored, is not in the ring"
        remedy = f"put it back, or `payments admin key-ring forget {name}` if nothing rests on it"
        yield Finding("keys", "fault", says, remedy)
    yield Finding("keys", "ok", f"the key ring's current key is {service.key_ring.current_id}")


def _storage(storage: Storage, clock: Clock) -> Iterator[Finding]:
    try:
        is_used = has_apps(storage)
        took = _milliseconds(lambda: has_apps(storage))
        faults = storage.faults() if isinstance(storage, TellsFaults) else ()
    except StorageError as error:
        yield Finding(
            "storage",
            "fault",
            f"does not answer as it should: {error}",
            "is it running, does storage.url name it, and has `payments admin migrate` been run?",
        )
        return
    yield _pace("storage", took, "put it nearer: every request makes several round trips")
    if not is_used:
        remedy = "does storage.url name the right one? Then `payments admin apps create`"
        yield Finding("storage", "warning", "has no app", remedy)
    for fault in faults:
        yield Finding("storage", "fault", fault, "docs/how-to/deploy.md has the settings")
    if isinstance(storage, TellsTime):
        yield from skew("the storage's", storage, clock)


def _limiter(limiter: Limiter, clock: Clock) -> Iterator[Finding]:
    ask = Ask("doctor", 1, SECOND, cost=0)
    try:
        took = _milliseconds(lambda: limiter.check([ask], clock.real()))
    except LimiterUnavailable as error:
        remedy = "until it answers every request is refused with 429: is it running?"
        yield Finding("limiter", "fault", f"does not answer: {error}", remedy)
        return
    yield _pace("limiter", took, "put it nearer: every request asks it up to three times")
    if isinstance(limiter, TellsTime):
        yield from skew("the limiter's", limiter, clock)


def _pace(check: str, took_ms: float, remedy: str) -> Finding:
    if took_ms > SLOW_MS:
        return Finding(check, "warning", f"takes {took_ms:.1f} ms for a round trip", remedy)
    return Finding(check, "ok", f"answers in {took_ms:.1f} ms")


def skew(whose: str, server: TellsTime, clock: Clock) -> Iterator[Finding]:
    """How far this machine's clock is from another's."""
    try:
        off = apart_ms(server, clock)
    except (LimiterUnavailable, StorageError) as error:
        yield Finding(
            "clock", "warning", f"{whose} cannot be told: {error}", "allow it to be asked"
        )
        return
    says = f"this machine's clock and {whose} are {off / SECOND:.1f} s apart"
    if off <= SKEW_MS:
        yield Finding("clock", "ok", says)
        return
    level: Level = "fault" if off > assembling.WORST_SKEW_MS else "warning"
    yield Finding("clock", level, says, "keep the clocks by NTP: chronyc tracking says how far off")


def _chain(number: int, chain: Chain) -> Iterator[Finding]:
    name = f"chain {number}"
    try:
        if isinstance(chain, Checkable):
            chain.check()
        heads = chain.heads()
    except ChainMismatch as error:
        remedy = f"correct chains.{number}: docs/how-to/serve-an-evm-chain.md"
        yield Finding(name, "fault", str(error), remedy)
        return
    except ChainError as error:
        remedy = "its Payments wait and lose nothing; are the nodes reachable from here?"
        yield Finding(name, "fault", f"does not answer: {error}", remedy)
        return
    behind = heads.latest.number - heads.final.number
    yield Finding(
        name, "ok", f"stands at block {heads.latest.number}, the final one {behind} behind"
    )


def _queues(service: PaymentsService, mode: str, now: Instant) -> Iterator[Finding]:
    """Whether somebody does the jobs: those that are due should not be so for long."""
    for queue in QUEUES:
        due = service.storage.next_due(queue.full_name(mode))
        late = 0 if due is None else now - due
        if late > LATE_MS:
            says = f"a job of the queue {queue.name} has been due for {late // SECOND} s"
            remedy = "does a `payments worker` run? Or is the job parked: payments admin jobs"
            yield Finding("worker", "warning", says, remedy)
        else:
            yield Finding("worker", "ok", f"nothing in the queue {queue.name} is late")


def _milliseconds(ask: Callable[[], object]) -> float:
    """The median of a few rounds, after one that connects."""
    ask()
    took = []
    for _ in range(ROUNDS):
        begun = time.perf_counter()
        ask()
        took.append(time.perf_counter() - begun)
    return sorted(took)[ROUNDS // 2] * 1_000
