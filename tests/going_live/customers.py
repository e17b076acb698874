"""The customers of a play, and what they and their backend do: requests, visits and payments."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any
from urllib.request import urlopen

import attrs

from payments_core.resources import Resources
from payments_core_http.cli.api_client import NoResponse, bearer_authorization
from tests.going_live.chains import TestChain
from tests.going_live.deployment import LiveDeployment
from tests.outages.partner import Memory, Partner

SYMBOL = "USDC"
UNIT = 10**6
DEPOSIT = 100
BLOCKED = "0x00000000000000000000000000000000000b10c5"
"""An address that the screening provider has on its list."""
SESSION_S = 3_600


@attrs.define
class Customer:
    """One customer: what the seed chose, and what was made for it. Amounts are whole tokens."""

    name: str
    chain_id: int
    paid: int
    refunded: int
    sent: int
    paid_out: int
    bought: int
    routed: int
    carded: int
    refund_address: str
    wallet: str
    account_id: str = ""
    deposit_address: str = ""
    payment_id: str = ""
    send_id: str = ""
    stopped_id: str = ""
    payout_id: str = ""
    routed_id: str = ""
    carded_id: str = ""
    bank_account_id: str = ""
    onramp_id: str = ""
    passed: set[str] = attrs.field(factory=set)
    """The steps that it came through."""


class Stage:
    """The deployment with its customers, and the partner that serves them."""

    def __init__(self, live: LiveDeployment, customers: int, seed: int) -> None:
        self.live, self.chance = live, random.Random(seed)
        self.memory = Memory(live.folder / "answered.jsonl")
        self.credentials = {"backend": live.credential}
        self.partner = Partner(live.urls, self.memory, self.credentials, self.chance)
        self.customers = [self._customer(number) for number in range(1, customers + 1)]
        self.merchant_id = self.create_account("merchant")
        for chain_id in live.chains:
            live.screening.order(
                "list", type="address", reference=BLOCKED, chain=chain_id, result="match"
            )

    @property
    def books(self) -> Resources:
        """The environment's resources, read by the library."""
        return self.live.service.environment(self.live.environment_id)

    def chain_of(self, customer: Customer) -> TestChain:
        """The chain that a customer uses."""
        return self.live.chains[customer.chain_id]

    def other_chain_of(self, customer: Customer) -> TestChain:
        """The chain that a customer's routed Payment comes from."""
        return next(one for id, one in self.live.chains.items() if id != customer.chain_id)

    def _customer(self, number: int) -> Customer:
        choose = self.chance
        return Customer(
            name=f"customer-{number}",
            chain_id=choose.choice(sorted(self.live.chains)),
            paid=choose.randint(20, 40),
            refunded=choose.randint(1, 19),
            sent=choose.randint(1, 9),
            paid_out=choose.randint(1, 9),
            bought=choose.randint(1, 50),
            routed=choose.randint(1, 50),
            carded=choose.randint(1, 50),
            refund_address=_address(choose),
            wallet=_address(choose),
        )

    # What a backend does.

    def ask(self, method: str, path: str, body: object, key: str, **more: Any) -> Mapping[str, Any]:
        """A request, until it is answered. Raises NeverAnswered, Refused."""
        answer: Mapping[str, Any] = self.partner.ask(key, method, path, body, key=key, **more)
        return answer

    def create_account(self, name: str) -> str:
        body = {"externalUserId": name, "subjectType": "individual"}
        return str(self.ask("POST", "/v2/accounts", body, f"account-{name}")["id"])

    def sign_in(self, customer: Customer) -> None:
        """A token for a customer; where the exchange's answer is lost it takes a new session."""
        body = {
            "accountId": customer.account_id,
            "permissions": ["payments:read", "vault_payments:write"],
            "expiresInSeconds": SESSION_S,
        }
        while True:
            session = self.partner.ask("session", "POST", "/v2/client-sessions", body)
            token = bearer_authorization(session["clientSessionToken"])
            self.credentials[customer.name] = token
            try:
                exchanged = self.partner.ask(
                    "exchange", "POST", "/v2/client/auth/exchange", whose=customer.name, once=True
                )
            except NoResponse:
                continue
            self.credentials[customer.name] = bearer_authorization(exchanged["accessToken"])
            return


def open_account(stage: Stage, customer: Customer) -> None:
    """An account with its vaults and a deposit address."""
    customer.account_id = stage.create_account(customer.name)
    path = f"/v2/accounts/{customer.account_id}/deposit-addresses"
    body = {"chainId": customer.chain_id}
    issued = stage.ask("POST", path, body, f"address-{customer.name}")
    customer.deposit_address = issued["address"]


def start_verification(stage: Stage, customer: Customer) -> None:
    """The provider opens a case."""
    path = f"/v2/accounts/{customer.account_id}/verifications"
    body = {"returnUrl": "https://shop.example/done"}
    stage.ask("POST", path, body, f"verify-{customer.name}")


def pass_verification(stage: Stage, customer: Customer) -> None:
    """The customer passes on the provider's page, which reports it by webhook."""
    [verification] = stage.books.verifications.list(customer.account_id).records
    page = f"{stage.live.kyc.url}/verify/{str(verification.hosted_url).rpartition('/')[2]}"
    with urlopen(page) as shown:
        assert b'value="passed"' in shown.read()
    reference = verification.reference
    stage.live.kyc.order("decide", case=reference, state="passed")


def deposit(stage: Stage, customer: Customer) -> None:
    """A wallet pays the deposit address."""
    stage.chain_of(customer).pay(customer.deposit_address, DEPOSIT * UNIT)


def pay_by_vault(stage: Stage, customer: Customer) -> None:
    """A Payment to the merchant, which the customer pays from the vault."""
    stage.sign_in(customer)
    name = customer.name
    payment = _create_payment(stage, customer, customer.paid, f"payment-{name}")
    customer.payment_id = payment["id"]
    path = f"/v2/client/me/payments/{payment['id']}/options"
    as_payer: dict[str, Any] = {"whose": name, "secret": payment["clientSecret"]}
    made = stage.partner.ask(
        "option", "POST", path, {"providerCode": "vault"}, key=f"option-{name}", **as_payer
    )
    option = made["option"]
    proof = {"type": "managed_authorization", "authorization": "approved"}
    authorized = {"actionId": option["execution"]["actionId"], "proof": proof}
    stage.ask("POST", f"{path}/{option['id']}/authorize", authorized, f"pay-{name}", **as_payer)


def pay_by_routing(stage: Stage, customer: Customer) -> None:
    """A Payment to the merchant, which a wallet pays on the other chain."""
    name, source = customer.name, stage.other_chain_of(customer)
    payment = _create_payment(stage, customer, customer.routed, f"routed-{name}")
    customer.routed_id = payment["id"]
    path = f"/v2/public/payments/{payment['id']}/options"
    as_payer: dict[str, Any] = {"whose": "payer", "secret": payment["clientSecret"]}
    body = {
        "providerCode": "routing",
        "chainId": source.chain_id,
        "assetSymbol": SYMBOL,
        "refundAddress": customer.refund_address,
    }
    option = stage.ask("POST", path, body, f"route-{name}", **as_payer)["option"]
    selected = stage.ask(
        "POST", f"{path}/{option['id']}/select", None, f"select-{name}", **as_payer
    )
    pays = selected["option"]["execution"]
    source.pay(pays["to"], int(pays["amountAtomic"]))


def pay_by_card(stage: Stage, customer: Customer) -> None:
    """A Payment to the merchant, whose tokens are bought at a hosted on-ramp."""
    name, cards = customer.name, stage.live.cards
    payment = _create_payment(stage, customer, customer.carded, f"carded-{name}")
    customer.carded_id = payment["id"]
    path = f"/v2/public/payments/{payment['id']}/options"
    as_payer: dict[str, Any] = {"whose": "payer", "secret": payment["clientSecret"]}
    body = {"providerCode": "hosted_onramp"}
    option = stage.ask("POST", path, body, f"card-{name}", **as_payer)["option"]
    selected = stage.ask("POST", f"{path}/{option['id']}/select", None, f"buy-{name}", **as_payer)
    token = selected["option"]["execution"]["url"].rpartition("/")[2]
    [purchase] = [one["id"] for one in cards.read().values() if one["token"] == token]
    cards.order("pay", purchase=purchase)


def refund(stage: Stage, customer: Customer) -> None:
    """The merchant gives a part back, to a wallet of the customer."""
    body = {"amount": f"{customer.refunded}.00", "destination": customer.refund_address}
    path = f"/v2/payments/{customer.payment_id}/refunds"
    stage.ask("POST", path, body, f"refund-{customer.name}")


def send(stage: Stage, customer: Customer) -> None:
    """The customer sends from the vault to a wallet."""
    customer.send_id = _send(stage, customer, customer.wallet, f"send-{customer.name}")


def send_to_blocked(stage: Stage, customer: Customer) -> None:
    """The customer sends to an address that the screening provider blocks."""
    customer.stopped_id = _send(stage, customer, BLOCKED, f"stopped-{customer.name}")


def _send(stage: Stage, customer: Customer, to_wallet: str, key: str) -> str:
    source = {
        "type": "vault",
        "accountId": customer.account_id,
        "chainId": customer.chain_id,
        "assetSymbol": SYMBOL,
    }
    to = {"type": "wallet", "address": to_wallet, "chainId": customer.chain_id}
    body = {"intent": "send", "amount": f"{customer.sent}.00", "source": source, "destination": to}
    return str(stage.ask("POST", "/v2/payments", body, key)["id"])


def _create_payment(stage: Stage, customer: Customer, amount: int, key: str) -> Mapping[str, Any]:
    body = {
        "intent": "receive",
        "amount": f"{amount}.00",
        "chainId": customer.chain_id,
        "assetSymbol": SYMBOL,
        "destination": {"type": "account", "accountId": stage.merchant_id},
        "reference": key,
        "expiresInSeconds": 86_400,
    }
    return stage.ask("POST", "/v2/payments", body, key)


def _address(chance: random.Random) -> str:
    """A wallet outside that nobody else has."""
    from eth_utils.address import to_checksum_address

    return str(to_checksum_address(f"0x{chance.getrandbits(160):040x}"))
