"""The external providers of each mode: those of the deployment, or simulations.

The simulations serve the sandbox only; production has no provider without an adapter.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from payments_core.accounts.verification.port import KycProvider
from payments_core.accounts.verification.simulated import SimulatedKyc
from payments_core.banks.port import Bank
from payments_core.banks.simulated.bank import SimulatedBank
from payments_core.chains.simulated.failures import Failures
from payments_core.credentials.secrets import MODES
from payments_core.engine.ports import Ports
from payments_core.hosted_onramps.port import HostedOnramp
from payments_core.hosted_onramps.simulated.onramp import SimulatedOnramp
from payments_core.notices.port import ReadsNotices
from payments_core.notices.record import ProviderKind
from payments_core.pricing.port import Pricing
from payments_core.pricing.table import SANDBOX, TablePricing
from payments_core.routers.port import Router
from payments_core.routers.simulated.router import SimulatedRouter
from payments_core.sandbox.banks import ordered_bank_failures
from payments_core.sandbox.chains import SandboxChain
from payments_core.screening.bounded import BoundedScreening
from payments_core.screening.port import Screening
from payments_core.screening.simulated import SimulatedScreening


@attrs.frozen(kw_only=True)
class Providers:
    """The adapters of each mode that has any, and the sandbox's simulations that are in use."""

    kyc: Mapping[str, KycProvider]
    banks: Mapping[str, Bank]
    simulated_bank: SimulatedBank | None
    pricing: Mapping[str, Pricing]
    routers: Mapping[str, Router]
    onramps: Mapping[str, HostedOnramp]
    screening: Mapping[str, Screening]
    simulated_onramp: SimulatedOnramp | None

    @property
    def notice_readers(self) -> Mapping[str, Mapping[ProviderKind, ReadsNotices]]:
        """By mode and kind, the providers that report by webhook."""
        kinds: Mapping[ProviderKind, Mapping[str, object]] = {
            "kyc": self.kyc,
            "bank": self.banks,
            "onramp": self.onramps,
            "screening": self.screening,
        }
        return {
            mode: {
                kind: provider
                for kind, by_mode in kinds.items()
                if isinstance(provider := by_mode.get(mode), ReadsNotices)
            }
            for mode in MODES
        }

    @property
    def bounded_screening(self) -> Mapping[str, Screening]:
        """The screening providers as transfers ask them: a deployment's may hang."""
        return {
            mode: one if isinstance(one, SimulatedScreening) else BoundedScreening(one)
            for mode, one in self.screening.items()
        }

    @classmethod
    def choose(
        cls,
        ports: Ports,
        sandbox_chains: Mapping[int, SandboxChain],
        *,
        kyc: KycProvider | None,
        bank: Bank | None,
        pricing: Pricing | None,
        router: Router | None,
        onramp: HostedOnramp | None,
        screening: Screening | None,
    ) -> Providers:
        """Given adapters serve both modes. Routers and on-ramps are simulated only on a
        sandbox's chains."""
        failures = Failures(ports)
        simulated_kyc = SimulatedKyc(fails=lambda: failures.consume("kyc", "start"))
        simulated_bank = SimulatedBank(ports, ordered_bank_failures(ports))
        simulated_router = SimulatedRouter(
            ports, sandbox_chains, fails=lambda call: failures.consume("router", call)
        )
        simulated_screening = SimulatedScreening(
            ports.clock, fails=lambda: failures.consume("screening", "screen")
        )
        simulated_onramp = SimulatedOnramp(
            ports, sandbox_chains, fails=lambda call: failures.consume("onramp", call)
        )
        onramps: Mapping[str, HostedOnramp] = (
            {"sandbox": simulated_onramp} if sandbox_chains else {}
        )
        routers: Mapping[str, Router] = {"sandbox": simulated_router} if sandbox_chains else {}
        return cls(
            kyc=dict.fromkeys(MODES, kyc) if kyc is not None else {"sandbox": simulated_kyc},
            simulated_bank=simulated_bank if bank is None else None,
            banks=dict.fromkeys(MODES, bank) if bank is not None else {"sandbox": simulated_bank},
            pricing=dict.fromkeys(MODES, pricing)
            if pricing is not None
            else {"sandbox": TablePricing(SANDBOX)},
            routers=dict.fromkeys(MODES, router) if router is not None else routers,
            screening=dict.fromkeys(MODES, screening)
            if screening is not None
            else {"sandbox": simulated_screening},
            onramps=dict.fromkeys(MODES, onramp) if onramp is not None else onramps,
            simulated_onramp=simulated_onramp if onramp is None and sandbox_chains else None,
        )
