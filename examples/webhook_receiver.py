"""A webhook receiver that needs only the standard library besides the verifier: a WSGI
application that applies each event once, although deliveries may repeat and arrive out of order.

Run it in a sandbox in this process::

    .venv/bin/python examples/webhook_receiver.py
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable
from contextlib import closing
from typing import Any

from payments_core_http.client import Client, WebhookRefused, parse_event, verify_webhook
from payments_core_http.client.events import (
    DisputePayload,
    PaymentPayload,
    PaymentProcessingPayload,
    PaymentReconciledPayload,
    RefundPayload,
    VaultFundingPayload,
)
from payments_core_http.testing import open_sandbox

MAX_BODY_BYTES = 1_000_000
SCHEMA = """
CREATE TABLE events (id TEXT PRIMARY KEY, name TEXT NOT NULL);
CREATE TABLE payments (id TEXT PRIMARY KEY, status TEXT NOT NULL, version INTEGER NOT NULL);
"""
APPLY = """
INSERT INTO payments VALUES (:id, :status, :version)
ON CONFLICT (id) DO UPDATE SET status = :status, version = :version WHERE version < :version
"""


class Receiver:
    """The endpoint. Its answer decides: a 2xx ends the delivery, a 5xx repeats it later."""

    def __init__(self, client: Client, signing_secret: str, database: sqlite3.Connection) -> None:
        self._client, self._secret, self._database = client, signing_secret, database
        database.executescript(SCHEMA)

    def __call__(
        self, environ: dict[str, Any], start_response: Callable[..., Any]
    ) -> Iterable[bytes]:
        status = self._receive(environ)
        start_response(status, [("Content-Length", "0")])
        return []

    def _receive(self, environ: dict[str, Any]) -> str:
        length = environ.get("CONTENT_LENGTH") or ""
        if not length.isdecimal():  # the service always states it; without it, nothing is read
            return "411 Length Required"
        if int(length) > MAX_BODY_BYTES:
            return "413 Content Too Large"
        body = environ["wsgi.input"].read(int(length))  # the raw bytes: the signature is over them
        try:
            event = parse_event(verify_webhook(body, environ, self._secret))
        except WebhookRefused:
            return "400 Bad Request"
        seen = self._database.execute("SELECT 1 FROM events WHERE id = ?", [event.id]).fetchone()
        if seen:
            return "204 No Content"
        match event.payload:
            case (
                PaymentPayload()
                | PaymentProcessingPayload()
                | PaymentReconciledPayload()
                | RefundPayload()
                | VaultFundingPayload()
                | DisputePayload()
            ) as received:
                payment_id = received.payment_id
            case _:  # of an account, or of a later service: ignored
                return "204 No Content"
        # The resource has the current state; the event only says that it is worth reading.
        payment = self._client.payments.read(payment_id)
        row = {"id": payment.id, "status": payment.status, "version": payment.status_version}
        with self._database:  # one transaction: the event is recorded if and only if it is applied
            self._database.execute(
                "INSERT OR IGNORE INTO events VALUES (?, ?)", [event.id, event.name]
            )
            self._database.execute(APPLY, row)
        return "204 No Content"


def main() -> None:
    """Deliver a Payment's events; then all of them again, backwards."""
    with open_sandbox() as sandbox, closing(sqlite3.connect(":memory:")) as database:
        receiver = Receiver(sandbox.client, sandbox.events.signing_secret, database)
        sandbox.events.forward_to(receiver, "/webhooks")
        sandbox.make_payment("succeeded")
        [(status,)] = database.execute("SELECT status FROM payments").fetchall()
        [(events,)] = database.execute("SELECT count(*) FROM events").fetchall()
        print("the Payment is", status, "after", events, "events")

        for delivery in reversed(list(sandbox.events.deliveries)):
            sandbox.client.events.resend(delivery.event.id)
        sandbox.run()
        [(status,)] = database.execute("SELECT status FROM payments").fetchall()
        [(again,)] = database.execute("SELECT count(*) FROM events").fetchall()
        print("and still", status, "after", len(sandbox.events.deliveries), "deliveries")
        assert again == events


if __name__ == "__main__":
    main()
