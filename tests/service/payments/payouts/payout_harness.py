"""A payer whose bank account can be paid, with short calls for its payouts."""

from __future__ import annotations

from typing import Any

import attrs

from payments_core.accounts.bank_accounts.fields import NewBankAccount, NewPostalAddress
from payments_core.accounts.bank_accounts.record import BankAccount
from payments_core.accounts.capabilities.operations import find_activation_id
from payments_core.accounts.capabilities.record import CapabilityActivation, CapabilityStatus
from payments_core.accounts.vaults.record import AllowedDestination, PolicyTerms
from payments_core.banks.simulated.bank import SimulatedBank
from payments_core.chains.port import AddressSpec
from payments_core.payments.destinations import ToBankAccount
from payments_core.payments.details import PaymentDetails
from payments_core.payments.payouts.jobs import PayoutJobs
from payments_core.payments.record import OFFRAMP_OWNER, Payment, Payout
from payments_core.payments.refunds.record import Refund
from payments_core.payments.sends import NewSend
from payments_core.storage.jobs import Job
from payments_core.storage.port import Snapshot, Transaction
from tests.service.world import World, write

NEW_ACCOUNT = NewBankAccount(
    currency="usd",
    country="US",
    account_holder_name="Ada Lovelace",
    account_holder_type="individual",
    account_number="73910264851",
    routing_number="021000021",
    account_type="checking",
    address=NewPostalAddress(
        line1="1 Main St", city="New York", state="NY", postal_code="10001", country="US"
    ),
)
DAY_S = 86_400


class PayoutHarness:
    """The payer's payouts from a vault with 100.00 USDC."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.bank = SimulatedBank(world.service.parts.ports)
        """Another handle to the bank, which no ordered failure touches."""
        service, payer = world.service, world.payer.id
        service.acting_as(world.server).sandbox.decide_kyc(payer, "approved")
        service.acting_as(world.server).bank_accounts.activate(payer, "us_bank_payout")
        world.run()
        world.advance_until(self._may_pay_out)
        self.account = self.add_account()

    def add_account(self, **changes: Any) -> BankAccount:
        """A bank account that the bank has decided on."""
        new = attrs.evolve(NEW_ACCOUNT, **changes)
        made = self.world.resources.bank_accounts.add(self.world.payer.id, new)
        self.world.run()
        self.world.advance_until(lambda: self.world.get(BankAccount, made.id).status != "pending")
        return self.world.get(BankAccount, made.id)

    def _may_pay_out(self) -> bool:
        found = self.world.resources.accounts.read_capabilities(self.world.payer.id)
        return ("us_bank_payout", "active") in {(it.name, it.status) for it in found}

    def send(self, amount: str = "25.00", **more: Any) -> PaymentDetails:
        """A Payment to the bank account, not handed to the chain yet."""
        key = more.pop("idempotency_key", None)
        account = more.pop("account", self.account)
        to = {"bank_account_id": account.id, "rail": "ach", **more.pop("to", {})}
        given = {"account_id": self.world.payer.id, "destination": ToBankAccount(**to), **more}
        new = NewSend(amount=amount, **given)
        return self.world.resources.payments.send(new, idempotency_key=key)

    def submitted(self, amount: str = "25.00", **more: Any) -> PaymentDetails:
        """A Payment whose payout the bank has."""
        created = self.send(amount, **more)
        self.world.run()
        self.world.advance(30)
        assert self.payout(created).status == "submitted"
        return created

    def settled(self, amount: str = "25.00", **more: Any) -> PaymentDetails:
        """A Payment whose recipient has the dollars."""
        created = self.submitted(amount, **more)
        self.bank.settle_payout(self.payout(created).key)
        self.look(created)
        assert self.payment(created).status == "succeeded"
        return created

    def suspend(self, status: CapabilityStatus = "suspended") -> None:
        """The capability comes to another status."""
        world, payer = self.world, self.world.payer.id

        def find(snapshot: Snapshot) -> str:
            found = find_activation_id(snapshot, payer, "us_bank_payout")
            assert found is not None
            return found

        id = world.storage.read(world.environment_id, find)

        def work(tx: Transaction) -> None:
            activation = tx.get(CapabilityActivation, id, for_update=True)
            assert activation is not None
            tx.replace(attrs.evolve(activation, status=status))

        write(world.storage, world.environment_id, work)

    def allow_only(self, account_id: str) -> None:
        """The vault's policy lets it pay one account alone."""
        world = self.world
        allowed = AllowedDestination(type="account", account_id=account_id)
        world.resources.vaults.replace_policy(
            world.payer.id,
            world.vault_of().id,
            PolicyTerms(allowed_destinations=(allowed,)),
        )

    def fail(self, call: str, times: int = 1) -> None:
        """Let the next calls to the bank fail."""
        self.world.resources.sandbox.fail_dependency("bank", call, times)

    def pass_days(self, days: int, times: int = 1) -> None:
        """Days in which no worker runs, and then the work that is due; so many times."""
        for _ in range(times):
            self.world.system.advance(days * DAY_S)
            self.world.run()

    def look(self, created: PaymentDetails, key: str | None = None) -> bool:
        """A notice of the bank came."""
        service = self.world.service
        jobs = PayoutJobs(service.parts.ports, {"sandbox": SimulatedBank(service.parts.ports)})
        return jobs.look_at_payout("sandbox", key or self.payout(created).key)

    def is_followed(self, created: PaymentDetails) -> bool:
        """Whether a job will look at the payout again."""
        lane = ("sandbox.timers", f"payout:{created.payment.id}")
        jobs = self.world.storage.read(
            self.world.environment_id,
            lambda snapshot: snapshot.find(Job, "by_queue_lane", lane, limit=9),
        )
        return bool(jobs.records)

    def payment(self, created: PaymentDetails) -> Payment:
        return self.world.paid(created.payment.id)

    def payout(self, created: PaymentDetails) -> Payout:
        payout = self.payment(created).payout
        assert payout is not None
        return payout

    def refunds(self, created: PaymentDetails) -> tuple[Refund, ...]:
        return self.world.resources.payments.read(created.payment.id).refunds

    def books(self, created: PaymentDetails) -> dict[str, int]:
        """The accounts that hold something, in cents."""
        books = attrs.asdict(self.payment(created).books)
        return {name: amount // 10_000 for name, amount in books.items() if amount}

    def causes(self, created: PaymentDetails) -> list[str]:
        """Why the money moved, in the order of the entries."""
        return [cause for cause, _ in self.world.journal(created.payment.id)]

    @property
    def offramp(self) -> int:
        """What lies at the off-ramp address, in cents."""
        spec = AddressSpec(self.world.environment_id, "escrow", OFFRAMP_OWNER)
        return self.world.on_chain(self.world.chain.derive(spec)) // 10_000
