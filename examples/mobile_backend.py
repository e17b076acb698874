"""A mobile app and its backend: the backend keeps the app secret and creates client sessions; the
app pays with a token that is valid for one account, for a quarter of an hour.

Run it in a sandbox in this process::

    .venv/bin/python examples/mobile_backend.py
"""

from __future__ import annotations

from typing import Any

import attrs
import httpx2

from payments_core_http.client import AccountClient, AccountDestination, Client
from payments_core_http.client.codes import ClientTokenExpired, InsufficientPermissions
from payments_core_http.testing import open_sandbox

QUARTER_OF_AN_HOUR_S = 900


@attrs.frozen
class Backend:
    """What the backend's routes do, each for a user who has logged in there."""

    client: Client
    merchant_id: str

    def open_session(self, user: str) -> str:
        """The token that the app exchanges, with no more permissions than it needs."""
        session = self.client.client_sessions.create(
            external_user_id=user,
            permissions=["account:read", "payments:read", "vault_payments:write"],
            expires_in_seconds=QUARTER_OF_AN_HOUR_S,
        )
        return session.client_session_token

    def start_order(self, number: str, amount: str) -> dict[str, str]:
        """What the app needs of a Payment: its id, and the secret for this one Payment."""
        payment = self.client.payments.receive(
            amount=amount,
            destination=AccountDestination(account_id=self.merchant_id),
            reference=number,
            idempotency_key=number,
        )
        return {"paymentId": payment.id, "secret": payment.client_secret}


@attrs.define
class App:
    """The app on the user's device. It holds a token, and none of the partner's secrets."""

    url: str
    backend: Backend
    user: str
    transport: Any
    account: AccountClient | None = None

    def log_in(self) -> None:
        """Exchange a new session's token, also after the old one has expired."""
        token = self.backend.open_session(self.user)
        self.account = AccountClient.exchange(self.url, token, transport=self.transport)

    def pay(self, number: str, amount: str) -> str:
        """Pay an order; with an expired token, log in again and continue with the same keys."""
        order = self.backend.start_order(number, amount)
        for _ in range(2):
            if self.account is None:
                self.log_in()
            assert self.account is not None
            try:
                paid = self.account.pay(
                    order["paymentId"], order["secret"], idempotency_key=f"pay {number}"
                )
            except ClientTokenExpired:
                print("the token has expired: log in again")
                self.account = None
            else:
                return paid.funding_operation.status
        raise RuntimeError("a new token was expired at once")


def main() -> None:
    """Two orders, with an hour between them."""
    with open_sandbox() as sandbox:
        sandbox.make_account("mia", funds="50.00")
        backend = Backend(sandbox.client, sandbox.merchant.account_id)
        app = App("http://localhost", backend, "mia", httpx2.WSGITransport(app=sandbox.app))
        print("order-1", app.pay("order-1", "20.00"))
        sandbox.settle()
        [payment] = sandbox.client.payments.list(reference="order-1")
        print("order-1", payment.status)

        sandbox.clock.advance(3_600)
        print("order-2", app.pay("order-2", "5.00"))
        assert app.account is not None
        try:
            app.account.payments.create(amount="1.00")
        except InsufficientPermissions as refused:
            print("the token may not:", ", ".join(refused.required or ()))


if __name__ == "__main__":
    main()
