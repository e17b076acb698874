"""The three clients, one for each holder of credentials, and the flows that take several calls."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Any, Self

import attrs
import httpx2

from payments_core_http.client.bodies import Proof
from payments_core_http.client.connection import Connection
from payments_core_http.client.flows import (
    IN_PROCESS,
    approve,
    code_of_link,
    is_under_way,
    step_key,
)
from payments_core_http.client.resources import (
    AccountResources,
    PartnerResources,
    PublicResources,
)
from payments_core_http.client.responses import (
    CheckoutState,
    FundedOption,
    Methods,
    PublicOption,
    PublicPayment,
)
from payments_core_http.client.retries import Retries
from payments_core_http.client.transports import prepare_transport
from payments_core_http.client.wire import Credentials, require_encryption


class _Closing:
    """What all clients share: `close`, and a repr without secrets."""

    _connection: Connection

    def close(self) -> None:
        """Close the connections that are kept open."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._connection.url!r})"


class Client(_Closing, PartnerResources):
    """A partner's backend, with an app's id and its secret.

    Each attribute is a resource, and each of its methods one operation of the API. Operations that
    create or move take an `idempotency_key`; without one the client makes its own, so that it can
    retry, and yours lets a whole task be repeated.

    >>> client = Client.in_process(application, app.id, secret)  # or Client("https://...", ...)
    >>> to_bob = AccountDestination(external_user_id="bob")
    >>> client.payments.receive(amount="25.00", destination=to_bob).status
    'awaiting_payment'
    """

    def __init__(
        self,
        url: str,
        app_id: str,
        app_secret: str,
        *,
        sdk_key: str | None = None,
        transport: httpx2.BaseTransport | None = None,
        retries: Retries | None = None,
        timeout_s: float = 20.0,
        allow_http: bool = False,
    ) -> None:
        credentials = Credentials(app_id=app_id, app_secret=app_secret, sdk_key=sdk_key)
        self._connection = _connect(url, credentials, transport, retries, timeout_s, allow_http)
        super().__init__(self._connection)

    @classmethod
    def in_process(cls, app: Any, app_id: str, app_secret: str, **options: Any) -> Self:
        """A client of a WSGI application in this process, such as that of `create_app`."""
        return cls(
            IN_PROCESS, app_id, app_secret, transport=httpx2.WSGITransport(app=app), **options
        )

    def open_account(self, account_id: str, permissions: list[str]) -> AccountClient:
        """A client of one account: creates a client session and exchanges its token.

        It is for tests and for backends that act for an account. An app on a user's device gets
        the token of `client_sessions.create` from your backend, and calls `AccountClient.exchange`.
        The two clients share their connections.
        """
        session = self.client_sessions.create(account_id=account_id, permissions=permissions)
        return AccountClient.exchange(
            self._connection.url,
            session.client_session_token,
            transport=self._connection.transport,
            retries=self._connection.retries,
            timeout_s=self._connection.timeout_s,
            allow_http=True,  # the address of this client, which was checked
        )


class AccountClient(_Closing, AccountResources):
    """The holder of an access token: one account, with the permissions of its session.

    >>> eve = client.open_account(eve_id, ["payments:read", "vault_payments:write"])
    >>> eve.pay(payment.id, payment.client_secret).option.status
    'processing'
    """

    def __init__(
        self,
        url: str,
        access_token: str,
        *,
        transport: httpx2.BaseTransport | None = None,
        retries: Retries | None = None,
        timeout_s: float = 20.0,
        allow_http: bool = False,
    ) -> None:
        credentials = Credentials(access_token=access_token)
        self._connection = _connect(url, credentials, transport, retries, timeout_s, allow_http)
        super().__init__(self._connection)

    @classmethod
    def exchange(
        cls,
        url: str,
        session_token: str,
        *,
        transport: httpx2.BaseTransport | None = None,
        **options: Any,
    ) -> Self:
        """A client with the access token that the session's token is exchanged for.

        The token works once, so the exchange is never repeated: after NoResponse, ask the backend
        for another. `options` are those of the client.
        """
        transport = prepare_transport(transport, url)
        public = PublicClient(url, transport=transport, **options)
        token = public.sessions.exchange(session_token=session_token)
        return cls(url, token.access_token, transport=transport, **options)

    def pay(
        self, payment_id: str, payment_secret: str, *, idempotency_key: str | None = None
    ) -> FundedOption:
        """Pay a Payment from the account's vault: create the option, and authorize it.

        With a key the task can be repeated. The response says that the transfer is authorized, not
        that the funds have arrived: the Payment's status says that.
        """
        created = self.options.create(
            payment_id,
            payment_secret=payment_secret,
            idempotency_key=step_key(idempotency_key, "option"),
        )
        return self.options.authorize(
            payment_id,
            created.option.id,
            payment_secret=payment_secret,
            action_id=approve(created.option),
            proof=Proof(),
            idempotency_key=step_key(idempotency_key, "authorize"),
        )


class PublicClient(_Closing, PublicResources):
    """A client without an account: what a payer's page does with a Payment's secret or link.

    `origin` is the shop's own, and is sent if no other credential is.

    >>> public = PublicClient.in_process(application)  # or PublicClient("https://...")
    >>> checkout = public.open_link(payment.payment_url)
    >>> [method.provider_code for method in checkout.list_methods().methods]
    ['direct', 'routing', 'hosted_onramp']
    """

    def __init__(
        self,
        url: str,
        *,
        origin: str | None = None,
        transport: httpx2.BaseTransport | None = None,
        retries: Retries | None = None,
        timeout_s: float = 20.0,
        allow_http: bool = False,
    ) -> None:
        credentials = Credentials(origin=origin)
        self._connection = _connect(url, credentials, transport, retries, timeout_s, allow_http)
        super().__init__(self._connection)

    @classmethod
    def in_process(cls, app: Any, **options: Any) -> Self:
        """A client of a WSGI application in this process."""
        return cls(IN_PROCESS, transport=httpx2.WSGITransport(app=app), **options)

    def open_link(self, payment_url: str) -> Checkout:
        """The checkout of a Payment's link."""
        link = self.links.exchange(code_of_link(payment_url))
        return Checkout(self, link.payment_id, link.client_secret)


@attrs.frozen
class Checkout:
    """One Payment and its client secret: what its payer does.

    >>> checkout = PublicClient.in_process(application).open_link(payment.payment_url)
    >>> checkout.read_state().status
    'awaiting_payment'
    """

    client: PublicClient
    payment_id: str
    client_secret: str = attrs.field(repr=False)

    def read(self) -> PublicPayment:
        """The Payment, with its direct options."""
        return self.client.payments.read(self.payment_id, client_secret=self.client_secret)

    def read_state(self) -> CheckoutState:
        """The state of the Payment; the smallest request, for polling."""
        return self.client.payments.read_state(self.payment_id, client_secret=self.client_secret)

    def list_methods(self) -> Methods:
        """The ways to pay."""
        return self.client.payments.list_methods(self.payment_id, client_secret=self.client_secret)

    def choose_transfer(
        self,
        *,
        chain_id: int | None = None,
        asset_symbol: str | None = None,
        payer_address: str | None = None,
        idempotency_key: str | None = None,
    ) -> PublicOption:
        """Choose to pay by a transfer from any wallet; `execution` says what to send where."""
        created = self.client.options.create(
            self.payment_id,
            client_secret=self.client_secret,
            provider_code="direct",
            chain_id=chain_id,
            asset_symbol=asset_symbol,
            payer_address=payer_address,
            idempotency_key=step_key(idempotency_key, "option"),
        )
        return self._select(created.option.id, idempotency_key)

    def choose_route(
        self,
        *,
        chain_id: int,
        asset_symbol: str,
        refund_address: str,
        idempotency_key: str | None = None,
    ) -> PublicOption:
        """Choose to pay with another token or on another chain, through a router; `execution` says
        what to send where until `quote_expires_at`. What cannot be delivered goes back to
        `refund_address`, the payer's own on that chain."""
        created = self.client.options.create(
            self.payment_id,
            client_secret=self.client_secret,
            provider_code="routing",
            chain_id=chain_id,
            asset_symbol=asset_symbol,
            refund_address=refund_address,
            idempotency_key=step_key(idempotency_key, "option"),
        )
        return self._select(created.option.id, idempotency_key)

    def choose_onramp(self, *, idempotency_key: str | None = None) -> PublicOption:
        """Choose to pay by card or bank at a provider; `execution` has its page and the price."""
        created = self.client.options.create(
            self.payment_id,
            client_secret=self.client_secret,
            provider_code="hosted_onramp",
            idempotency_key=step_key(idempotency_key, "option"),
        )
        return self._select(created.option.id, idempotency_key)

    def _select(self, option_id: str, idempotency_key: str | None) -> PublicOption:
        selected = self.client.options.select(
            self.payment_id,
            option_id,
            client_secret=self.client_secret,
            idempotency_key=step_key(idempotency_key, "select"),
        )
        return selected.option

    def wait(self, *, timeout_s: float = 300.0, poll_s: float = 2.0) -> CheckoutState:
        """The state once the Payment waits for nothing more, or the state after `timeout_s`."""
        ends_at = time.monotonic() + timeout_s
        while is_under_way(state := self.read_state()) and time.monotonic() < ends_at:
            self.client._connection.sleep(poll_s)
        return state


def _connect(
    url: str,
    credentials: Credentials,
    transport: httpx2.BaseTransport | None,
    retries: Retries | None,
    timeout_s: float,
    allow_http: bool,
) -> Connection:
    require_encryption(url, allow_http)
    return Connection(
        url, credentials, prepare_transport(transport, url), retries or Retries(), timeout_s
    )
