"""Capabilities and bank accounts with the simulated bank, and with banks that go astray."""

from __future__ import annotations

import re
from typing import Any

import attrs
import pytest

from payments_core.accounts.bank_accounts.fields import (
    NewBankAccount,
    NewPostalAddress,
    field_requirements,
)
from payments_core.accounts.bank_accounts.operations import open_details
from payments_core.accounts.bank_accounts.record import BankAccount
from payments_core.accounts.capabilities.record import CapabilityActivation
from payments_core.accounts.capabilities.requirements import Capability
from payments_core.banks.port import BankRefused, CapabilityRequest
from payments_core.banks.reviews import BankReview
from payments_core.banks.simulated.bank import SimulatedBank
from payments_core.banks.simulated.records import SimulatedReview
from payments_core.credentials.keyring import KeyRing
from payments_core.errors import (
    AccountSuspended,
    CapabilityNotActive,
    EntitlementRequired,
    NotFound,
    ValidationFailed,
)
from payments_core.maintenance.reseal import SEALED_FIELDS
from payments_core.service import PaymentsService
from payments_core.storage.memory.adapter import MemoryStorage
from payments_core.storage.port import SIMULATED
from tests.bank_account_fields import WRONG_FIELDS
from tests.service.world import RING, NoTransport, World

NUMBER = "73910264851"
NEW = NewBankAccount(
    currency="usd",
    country="US",
    account_holder_name="Ada Lovelace",
    account_holder_type="individual",
    account_number=NUMBER,
    routing_number="021000021",
    account_type="checking",
    address=NewPostalAddress(
        line1="1 Main St", city="New York", state="NY", postal_code="10001", country="US"
    ),
)


def payout(world: World) -> Capability:
    found = world.resources.accounts.read_capabilities(world.payer.id)
    return next(item for item in found if item.name == "us_bank_payout")


def activate(world: World, service: PaymentsService | None = None) -> CapabilityActivation:
    bank_accounts = (service or world.service).acting_as(world.server).bank_accounts
    return bank_accounts.activate(world.payer.id, "us_bank_payout").activation


def approve(world: World) -> None:
    world.resources.sandbox.decide_kyc(world.payer.id, "approved")


def add(world: World, **changes: Any) -> BankAccount:
    return world.resources.bank_accounts.add(world.payer.id, attrs.evolve(NEW, **changes))


@pytest.fixture
def ready(world: World) -> World:
    """A payer whose capability is active."""
    approve(world)
    activate(world)
    world.run()
    world.advance_until(lambda: payout(world).status == "active")
    return world


def reported_statuses(world: World, name: str) -> list[str]:
    """The statuses that events of this name report, in their order."""
    return [event.payload["status"] for event in world.events() if event.name == name]


class TestCapabilities:
    def test_it_is_active_a_minute_after_the_account_is_verified(self, world: World) -> None:
        assert payout(world) == Capability(
            name="us_bank_payout",
            status="inactive",
            missing=("kyc", "activation", "bank_review"),
        )
        assert activate(world).status == "action_required"
        world.advance(3_600)
        assert payout(world) == Capability(
            name="us_bank_payout",
            status="action_required",
            missing=("kyc", "bank_review"),
            complete=("activation",),
        )
        approve(world)
        world.run()
        assert payout(world) == Capability(
            name="us_bank_payout",
            status="pending",
            pending=("bank_review",),
            complete=("kyc", "activation"),
        )
        world.advance(59)
        assert payout(world).status == "pending"
        world.advance_until(lambda: payout(world).status == "active", 1, most=120)
        assert payout(world) == Capability(
            name="us_bank_payout",
            status="active",
            complete=("kyc", "activation", "bank_review"),
        )
        changes = reported_statuses(world, "account.capability_updated")
        assert changes == ["action_required", "pending", "active"]

    def test_a_verified_account_waits_for_the_bank_alone(self, world: World) -> None:
        approve(world)
        assert activate(world).status == "pending"
        world.run()
        world.advance_until(lambda: payout(world).status == "active")
        assert reported_statuses(world, "account.capability_updated") == ["pending", "active"]

    def test_asking_again_changes_nothing(self, ready: World) -> None:
        before = reported_statuses(ready, "account.capability_updated")
        assert activate(ready).status == "active"
        ready.finish()
        assert reported_statuses(ready, "account.capability_updated") == before

    def test_an_account_that_is_verified_without_asking_gets_nothing(self, world: World) -> None:
        approve(world)
        world.finish()
        assert payout(world).status == "inactive"
        assert reported_statuses(world, "account.capability_updated") == []

    @pytest.mark.parametrize(
        "call", ["request_capability", "find_capability", "lost_answer", "any"]
    )
    def test_a_bank_that_is_down_is_asked_again_under_the_same_key(
        self, world: World, call: str
    ) -> None:
        world.resources.sandbox.fail_dependency("bank", call, 1)
        approve(world)
        activate(world)
        world.run()
        assert payout(world).status == "pending"
        world.advance(120)
        assert payout(world).status == "active"
        assert world.resources.sandbox.read().failures == ()

    def test_it_is_suspended_with_its_account(self, ready: World) -> None:
        accounts, payer = ready.resources.accounts, ready.payer.id
        before = reported_statuses(ready, "account.capability_updated")
        ready.advance(1)
        changed = accounts.change(payer, status="suspended")
        assert [it.status for it in changed.activations] == ["suspended"]
        assert payout(ready) == Capability(
            name="us_bank_payout",
            status="suspended",
            missing=("account_active",),
            complete=("kyc", "activation", "bank_review"),
        )
        with pytest.raises(AccountSuspended):
            add(ready)
        ready.advance(86_400)
        accounts.change(payer, email="ada@shop.example")
        assert payout(ready).status == "suspended"
        ready.advance(1)
        accounts.change(payer, status="active")
        assert payout(ready).status == "active"
        ready.advance(1)
        accounts.change(payer, status="closed")
        assert payout(ready).status == "suspended"
        after = reported_statuses(ready, "account.capability_updated")
        assert after == [*before, "suspended", "active", "suspended"]

    def test_one_that_the_bank_approves_for_a_suspended_account_is_suspended(
        self, world: World
    ) -> None:
        approve(world)
        activate(world)
        world.run()
        world.resources.accounts.change(world.payer.id, status="suspended")
        assert payout(world).status == "pending"
        world.advance(60)
        assert payout(world).status == "suspended"
        world.advance(1)
        world.resources.accounts.change(world.payer.id, status="active")
        assert payout(world).status == "active"
        changes = reported_statuses(world, "account.capability_updated")
        assert changes == ["pending", "suspended", "active"]

    def test_it_needs_its_product_and_an_active_account(self, world: World) -> None:
        tenants, accounts = world.service.tenants, world.resources.accounts
        products = world.environment.products
        tenants.set_products(
            world.environment_id, [name for name in products if name != "bank_payouts"]
        )
        with pytest.raises(EntitlementRequired):
            activate(world)
        tenants.set_products(world.environment_id, products)
        accounts.change(world.payer.id, status="suspended")
        with pytest.raises(AccountSuspended):
            activate(world)
        with pytest.raises(NotFound):
            world.resources.bank_accounts.activate("acct_none", "us_bank_payout")

    def test_what_no_bank_offers_cannot_be_activated(self, world: World) -> None:
        restarted = world.restarted(chains=world.service.chains)
        bank_accounts = restarted.acting_as(world.server).bank_accounts
        with pytest.raises(CapabilityNotActive):  # the simulated bank has no chain to deliver on
            bank_accounts.activate(world.payer.id, "us_bank_funding")
        with pytest.raises(ValidationFailed):
            bank_accounts.activate(world.payer.id, "bank")  # type: ignore[arg-type]
        with pytest.raises(NotFound):
            restarted.acting_as(world.server).accounts.read_capabilities("acct_none")


class Rejecting(SimulatedBank):
    """It rejects the first request for a capability, and refuses to look at the second."""

    asked: list[str]

    def request_capability(self, request: CapabilityRequest) -> BankReview:
        self.asked.append(request.key)
        if len(self.asked) == 2:
            raise BankRefused("country_not_served", "the bank does not serve this country")
        first = len(self.asked) == 1
        return BankReview(
            key=request.key,
            reference="r",
            status="rejected" if first else "active",
            reason="the documents do not match" if first else None,
        )


def test_a_rejected_capability_can_be_asked_for_again(memory_world: World) -> None:
    world = memory_world
    bank = Rejecting(world.service.parts.ports)
    bank.asked = []
    world.service = PaymentsService(
        world.storage,
        KeyRing.parse(RING),
        clock=world.clock,
        transport=NoTransport(),
        bank=bank,
    )
    approve(world)
    reasons = []
    for _ in range(3):
        id = activate(world).id
        world.run()
        reasons.append(world.get(CapabilityActivation, id).reason)
    assert reasons == [
        "the documents do not match",
        "the bank does not serve this country",
        None,
    ]
    assert payout(world).status == "active"
    assert len(set(bank.asked)) == 3, "a new request needs a new key"
    changes = reported_statuses(world, "account.capability_updated")
    assert sorted(changes) == ["active", *["pending"] * 3, *["rejected"] * 2]


class TestBankAccounts:
    def test_it_is_active_a_minute_after_it_is_added(self, ready: World) -> None:
        made = add(ready)
        assert (made.status, made.last4) == ("pending", "4851")
        ready.run()
        ready.advance(59)
        assert ready.get(BankAccount, made.id).status == "pending"
        ready.advance(1)
        assert ready.get(BankAccount, made.id).status == "active"
        assert reported_statuses(ready, "bank_account.created") == ["pending"]
        assert reported_statuses(ready, "bank_account.updated") == ["active"]
        page = ready.resources.bank_accounts.list(ready.payer.id)
        assert [item.id for item in page.records] == [made.id]

    @pytest.mark.parametrize(
        ("number", "shown"),
        [
            ("1234", "****"),
            ("12345", "***5"),
            ("1234567", "*567"),
            ("12345678", "5678"),
            ("12345678901234567", "4567"),
        ],
    )
    def test_no_number_is_shown_whole(self, ready: World, number: str, shown: str) -> None:
        made = add(ready, account_number=number)
        assert made.last4 == shown
        assert len(number) - len(shown.strip("*")) >= 4

    def test_one_that_the_bank_rejects_says_why(self, ready: World) -> None:
        made = add(ready, account_number="99900099")
        ready.run()
        ready.advance(60)
        found = ready.get(BankAccount, made.id)
        assert (found.status, found.reason) == ("rejected", "The bank does not pay this account.")
        assert reported_statuses(ready, "bank_account.updated") == ["rejected"]

    @pytest.mark.parametrize("call", ["register_account", "find_account", "lost_answer", "any"])
    def test_a_bank_that_is_down_gets_the_account_once(self, ready: World, call: str) -> None:
        made = add(ready)
        ready.resources.sandbox.fail_dependency("bank", call, 1)
        ready.run()
        ready.advance(120)
        assert ready.get(BankAccount, made.id).status == "active"
        assert reported_statuses(ready, "bank_account.updated") == ["active"]

    def test_its_number_is_sealed_and_opens_for_the_bank(self, ready: World) -> None:
        made = add(ready)
        ready.run()
        ready.advance(60)
        row = ready.get(BankAccount, made.id)
        assert NUMBER not in repr(attrs.asdict(row))
        assert open_details(ready.service.parts.ports.key_ring, row).account_number == NUMBER
        for event in ready.events():
            assert NUMBER not in repr(event)
        review = ready.storage.read(
            SIMULATED, lambda snapshot: snapshot.get(SimulatedReview, f"account:{made.id}")
        )
        assert review is not None
        assert NUMBER not in repr(attrs.asdict(review))
        assert any(field.kind is BankAccount for field in SEALED_FIELDS)

    def test_it_needs_the_capability_first(self, world: World) -> None:
        with pytest.raises(CapabilityNotActive):
            add(world)
        approve(world)
        activate(world)
        with pytest.raises(CapabilityNotActive):
            add(world)
        with pytest.raises(NotFound):
            world.resources.bank_accounts.add("acct_none", NEW)
        world.resources.accounts.change(world.payer.id, status="closed")
        with pytest.raises(AccountSuspended):
            add(world)

    def test_another_accounts_capability_is_of_no_use(self, ready: World) -> None:
        with pytest.raises(CapabilityNotActive):
            ready.resources.bank_accounts.add(ready.merchant.id, NEW)

    def test_the_requirements_say_what_keeps_it(self, world: World) -> None:
        def seen() -> tuple[bool, tuple[str, ...]]:
            found = world.resources.bank_accounts.read_requirements(world.payer.id)
            assert bool(found.rails) == bool(found.vaults) == found.eligible
            assert {field.name for field in found.fields} >= {"routing_number", "address.state"}
            return found.eligible, found.reasons

        assert seen() == (False, ("capability_not_active",))
        products = world.environment.products
        fewer = [name for name in products if name != "bank_payouts"]
        world.service.tenants.set_products(world.environment_id, fewer)
        assert seen() == (False, ("entitlement_required", "capability_not_active"))
        world.service.tenants.set_products(world.environment_id, products)
        approve(world)
        activate(world)
        world.run()
        world.advance_until(lambda: seen() == (True, ()))
        world.resources.accounts.change(world.payer.id, status="suspended")
        assert seen() == (False, ("account_suspended",))
        with pytest.raises(NotFound):
            world.resources.bank_accounts.read_requirements("acct_none")


def snake(name: str) -> str:
    return re.sub("[A-Z]", lambda letter: f"_{letter[0].lower()}", name)


@pytest.mark.parametrize(
    ("path", "value", "says"),
    [row for row in WRONG_FIELDS if row[1] is not ... and row[0] != "iban"],
)
def test_the_library_names_each_wrong_field_as_python_does(
    path: str, value: Any, says: str
) -> None:
    world = World(MemoryStorage()).open()
    outer, _, inner = path.partition(".")
    if inner:
        changes = {"address": attrs.evolve(NEW.address, **{snake(inner): value})}
    else:
        changes = {snake(outer): value}
    with pytest.raises(ValidationFailed) as refused:
        add(world, **changes)
    [fault] = refused.value.fields
    assert fault.path == snake(path)
    assert says in fault.message


def test_every_field_is_wrong_in_turn() -> None:
    required = {field.name for field in field_requirements()}
    assert {snake(path) for path, _, _ in WRONG_FIELDS} == {*required, "address", "iban"}
