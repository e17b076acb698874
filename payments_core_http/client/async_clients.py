"""The three clients on asyncio or trio: as `clients.py`, with `await`."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Any, Self

import attrs
import httpx2

from payments_core_http.client.async_connection import AsyncConnection
from payments_core_http.client.async_resources import (
    AsyncAccountResources,
    AsyncPartnerResources,
    AsyncPublicResources,
)
from payments_core_http.client.bodies import Proof
from payments_core_http.client.bridge import AsyncWSGITransport
from payments_core_http.client.flows import (
    IN_PROCESS,
    approve,
    code_of_link,
    is_under_way,
    step_key,
)
from payments_core_http.client.responses import (
    CheckoutState,
    FundedOption,
    Methods,
    PublicOption,
    PublicPayment,
)
from payments_core_http.client.retries import Retries
from payments_core_http.client.transports import prepare_async_transport
from payments_core_http.client.wire import Credentials, require_encryption


class _Closing:
    """What all clients share: `close`, and a repr without secrets."""

    _connection: AsyncConnection

    async def close(self) -> None:
        """Close the connections that are kept open."""
        await self._connection.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._connection.url!r})"


class AsyncClient(_Closing, AsyncPartnerResources):
    """A partner's backend, with an app's id and its secret.

    Each attribute is a resource, and each of its methods one operation of the API. Operations that
    create or move take an `idempotency_key`; without one the client makes its own, so that it can
    retry, and yours lets a whole task be repeated.

    >>> async def list_users():
    ...     async with AsyncClient.in_process(application, app.id, secret) as client:
    ...         return [account.external_user_id async for account in client.accounts.list()]
    >>> sorted(asyncio.run(list_users()))
    ['bob', 'merchant', 'payer']
    """

    def __init__(
        self,
        url: str,
        app_id: str,
        app_secret: str,
        *,
        sdk_key: str | None = None,
        transport: httpx2.AsyncBaseTransport | None = None,
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
        return cls(IN_PROCESS, app_id, app_secret, transport=AsyncWSGITransport(app), **options)

    async def open_account(self, account_id: str, permissions: list[str]) -> AsyncAccountClient:
        """A client of one account: creates a client session and exchanges its token.

        It is for tests and for backends that act for an account. An app on a user's device gets
        the token of `client_sessions.create` from your backend, and calls
        `AsyncAccountClient.exchange`. The two clients share their connections.
        """
        session = await self.client_sessions.create(account_id=account_id, permissions=permissions)
        return await AsyncAccountClient.exchange(
            self._connection.url,
            session.client_session_token,
            transport=self._connection.transport,
            retries=self._connection.retries,
            timeout_s=self._connection.timeout_s,
            allow_http=True,  # the address of this client, which was checked
        )


class AsyncAccountClient(_Closing, AsyncAccountResources):
    """The holder of an access token: one account, with the permissions of its session."""

    def __init__(
        self,
        url: str,
        access_token: str,
        *,
        transport: httpx2.AsyncBaseTransport | None = None,
        retries: Retries | None = None,
        timeout_s: float = 20.0,
        allow_http: bool = False,
    ) -> None:
        credentials = Credentials(access_token=access_token)
        self._connection = _connect(url, credentials, transport, retries, timeout_s, allow_http)
        super().__init__(self._connection)

    @classmethod
    async def exchange(
        cls,
        url: str,
        session_token: str,
        *,
        transport: httpx2.AsyncBaseTransport | None = None,
        **options: Any,
    ) -> Self:
        """A client with the access token that the session's token is exchanged for.

        The token works once, so the exchange is never repeated: after NoResponse, ask the backend
        for another. `options` are those of the client.
        """
        transport = prepare_async_transport(transport, url)
        public = AsyncPublicClient(url, transport=transport, **options)
        token = await public.sessions.exchange(session_token=session_token)
        return cls(url, token.access_token, transport=transport, **options)

    async def pay(
        self, payment_id: str, payment_secret: str, *, idempotency_key: str | None = None
    ) -> FundedOption:
        """Pay a Payment from the account's vault: create the option, and authorize it.

        With a key the task can be repeated. The response says that the transfer is authorized, not
        that the funds have arrived: the Payment's status says that.
        """
        created = await self.options.create(
            payment_id,
            payment_secret=payment_secret,
            idempotency_key=step_key(idempotency_key, "option"),
        )
        return await self.options.authorize(
            payment_id,
            created.option.id,
            payment_secret=payment_secret,
            action_id=approve(created.option),
            proof=Proof(),
            idempotency_key=step_key(idempotency_key, "authorize"),
        )


class AsyncPublicClient(_Closing, AsyncPublicResources):
    """A client without an account: what a payer's page does with a Payment's secret or link.

    `origin` is the shop's own, and is sent if no other credential is.
    """

    def __init__(
        self,
        url: str,
        *,
        origin: str | None = None,
        transport: httpx2.AsyncBaseTransport | None = None,
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
        return cls(IN_PROCESS, transport=AsyncWSGITransport(app), **options)

    async def open_link(self, payment_url: str) -> AsyncCheckout:
        """The checkout of a Payment's link."""
        link = await self.links.exchange(code_of_link(payment_url))
        return AsyncCheckout(self, link.payment_id, link.client_secret)


@attrs.frozen
class AsyncCheckout:
    """One Payment and its client secret: what its payer does."""

    client: AsyncPublicClient
    payment_id: str
    client_secret: str = attrs.field(repr=False)

    async def read(self) -> PublicPayment:
        """The Payment, with its direct options."""
        return await self.client.payments.read(self.payment_id, client_secret=self.client_secret)

    async def read_state(self) -> CheckoutState:
        """The state of the Payment; the smallest request, for polling."""
        return await self.client.payments.read_state(
            self.payment_id, client_secret=self.client_secret
        )

    async def list_methods(self) -> Methods:
        """The ways to pay."""
        return await self.client.payments.list_methods(
            self.payment_id, client_secret=self.client_secret
        )

    async def choose_transfer(
        self,
        *,
        chain_id: int | None = None,
        asset_symbol: str | None = None,
        payer_address: str | None = None,
        idempotency_key: str | None = None,
    ) -> PublicOption:
        """Choose to pay by a transfer from any wallet; `execution` says what to send where."""
        created = await self.client.options.create(
            self.payment_id,
            client_secret=self.client_secret,
            provider_code="direct",
            chain_id=chain_id,
            asset_symbol=asset_symbol,
            payer_address=payer_address,
            idempotency_key=step_key(idempotency_key, "option"),
        )
        return await self._select(created.option.id, idempotency_key)

    async def choose_route(
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
        created = await self.client.options.create(
            self.payment_id,
            client_secret=self.client_secret,
            provider_code="routing",
            chain_id=chain_id,
            asset_symbol=asset_symbol,
            refund_address=refund_address,
            idempotency_key=step_key(idempotency_key, "option"),
        )
        return await self._select(created.option.id, idempotency_key)

    async def choose_onramp(self, *, idempotency_key: str | None = None) -> PublicOption:
        """Choose to pay by card or bank at a provider; `execution` has its page and the price."""
        created = await self.client.options.create(
            self.payment_id,
            client_secret=self.client_secret,
            provider_code="hosted_onramp",
            idempotency_key=step_key(idempotency_key, "option"),
        )
        return await self._select(created.option.id, idempotency_key)

    async def _select(self, option_id: str, idempotency_key: str | None) -> PublicOption:
        selected = await self.client.options.select(
            self.payment_id,
            option_id,
            client_secret=self.client_secret,
            idempotency_key=step_key(idempotency_key, "select"),
        )
        return selected.option

    async def wait(self, *, timeout_s: float = 300.0, poll_s: float = 2.0) -> CheckoutState:
        """The state once the Payment waits for nothing more, or the state after `timeout_s`."""
        ends_at = time.monotonic() + timeout_s
        while is_under_way(state := await self.read_state()) and time.monotonic() < ends_at:
            await self.client._connection.sleep(poll_s)
        return state


def _connect(
    url: str,
    credentials: Credentials,
    transport: httpx2.AsyncBaseTransport | None,
    retries: Retries | None,
    timeout_s: float,
    allow_http: bool,
) -> AsyncConnection:
    require_encryption(url, allow_http)
    return AsyncConnection(
        url, credentials, prepare_async_transport(transport, url), retries or Retries(), timeout_s
    )
