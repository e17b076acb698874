"""Checkout links and client secrets: what they open, and for how long."""

from __future__ import annotations

import base64
import re
import string
from collections.abc import Callable, Iterator

import pytest

from payments_core.credentials.keyring import KeyRing
from payments_core.credentials.tokens import Tokens
from payments_core.entropy import system_entropy
from payments_core.errors import EntitlementRequired, NotFound, PaymentExpired, Unauthorized
from payments_core.payments.checkout.checkout import PAYER
from payments_core.payments.links import CODE_SHAPE, Links
from payments_core.payments.record import PaymentLink
from payments_core.public_url import LOCAL_URL
from payments_core.service import PaymentsService
from payments_core.settings import Settings
from payments_core.storage.memory.adapter import MemoryStorage
from payments_core.tenants.authorization import authorize
from payments_core.tenants.record import PRODUCTS
from tests.service.payer import Payer, authority_of, claims_of
from tests.service.world import RING, NoTransport, World

SAFE = string.ascii_letters + string.digits + "-_"


def code_of(payer: Payer) -> str:
    url = payer.world.service.parts.links.build_url(payer.payment.payment)
    assert url is not None
    head, _, code = url.rpartition("/")
    assert head == "http://127.0.0.1:8080/pay"
    return code


def exchanged(world: World, code: str) -> tuple[str, str, int]:
    found = world.service.checkout.exchange_link(code, mode="sandbox")
    return found.payment_id, found.client_secret, found.expires_at_ms


class TestALink:
    def test_that_no_master_key_opens_is_missing_with_an_alarm(
        self, memory_world: World, caplog: pytest.LogCaptureFixture
    ) -> None:
        payment = Payer(memory_world).payment.payment
        other = Links(KeyRing.parse(KeyRing.generate()), system_entropy, "http://127.0.0.1:8080")
        assert other.build_url(payment) is None
        assert f"ALARM: no master key opens the checkout link of {payment.id}" in caplog.text

    def test_is_exchanged_as_often_as_asked_until_the_payment_expires(self, world: World) -> None:
        payer = Payer(world, expires_in_s=300)
        answer = (payer.id, payer.secret, payer.payment.payment.expires_at_ms)
        for _ in range(3):
            assert exchanged(world, code_of(payer)) == answer
        world.system.advance(299)
        assert exchanged(world, code_of(payer)) == answer
        world.system.advance(1)  # whatever a worker has done by then
        with pytest.raises(PaymentExpired):
            exchanged(world, code_of(payer))
        world.advance(10)
        assert payer.paid().status == "expired"
        with pytest.raises(PaymentExpired):
            exchanged(world, code_of(payer))

    def test_of_a_payment_that_ended_earlier_works_until_the_same_moment(
        self, world: World
    ) -> None:
        cancelled, paid = Payer(world, expires_in_s=300), Payer(world, expires_in_s=300)
        world.resources.payments.cancel(cancelled.id)
        paid.pay()
        world.finish()
        assert paid.paid().status == "succeeded"
        for payer in (cancelled, paid):
            assert exchanged(world, code_of(payer))[1] == payer.secret
        world.system.advance(300)
        for payer in (cancelled, paid):
            with pytest.raises(PaymentExpired):
                exchanged(world, code_of(payer))

    def test_that_never_was_is_not_found_whatever_is_wrong_with_it(self, world: World) -> None:
        code = code_of(Payer(world))
        other = World(world.storage).open("other")
        elsewhere = code_of(Payer(other))
        wrong = [
            code[:24] + elsewhere[24:],
            elsewhere[:24] + code[24:],
            "A" * 48,
            code.swapcase(),
            code[:-1],
            code + "A",
            "",
            code[:24],
        ]
        for given in wrong:
            with pytest.raises(NotFound) as caught:
                exchanged(world, given)
            assert caught.value.resource == "payment link"

    def test_of_another_mode_is_not_found(self, world: World) -> None:
        with pytest.raises(NotFound) as caught:
            world.service.checkout.exchange_link(code_of(Payer(world)), mode="production")
        assert caught.value.resource == "payment link"

    @pytest.mark.parametrize("off", ["payments", "public_checkout"])
    def test_needs_the_products(self, world: World, off: str) -> None:
        code = code_of(Payer(world))
        left = [name for name in PRODUCTS if name != off]
        world.service.tenants.set_products(world.environment_id, left)
        with pytest.raises(EntitlementRequired):
            exchanged(world, code)

    def test_has_a_code_of_144_random_bits_that_storage_does_not_hold(self, world: World) -> None:
        payer, other = Payer(world), Payer(world)
        code = code_of(payer)
        assert code[:24] == world.environment_id.removeprefix("env_")
        assert len(base64.urlsafe_b64decode(code[24:])) == 18
        assert code[24:] != code_of(other)[24:]
        stored = str(payer.paid())
        assert code not in stored
        assert code[24:] not in stored
        [digest, *_] = world.service.parts.links.candidate_digests(code)
        assert code[24:] not in str(world.get(PaymentLink, digest))


def test_a_link_and_a_secret_outlive_the_rotation_of_the_master_key() -> None:
    storage = MemoryStorage()
    world = World(storage).open()
    payer = Payer(world)
    code, secret = code_of(payer), payer.secret
    rotated = KeyRing.parse(KeyRing.generate(name="k2") + " " + RING)
    world.service = PaymentsService(
        storage,
        rotated,
        clock=world.clock,
        transport=NoTransport(),
        settings=Settings(public_url=LOCAL_URL),
    )
    payment_id, newer, _ = exchanged(world, code)
    assert payment_id == payer.id
    for known in (secret, newer):
        assert authority_of(world, known).payment_id == payer.id


# Secrets.


def tampered(secret: str) -> Iterator[str]:
    """The secret with one character changed, of every part of it."""
    head, _, sealed = secret.partition("_secret_")
    whole = len(head) + len("_secret_")
    places = [0, 8, len(head) - 1, len(head), whole - 1]
    places += range(whole, len(secret), max(1, len(sealed) // 40))
    places.append(len(secret) - 1)
    for place in places:
        changed = SAFE[(SAFE.find(secret[place]) + 1) % len(SAFE)]
        yield secret[:place] + changed + secret[place + 1 :]


class TestASecret:
    def test_opens_its_payment_after_expiry_and_cancellation(self, world: World) -> None:
        expired, cancelled = Payer(world, expires_in_s=300), Payer(world)
        world.resources.payments.cancel(cancelled.id)
        world.advance(310)
        assert expired.details().payment.status == "expired"
        assert cancelled.details().payment.status == "cancelled"

    def test_is_refused_with_any_byte_changed(self, world: World) -> None:
        secret = Payer(world).secret
        for changed in tampered(secret):
            with pytest.raises(Unauthorized):
                authority_of(world, changed)

    @pytest.mark.parametrize(
        "change",
        [
            lambda secret: secret[:-1],
            lambda secret: secret + "A",
            lambda secret: secret + "=",
            lambda secret: secret.replace("_secret_", "_secret__secret_"),
            lambda secret: secret.partition("_secret_")[2],
            lambda secret: secret.partition("_secret_")[0],
            lambda secret: secret.upper(),
            lambda secret: secret + "é",
            lambda secret: "",
        ],
    )
    def test_is_refused_in_any_other_form(self, world: World, change: Callable[[str], str]) -> None:
        with pytest.raises(Unauthorized):
            authority_of(world, change(Payer(world).secret))

    def test_is_of_one_payment_alone(self, world: World) -> None:
        payer, other = Payer(world), Payer(world)
        sealed = other.secret.partition("_secret_")[2]
        with pytest.raises(Unauthorized):
            authority_of(world, f"{payer.id}_secret_{sealed}")

    def test_made_under_another_key_or_for_another_kind_is_refused(self, world: World) -> None:
        payer = Payer(world)
        claims = claims_of(world, payer.id)
        forged = Tokens(KeyRing.parse(KeyRing.generate())).payment_secret(claims)
        tokens = world.service.parts.ports.tokens
        kinds = [tokens.mint(prefix, claims) for prefix in ("cat_", "cst_", f"{payer.id}_secret_")]
        for secret in (forged, *kinds[:2], world.secret):
            with pytest.raises(Unauthorized):
                authority_of(world, secret)

    def test_of_an_environment_that_is_not_or_of_another_mode_is_refused(
        self, world: World
    ) -> None:
        payer = Payer(world)
        tokens = world.service.parts.ports.tokens
        nowhere = tokens.payment_secret(
            claims_of(world, payer.id, environment_id="env_" + "A" * 24)
        )
        live = tokens.payment_secret(
            claims_of(world, payer.id, environment_id=world.app.environments["production"])
        )
        for secret in (nowhere, live):
            with pytest.raises(Unauthorized):
                authority_of(world, secret)

    def test_of_another_environment_finds_no_payment_there(self, world: World) -> None:
        payer, other = Payer(world), World(world.storage).open("other")
        secret = world.service.parts.ports.tokens.payment_secret(
            claims_of(world, payer.id, environment_id=other.environment_id)
        )
        with pytest.raises(NotFound):
            world.service.acting_as(authority_of(world, secret)).public_payments.read(payer.id)


def test_a_payers_call_without_a_payment_is_nobodys(memory_world: World) -> None:
    with pytest.raises(Unauthorized):
        authorize(PAYER, memory_world.environment, None, None)
    authorize(PAYER, memory_world.environment, None, None, "payment_1")


def test_every_code_has_the_shape_that_the_route_accepts() -> None:
    links = Links(KeyRing.parse(RING), lambda count: b"\xff" * count, "https://shop.example/")
    code = "A" * 24 + "_" * 24
    assert re.fullmatch(CODE_SHAPE, code)
    new = links.mint("env_" + "A" * 24, "payment_1", "sandbox")
    assert new.record.id == links.candidate_digests(code)[0]
