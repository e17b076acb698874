"""A payer with a linked wallet and a funded vault, whose quotes are settled by a signature."""

from __future__ import annotations

from typing import Any

import pytest

from payments_core.accounts.wallet_signatures import MessageSignature
from payments_core.errors import ValidationFailed
from payments_core.legacy.settlements.record import QuoteSettlement
from payments_core.legacy.settlements.request import (
    SettlementDomain,
    SettlementPayload,
    SettlementRequest,
    SettlementTypes,
    TypedField,
)
from payments_core.payments.destinations import ToAccount
from payments_core.payments.funding.record import FundingOperation
from payments_core.payments.record import Payment
from payments_core.quotes.record import Quote
from payments_core.quotes.request import NewQuote
from payments_core.service import PaymentsService
from payments_core.storage.port import Snapshot
from tests.quote_payer import ask_to_settle
from tests.service.world import BASE, World
from tests.signers import EvmWallet

SIGNER = EvmWallet(41)
STRANGER = EvmWallet(42)
POLYGON = 137
NO_QUOTE = "quote_AAAAAAAAAAAAAAAAAAAAAAAA"


def request_of(body: Any) -> SettlementRequest:
    """What a client sends, as the library takes it."""
    payload, domain, types = body["payload"], body["domain"], body["types"]
    fields = {
        name: tuple(TypedField(name=one["name"], type=one["type"]) for one in listed)
        for name, listed in types.items()
    }
    return SettlementRequest(
        payload=SettlementPayload(
            quote_id=payload["quoteId"],
            nonce=str(payload["nonce"]),
            deadline=str(payload["deadline"]),
        ),
        signature=body["signature"],
        domain=SettlementDomain(
            name=domain["name"],
            version=domain["version"],
            chain_id=str(domain["chainId"]),
            verifying_contract=domain["verifyingContract"],
        ),
        types=SettlementTypes(settlement=fields["Settlement"], domain=fields.get("EIP712Domain")),
    )


class SettlementHarness:
    """Settles quotes; what is signed, and what is sent, can be changed apart."""

    def __init__(self, world: World, funds: str = "100.00") -> None:
        self.world, self.service = world, world.service
        if funds:
            world.fund(funds)
        world.advance(5)
        self.link(SIGNER)

    def link(self, wallet: EvmWallet, account: Any = None) -> None:
        text = f"Link my wallet {wallet.number}."
        owner = account or self.world.payer
        self.service.acting_as(self.world.server).wallets.add_by_message(
            owner.id,
            MessageSignature(
                chain_type="evm", address=wallet.address, message=text, signature=wallet.sign(text)
            ),
        )

    def quote(self, amount: str = "25.00", **more: Any) -> Quote:
        more.setdefault("destination", ToAccount(account_id=self.world.merchant.id))
        if "source_address" not in more:
            more.setdefault("user_id", self.world.payer.id)
        more.setdefault("source_chain_id", BASE)
        more.setdefault("destination_chain_id", BASE)
        new = NewQuote(amount=amount, **more)
        return self.service.acting_as(self.world.server).legacy.create_quote(new).quote

    @property
    def deadline(self) -> int:
        """Ten minutes from now, in Unix seconds."""
        return self.world.clock.now() // 1_000 + 600

    def body(self, quote: Quote, signer: EvmWallet = SIGNER, **signed: Any) -> dict[str, Any]:
        """The body of `settle`, as a client sends it."""
        signed.setdefault("vault", self.world.vault_address())
        signed.setdefault("deadline", self.deadline)
        return ask_to_settle(signer, quote_id=quote.id, **signed)

    def settle(
        self,
        quote: Quote,
        signer: EvmWallet = SIGNER,
        *,
        service: PaymentsService | None = None,
        idempotency_key: Any = None,
        **signed: Any,
    ) -> FundingOperation:
        return self.send(self.body(quote, signer, **signed), service, idempotency_key)

    def send(
        self, body: Any, service: PaymentsService | None = None, idempotency_key: Any = None
    ) -> FundingOperation:
        legacy = (service or self.service).acting_as(self.world.server).legacy
        request = request_of(body)
        return legacy.settle(request, idempotency_key=idempotency_key)

    def faults_of(self, body: Any) -> list[str]:
        """The fields for which a body is refused."""
        with pytest.raises(ValidationFailed) as refused:
            self.send(body)
        return [fault.path for fault in refused.value.fields]

    def payment(self, quote: Quote) -> Payment:
        return self.world.paid(quote.payment_id)

    def settled(self) -> list[QuoteSettlement]:
        """The records of this world's quotes that were settled."""

        def load(snapshot: Snapshot) -> list[QuoteSettlement]:
            quotes = snapshot.find(Quote, "by_created", limit=100).records
            found = [snapshot.get(QuoteSettlement, quote.id) for quote in quotes]
            return [one for one in found if one is not None]

        return self.world.storage.read(self.world.environment_id, load)
