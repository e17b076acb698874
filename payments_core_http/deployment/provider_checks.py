"""The checks of providers: whether there is one, and whether something waits for it too long."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from payments_core.accounts.verification.record import Verification
from payments_core.clock import DAY, Instant
from payments_core.service import PaymentsService
from payments_core.storage.port import Snapshot, Storage
from payments_core.tenants.queries import iterate_apps
from payments_core_http.deployment.configuration import Configuration
from payments_core_http.deployment.findings import Finding

LONG_WAIT_DAYS = 7
"""A user ends the forms of a provider in minutes, and a provider decides in days."""

MAX_COUNTED = 100
"""The verifications of an environment that are counted, and the environments that are named."""


def check_kyc(
    service: PaymentsService,
    configuration: Configuration,
    now: Callable[[PaymentsService], Instant],
) -> Iterator[Finding]:
    """Whether accounts can be verified, and which verifications nobody decides."""
    mode, has_provider = configuration.mode, configuration.providers.kyc.url is not None
    if not has_provider and mode == "production":
        says = "no provider is set: no account can be verified, and none gets what needs it"
        yield Finding(
            "kyc", "warning", says, "set providers.kyc.url: docs/how-to/write-a-kyc-adapter.md"
        )
    elif not has_provider:
        yield Finding("kyc", "ok", "simulated: the sandbox decides")
        return
    storage = service.parts.ports.storage
    found = list(_find_long_waits(storage, mode, now(service) - LONG_WAIT_DAYS * DAY))
    for environment_id, count in found[:MAX_COUNTED]:
        number = f"{count} or more" if count == MAX_COUNTED else str(count)
        says = f"{number} verifications of {environment_id} have waited for {LONG_WAIT_DAYS} days"
        remedy = f"`payments admin verification list {environment_id}`, and ask the provider"
        yield Finding("kyc", "warning", says, remedy)
    if has_provider and not found:
        says = f"a provider is set, and no verification has waited for {LONG_WAIT_DAYS} days"
        yield Finding("kyc", "ok", says)


def check_notices(service: PaymentsService, mode: str) -> Iterator[Finding]:
    """Whether providers have reported cases that nobody knows."""
    if service.parts.provider_notices.list(mode, limit=1).records:
        says = "providers have reported cases that are not known here"
        yield Finding("notices", "warning", says, "`payments admin notices list` shows them")


def _find_long_waits(storage: Storage, mode: str, before: Instant) -> Iterator[tuple[str, int]]:
    """Each environment with verifications that were opened before then, and how many."""
    for app in iterate_apps(storage):
        environment_id = app.environments.get(mode)
        if environment_id is None:
            continue

        def count(snapshot: Snapshot) -> int:
            page = snapshot.find(
                Verification, "by_status", ("pending",), limit=MAX_COUNTED, skip_damaged=True
            )
            return sum(one.created_at_ms <= before for one in page.records)

        if waiting := storage.read(environment_id, count):
            yield environment_id, waiting
