"""A payer without an account: the holder of one Payment's client secret."""

from __future__ import annotations

import hashlib
from itertools import count
from typing import Any

from payments_core.credentials.tokens import Claims
from payments_core.payments.checkout.checkout import PAYER
from payments_core.payments.details import OptionDetails, PaymentDetails
from payments_core.payments.options.record import PaymentOption
from payments_core.payments.record import Payment
from payments_core.tenants.authorization import Authority
from tests.service.world import BASE, WALLET, World

INVENTED = "0x" + "ab" * 32


class Payer:
    """What a payer's page does with a Payment, over a world."""

    def __init__(self, world: World, amount: str = "25.00", **more: Any) -> None:
        self.world = world
        self.payment = world.payment(amount, **more)
        self.id = self.payment.payment.id
        self._wallets = count(0xE0000)

    @property
    def secret(self) -> str:
        assert self.payment.client_secret is not None
        return self.payment.client_secret

    @property
    def authority(self) -> Authority:
        return authority_of(self.world, self.secret)

    def option(self, **more: Any) -> OptionDetails:
        more.setdefault("method", "direct")
        return self.world.service.acting_as(self.authority).public_options.create(self.id, **more)

    def another(self) -> OptionDetails:
        """An option unlike all before: for a wallet that nobody sends from."""
        return self.option(payer_address=f"0x{next(self._wallets):040x}")

    def select(self, option: OptionDetails, **more: Any) -> OptionDetails:
        public_options = self.world.service.acting_as(self.authority).public_options
        return public_options.select(self.id, option.option.id, **more)

    def refresh(self, option: OptionDetails, **more: Any) -> OptionDetails:
        public_options = self.world.service.acting_as(self.authority).public_options
        return public_options.refresh(self.id, option.option.id, **more)

    def submit(
        self, option: OptionDetails, hash: str = INVENTED, chain_id: int = BASE, **more: Any
    ) -> OptionDetails:
        return self.world.service.acting_as(self.authority).public_options.submit_transaction(
            self.id,
            option.option.id,
            chain_id=chain_id,
            transaction_hash=hash,
            **more,
        )

    def pay(self, amount: str = "25.00", source: str = WALLET) -> str:
        """A transfer to the escrow, not final; its hash."""
        return self.world.pay(self.payment, amount, source)

    # Looking.

    def read(self, option: OptionDetails) -> OptionDetails:
        return self.world.service.acting_as(self.authority).public_options.read(
            self.id, option.option.id
        )

    def now(self, option: OptionDetails) -> PaymentOption:
        return self.world.get(PaymentOption, option.option.id)

    def status(self, option: OptionDetails) -> tuple[str, str | None, int]:
        found = self.now(option)
        return found.status, found.selection_status, found.paid_atomic

    def paid(self) -> Payment:
        return self.world.paid(self.id)

    def details(self) -> PaymentDetails:
        return self.world.service.acting_as(self.authority).public_payments.read(self.id)


def coming(name: str) -> str:
    """The hash that the simulated chain will give a transfer of that name."""
    return "0x" + hashlib.sha256(f"{BASE}/{name}".encode()).hexdigest()


def authority_of(world: World, secret: str) -> Authority:
    """The authority of a holder of a secret, freshly authenticated."""
    environment, claims = world.service.checkout.authenticate(secret, mode="sandbox")
    return Authority(
        requirement=PAYER,
        environment=environment,
        payment_id=claims.subject,
        api_version=claims.api_version,
    )


def claims_of(world: World, payment_id: str, **changes: Any) -> Claims:
    """What the secret of a Payment says."""
    facts = {
        "environment_id": world.environment_id,
        "subject": payment_id,
        "api_version": world.environment.api_version,
        "expires_at_ms": 0,
    }
    return Claims(**{**facts, **changes})
