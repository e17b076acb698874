"""Payments that strangers create by an app's id: the settings bound them, nothing else counts."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from payments_core.accounts.operations import NewAccount
from payments_core.credentials.tokens import Claims
from payments_core.engine.events import Event
from payments_core.errors import (
    AmountOutOfRange,
    DestinationNotAllowed,
    EntitlementRequired,
    NotFound,
    OriginNotAllowed,
    PaymentsError,
    UnsupportedAsset,
    UnsupportedChain,
    ValidationFailed,
)
from payments_core.payment_settings.record import AllowedWallet, PaymentTerms
from payments_core.payments.checkout.public import PUBLIC_CREATION, NewPublicPayment
from payments_core.payments.destinations import ToWallet
from payments_core.payments.details import PaymentDetails
from payments_core.payments.record import Payment
from payments_core.tenants.authorization import Authority
from payments_core.tenants.record import PRODUCTS, Environment
from tests.service.faults import FaultyStorage, commit_failed, commit_lost
from tests.service.payments.test_concurrency import at_once, kinds
from tests.service.world import BASE, OTHER_WALLET, STRANGER, WALLET, World, answer_of, atomic, once

ORIGIN = "https://shop.example"
OTHER_ORIGIN = "https://shop.example:8443"
POLYGON = 137
OPEN = PaymentTerms(
    enabled=True,
    allowed_origins=(ORIGIN, OTHER_ORIGIN),
    allowed_destinations=(
        AllowedWallet(chain_id=BASE, address=WALLET),
        AllowedWallet(chain_id=1, address=OTHER_WALLET),
    ),
    min_amount="1.00",
    max_amount="500.00",
)


def set_terms(world: World, **changes: Any) -> None:
    world.resources.payment_settings.replace(attrs.evolve(OPEN, **changes))


def visitor(world: World, origin: str | None = ORIGIN, *, app_id: str = "") -> Authority:
    """Somebody with a page open that names the app."""
    shop = world.service.checkout.read_shop(app_id or world.app.id, mode="sandbox")
    return Authority(
        requirement=PUBLIC_CREATION,
        environment=shop.environment,
        origin=origin,
        api_version=shop.environment.api_version,
    )


def asked(amount: str = "25.00", address: str = WALLET, **more: Any) -> NewPublicPayment:
    return NewPublicPayment(amount=amount, destination=ToWallet(address=address), **more)


def create(
    world: World, new: NewPublicPayment | None = None, who: Authority | None = None, **more: Any
) -> PaymentDetails:
    return world.service.acting_as(who or visitor(world)).public_payments.create(
        new or asked(), **more
    )


def refused(error: type[PaymentsError], world: World, *given: Any) -> PaymentsError:
    """The refusal of a creation that leaves nothing behind."""
    before = stored(world)
    with pytest.raises(error) as caught:
        create(world, *given)
    assert stored(world) == before
    return caught.value


def stored(world: World) -> tuple[int, int]:
    """How many Payments and events there are."""

    def look(snapshot: Any) -> tuple[int, int]:
        payments = snapshot.find(Payment, "by_created", limit=100).records
        return len(payments), len(snapshot.find(Event, "by_created", limit=100).records)

    return world.storage.read(world.environment_id, look)


@pytest.fixture
def shop(world: World) -> World:
    """An app whose page may create Payments, on every storage."""
    set_terms(world)
    return world


@pytest.fixture
def memory_shop(memory_world: World) -> World:
    """The same on memory alone."""
    set_terms(memory_world)
    return memory_world


def test_a_payment_is_created_and_paid_to_the_wallet(shop: World) -> None:
    set_terms(shop, fee_bps=100, tolerance_bps=200, expires_in_s=900, allowed_methods=("direct",))
    created = create(shop, asked(reference="order-1", success_url=f"{ORIGIN}/thanks"))
    payment = created.payment
    assert (payment.intent, payment.status) == ("receive", "awaiting_payment")
    assert (payment.account_id, payment.external_user_id) == (None, None)
    assert (payment.destination.type, payment.destination.address) == ("wallet", WALLET)
    assert payment.destination.account_id is None
    assert (payment.fee_bps, payment.tolerance_bps) == (100, 200)
    assert payment.expires_at_ms - payment.created_at_ms == 900_000
    assert payment.allowed_methods == ("direct",)
    assert (payment.reference, payment.success_url) == ("order-1", f"{ORIGIN}/thanks")
    assert (payment.metadata, payment.description) == (None, None)
    secret = created.client_secret
    assert secret is not None
    claims = shop.service.parts.ports.tokens.read_payment_secret(secret)
    assert claims == Claims(shop.environment_id, payment.id, payment.api_version, 0)
    shop.pay(created, "25.00", source=STRANGER)
    shop.finish()
    done = shop.paid(payment.id)
    assert (done.status, done.settled_atomic) == ("succeeded", atomic("24.75"))
    assert shop.on_chain(WALLET) == atomic("24.75")
    for event in shop.events(payment.id):
        assert (event.account_id, event.external_user_id) == (None, None)
        assert event.payload["accountId"] is None
    assert shop.event_names(payment.id)["payment.succeeded"] == 1


def test_it_stays_what_it_is_when_the_settings_change(shop: World) -> None:
    created = create(shop)
    set_terms(shop, enabled=False, allowed_origins=(), allowed_destinations=(), max_amount="2.00")
    shop.service.tenants.set_products(shop.environment_id, ("accounts", "payments"))
    shop.pay(created, "25.00", source=STRANGER)
    shop.finish()
    assert shop.paid(created.payment.id).status == "succeeded"


def test_the_partner_lists_and_cancels_it_like_any_other(shop: World) -> None:
    created = create(shop)
    [listed] = shop.resources.payments.list().records
    assert listed.payment.id == created.payment.id
    assert shop.resources.payments.list(account_id=shop.merchant.id).records == ()
    shop.resources.payments.cancel(created.payment.id)
    assert shop.paid(created.payment.id).status == "cancelled"


class TestTheApp:
    def test_stands_for_its_environment_of_this_mode(self, shop: World) -> None:
        found = shop.service.checkout.read_shop(shop.app.id, mode="sandbox")
        assert found.environment.id == shop.environment_id
        assert found.terms == attrs.evolve(OPEN)
        live = shop.service.checkout.read_shop(shop.app.id, mode="production")
        assert live.environment.id == shop.app.environments["production"]
        assert not live.terms.enabled

    def test_that_there_is_not_is_not_found(self, shop: World) -> None:
        tenants = shop.service.tenants
        live = tenants.create_app("Live", "live", modes=("production",))
        environment = tenants.get_environment(live.environments["production"])
        for id in (
            "app_" + "A" * 24,
            live.id,
            shop.environment_id,
            environment.id,
            "",
            "directory",
        ):
            with pytest.raises(NotFound) as caught:
                shop.service.checkout.read_shop(id, mode="sandbox")
            assert (type(caught.value), caught.value.resource) == (NotFound, "app")

    @pytest.mark.parametrize("product", ["payments", "public_checkout"])
    def test_needs_both_products_when_it_is_used(self, shop: World, product: str) -> None:
        who = visitor(shop)  # let in a moment before
        left = [name for name in PRODUCTS if name != product]
        shop.service.tenants.set_products(shop.environment_id, left)
        error = refused(EntitlementRequired, shop, asked(), who)
        assert error.details == {"product": product}

    def test_that_is_not_open_says_what_it_would_without_the_product(self, shop: World) -> None:
        who = visitor(shop)
        set_terms(shop, enabled=False)
        assert refused(EntitlementRequired, shop, asked(), who).details == {
            "product": "public_checkout"
        }

    def test_that_never_set_anything_is_not_open(self, world: World) -> None:
        refused(EntitlementRequired, world)


BAD_ORIGINS = (
    None, "", "null", "*", "http://shop.example", "https://shop.example/", "https://shop.example:443",
    "https://Shop.example", "HTTPS://shop.example", "https://shop.example:8444",
    "https://www.shop.example", "https://shop.example.evil.example", "https://sh\u043ep.example",
    "https://shop.example, https://shop.example", " https://shop.example", "https://shop.example\n",
    "https://shop.exampl", "https://evil.example",
)  # fmt: skip


class TestTheOrigin:
    @pytest.mark.parametrize("origin", BAD_ORIGINS)
    def test_that_is_not_allowed_to_the_letter_is_refused(
        self, memory_shop: World, origin: str | None
    ) -> None:
        refused(OriginNotAllowed, memory_shop, asked(), visitor(memory_shop, origin))

    def test_that_was_allowed_a_moment_ago_is_refused(self, shop: World) -> None:
        who = visitor(shop)
        set_terms(shop, allowed_origins=(OTHER_ORIGIN,))
        refused(OriginNotAllowed, shop, asked(), who)

    def test_of_another_app_is_refused(self, shop: World) -> None:
        tenants = shop.service.tenants
        other = tenants.create_app("Other", "other")
        theirs = "https://other.example"
        shop.service.acting_as(
            tenants.system_authority(other.environments["sandbox"])
        ).payment_settings.replace(
            attrs.evolve(OPEN, allowed_origins=(theirs,)),
        )
        assert visitor(shop, theirs, app_id=other.id).environment.app_id == other.id
        refused(OriginNotAllowed, shop, asked(), visitor(shop, theirs))


class TestTheDestination:
    def test_may_be_written_in_any_form_of_the_address(self, shop: World) -> None:
        assert create(shop, asked(address=WALLET.lower())).payment.destination.address == WALLET

    def test_must_be_one_of_the_allowed(self, shop: World) -> None:
        refused(DestinationNotAllowed, shop, asked(address=STRANGER))
        refused(DestinationNotAllowed, shop, asked(address=OTHER_WALLET))  # of another chain
        assert create(shop, asked(address=OTHER_WALLET, chain_id=1)).payment.chain_id == 1
        refused(DestinationNotAllowed, shop, asked(address=WALLET, chain_id=1))

    def test_that_another_app_allows_is_not_allowed_here(self, shop: World) -> None:
        tenants = shop.service.tenants
        other = tenants.create_app("Other", "other")
        wallet = AllowedWallet(chain_id=BASE, address=STRANGER)
        shop.service.acting_as(
            tenants.system_authority(other.environments["sandbox"])
        ).payment_settings.replace(
            attrs.evolve(OPEN, allowed_destinations=(wallet,)),
        )
        assert create(shop, asked(address=STRANGER), visitor(shop, app_id=other.id))
        refused(DestinationNotAllowed, shop, asked(address=STRANGER))

    def test_of_our_own_is_refused_as_any_stranger_is(self, shop: World) -> None:
        escrow = str(create(shop).payment.escrow_address)
        reason = "it is not among the allowed destinations"
        assert refused(DestinationNotAllowed, shop, asked(address=escrow)).details == {
            "reason": reason
        }
        set_terms(shop, allowed_destinations=(AllowedWallet(chain_id=BASE, address=escrow),))
        reported = refused(DestinationNotAllowed, shop, asked(address=escrow))
        assert reported.details["reason"] != reason

    def test_of_an_account_is_an_address_like_any_other(self, shop: World) -> None:
        vault = shop.vault_address(shop.merchant)
        set_terms(shop, allowed_destinations=(AllowedWallet(chain_id=BASE, address=vault),))
        payment = create(shop, asked(address=vault)).payment
        assert (payment.account_id, payment.external_user_id) == (None, None)


class TestTheAmount:
    @pytest.mark.parametrize("amount", ["1.00", "1", "500.000000", "500"])
    def test_may_be_at_the_bounds(self, memory_shop: World, amount: str) -> None:
        assert create(memory_shop, asked(amount)).payment.amount_atomic

    @pytest.mark.parametrize("amount", ["0", "0.999999", "500.000001", "9" * 60])
    def test_beyond_the_bounds_is_refused(self, memory_shop: World, amount: str) -> None:
        refused(AmountOutOfRange, memory_shop, asked(amount))

    @pytest.mark.parametrize("amount", ["-25", "1e2", "25.0000001", "25,00", " 25", "\u0661"])
    def test_that_is_none_is_refused(self, memory_shop: World, amount: str) -> None:
        error = refused(ValidationFailed, memory_shop, asked(amount))
        assert [field["path"] for field in error.details["fields"]] == ["amount"]

    def test_has_no_bounds_where_none_are_set(self, memory_shop: World) -> None:
        set_terms(memory_shop, min_amount=None, max_amount=None)
        for amount in ("0.000001", "100000000"):
            assert create(memory_shop, asked(amount)).payment.amount_atomic == atomic(amount)


class TestTheAsset:
    def test_is_the_default_where_the_settings_leave_it(self, memory_shop: World) -> None:
        payment = create(memory_shop).payment
        assert (payment.chain_id, payment.asset_symbol) == (BASE, "USDC")
        set_terms(memory_shop, chains=(1, BASE), assets=("USDT", "USDC"))
        payment = create(memory_shop).payment
        assert (payment.chain_id, payment.asset_symbol) == (BASE, "USDC")

    def test_is_else_the_first_that_they_allow(self, memory_shop: World) -> None:
        set_terms(memory_shop, chains=(1, POLYGON), assets=("USDT",))
        payment = create(memory_shop, asked(address=OTHER_WALLET)).payment
        assert (payment.chain_id, payment.asset_symbol) == (1, "USDT")

    def test_that_they_exclude_is_not_supported(self, memory_shop: World) -> None:
        set_terms(memory_shop, chains=(1,), assets=("USDC",))
        error = refused(UnsupportedChain, memory_shop, asked(chain_id=BASE))
        assert error.details["chainId"] == BASE
        assert error.message == f"Chain {BASE} is not allowed by the payment settings."
        refused(UnsupportedAsset, memory_shop, asked(chain_id=1, asset_symbol="USDT"))
        set_terms(memory_shop)
        refused(UnsupportedChain, memory_shop, asked(chain_id=5))
        refused(UnsupportedAsset, memory_shop, asked(asset_symbol="USDT"))


class TestTheUrls:
    @pytest.mark.parametrize(
        "url", [ORIGIN, f"{ORIGIN}/a?b=c#d", f"{OTHER_ORIGIN}/x", f"{ORIGIN}?a", f"{ORIGIN}#a"]
    )
    def test_are_under_any_allowed_origin(self, memory_shop: World, url: str) -> None:
        payment = create(memory_shop, asked(success_url=url, cancel_url=url)).payment
        assert (payment.success_url, payment.cancel_url) == (url, url)

    @pytest.mark.parametrize(
        "url",
        [
            "https://evil.example/", f"{ORIGIN}.evil.example/", f"{ORIGIN}@evil.example/",
            f"{ORIGIN}:443@evil.example/", f"{ORIGIN}:443/", "https://Shop.example/",
            "http://shop.example/", f"{ORIGIN}:8444/", f"{ORIGIN}\\@evil.example",
            "//shop.example/",
            f"{ORIGIN}%2eevil.example/", "javascript:alert(1)//https://shop.example/",
            f"https://evil.example/{ORIGIN}", f"https://evil.example?{ORIGIN}/",
        ],
    )  # fmt: skip
    def test_elsewhere_are_refused(self, memory_shop: World, url: str) -> None:
        error = refused(ValidationFailed, memory_shop, asked(success_url=url, cancel_url=url))
        assert [field["path"] for field in error.details["fields"]] == ["success_url", "cancel_url"]

    def test_are_else_those_of_the_settings(self, memory_shop: World) -> None:
        set_terms(memory_shop, success_url="https://elsewhere.example/ok")
        assert create(memory_shop).payment.success_url == "https://elsewhere.example/ok"


def test_all_that_is_wrong_in_itself_is_reported_at_once(memory_shop: World) -> None:
    wrong = asked("1.0000001", "0x12", success_url="http://x/", cancel_url="https://evil.example/")
    error = refused(ValidationFailed, memory_shop, wrong)
    assert [field["path"] for field in error.details["fields"]] == [
        "amount", "destination.address", "success_url", "cancel_url",
    ]  # fmt: skip
    error = refused(ValidationFailed, memory_shop, asked("9999", STRANGER, success_url="x"))
    assert [field["path"] for field in error.details["fields"]] == ["success_url"]
    error = refused(ValidationFailed, memory_shop, asked(chain_id=5, success_url="x"))
    assert [field["path"] for field in error.details["fields"]] == ["success_url"]


def test_a_key_makes_one_payment_however_many_send_it(shop: World) -> None:
    who = visitor(shop)
    outcomes = at_once([lambda: create(shop, asked(), who, idempotency_key=once("k"))] * 8)
    assert kinds(outcomes) == {"PaymentDetails": 1, "AlreadyResponded": 7}
    assert stored(shop)[0] == 1


def test_who_retries_is_the_app_with_the_origin() -> None:
    facts: dict[str, Any] = {
        "partner_id": "acme", "app_name": "Acme", "mode": "sandbox", "api_version": "2026-09-09",
        "products": (), "created_at_ms": 0, "updated_at_ms": 0,
    }  # fmt: skip
    principals = {
        Authority(
            requirement=PUBLIC_CREATION,
            environment=Environment(id="env", app_id=app_id, **facts),
            origin=origin,
            api_version="2026-09-09",
        ).principal
        for app_id in ("app_1", "app_2")
        for origin in (ORIGIN, OTHER_ORIGIN)
    }
    assert len(principals) == 4
    assert not {name for name in principals if name.startswith(("app:", "account:"))}


@pytest.mark.parametrize("fault", [commit_lost, commit_failed])
def test_a_commit_whose_answer_is_lost_makes_one_payment(memory_shop: World, fault: Any) -> None:
    who = visitor(memory_shop)
    faulty = FaultyStorage(memory_shop.storage, 1, fault, ("transact",))
    made = memory_shop.restarted(faulty).acting_as(who).public_payments.create(asked())
    assert faulty.had_its_fault
    assert stored(memory_shop)[0] == 1
    assert memory_shop.paid(made.payment.id).status == "awaiting_payment"


def test_a_replay_gives_the_same_answer(shop: World) -> None:
    who = visitor(shop)
    create(shop, asked(), who, idempotency_key=once("k"))
    assert answer_of(lambda: create(shop, asked(), who, idempotency_key=once("k"))) is not None
    assert stored(shop)[0] == 1


def test_settings_that_close_the_shop_and_a_creation_take_turns(shop: World) -> None:
    """The second caller sees what the first has done."""
    who = visitor(shop)
    outcomes = at_once(
        [
            *[lambda: create(shop, asked(), who)] * 6,
            lambda: set_terms(shop, enabled=False),
        ]
    )
    made = kinds(outcomes)["PaymentDetails"]
    assert made + sum(isinstance(it, EntitlementRequired) for it in outcomes) == 6
    assert stored(shop)[0] == made
    refused(EntitlementRequired, shop, asked(), who)


def test_no_account_is_made_or_asked_for(shop: World) -> None:
    """An account whose external user id is that of nobody stays out of it."""
    new = NewAccount(external_user_id="null", subject_type="individual")
    shop.resources.accounts.create(new)
    created = create(shop)
    assert created.payment.account_id is None
    assert {event.account_id for event in shop.events(created.payment.id)} == {None}
