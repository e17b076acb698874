"""The client on the real application in this process, both synchronous and asynchronous."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC
from wsgiref.simple_server import WSGIRequestHandler, make_server

import pytest
from msgspec.structs import replace

from payments_core_http.client import (
    AccountClient,
    AccountDestination,
    AsyncClient,
    AsyncPublicClient,
    Client,
    NoResponse,
    Retries,
    VaultSource,
)
from payments_core_http.client.async_clients import AsyncAccountClient
from payments_core_http.client.codes import (
    ClientTokenExpired,
    IdempotencyConflict,
    InvalidState,
    NotFound,
    Unauthorized,
    ValidationError,
)
from payments_core_http.client.errors import ApiError, Conflicting, Missing
from payments_core_http.client.flows import is_under_way
from tests.http.client.shop import BASE, PAYER_PERMISSIONS, Shop


@pytest.fixture
def shop() -> Shop:
    return Shop()


def test_a_payment_is_paid_from_a_vault(shop: Shop) -> None:
    payment = shop.receive("25.00", idempotency_key="order-1")
    assert payment.status == "awaiting_payment"
    assert payment.created_at.tzinfo is UTC
    payer = shop.client.open_account(shop.payer.account_id, PAYER_PERMISSIONS)
    paid = payer.pay(payment.id, payment.client_secret, idempotency_key="pay order-1")
    assert paid == payer.pay(payment.id, payment.client_secret, idempotency_key="pay order-1")
    assert payer.payments.read_as_payer(
        payment.id, payment_secret=payment.client_secret
    ).options[0].option.id == paid.option.id  # fmt: skip
    shop.settle()
    whole = shop.client.payments.read(payment.id)
    assert (whole.status, whole.received_amount_atomic) == ("succeeded", "25000000")
    assert whole.options[0].option.provider_code == "vault"


def test_a_repeated_creation_makes_no_second_payment(shop: Shop) -> None:
    first = shop.receive(idempotency_key="order-1")
    assert shop.receive(idempotency_key="order-1") == first
    assert [one.id for one in shop.client.payments.list()] == [first.id]
    with pytest.raises(IdempotencyConflict) as refused:
        shop.receive("26.00", idempotency_key="order-1")
    assert isinstance(refused.value, Conflicting)
    assert refused.value.idempotency_key == "order-1"


def test_a_link_is_opened_and_paid_by_a_transfer(shop: Shop) -> None:
    payment = shop.receive("12.50")
    checkout = shop.public.open_link(payment.payment_url)
    assert checkout.payment_id == payment.id
    assert [one.provider_code for one in checkout.list_methods().methods]
    option = checkout.choose_transfer(chain_id=BASE, asset_symbol="USDC")
    assert option.execution is not None
    shop.client.sandbox.transfer(
        chain_id=BASE, asset_symbol="USDC", amount="12.50", to=option.execution.to
    )
    assert checkout.read_state().status == "awaiting_payment"
    shop.settle()
    assert checkout.wait(timeout_s=0).status == "succeeded"
    assert checkout.read().received_amount_atomic == "12500000"


@pytest.mark.parametrize(
    ("status", "goes_on"),
    [
        ("awaiting_payment", True),
        ("processing", True),
        ("accepted", True),
        ("executing", True),
        ("action_required", False),
        ("succeeded", False),
        ("cancelled", False),
        ("a status of a later release", False),
    ],
)
def test_a_checkout_waits_for_what_the_service_still_does(
    shop: Shop, status: str, goes_on: bool
) -> None:
    state = shop.public.open_link(shop.receive().payment_url).read_state()
    assert is_under_way(replace(state, status=status)) == goes_on


def test_a_send_and_a_list_over_several_pages(shop: Shop) -> None:
    source = VaultSource(account_id=shop.payer.account_id, chain_id=BASE, asset_symbol="USDC")
    to = AccountDestination(account_id=shop.merchant.account_id)
    made = [
        shop.client.payments.send(amount="1.00", source=source, destination=to).id for _ in range(5)
    ]
    pages = shop.client.payments.list(intent="send", limit=2)
    assert sorted(one.id for one in pages) == sorted(made)
    assert [len(page.data) for page in pages.pages()] == [2, 2, 1]
    assert pages.first().has_next_page


def test_errors_have_a_class_for_their_code_and_carry_its_facts(shop: Shop) -> None:
    payment = shop.receive()
    shop.client.payments.cancel(payment.id)
    with pytest.raises(InvalidState) as state:
        shop.client.payments.cancel(payment.id)
    assert (state.value.http_status, state.value.status) == (409, "cancelled")
    with pytest.raises(ValidationError) as fields:
        shop.client.accounts.create(external_user_id="", subject_type="robot")  # type: ignore[arg-type]
    assert {one.path for one in fields.value.fields} == {"externalUserId", "subjectType"}
    with pytest.raises(NotFound) as missing:
        shop.client.payments.read("payment_" + "x" * 24)
    assert isinstance(missing.value, Missing) and missing.value.resource == "payment"
    with pytest.raises(Unauthorized):
        Client.in_process(shop.app, shop.row.id, "sk_sandbox_wrong").partner.read_config()
    with pytest.raises(ApiError) as unknown:
        shop.client.payments.read("../partners")
    assert unknown.value.http_status == 404


def test_a_segment_of_a_path_cannot_become_another_route(shop: Shop) -> None:
    for id in ("", ".", ".."):
        with pytest.raises(ValueError, match="paymentId"):
            shop.client.payments.read(id)


def test_a_token_that_is_over_says_so(shop: Shop) -> None:
    payer = shop.client.open_account(shop.payer.account_id, ["account:read"])
    assert payer.account.read().account_id == shop.payer.account_id
    shop.client.sandbox.advance_clock(advance_seconds=86_400)
    with pytest.raises(ClientTokenExpired):
        payer.account.read()


def test_webhooks_are_managed_and_events_listed(shop: Shop) -> None:
    made = shop.client.webhooks.create(
        shop.row.id, shop.environment_id, url="https://shop.example/hooks"
    )
    assert made.signing_secret.startswith("whsec_")
    assert made.signing_secret not in repr(made)
    listed = shop.client.webhooks.list()
    assert [one.id for one in listed] == [made.webhook_endpoint.id]
    assert listed.first().event_catalog
    changed = shop.client.webhooks.change(made.webhook_endpoint.id, status="disabled")
    assert changed.webhook_endpoint.status == "disabled"
    shop.receive()
    names = [one.name for one in shop.client.events.list(name="payment.created")]
    assert names == ["payment.created"]


def test_no_repr_and_no_error_shows_a_secret(shop: Shop) -> None:
    payment = shop.receive()
    shown = repr(payment) + repr(shop.client) + repr(shop.client._connection)
    checkout = shop.public.open_link(payment.payment_url)
    shown += repr(checkout)
    payer = shop.client.open_account(shop.payer.account_id, PAYER_PERMISSIONS)
    option = payer.options.create(payment.id, payment_secret=payment.client_secret)
    assert option.option.execution is not None
    shown += repr(option) + repr(payer._connection)
    for secret in (
        payment.client_secret,
        payment.payment_url,
        shop.secret,
        option.option.execution.action_id,
        payer._connection.credentials.access_token,
    ):
        assert secret is not None and secret not in shown


def test_the_asynchronous_client_does_the_same(shop: Shop) -> None:
    payment = shop.receive("12.50")

    async def pay() -> tuple[str, list[str]]:
        async with shop.asynchronous() as client:
            payer = await client.open_account(shop.payer.account_id, PAYER_PERMISSIONS)
            assert isinstance(payer, AsyncAccountClient)
            await payer.pay(payment.id, payment.client_secret, idempotency_key="pay")
            for _ in range(4):
                await client.sandbox.advance_clock(advance_seconds=5)
            public = AsyncPublicClient.in_process(shop.app)
            checkout = await public.open_link(payment.payment_url)
            state = await checkout.wait(timeout_s=0)
            listed = [one.id async for one in client.payments.list(limit=1)]
            assert (await client.payments.list().first()).data[0].id == payment.id
            return state.status, listed

    assert asyncio.run(pay()) == ("succeeded", [payment.id])


def test_asynchronous_errors_are_the_same(shop: Shop) -> None:
    async def read() -> None:
        await shop.asynchronous().payments.read("payment_" + "x" * 24)

    with pytest.raises(NotFound):
        asyncio.run(read())


class SilentHandler(WSGIRequestHandler):
    """A handler of the standard library's server that writes no line for each request."""

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def served(shop: Shop) -> Iterator[str]:
    """The application behind a socket; its address."""
    server = make_server("127.0.0.1", 0, shop.app, handler_class=SilentHandler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_both_clients_work_over_a_socket(shop: Shop) -> None:
    payment = shop.receive(idempotency_key="order-1")

    async def repeat(url: str) -> str:
        async with AsyncClient(url, shop.row.id, shop.secret) as client:
            return (await client.payments.read(payment.id)).id

    with served(shop) as url:
        with Client(url, shop.row.id, shop.secret) as client:
            assert client.partner.read_config().app_id == shop.row.id
            assert [one.id for one in client.payments.list()] == [payment.id]
            session = client.client_sessions.create(account_id=shop.payer.account_id)
        with AccountClient.exchange(url, session.client_session_token) as payer:
            assert payer.account.read().account_id == shop.payer.account_id
        assert asyncio.run(repeat(url)) == payment.id
    once = Retries(attempts=1)
    with (
        Client(url, shop.row.id, shop.secret, retries=once) as client,
        pytest.raises(NoResponse) as failure,
    ):
        client.payments.cancel(payment.id)
    assert not failure.value.was_sent and failure.value.idempotency_key
