"""A furnished shop behind one WSGI callable, which goes back to how it was as often as asked.

Every call starts from the same storage, time and chance: what a call is answered depends on nothing
that another call did before, and a failure repeats.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from payments_core.accounts.operations import NewAccount
from payments_core.chains.port import AddressSpec
from payments_core.clock import FixedClock
from payments_core.contracts.versions import CURRENT_VERSION
from payments_core.credentials.keyring import KeyRing
from payments_core.credentials.tokens import Claims
from payments_core.payments.destinations import ToAccount
from payments_core.payments.operations import NewPayment
from payments_core.public_url import LOCAL_URL
from payments_core.sandbox.clock import SandboxClock
from payments_core.service import PaymentsService
from payments_core.settings import Settings
from payments_core.tenants.authorization import Authority
from payments_core.webhooks.settings import WebhookSettings
from payments_core.webhooks.transports.port import Deadline, TransportResult, WebhookRequest
from payments_core_http.app import create_app
from tests.http.authorization.populated_environment import (
    BASE,
    EVERY_PERMISSION,
    ORIGIN,
    OWNER,
    USDC,
    PopulatedEnvironment,
    basic,
)
from tests.http.authorization.rewinding import RewindableStorage
from tests.http.authorization.wire import Wire
from tests.http.console import NEVER, OK
from tests.quote_payer import ask_to_settle
from tests.service.world import authority_of
from tests.vault_owner import ask_for_module

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIEnvironment

CHANCE = 20_260_909
DAY_S = 86_400
LITTLE_MS = 10_000
_ID = re.compile(rb'"([a-z]+(?:_[a-z]+)*_[A-Za-z0-9_-]{24})"')
Ids = Mapping[str, str]


class Partner:
    """The other side of the webhooks: it takes what the first endpoint gets, and nothing else."""

    def send(
        self, request: WebhookRequest, addresses: Sequence[str], deadline: Deadline
    ) -> TransportResult:
        return OK if request.destination.path.endswith("/a") else NEVER

    def close(self) -> None:
        pass


class Names:
    """A name service of ours: every name is one public address."""

    def resolve(
        self, host: str, port: int, timeout_s: float, *, environment_id: str
    ) -> Sequence[str]:
        return ["93.184.216.34"]


class Shop:
    """One app of a sandbox with an object of every kind, and another tenant's beside it.

    A corner of it has what a path or a body may name, all of it belonging together. `foreign` is
    of the app's production environment: with a second app the sandbox's own routes would be gone.
    """

    def __init__(self) -> None:
        self._random = random.Random(CHANCE)
        self._time = FixedClock()
        self._storage = RewindableStorage()
        self._ring = KeyRing.parse(KeyRing.generate(self._random.randbytes))
        self._start()
        app = self.service.tenants.create_app("Shop", "shop")
        self.app_id, self.environment_id = app.id, app.environments["sandbox"]
        chain = self.service.chains[BASE]
        wire = Wire(self.service, "sandbox")
        self.populated = PopulatedEnvironment(wire, chain, app.id, self.environment_id, "shop")  # type: ignore[arg-type]
        self.populated.furnish(ORIGIN).go_through(self._advance)
        self.populated.let_pay_out()
        self.restricted = self.service.tenants.create_key(
            self.environment_id, "restricted", "narrow", scopes=["v2:accounts", "v2:payments"]
        )[1]
        self.sdk_key = self.service.tenants.create_key(self.environment_id, "publishable", "page")[
            1
        ]
        self.corners = self._corners()
        self.foreign = self._production(app.environments["production"])
        self._mark, self._marked_at = self._storage.mark(), self.service.parts.ports.clock.now()
        self.seen: set[str] = set()
        self.rewind()

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        answered = b"".join(self._app(environ, start_response))
        self.seen.update(found.decode() for found in _ID.findall(answered))
        return [answered]

    def rewind(self) -> None:
        """Be as it was when it opened."""
        self._storage.rewind(self._mark)
        self._random.seed(CHANCE + 1)
        if self.service.parts.ports.clock.now() != self._marked_at:
            self._start()  # a clock goes back with its process alone
            self.service.refresh()
        self.seen = {id for ids in (*self.corners, self.foreign) for id in ids.values()}

    def pass_time(self) -> None:
        """Do what is due, and let the chains and timers go on a little."""
        clock = self.service.parts.ports.clock
        assert isinstance(clock, SandboxClock)
        worker = self.service.worker("sandbox")
        worker.run_through(clock.now() + LITTLE_MS, clock.advance_to)

    def basic(self, secret: str | None = None) -> str:
        """The header of a server key, by default the standard one."""
        return basic(self.app_id, secret or self.populated.secret)["Authorization"]

    def payment_secret(self, payment_id: str) -> str:
        """The client secret of any Payment of the shop's, there or not."""
        return self.service.parts.ports.tokens.payment_secret(self._claims(payment_id))

    @property
    def settlement(self) -> dict[str, Any]:
        """What the buyer has signed for the shop's quote."""
        quote_id = self.populated.ids["quoteId"]
        return ask_to_settle(OWNER, self._buyers_vault, quote_id, deadline=4_000_000_000)

    @property
    def role_module(self) -> dict[str, Any]:
        """What the owner of the buyer's vault has signed, for its role module."""
        chain = self.service.chains[BASE]
        asked = ask_for_module(
            chain, self.environment_id, self._buyers_vault, (USDC.address,), OWNER
        )
        del asked["module"]
        return {"userId": self.populated.ids["accountId"], **asked}

    @property
    def _buyers_vault(self) -> str:
        owner = AddressSpec(self.environment_id, "vault", self.populated.ids["accountId"])
        return self.service.chains[BASE].derive(owner)

    def session_token(self, account_id: str) -> str:
        """A token of a new session of the account, not exchanged yet."""
        made = self.service.acting_as(self._server).client_sessions.create(
            account_id=account_id, expires_in_s=DAY_S, permissions=EVERY_PERMISSION
        )
        return made.token

    def access_token(self, account_id: str) -> str:
        """A token that opens everything of the account."""
        token = self.session_token(account_id)
        return self.service.client_tokens.exchange(token, mode="sandbox").access_token

    @property
    def _server(self) -> Authority:
        tenants = self.service.tenants
        environment, key = tenants.authenticate(self.app_id, self.populated.secret, mode="sandbox")
        return authority_of(environment, key)

    def _claims(self, payment_id: str) -> Claims:
        return Claims(
            self.environment_id, payment_id, CURRENT_VERSION, self._marked_at + DAY_S * 1_000
        )

    def _start(self) -> None:
        """The process on the storage, as it is."""
        self.service = PaymentsService(
            self._storage,
            self._ring,
            settings=Settings(public_url=LOCAL_URL, webhooks=WebhookSettings(local_allowed=True)),
            clock=SandboxClock(self._storage, self._time),
            entropy=self._random.randbytes,
            transport=Partner(),
            resolver=Names(),
        )
        self._app = create_app(self.service, mode="sandbox")

    def _advance(self, seconds: int) -> None:
        self.populated.call("POST", "/v2/sandbox/clock", {"advanceSeconds": seconds})

    def _corners(self) -> Sequence[Ids]:
        """Names that belong together, of Payments in every state and of both accounts."""
        populated, payments = self.populated, self.populated.payments
        buyer = {
            **populated.ids,
            "actionId": populated.selected["execution"]["actionId"],
            "signature": populated.signature,
        }
        seller = {**buyer, **populated.neighbours}
        corners = [
            buyer,
            buyer | {"optionId": populated.direct["out"]},
            seller | {"paymentId": payments["out"]["id"]},
            seller | {"optionId": populated.direct["in"]},
        ]
        for role in ("settled", "flagged", "late"):
            payment = payments[role]
            held = {"paymentId": payment["id"], "sessionId": payment["sessionId"]}
            option = payment["selectedOptionId"]
            corners.append(buyer | held | ({"optionId": option} if option else {}))
        return corners

    def _production(self, environment_id: str) -> Ids:
        """What another environment has."""
        service, authority = self.service, self.service.tenants.system_authority(environment_id)
        new = NewAccount(external_user_id="stranger", subject_type="individual")
        made = service.acting_as(authority).accounts.create(new)
        payment = (
            service.acting_as(authority)
            .payments.receive(
                NewPayment(amount="1.00", destination=ToAccount(account_id=made.account.id))
            )
            .payment
        )
        return {
            "accountId": made.account.id,
            "vaultId": made.vaults[0].id,
            "paymentId": payment.id,
            "sessionId": str(payment.session_id),
            "environmentId": environment_id,
        }
