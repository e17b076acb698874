"""The checks of `payments doctor`: each reports what it found, and what to do about a fault.

A check queries the real service and changes nothing. With a fault payments cannot work; a warning
is something that an operator should know.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

from msgspec import structs

from payments_core.chains.gas import MAX_READ_AT_ONCE
from payments_core.chains.outbox.nonces import find_present_senders
from payments_core.chains.port import Chain
from payments_core.clock import (
    MAX_CLOCK_SKEW_MS,
    SECOND,
    Clock,
    HasServerTime,
    Instant,
    SystemClock,
    format_iso,
    measure_clock_skew_ms,
)
from payments_core.evolve import evolve
from payments_core.limiters.port import Limiter, LimiterUnavailable, PolicyCheck
from payments_core.maintenance.damaged_rows import check_rows
from payments_core.networks import Asset
from payments_core.record_types import RECORD_TYPES
from payments_core.service import PaymentsService
from payments_core.storage.capabilities import (
    ChecksIntegrity,
    ChecksWritability,
    ReportsConfigProblems,
)
from payments_core.storage.documents import UnreadableDocument
from payments_core.storage.maintenance import MaintenanceAccess
from payments_core.storage.port import Storage, StorageError, StorageUnavailable
from payments_core.tenants.master_keys import UnknownKeyRing, find_missing_keys, require_registered
from payments_core.tenants.queries import has_apps
from payments_core_http.deployment import build as assembling
from payments_core_http.deployment.chain_checks import SYSTEM_TIME, check_chain, check_nodes
from payments_core_http.deployment.configuration import Configuration
from payments_core_http.deployment.findings import Finding, Level
from payments_core_http.deployment.job_checks import check_parked
from payments_core_http.deployment.job_checks import (
    check_queues as _check_queues,  # by this name a program of tests/public_reports imports it
)
from payments_core_http.deployment.loader import ConfigurationRefused
from payments_core_http.deployment.price_checks import check_prices, check_rates
from payments_core_http.deployment.provider_checks import (
    check_notices,
    check_presence,
    check_waiting,
)
from payments_core_http.deployment.secret_mask import SecretMask
from payments_core_http.deployment.signer_checks import find_refused_operators, find_signer_faults
from payments_core_http.deployment.startup_rules import find_warnings, require_startable
from payments_core_http.throttling import UNKNOWN_ADDRESS_CHECK

T = TypeVar("T")

SLOW_ROUND_TRIP_MS = 20
"""A storage or limiter that takes longer for one round trip is too far from this machine."""
CLOCK_SKEW_WARNING_MS = 1 * SECOND
ROUNDS = 5
MAX_CHECKED_ROWS = 100_000
"""The number of rows that are read in a second or two; `payments admin damaged list` reads all."""
MAX_NAMED_ROWS = 20
INTEGRITY_LIMIT_S = 10
"""SQLite checks some gigabytes in this time; the check of a backup has no limit."""


def run_checks(
    configuration: Configuration,
    *,
    now: Callable[[PaymentsService], Instant] = lambda service: service.parts.ports.clock.now(),
) -> Iterator[Finding]:
    """Every finding, as it is made, without the settings' secrets, even in an adapter's errors.

    A port that cannot be opened is not queried. `now` is the time at which jobs are judged late.
    """
    hiding = SecretMask.of(configuration)
    with contextlib.ExitStack() as opened:
        for finding in _run_all(configuration, now, opened):
            yield evolve(finding, says=hiding(finding.says))


def _run_all(
    configuration: Configuration,
    now: Callable[[PaymentsService], Instant],
    opened: contextlib.ExitStack,
) -> Iterator[Finding]:
    clock = SystemClock()
    yield from _check_settings(configuration)
    yield from check_presence(configuration)
    file = configuration.storage.url.removeprefix("sqlite:///")
    if file != configuration.storage.url and not Path(file).exists():
        # An older SQLite is said first. This opens no file; a query would create it.
        yield from _open_or_report(lambda: assembling.build_storage(configuration))
        says = "the database file does not exist"
        yield Finding("storage", "fault", says, "run `payments admin migrate`")
        return
    key_ring = yield from _open_or_report(lambda: assembling.build_key_ring(configuration))
    limiter = yield from _open_or_report(lambda: assembling.build_limiter(configuration))
    storage = yield from _open_or_report(lambda: assembling.build_storage(configuration))
    service = None
    if key_ring is not None and storage is not None:
        made = partial(assembling.build_service, configuration, storage, key_ring)
        service = yield from _open_or_report(made)
    for one in (limiter, storage if service is None else service):
        if one is not None:
            opened.callback(_close_quietly, one)
    stored = False
    if storage is not None:
        reachable = list(_catch_faults("storage", _check_storage(storage, clock)))
        yield from reachable
        stored = all(finding.level != "fault" for finding in reachable)
    if limiter is not None:
        yield from _catch_faults("limiter", _check_limiter(limiter, clock))
    if service is None:
        return
    if stored:
        yield from _catch_faults("integrity", _check_integrity(service.parts.ports.storage))
        yield from _catch_faults("rows", _check_rows(service.parts.ports.storage))
        yield from _catch_faults("keys", _check_keys(service))
        require_mode = partial(assembling.require_servable_mode, configuration, service)
        yield from _open_or_report(require_mode)
    for number, chain in service.chains.items():
        if stored or service.find_network_kind(number) != "simulated":
            senders: Sequence[str] = ()
            if stored:
                known = service.parts.ports.storage
                senders = find_present_senders(known, chain, MAX_READ_AT_ONCE)
            tokens = service.networks.list_tokens(number)
            found = _check_chain(number, chain, senders, tokens=tokens, now=partial(now, service))
            yield from _catch_faults(f"chain {number}", found)
    if configuration.providers.pricing.url is not None:
        pricing = service.parts.pricing[configuration.mode]
        networks = (service.networks.get(number) for number in service.chains)
        priced = [token for one in networks if one is not None for token in one.tokens]
        yield from _catch_faults("prices", check_prices(pricing, priced))
        yield from _catch_faults("prices", check_rates(pricing))
    if stored:
        yield from _catch_faults("signer", find_signer_faults(service, configuration.mode))
        operators = find_refused_operators(service, configuration.mode)
        yield from _catch_faults("operators", operators)
        yield from _catch_faults("kyc", check_waiting(service, configuration, now))
        yield from _catch_faults("notices", check_notices(service, configuration.mode))
        yield from _catch_faults("worker", _check_queues(service, configuration.mode, now))
        yield from _catch_faults(
            "jobs", check_parked(service.parts.ports.storage, configuration.mode)
        )


def _check_chain(
    number: int,
    chain: Chain,
    senders: Collection[str] = (),
    *,
    tokens: Sequence[Asset] = (),
    now: Callable[[], Instant] = SYSTEM_TIME,
) -> Iterator[Finding]:
    """Each node alone, and all of them together, as the service uses them."""
    yield from check_nodes(number, chain, now)
    yield from check_chain(number, chain, senders, tokens=tokens, now=now)


_REMEDIES: Mapping[type[Exception], str] = {
    UnreadableDocument: "a row is damaged: `payments admin damaged list` names it",
    StorageUnavailable: "a server of the storage is unavailable: see docs/how-to/runbook.md",
}


def _catch_faults(check: str, findings: Iterator[Finding]) -> Iterator[Finding]:
    """The findings of a check; and a fault if an adapter raises an unexpected exception."""
    try:
        yield from findings
    except Exception as error:
        remedy = next(
            (remedy for kind, remedy in _REMEDIES.items() if isinstance(error, kind)),
            "this is a bug in the adapter: report it to its author",
        )
        yield Finding(check, "fault", f"raised {type(error).__name__}: {error}", remedy)


def _close_quietly(opened: Limiter | Storage | PaymentsService) -> None:
    with contextlib.suppress(Exception):  # everything that it was opened for is already reported
        opened.close()


def _check_settings(configuration: Configuration) -> Iterator[Finding]:
    try:
        require_startable(configuration)
    except ConfigurationRefused as refusal:
        for fault in refusal.faults:
            says = f"{fault.path} {fault.message}"
            yield Finding("settings", "fault", says, "docs/reference/settings.md")
    else:
        yield Finding("settings", "ok", f"valid for mode {configuration.mode}")
    for warning in find_warnings(configuration):
        says = f"{warning.path} {warning.message}"
        yield Finding("settings", "warning", says, "docs/reference/settings.md")


def _open_or_report(open_it: Callable[[], T]) -> Generator[Finding, None, T | None]:
    """The adapter that a setting opens, or its faults and None."""
    try:
        return open_it()
    except ConfigurationRefused as refusal:
        cause = refusal.__cause__
        found = [f"{fault.path} {fault.message}" for fault in refusal.faults]
        if found[0].endswith(f": {type(cause).__name__}"):  # which may quote the URL; hidden here
            found[0] += f": {cause}"
    except Exception as error:
        found = [f"cannot be used: {type(error).__name__}: {error}"]
    for says in found:
        yield Finding(
            "settings", "fault", says, "docs/reference/settings.md describes each setting"
        )
    return None


def _check_keys(service: PaymentsService) -> Iterator[Finding]:
    """Whether the key ring belongs to the storage, and is complete."""
    try:
        require_registered(service.parts.ports.storage, service.parts.ports.key_ring)
    except UnknownKeyRing as error:
        remedy = "restore the right key ring; a new key goes before the others"
        yield Finding("keys", "fault", f"the key ring belongs to another storage: {error}", remedy)
        return
    for name in find_missing_keys(service.parts.ports.storage, service.parts.ports.key_ring):
        says = f"stored data is sealed with key {name}, which is not in the key ring"
        remedy = (
            f"put it back, or `payments admin key-ring forget {name}` if nothing is sealed with it"
        )
        yield Finding("keys", "fault", says, remedy)
    yield Finding(
        "keys", "ok", f"the key ring's current key is {service.parts.ports.key_ring.current_id}"
    )


def _check_storage(storage: Storage, clock: Clock) -> Iterator[Finding]:
    try:
        is_used = has_apps(storage)
        took = _measure_round_trip_ms(lambda: has_apps(storage))
        faults = storage.config_errors() if isinstance(storage, ReportsConfigProblems) else ()
        doubts = storage.config_warnings() if isinstance(storage, ReportsConfigProblems) else ()
    except StorageError as error:
        yield Finding(
            "storage",
            "fault",
            f"does not answer correctly: {error}",
            "is it running, is storage.url right, and did you run `payments admin migrate`?",
        )
        return
    yield _judge_round_trip(
        "storage", took, "move it closer: every request makes several round trips"
    )
    if not is_used:
        remedy = "if storage.url is right, run `payments admin apps create`"
        yield Finding("storage", "warning", "has no app", remedy)
    for fault in faults:
        remedy = "see docs/how-to/deploy.md; after a move, docs/how-to/move-to-postgresql.md"
        yield Finding("storage", "fault", fault, remedy)
    for doubt in doubts:
        remedy = "see docs/how-to/deploy.md; on Citus, docs/how-to/run-on-citus.md"
        yield Finding("storage", "warning", doubt, remedy)
    if isinstance(storage, ChecksWritability):
        yield from check_writability(storage)
    if isinstance(storage, HasServerTime):
        yield from check_clock_skew("the storage's", storage, clock)
    else:
        shown = format_iso(clock.real_now())
        says = f"this machine's clock says {shown}; the storage has no clock to compare it with"
        yield Finding("clock", "ok", says)


def check_writability(storage: ChecksWritability) -> Iterator[Finding]:
    """A fault if writes fail, or will soon."""
    try:
        storage.require_writable()
    except StorageError as error:
        yield Finding(
            "storage",
            "fault",
            str(error),
            "free disk space, or let the service write to the disk",
        )


def _check_integrity(storage: Storage) -> Iterator[Finding]:
    """What a database says of its own files."""
    if not isinstance(storage, ChecksIntegrity):
        return
    found = storage.check_integrity(INTEGRITY_LIMIT_S)
    remedy = "restore a backup beside it: docs/how-to/back-up-and-restore.md"
    for fault in found.faults:
        yield Finding("integrity", "fault", fault, remedy)
    if not found.faults and found.is_complete:
        yield Finding("integrity", "ok", "SQLite's own checks find no damage")
    elif not found.is_complete:
        says = f"SQLite's own checks did not end within {INTEGRITY_LIMIT_S} s"
        yield Finding("integrity", "ok", f"{says}; `payments admin backup make` checks the rest")


def _check_rows(storage: Storage) -> Iterator[Finding]:
    """Whether the rows can be read: all of them, or as many as a check has time for."""
    if not isinstance(storage, MaintenanceAccess):
        return
    found = check_rows(storage, RECORD_TYPES, max_rows=MAX_CHECKED_ROWS)
    remedy = "`payments admin damaged show`, then repair it: docs/how-to/damaged-rows.md"
    for place in found.damaged[:MAX_NAMED_ROWS]:
        says = f"{place.id} of {place.partition} in {place.collection} cannot be read"
        yield Finding("rows", "fault", says, remedy)
    more = len(found.damaged) - MAX_NAMED_ROWS
    if more > 0:
        says = f"{more} more rows cannot be read"
        yield Finding("rows", "fault", says, "`payments admin damaged list` lists all")
    if not found.damaged:
        part = "all" if found.is_complete else "the first"
        says = f"{part} {found.rows_read} rows can be read"
        yield Finding("rows", "ok", says)


def _check_limiter(limiter: Limiter, clock: Clock) -> Iterator[Finding]:
    ask = PolicyCheck("doctor", 1, SECOND, cost=0)
    try:
        took = _measure_round_trip_ms(lambda: limiter.check([ask], clock.real_now()))
    except LimiterUnavailable as error:
        remedy = (
            "until it answers, requests are refused with 429: is it running, is the password right?"
        )
        yield Finding("limiter", "fault", f"does not answer: {error}", remedy)
        return
    yield _judge_round_trip(
        "limiter", took, "move it closer: every request makes up to three round trips"
    )
    if isinstance(limiter, HasServerTime):
        yield from check_clock_skew("the limiter's", limiter, clock)
    yield from check_addresses(limiter, clock)


def check_addresses(limiter: Limiter, clock: Clock) -> Iterator[Finding]:
    """A warning if the addresses of clients are unknown to processes that use this limiter."""
    [state] = limiter.check([structs.replace(UNKNOWN_ADDRESS_CHECK, cost=0)], clock.real_now())
    count = state.limit - state.remaining
    if count:
        says = f"{count} requests of today arrived without their client's address: they are not"
        remedy = "behind a Unix socket: docs/how-to/limit-requests.md#behind-a-unix-socket"
        yield Finding("limiter", "warning", f"{says} counted by address", remedy)


def _judge_round_trip(check: str, took_ms: float, remedy: str) -> Finding:
    if took_ms > SLOW_ROUND_TRIP_MS:
        return Finding(check, "warning", f"takes {took_ms:.1f} ms for a round trip", remedy)
    return Finding(check, "ok", f"answers in {took_ms:.1f} ms")


def check_clock_skew(whose: str, server: HasServerTime, clock: Clock) -> Iterator[Finding]:
    """How far this machine's clock is from another's."""
    try:
        off = measure_clock_skew_ms(server, clock)
    except (LimiterUnavailable, StorageError) as error:
        yield Finding(
            "clock",
            "warning",
            f"{whose} clock cannot be read: {error}",
            "allow this machine to read the server's time",
        )
        return
    says = f"this machine's clock and {whose} clock differ by {off / SECOND:.1f} s"
    if off <= CLOCK_SKEW_WARNING_MS:
        yield Finding("clock", "ok", says)
        return
    level: Level = "fault" if off > MAX_CLOCK_SKEW_MS else "warning"
    yield Finding(
        "clock", level, says, "synchronize the clocks with NTP; `chronyc tracking` shows the offset"
    )


def _measure_round_trip_ms(ask: Callable[[], object]) -> float:
    """The median of a few rounds, after one that connects."""
    ask()
    took = []
    for _ in range(ROUNDS):
        begun = time.perf_counter()
        ask()
        took.append(time.perf_counter() - begun)
    return sorted(took)[ROUNDS // 2] * 1_000
