"""What one environment of one app has: an object of every kind that a path can name."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from typing import Any

from payments_core.accounts.capabilities.record import CapabilityActivation
from payments_core.accounts.verification.record import Verification
from payments_core.books.closing import DayClosing
from payments_core.chains.simulated.chain import SimulatedChain
from payments_core.contracts.versions import CURRENT_VERSION
from payments_core.deposits.record import Deposit
from payments_core.money import Atomic
from payments_core.onramps.record import (
    ONRAMP_NUMBER_SEAL,
    BankTransaction,
    DepositInstructions,
    OnrampAccount,
    OnrampDestination,
)
from payments_core.payments.destinations import ToAccount
from payments_core.quotes.request import NewQuote
from payments_core.screening.port import Subject
from payments_core.screening.record import HeldTransfer
from payments_core.storage.records import Record
from payments_core.tenants.request_log import LoggedRequest
from tests.http.authorization.wire import Wire
from tests.shipped import asset_of
from tests.signers import EvmWallet

OWNER = EvmWallet(31)
"""Who owns the vault of a buyer."""

BASE = 8453
OPTIMISM = 10
USDC = asset_of(BASE, "USDC")
ORIGIN = "https://shop.example"
PAYEE = "0x7476609c9e396ea1ecAFDfaf204457d0B83a338f"
HOOK = "https://93.184.216.34"
EVERY_PERMISSION = (
    "account:read", "deposits:read", "deposits:write", "payments:read", "payments:write",
    "vault_payments:write",
)  # fmt: skip

Ids = dict[str, str]


def basic(app_id: str, secret: str) -> dict[str, str]:
    """The header of a server key."""
    pair = base64.b64encode(f"{app_id}:{secret}".encode()).decode()
    return {"Authorization": f"Basic {pair}"}


def bearer(token: str) -> dict[str, str]:
    """The header of everything else."""
    return {"Authorization": f"Bearer {token}"}


def listed_address(name: str) -> str:
    """A wallet address that nobody else lists."""
    return "0x" + hashlib.sha256(name.encode()).hexdigest()[:40]


_TO_PAYEE = OnrampDestination(
    type="wallet",
    chain_id=BASE,
    asset_symbol="USDC",
    token_address="0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913",
    decimals=6,
    address=PAYEE,
)


class PopulatedEnvironment:
    """An environment with two accounts: a buyer, who is "own", and a seller, the neighbour.

    `ids` and `neighbours` have an id for every name that stands in paths, and `payments` the
    Payments, by what became of them.
    """

    def __init__(
        self, wire: Wire, chain: SimulatedChain, app_id: str, environment_id: str, name: str
    ) -> None:
        self.wire, self.chain = wire, chain
        self.app_id, self.environment_id, self.name = app_id, environment_id, name
        tenants = wire.service.tenants
        self.key, self.secret = tenants.create_key(environment_id, "standard", "main")
        self.payments: dict[str, Any] = {}
        given, _ = tenants.create_key(environment_id, "restricted", "given away", scopes=["v2:kyc"])
        self.ids: Ids = {"appId": app_id, "environmentId": environment_id, "keyId": given.id}
        self.neighbours: Ids = {}
        self.listed = listed_address(f"{name}-buyer")
        self._calls = 0

    def furnish(self, origin: str) -> PopulatedEnvironment:
        """Make one of everything."""
        settings = {
            "enabled": True, "allowedOrigins": [origin],
            "allowedDestinations": [{"type": "wallet", "chainId": BASE, "address": PAYEE}],
        }  # fmt: skip
        self.call("PUT", "/v2/partners/payment-settings", settings)
        self._accounts()
        self._payments()
        self._hooks()
        DayClosing(self.wire.service.parts.ports).run(self.environment_id)
        return self

    @property
    def keyed(self) -> dict[str, str]:
        """The header of the standard key."""
        return basic(self.app_id, self.secret)

    def call(
        self, method: str, target: str, body: Any = None, headers: Mapping[str, str] | None = None
    ) -> Any:
        """The answer to a call that must succeed, by default with the standard key."""
        self._calls += 1
        key = {"Idempotency-Key": f"furnishing-{self._calls}"} if method != "GET" else {}
        given = {**self.keyed, **(headers or {}), **key}
        seen = self.wire.call(method, target, given, body)
        assert seen.status < 300, (method, target, seen.body)
        return seen.json

    def access(self, account_id: str, *permissions: str, **body: Any) -> tuple[str, str]:
        """The id and the access token of a session of the account."""
        made = self.session(account_id, *permissions, **body)
        headers = bearer(made["clientSessionToken"])
        token = self.call("POST", "/v2/client/auth/exchange", headers=headers)["accessToken"]
        return made["clientSessionId"], token

    def session(
        self,
        account_id: str,
        *permissions: str,
        headers: Mapping[str, str] | None = None,
        seconds: int = 86_400,
    ) -> Any:
        """A session of the account, by default with every permission."""
        body = {
            "accountId": account_id, "expiresInSeconds": seconds,
            "permissions": list(permissions or EVERY_PERMISSION),
        }  # fmt: skip
        return self.call("POST", "/v2/client-sessions", body, headers)

    def payment(self, to: str, amount: str = "5.00") -> Any:
        """A Payment that an account receives."""
        destination = {"type": "account", "accountId": to}
        body = {"intent": "receive", "amount": amount, "destination": destination}
        return self.call("POST", "/v2/payments", body)

    def option(self, payment: Any, access: str) -> Any:
        """A Vault option of the token's account."""
        path = f"/v2/client/me/payments/{payment['id']}/options"
        return self.call("POST", path, None, self.both(payment, access))["option"]

    def both(self, payment: Any, access: str) -> dict[str, str]:
        """The two credentials of a checkout out of a vault."""
        return {**bearer(access), "X-Service-Payment-Secret": payment["clientSecret"]}

    def pay(self, to: str) -> Any:
        """A Payment out of the buyer's vault, authorized."""
        payment = self.payment(to)
        option = self.option(payment, self.buyers)
        body = {
            "actionId": option["execution"]["actionId"],
            "proof": {"type": "managed_authorization", "authorization": "approved"},
        }
        path = f"/v2/client/me/payments/{payment['id']}/options/{option['id']}/authorize"
        self.call("POST", path, body, self.both(payment, self.buyers))
        return payment

    def let_pay_out(self) -> None:
        """Make the buyer's capabilities active, though nobody has verified it: tests do that."""
        for name, letter in (("us_bank_payout", "A"), ("us_bank_funding", "B")):
            self._insert(
                CapabilityActivation(
                    id="capability_activation_" + letter * 24,
                    account_id=self.ids["accountId"],
                    capability=name,  # type: ignore[arg-type]
                    status="active",
                    api_version=CURRENT_VERSION,
                    created_at_ms=self.wire.service.parts.ports.clock.now(),
                    updated_at_ms=self.wire.service.parts.ports.clock.now(),
                )
            )

    def _incoming(self, account_id: str, onramp_id: str) -> str:
        """A bank transfer to an on-ramp, which the bank expects."""
        ports = self.wire.service.parts.ports
        id = ports.identifiers.new("bank_txn")
        self._insert(
            BankTransaction(
                id=id,
                onramp_account_id=onramp_id,
                account_id=account_id,
                external_user_id="buyer",
                incoming_id=id,
                rail="wire",
                amount_cents=100,
                type="transfer",
                destination=_TO_PAYEE,
                status="scheduled",
                api_version=CURRENT_VERSION,
                created_at_ms=ports.clock.now(),
                updated_at_ms=ports.clock.now(),
            )
        )
        return id

    def _onramp(self, account_id: str) -> str:
        """An on-ramp whose number the bank has made."""
        ports = self.wire.service.parts.ports
        id = ports.identifiers.new("onramp_account")
        sealed = ports.key_ring.seal(ONRAMP_NUMBER_SEAL, id, b"812345678901")
        self._insert(
            OnrampAccount(
                id=id,
                account_id=account_id,
                external_user_id="buyer",
                bank_key=id,
                status="active",
                currency="usd",
                destination=_TO_PAYEE,
                instructions=DepositInstructions(
                    bank_name="Bank",
                    bank_address="1 Main St",
                    beneficiary_name="Shop",
                    beneficiary_address="1 Main St",
                    sealed_number=base64.b64encode(sealed).decode(),
                    last4="8901",
                    routing_number="021000021",
                    reference="ref",
                    rails=("ach_push", "wire"),
                ),
                api_version=CURRENT_VERSION,
                created_at_ms=ports.clock.now(),
                updated_at_ms=ports.clock.now(),
            )
        )
        return id

    def _deposit(self, account_id: str, issued: Any, sender: str) -> str:
        """A deposit of a token that is not credited: a mainnet has no faucet.

        It came back from a recipient, so that the chain, which does not know it, is not asked.
        """
        ports = self.wire.service.parts.ports
        [id, key, sent] = [
            ports.committer.id_sequence().issue(kind) for kind in ("deposit", "tx", "out")
        ]
        self._insert(
            Deposit(
                id=id,
                account_id=account_id,
                deposit_address_id=issued["id"],
                chain_id=BASE,
                asset_symbol="DAI",
                token_address="0x50c5725949A6F0c72E6C4a641F24049A917DB0Cb",
                decimals=18,
                is_misdirected=True,
                amount_atomic=Atomic(1_000),
                sender=sender,
                address=issued["address"],
                transaction_hash=f"0x{key}",
                position=0,
                log_index=0,
                block_number=1,
                block_hash="0x01",
                status="rejected",
                status_version=2,
                rejection_reason="wrong_token",
                returned_from=sent,
                watched=False,
                external_user_id="",
                api_version=CURRENT_VERSION,
                created_at_ms=ports.clock.now(),
                updated_at_ms=ports.clock.now(),
            )
        )
        return id

    def _verification(self, account_id: str) -> str:
        """A verification that waits; it is not the account's newest, which may start another."""
        ports = self.wire.service.parts.ports
        id = ports.committer.id_sequence().issue("verification")
        now = ports.clock.now()
        self._insert(
            Verification(
                id=id,
                account_id=account_id,
                status="pending",
                reference=f"case-{id}",
                api_version=CURRENT_VERSION,
                created_at_ms=now,
                updated_at_ms=now,
            )
        )
        return id

    def _held_transfer(self) -> str:
        """A transfer that screening has blocked, and that waits for a decision."""
        ports = self.wire.service.parts.ports
        id, now = ports.committer.id_sequence().issue("job"), ports.clock.now()
        subject = Subject(kind="address", reference=PAYEE, chain_id=BASE)
        self._insert(
            HeldTransfer(
                id=id,
                status="blocked",
                subject_key=subject.key,
                subject=subject,
                direction="out",
                resource=f"withdrawal-{id}",
                owner=f"withdrawal-{id}",
                created_at_ms=now,
                updated_at_ms=now,
            )
        )
        return id

    def _insert(self, record: Record) -> None:
        storage = self.wire.service.parts.ports.storage
        storage.transact(self.environment_id, lambda tx: tx.insert(record))

    def work(self) -> None:
        """Do what is due in this mode."""
        self.wire.service.worker(self.wire.mode).run_until_idle()

    def _accounts(self) -> None:
        for number, (who, ids) in enumerate((("buyer", self.ids), ("seller", self.neighbours))):
            wallets = [f"0x{number + 1:040x}", listed_address(f"{self.name}-{who}")]
            made = self.call(
                "POST",
                "/v2/accounts",
                {
                    "externalUserId": f"{self.name}-{who}",
                    "subjectType": "individual",
                    "wallets": [{"address": one, "chainType": "evm"} for one in wallets],
                    **({"username": f"{self.name}_{who}"} if who == "seller" else {}),
                },
            )
            account_id = made["id"]
            [vault] = [vault for vault in made["vaults"] if vault["chainId"] == BASE]
            self.chain.mint(USDC.address, vault["address"], 100_000_000, f"{self.name}-{who}")
            body = {"vaultId": vault["vaultId"], "amountPerPeriod": "5.00", "period": "day"}
            mandate = self.call("POST", f"/v2/accounts/{account_id}/mandates", body)
            body = {"chainId": BASE}
            issued = self.call("POST", f"/v2/accounts/{account_id}/deposit-addresses", body)
            ids.update(
                accountId=account_id,
                vaultId=vault["vaultId"],
                walletId=made["wallets"][0]["id"],
                mandateId=mandate["id"],
                clientSessionId=self.session(account_id)["clientSessionId"],
                onrampBankAccountId=(onramp := self._onramp(account_id)),
                bankTransactionId=self._incoming(account_id, onramp),
                verificationId=self._verification(account_id),
                heldTransferId=self._held_transfer(),
                depositId=self._deposit(account_id, issued, wallets[1]),
                depositAddress=issued["address"],
                challengeId=self._challenge(account_id, number)["id"],
            )
            self._link_owner(account_id, number)
            if made["paymentAddress"]:
                ids["paymentAddress"] = made["paymentAddress"]
        if self.wire.mode == "sandbox":  # production has no prices here
            self._quote()
        self.chain.mine(3)
        _, self.buyers = self.access(self.ids["accountId"])
        _, self.sellers = self.access(self.neighbours["accountId"])

    def _link_owner(self, account_id: str, number: int) -> None:
        """The wallet that owns the account's vault."""
        made = self._challenge(account_id, OWNER.number - 7 + number)
        signature = EvmWallet(OWNER.number + number).sign(made["message"])
        body = {"challengeId": made["id"], "signature": signature}
        self.call("POST", f"/v2/accounts/{account_id}/wallets", body)

    def _quote(self) -> None:
        """What the buyer would pay to the seller, by the library: v1 can be removed."""
        service = self.wire.service
        new = NewQuote(
            amount="1.00",
            user_id=self.ids["accountId"],
            destination=ToAccount(account_id=self.neighbours["accountId"]),
        )
        authority = service.tenants.system_authority(self.environment_id)
        quoted = service.acting_as(authority).legacy.create_quote(new).quote
        self.ids.update(quoteId=quoted.id, quoteAddress=quoted.deposit_address)

    def _challenge(self, account_id: str, number: int) -> Any:
        wallet = EvmWallet(7 + number)
        body = {"address": wallet.address, "chainType": "evm"}
        made = self.call("POST", f"/v2/accounts/{account_id}/wallets/challenge", body)
        if number == 0:
            self.signature = wallet.sign(made["message"])
        return made

    def _payments(self) -> None:
        own, other = self.ids, self.neighbours
        self.payments["in"] = self.payment(own["accountId"])
        self.payments["out"] = out = self.payment(other["accountId"])
        offered = self.option(out, self.sellers)
        other["optionId"], self.sellers_action = offered["id"], offered["execution"]["actionId"]
        self.selected = self.option(out, self.buyers)
        self.direct: Ids = {}
        for role, payment in self.payments.items():
            path = f"/v2/public/payments/{payment['id']}/options"
            headers = bearer(payment["clientSecret"])
            made = self.call("POST", path, {"providerCode": "direct"}, headers)["option"]
            self.direct[role] = made["id"]
        own.update(
            paymentId=out["id"],
            optionId=self.selected["id"],
            code=out["paymentUrl"].rpartition("/")[2],
            sessionId=self.call("GET", f"/v2/payments/{out['id']}")["sessionId"],
        )
        other.update(paymentId=self.payments["in"]["id"])

    def _hooks(self) -> None:
        path = f"/v2/console/apps/{self.app_id}/environments/{self.environment_id}/webhooks"
        for ids, url in ((self.ids, f"{HOOK}/a"), (self.neighbours, f"{HOOK}/b")):
            made = self.call("POST", path, {"url": url, "subscribedEvents": ["webhook.test"]})
            endpoint = made["webhookEndpoint"]["id"]
            ids["webhookId"] = endpoint
            self.call("POST", f"/v2/console/webhooks/{endpoint}/test")
            self.work()
            found = self.call("GET", f"/v2/console/webhooks/{endpoint}/deliveries")["deliveries"]
            ids["deliveryId"], ids["eventId"] = found[0]["id"], found[0]["outboxEventId"]
            ids["requestId"] = self._log_request()

    def _log_request(self) -> str:
        """A recorded request: its id."""
        service = self.wire.service
        ports = service.parts.ports
        request = LoggedRequest(
            id=ports.identifiers.new("req"), at_ms=ports.clock.now(), method="GET",
            path="/v2/accounts", credential="server_key", status=200,
        )  # fmt: skip
        service.parts.request_log.append(self.environment_id, self.wire.mode, [request])
        return request.id

    def go_through(self, advance: Any) -> None:
        """Bring Payments to where money has moved: settled ones, and one that came too late."""
        seller = self.neighbours["accountId"]
        for role in ("settled", "flagged"):
            self.payments[role] = self.pay(seller)
        late = self.payments["late"] = self.payment(seller)
        self.call("POST", f"/v2/payments/{late['id']}/cancel")
        self.chain.mint(USDC.address, late["escrow"]["address"], 5_000_000, "late")
        for _ in range(3):
            self.work()
            advance(60)
        for role in ("settled", "flagged", "late"):
            read = self.call("GET", f"/v2/payments/{self.payments[role]['id']}")
            wanted = "action_required" if role == "late" else "succeeded"
            assert read["status"] == wanted, (role, read["status"])
            self.payments[role] = {**self.payments[role], **read}
        path = f"/v2/sessions/{self.payments['flagged']['sessionId']}/dispute"
        self.call("POST", path, {"reason": "not delivered"}, bearer(self.secret))
