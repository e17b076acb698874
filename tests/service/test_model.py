"""Any order of public operations, on the weakest storage: the books balance after every one."""

from __future__ import annotations

from collections import Counter
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from payments_core.chains.books import SimulatedBalance
from payments_core.errors import PaymentsError
from payments_core.funding.lifecycle import LIVE
from payments_core.funding.record import FundingOperation
from payments_core.payments.record import Payment
from payments_core.storage.memory import MemoryStorage, Weakness
from payments_core.storage.port import SIMULATED
from payments_core.vaults.record import VaultBalance, balance_id
from tests.service.world import BASE, USDC, World

EVENT_OF = {
    "awaiting_payment": None,  # but for the first, which is the creation
    "processing": "payment.processing",
    "accepted": "payment.accepted",
    "executing": "payment.executing",
    "succeeded": "payment.succeeded",
    "cancelled": "payment.cancelled",
    "expired": "payment.expired",
}
PLACES = st.sampled_from([0, 0, 0, 1, 1, 2, 3])


class Books(RuleBasedStateMachine):
    """A merchant, two payers and their Payments."""

    @initialize(seed=st.integers(0, 2**32))
    def open(self, seed: int) -> None:
        self.world = World(MemoryStorage(Weakness(seed=seed))).open()
        self.payers = [self.world.payer, self.world.account("other")]
        self.clients = [self.world.client, self.world.client_of(self.payers[1])]
        self.vaults = [self.world.vault_of(payer).id for payer in self.payers]
        self.minted = 0
        self.payments: list[str] = []
        self.options: list[tuple[int, Any]] = []
        self.versions: dict[str, int] = {}
        self.fund(0, 100)

    # What callers may do; that it may be refused is part of it.

    @rule(amount=st.integers(1, 60), seconds=st.sampled_from([300, 600, 86_400]))
    def create(self, amount: int, seconds: int) -> None:
        made = self.world.payment(f"{amount}.00", expires_in_s=seconds)
        self.payments.append(made.payment.id)

    @rule(amount=st.integers(1, 60), payer=st.integers(0, 1))
    def check_out(self, amount: int, payer: int) -> None:
        self.create(amount, 600)
        self.add_option(payer, self.payments[-1])
        self.authorize(0)

    @rule(place=PLACES, payer=st.integers(0, 1))
    def option(self, place: int, payer: int) -> None:
        if self.payments:
            payment_id = self.payments[-1 - place % len(self.payments)]
            self.tried(lambda: self.add_option(payer, payment_id))

    @rule(place=PLACES)
    def refresh(self, place: int) -> None:
        if self.options:
            at = -1 - place % len(self.options)
            self.tried(lambda: self.put_refreshed(at))

    @rule(place=PLACES)
    def authorize(self, place: int) -> None:
        if self.options:
            payer, option = self.options[-1 - place % len(self.options)]
            self.tried(lambda: self.world.authorize(option, self.clients[payer]))

    @rule(place=PLACES)
    def cancel(self, place: int) -> None:
        if self.payments:
            payment_id = self.payments[-1 - place % len(self.payments)]
            payments, server = self.world.service.payments, self.world.server
            self.tried(lambda: payments.cancel(server, payment_id))

    @rule(payer=st.integers(0, 1), amount=st.integers(1, 100))
    def fund(self, payer: int, amount: int) -> None:
        self.world.fund(f"{amount}.00", self.payers[payer])
        self.minted += amount * 10**6

    # What time, the chain and the worker do.

    @rule()
    def run(self) -> None:
        self.world.run()

    @rule(seconds=st.sampled_from([1, 2, 5, 60, 310]))
    def advance(self, seconds: int) -> None:
        self.world.advance(seconds)

    @rule(seconds=st.sampled_from([1, 30, 400]))
    def pass_by(self, seconds: int) -> None:
        self.world.system.advance(seconds)  # and no worker runs

    @rule(blocks=st.integers(1, 5))
    def mine(self, blocks: int) -> None:
        self.world.chain.mine(blocks)

    # What is true after each of them.

    @invariant()
    def nothing_is_reserved_twice(self) -> None:
        operations = self.operations()
        for vault_id in self.vaults:
            live = sum(
                int(operation.amount)
                for operation in operations
                if operation.vault_id == vault_id and operation.status in LIVE
            )
            id = balance_id(vault_id, "USDC")
            balance = self.looked(lambda s, id=id: s.get(VaultBalance, id))
            assert live == (balance.reserved if balance else 0)
            assert live <= (balance.total if balance else 0)

    @invariant()
    def no_token_is_lost_or_made(self) -> None:
        payments = self.stored()
        vaults = sum(self.on_chain(self.world.vault_address(payer)) for payer in self.payers)
        escrows = sum(self.on_chain(payment.escrow_address) for payment in payments)
        merchant = self.on_chain(self.world.vault_address(self.world.merchant))
        assert vaults + escrows + merchant == self.minted
        released = sum(p.releasable for p in payments if p.status in ("executing", "succeeded"))
        about_to_be = sum(p.releasable for p in payments if p.status == "accepted")
        assert released <= merchant <= released + about_to_be

    @invariant()
    def a_success_has_one_release(self) -> None:
        for payment in self.stored():
            if payment.status == "succeeded":
                assert payment.received == payment.settled == payment.amount
                assert self.on_chain(payment.escrow_address) == 0
        slots = self.world.sent()
        sent = sum(operation.broadcast_at is not None for operation in self.operations())
        released = sum(p.status in ("executing", "succeeded") for p in self.stored())
        pending = sum(p.status in ("processing", "accepted") for p in self.stored())
        assert sent + released <= slots <= sent + released + pending

    @invariant()
    def versions_only_rise_and_every_change_is_told_once(self) -> None:
        for payment in self.stored():
            assert payment.status_version >= self.versions.get(payment.id, 1)
            self.versions[payment.id] = payment.status_version
            assert len(payment.timeline) == payment.status_version
            wanted = [EVENT_OF[entry.status] for entry in payment.timeline]
            wanted[0] = "payment.created"
            told = Counter(
                (event.payload["statusVersion"], event.name)
                for event in self.world.events(payment.id)
                if event.name.startswith("payment.")
            )
            assert told == Counter(
                (version, name) for version, name in enumerate(wanted, start=1) if name
            )
        for operation in self.operations():
            assert operation.status_version >= self.versions.get(operation.id, 1)
            self.versions[operation.id] = operation.status_version

    def teardown(self) -> None:
        if hasattr(self, "world"):
            self.world.system.advance(86_400)
            self.world.finish()
            self.world.advance(120)
            over = {"succeeded", "cancelled", "expired"}
            assert {payment.status for payment in self.stored()} <= over
            assert not [o for o in self.operations() if o.status in LIVE]

    # Short ways.

    def tried(self, call: Any) -> None:
        before = [(p.id, p.version) for p in self.stored()]
        try:
            call()
        except PaymentsError as error:
            refused = error.code
        else:
            return
        assert refused not in ("unavailable", "dependency_failed")
        assert [(p.id, p.version) for p in self.stored()] == before

    def add_option(self, payer: int, payment_id: str) -> None:
        made = self.world.service.options.create(self.clients[payer], payment_id)
        self.options.append((payer, made))

    def put_refreshed(self, at: int) -> None:
        payer, option = self.options[at]
        fresh = self.world.service.options.refresh(
            self.clients[payer], option.option.payment_id, option.option.id
        )
        self.options[at] = (payer, fresh)

    def looked(self, look: Any) -> Any:
        return self.world.storage.read(self.world.environment_id, look)

    def stored(self) -> list[Payment]:
        return [self.world.paid(payment_id) for payment_id in self.payments]

    def operations(self) -> list[FundingOperation]:
        ids = [option.operation.id for _, option in self.options]
        return [self.world.get(FundingOperation, id) for id in ids]

    def on_chain(self, address: str) -> int:
        id = f"{BASE}:{USDC.address}:{address}"
        row = self.world.storage.read(SIMULATED, lambda s: s.get(SimulatedBalance, id))
        return int(row.total) if row else 0


Books.TestCase.settings = settings(
    max_examples=60,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
TestBooks = Books.TestCase
