"""A sandbox in process: the service in memory, an app, a client, and Payments in every state."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from payments_core import KeyRing, PaymentsService, Settings, open_storage
from payments_core.clock import SECOND, FixedClock, Instant, SystemClock
from payments_core.networks import DEFAULT_CHAIN_ID, DEFAULT_SYMBOL
from payments_core.public_url import LOCAL_URL
from payments_core.sandbox.clock import SandboxClock
from payments_core.tenants.queries import iterate_apps
from payments_core_http import create_app
from payments_core_http.client import AccountClient, AccountDestination, Client, PublicClient
from payments_core_http.client.responses import Account, Payment
from payments_core_http.testing.events import ENDPOINT_URL, CapturedEvents

if TYPE_CHECKING:
    from wsgiref.types import WSGIApplication

MODE = "sandbox"
_FUNDS = "1000000.00"
_STEPS_AT_MOST = 500
_LONGER_THAN_A_PAYMENT_S = 86_401


class StandingClock(FixedClock):
    """Stays at the time at which it was made; signatures carry the real time."""

    def __init__(self) -> None:
        super().__init__(SystemClock().now())

    def real_now(self) -> Instant:
        """The machine's own time, with which receivers compare signatures."""
        return SystemClock().real_now()


def open_service(events: CapturedEvents, public_url: str = LOCAL_URL) -> PaymentsService:
    """A service in memory on simulated chains, which delivers to `events`."""
    storage = open_storage("memory://")
    return PaymentsService(
        storage,
        KeyRing.parse(KeyRing.generate()),
        settings=Settings(public_url=public_url),
        clock=SandboxClock(storage, StandingClock()),
        transport=events,
        resolver=events,
    )


@contextmanager
def open_sandbox(public_url: str = LOCAL_URL) -> Iterator[PaymentsSandbox]:
    """A sandbox for a program other than a test, closed at the end.

    `public_url` is where the program serves `app`, if it does. Raises ValueError for one that no
    service can have.
    """
    events = CapturedEvents()
    service = open_service(events, public_url)
    try:
        yield PaymentsSandbox(service, events)
    finally:
        service.close()


class SandboxTime:
    """The sandbox's time. Only `advance` moves it."""

    def __init__(self, service: PaymentsService) -> None:
        self._service = service

    def now(self) -> datetime:
        """The current time, in UTC."""
        return datetime.fromtimestamp(self._service.parts.ports.clock.now() / SECOND, UTC)

    def advance(self, by: timedelta | float) -> None:
        """Move forward, in seconds or by a timedelta, and run the work that becomes due."""
        seconds = by.total_seconds() if isinstance(by, timedelta) else by
        self._service.parts.sandbox().runner.advance(int(seconds))


class PaymentsSandbox:
    """One app on a service in process, as a partner's tests need it.

    `app` is the WSGI application, `client` a client with a standard key, `app_id` and
    `app_secret` the credentials for your own code. `merchant` and `payer` are accounts; the
    payer's vault has test funds. If the service already has an app, because code that embeds it
    created one, that app is used.
    """

    def __init__(self, service: PaymentsService, events: CapturedEvents) -> None:
        tenants = service.tenants
        row = next(iterate_apps(service.parts.ports.storage), None) or tenants.create_app(
            "Sandbox", MODE
        )
        self.service = service
        self.events = events
        self.app_id: str = row.id
        self.environment_id: str = row.environments[MODE]
        _, secret = tenants.create_key(self.environment_id, "standard", "tests")
        self.app_secret: str = secret
        self.app: WSGIApplication = create_app(service, mode=MODE)
        self.client: Client = Client.in_process(self.app, self.app_id, self.app_secret)
        self.public: PublicClient = PublicClient.in_process(self.app)
        self.clock: SandboxTime = SandboxTime(service)
        self.merchant: Account = self.make_account("merchant")
        self.payer: Account = self.make_account("payer", funds=_FUNDS)
        self._worker = service.worker(MODE)
        self.run()  # events so far are not events of a test
        made = self.client.webhooks.create(self.app_id, self.environment_id, url=ENDPOINT_URL)
        events.signing_secret = made.signing_secret

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.app_id!r})"

    def make_account(self, external_user_id: str, *, funds: str | None = None) -> Account:
        """An account, with so much USDC on Base in its vault."""
        account = self.client.accounts.create(
            external_user_id=external_user_id, subject_type="individual"
        )
        if funds is not None:
            self.client.sandbox.fund(
                account.account_id,
                chain_id=DEFAULT_CHAIN_ID,
                asset_symbol=DEFAULT_SYMBOL,
                amount=funds,
            )
        return account

    def open_account(self, account: Account, *permissions: str) -> AccountClient:
        """A client of an account, as an app on its user's device has it."""
        return self.client.open_account(account.account_id, list(permissions))

    def run(self) -> None:
        """Run all work that is due now: jobs, scans, deliveries. The clock does not move."""
        self.service.parts.sandbox().runner.run()

    def settle(self) -> None:
        """Move the clock until everything in progress has ended: a minute."""
        self.clock.advance(60)

    def make_payment(
        self, status: str = "awaiting_payment", *, amount: str = "25.00", **more: Any
    ) -> Payment:
        """A receive Payment to `merchant` that has reached `status` through its real transitions.

        `more` are arguments of `client.payments.receive`. An `expired` Payment moves the clock by a
        day. Its deliveries have been sent when it is returned, unless it is still in progress: then
        they are sent with the next `run`.

        Raises ValueError for a status that a receive Payment does not have.
        """
        if status not in _STATUSES:
            raise ValueError(f"{status!r} is not one of {', '.join(sorted(_STATUSES))}")
        destination = AccountDestination(account_id=self.merchant.account_id)
        more = {"destination": destination, **more}
        created = self.client.payments.receive(amount=amount, **more)
        _STATUSES[status](self, created.id, created.client_secret)
        return self.client.payments.read(created.id)

    def pay(self, payment_id: str, client_secret: str) -> None:
        """Authorize the Payment from the payer's vault; its transfer is then in progress."""
        payer = self.open_account(self.payer, "payments:read", "vault_payments:write")
        payer.pay(payment_id, client_secret)

    def step_until(self, payment_id: str, status: str) -> None:
        """Run one job after the other, and move the clock between, until it has the status.

        A run of all due work would skip a status between two others.
        """
        clock = self.service.parts.ports.clock
        assert isinstance(clock, SandboxClock)
        for _ in range(_STEPS_AT_MOST):
            if self.client.payments.read(payment_id).status == status:
                return
            if not self._worker.run_due(1):
                clock.advance_to(clock.now() + SECOND)
        raise AssertionError(f"the Payment did not become {status}")


def _wait(sandbox: PaymentsSandbox, id: str, secret: str) -> None:
    sandbox.run()


def _cancel(sandbox: PaymentsSandbox, id: str, secret: str) -> None:
    sandbox.client.payments.cancel(id)
    sandbox.run()


def _expire(sandbox: PaymentsSandbox, id: str, secret: str) -> None:
    sandbox.clock.advance(_LONGER_THAN_A_PAYMENT_S)


def _pay_until(status: str) -> Callable[[PaymentsSandbox, str, str], None]:
    def reach(sandbox: PaymentsSandbox, id: str, secret: str) -> None:
        sandbox.pay(id, secret)
        sandbox.step_until(id, status)

    return reach


def _fail_release(sandbox: PaymentsSandbox, id: str, secret: str) -> None:
    _pay_until("accepted")(sandbox, id, secret)
    sandbox.client.sandbox.fail_dependency(dependency="chain", operation="transfer", times=1)
    sandbox.step_until(id, "action_required")
    sandbox.run()


def _write_off(sandbox: PaymentsSandbox, id: str, secret: str) -> None:
    _fail_release(sandbox, id, secret)
    sandbox.client.payments.reconcile(id, action="write_off")
    sandbox.run()


def _succeed(sandbox: PaymentsSandbox, id: str, secret: str) -> None:
    _pay_until("succeeded")(sandbox, id, secret)
    sandbox.run()


def _refund_part(sandbox: PaymentsSandbox, id: str, secret: str) -> None:
    _succeed(sandbox, id, secret)
    sandbox.client.payments.refund(id, amount="0.01", reason="part of it")
    sandbox.step_until(id, "partially_refunded")
    sandbox.run()


def _refund(sandbox: PaymentsSandbox, id: str, secret: str) -> None:
    _succeed(sandbox, id, secret)
    sandbox.client.payments.refund(id, reason="all of it")
    sandbox.step_until(id, "refunded")
    sandbox.run()


_STATUSES: Mapping[str, Callable[[PaymentsSandbox, str, str], None]] = {
    "awaiting_payment": _wait,
    "processing": _pay_until("processing"),
    "accepted": _pay_until("accepted"),
    "executing": _pay_until("executing"),
    "succeeded": _succeed,
    "action_required": _fail_release,
    "failed": _write_off,
    "expired": _expire,
    "cancelled": _cancel,
    "partially_refunded": _refund_part,
    "refunded": _refund,
}
"""How a Payment reaches each status."""
