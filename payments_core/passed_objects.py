"""The ports of what an embedding program may pass to the service, and what they may offer beyond.

Nothing here awaits, so an object with an asynchronous method of one of its ports is refused when it
is passed: its call would do nothing, and its result would count as true.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from payments_core.accounts.verification.port import KycProvider
from payments_core.banks.incoming import FundingBank
from payments_core.banks.port import Bank
from payments_core.chains.loader import BeginsOnSight, Checkable, ReportsGas
from payments_core.chains.port import Chain, HasContracts, ReadsCode
from payments_core.chains.role_modules import ModuleChain
from payments_core.chains.token_balances import ReadsTokenBalances
from payments_core.clock import Clock, HasServerTime
from payments_core.plain_calls import require_plain_methods
from payments_core.pricing.port import Pricing
from payments_core.routers.port import Router
from payments_core.sandbox.chains import SandboxChain
from payments_core.storage.capabilities import (
    ChecksIntegrity,
    ChecksWritability,
    FinishesMigrations,
    ReportsConfigProblems,
)
from payments_core.storage.maintenance import MaintenanceAccess, Retirable
from payments_core.storage.port import Storage
from payments_core.telemetry import Telemetry
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
        MaintenanceAccess,
        Retirable,
    ),
    "chain": (
        Chain,
        SandboxChain,
        Checkable,
        BeginsOnSight,
        ReportsGas,
        HasContracts,
        ReadsCode,
        ReadsTokenBalances,
        ModuleChain,
    ),
    "clock": (Clock,),
    "transport": (Transport,),
    "resolver": (Resolver,),
    "KYC provider": (KycProvider,),
    "bank": (Bank, FundingBank),
    "source of prices": (Pricing,),
    "router": (Router,),
    "telemetry": (Telemetry,),
}
"""By what the object is for: its port, and the protocols that it may have besides."""


def require_plain_objects(passed: Mapping[str, Iterable[object]]) -> None:
    """Refuse objects with asynchronous methods, by the names of `PORTS`; None is no object.

    Raises TypeError, which names the methods.
    """
    for what, objects in passed.items():
        for one in objects:
            require_plain_methods(one, what, *PORTS[what])
