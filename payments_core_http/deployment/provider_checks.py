"""The checks of providers: whether there is one, and whether something waits for it too long."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import attrs

from payments_core.accounts.verification.record import Verification
from payments_core.adapters import scheme_of
from payments_core.clock import DAY, Instant
from payments_core.service import PaymentsService
from payments_core.storage.port import Snapshot, Storage
from payments_core.tenants.queries import iterate_apps
from payments_core_http.deployment.configuration import Configuration
from payments_core_http.deployment.findings import Finding, Level

LONG_WAIT_DAYS = 7
"""A user ends the forms of a provider in minutes, and a provider decides in days."""

MAX_COUNTED = 100
"""The verifications of an environment that are counted, and the environments that are named."""


@attrs.frozen(kw_only=True)
class ProviderKind:
    """A kind of provider, `[providers.<name>]`: what follows if none is set.

    It is `missing` in production, and `simulated` in the sandbox. `page` says how to get one.
    """

    name: str
    missing: str
    simulated: str
    page: str


PROVIDER_KINDS = (
    ProviderKind(
        name="kyc",
        missing="no account can be verified, and none gets what needs it",
        simulated="the sandbox decides",
        page="docs/how-to/write-a-kyc-adapter.md",
    ),
    ProviderKind(
        name="bank",
        missing="no bank account can be paid, and none can fund an account",
        simulated="its bank accounts and its money exist here alone",
        page="docs/how-to/write-a-bank-adapter.md",
    ),
    ProviderKind(
        name="screening",
        missing="nobody judges whom money comes from and where it goes",
        simulated="the last digits of an address decide",
        page="docs/how-to/write-a-screening-adapter.md",
    ),
    ProviderKind(
        name="onramp",
        missing="no payer can pay by a hosted on-ramp, and the method is not offered",
        simulated="on simulated chains, where nobody is charged",
        page="docs/how-to/write-an-onramp-adapter.md",
    ),
    ProviderKind(
        name="router",
        missing="quotes and payments are of one asset on one chain only",
        simulated="on simulated chains, at prices that do not move",
        page="docs/how-to/route-with-cctp.md",
    ),
    ProviderKind(
        name="pricing",
        missing="no quote is made, and no balance has a value in US dollars",
        simulated="a table of prices that do not move",
        page="docs/how-to/prices.md",
    ),
    ProviderKind(
        name="signer",
        missing="nothing moves out of an escrow or a vault",
        simulated="simulated chains need no signature",
        page="docs/how-to/keys.md",
    ),
)

_ON_CHAINS = ("onramp", "router", "signer")
"""What is simulated only where chains are."""

_OF_REAL_CHAINS = ("signer",)
"""What real chains cannot do without, and what has a check of its own where it is set."""

_STAND_INS = {"pricing": ("table", "prices are a table of yours, which follows no market")}
"""What is real only as long as an operator keeps it so: the adapter's name, by the kind."""


def check_presence(configuration: Configuration) -> Iterator[Finding]:
    """For each kind of provider: whether there is one, and what follows if there is none."""
    has_simulated, has_real = configuration.simulated_chains, bool(configuration.chains)
    for kind in PROVIDER_KINDS:
        url = getattr(configuration.providers, kind.name).url
        stand_in, says = _STAND_INS.get(kind.name, ("", ""))
        if url is not None and scheme_of(url) == stand_in and configuration.mode == "production":
            yield Finding(kind.name, "warning", says, f"see {kind.page}")
        elif kind.name in _OF_REAL_CHAINS and has_real:
            if url is None:
                says, remedy = _describe_lack(kind)
                yield Finding(kind.name, "fault", says, remedy)
        elif url is not None:
            yield Finding(kind.name, "ok", "a provider is set")
        elif configuration.mode == "sandbox" and (kind.name not in _ON_CHAINS or has_simulated):
            yield Finding(kind.name, "ok", f"simulated: {kind.simulated}")
        else:
            level: Level = "ok" if configuration.mode == "sandbox" else "warning"
            says, remedy = _describe_lack(kind)
            yield Finding(kind.name, level, says, remedy)


def _describe_lack(kind: ProviderKind) -> tuple[str, str]:
    """What follows if no provider is set, and what to do."""
    return f"no provider is set: {kind.missing}", f"set providers.{kind.name}.url: {kind.page}"


def check_waiting(
    service: PaymentsService,
    configuration: Configuration,
    now: Callable[[PaymentsService], Instant],
) -> Iterator[Finding]:
    """Which verifications nobody decides. The sandbox decides those of its own provider."""
    mode, has_provider = configuration.mode, configuration.providers.kyc.url is not None
    if not has_provider and mode == "sandbox":
        return
    storage = service.parts.ports.storage
    found = list(_find_long_waits(storage, mode, now(service) - LONG_WAIT_DAYS * DAY))
    for environment_id, count in found[:MAX_COUNTED]:
        number = f"{count} or more" if count == MAX_COUNTED else str(count)
        says = f"{number} verifications of {environment_id} have waited for {LONG_WAIT_DAYS} days"
        remedy = f"`payments admin verification list {environment_id}`, and ask the provider"
        yield Finding("kyc", "warning", says, remedy)
    if has_provider and not found:
        yield Finding("kyc", "ok", f"no verification has waited for {LONG_WAIT_DAYS} days")


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
