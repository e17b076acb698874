"""The ports of what an embedding program may pass to the service, and what they may offer beyond.

Nothing here awaits, so an object with an asynchronous method of one of its ports is refused when it
is passed: its call would do nothing, and its result would count as true.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from payments_core.accounts.verification.port import KycProvider
from payments_core.banks.incoming import FundingBank
from payments_core.banks.port import Bank
from payments_core.chains.gas import ReportsGas
from payments_core.chains.loader import (
    BeginsOnSight,
    Checkable,
    ChecksNodes,
    ChecksOperators,
    ChecksSigners,
)
from payments_core.chains.port import (
    CallsContracts,
    Chain,
    HasContracts,
    ReadsCode,
    ReadsContracts,
    UnloggedCoin,
)
from payments_core.chains.role_modules import ModuleChain
from payments_core.chains.token_balances import ReadsTokenBalances
from payments_core.clock import Clock, HasServerTime
from payments_core.credentials.keyring import KeyRing
from payments_core.engine.audit import Actor
from payments_core.errors import FieldError, ValidationFailed
from payments_core.hosted_onramps.port import HostedOnramp
from payments_core.networks import Networks
from payments_core.notices.port import ReadsNotices
from payments_core.plain_calls import port_members, require_plain_methods
from payments_core.pricing.port import PricesCurrencies, Pricing
from payments_core.routers.port import HasSignerKey, OffersRoutes, Router
from payments_core.sandbox.chains import SandboxChain
from payments_core.screening.port import Screening
from payments_core.settings import Settings
from payments_core.storage.capabilities import (
    ChecksIntegrity,
    ChecksWritability,
    FinishesMigrations,
    ReportsConfigProblems,
    ReportsMissingTables,
)
from payments_core.storage.maintenance import MaintenanceAccess, Retirable
from payments_core.storage.port import Storage
from payments_core.telemetry import Telemetry
from payments_core.validation.readers import name_with_article
from payments_core.webhooks.destinations import Resolver
from payments_core.webhooks.transports.port import Transport

PORTS: Mapping[str, tuple[type[Any], ...]] = {
    "storage": (
        Storage,
        HasServerTime,
        FinishesMigrations,
        ChecksWritability,
        ChecksIntegrity,
        ReportsConfigProblems,
        ReportsMissingTables,
        MaintenanceAccess,
        Retirable,
    ),
    "chain": (
        Chain,
        SandboxChain,
        Checkable,
        BeginsOnSight,
        ReportsGas,
        ChecksNodes,
        ChecksOperators,
        ChecksSigners,
        HasContracts,
        ReadsCode,
        ReadsContracts,
        CallsContracts,
        UnloggedCoin,
        ReadsTokenBalances,
        ModuleChain,
    ),
    "clock": (Clock,),
    "transport": (Transport,),
    "resolver": (Resolver,),
    "KYC provider": (KycProvider, ReadsNotices),
    "bank": (Bank, FundingBank, ReadsNotices),
    "source of prices": (Pricing, PricesCurrencies),
    "router": (Router, OffersRoutes, HasSignerKey),
    "hosted on-ramp": (HostedOnramp, ReadsNotices),
    "screening provider": (Screening, ReadsNotices),
    "telemetry": (Telemetry,),
}
"""By what the object is for: its port, and the protocols that it may have besides."""


PASSED: Mapping[str, tuple[type[Any], str | None]] = {
    "storage": (Storage, "storage"),
    "key_ring": (KeyRing, None),
    "settings": (Settings, None),
    "chains": (Mapping, "chain"),
    "sandbox_chains": (Mapping, "chain"),
    "simulated_chains": (bool, None),
    "clock": (Clock, "clock"),
    "transport": (Transport, "transport"),
    "resolver": (Resolver, "resolver"),
    "kyc": (KycProvider, "KYC provider"),
    "bank": (Bank, "bank"),
    "pricing": (Pricing, "source of prices"),
    "router": (Router, "router"),
    "onramp": (HostedOnramp, "hosted on-ramp"),
    "screening": (Screening, "screening provider"),
    "telemetry": (Telemetry, "telemetry"),
    "networks": (Networks, None),
    "host": (Actor, None),
}
"""The arguments of the service, each with its class or port, and what it is in `PORTS`."""

_REQUIRED = ("storage", "key_ring")


def require_passed(passed: Mapping[str, object]) -> None:
    """Refuse arguments of the service of another kind; None only if it is one of the required.

    Raises ValidationFailed, which names the arguments, and TypeError for an asynchronous method.
    """
    for name, (_, port) in PASSED.items():
        given = passed[name]
        for one in given.values() if isinstance(given, Mapping) else (given,):
            if port is not None:
                require_plain_methods(one, port, *PORTS[port])
    found = [
        FieldError(name, f"must be {name_with_article(kind)}")
        for name, (kind, _) in PASSED.items()
        if (passed[name] is not None or name in _REQUIRED) and not _is_a(kind, passed[name])
    ]
    found = found or [
        fault
        for name in ("chains", "sandbox_chains")
        for fault in _find_chain_faults(name, passed[name] or {})
    ]
    if found:
        raise ValidationFailed(tuple(found))


def _find_chain_faults(name: str, chains: Any) -> Iterator[FieldError]:
    """Chains that lack a member of the port, or that are not the one of their number."""
    for number, chain in chains.items():
        missing = [member for member in port_members(Chain) if not hasattr(chain, member)]
        if missing:
            message = f"must be a Chain: it has no {', '.join(missing)}"
            yield FieldError(f"{name}[{number}]", message)
        elif chain.chain_id != number:
            yield FieldError(f"{name}[{number}]", f"is chain {chain.chain_id}")


def _is_a(kind: type, given: object) -> bool:
    if getattr(kind, "_is_protocol", False):
        return all(hasattr(given, member) for member in port_members(kind))
    return isinstance(given, kind)
