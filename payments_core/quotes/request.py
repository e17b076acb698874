"""The request for a quote, resolved to payer, recipient, assets and amount."""

from __future__ import annotations

from typing import Annotated

import attrs
from msgspec import Meta

from payments_core.accounts.operations import DEFAULT_SETTLEMENT
from payments_core.accounts.record import Account, Settlement
from payments_core.addresses import AddressError
from payments_core.amounts import parse_positive_amount
from payments_core.brief_repr import brief_repr
from payments_core.errors import AmountOutOfRange, UnsupportedAsset, ValidationFailed
from payments_core.money import MAX_ATOMIC
from payments_core.networks import DEFAULT_SYMBOL, Asset, Networks
from payments_core.payment_settings.record import PaymentMethod
from payments_core.payments.destinations import DestinationRequest
from payments_core.payments.options.methods import METHODS
from payments_core.validation.faults import require_exactly_one
from payments_core.validation.fields import AccountId, Address, Amount, AssetSymbol, ChainId

RawAmount = Annotated[
    str,
    Meta(pattern=r"^[0-9]{1,78}$", extra={"rule": "a digit string of at most 78 digits"}),
]
TokenName = Annotated[str, Meta(min_length=1, max_length=64)]
"""A token by its symbol or its address."""


@attrs.frozen(kw_only=True)
class NewQuote:
    """The input of a quote.

    The amount is of the source token: either `amount`, decimal text in whole tokens, or
    `raw_amount`, in its smallest unit. The payer is an account (`user_id`) or a wallet
    (`source_address`). Without `source_chain_id` it is the payer's preferred chain, without
    `destination_chain_id` or `destination_token` the recipient's preference, else USDC on Base.

    >>> new = NewQuote(amount="5.00", user_id=eve.id, destination=ToAccount(account_id=bob.id))
    >>> shop.legacy.create_quote(new, idempotency_key="quote-2").quote.rate
    '1'
    """

    __repr__ = brief_repr

    amount: Amount | None = None
    raw_amount: RawAmount | None = None
    user_id: AccountId | None = None
    source_address: Address | None = None
    source_chain_id: ChainId | None = None
    source_chain_token: TokenName = DEFAULT_SYMBOL
    destination: DestinationRequest
    destination_chain_id: ChainId | None = None
    destination_token: AssetSymbol | None = None


@attrs.frozen(kw_only=True)
class Exchange:
    """Input and output of a quote, before any price.

    `fee_bps` is the recipient's fee on the released amount (contract §6 "Fees").
    """

    payer_account_id: str | None
    payer_address: str | None
    recipient: Account | None
    source: Asset
    destination: Asset
    amount_atomic: int
    fee_bps: int

    @property
    def is_routed(self) -> bool:
        """Whether the assets of input and output differ."""
        return self.source.id != self.destination.id

    @property
    def methods(self) -> tuple[PaymentMethod, ...]:
        """The payment methods: a payer with an account may also pay from its vault."""
        is_account = self.payer_account_id is not None
        return tuple(
            method.name
            for method in METHODS.values()
            if method.pays_escrow or (is_account and method.execution == "vault_authorization")
        )


def require_one_payer_and_amount(new: NewQuote) -> None:
    """Raise ValidationFailed unless there is exactly one of each."""
    require_exactly_one({"user_id": new.user_id, "source_address": new.source_address})
    require_exactly_one({"amount": new.amount, "raw_amount": new.raw_amount})


def resolve_exchange(
    networks: Networks,
    new: NewQuote,
    payer: Account | None,
    recipient: Account | None,
    fee_bps: int,
) -> Exchange:
    """The resolved request.

    Raises UnsupportedChain, UnsupportedAsset, ValidationFailed, AmountOutOfRange.
    """
    chosen, wanted = _preference_of(payer), _preference_of(recipient)
    source = find_asset(
        networks,
        chosen.chain_id if new.source_chain_id is None else new.source_chain_id,
        new.source_chain_token,
    )
    destination = networks.find_asset(
        wanted.chain_id if new.destination_chain_id is None else new.destination_chain_id,
        wanted.asset_symbol if new.destination_token is None else new.destination_token,
    )
    return Exchange(
        payer_account_id=payer.id if payer else None,
        payer_address=_parse_payer(networks, new.source_address, source),
        recipient=recipient,
        source=source,
        destination=destination,
        amount_atomic=_parse_amount(new, source),
        fee_bps=fee_bps,
    )


def find_asset(networks: Networks, chain_id: int, name: str) -> Asset:
    """A token of a chain by its symbol or address. Raises UnsupportedChain, UnsupportedAsset."""
    for asset in networks.find_network(chain_id).tokens:
        if name == asset.symbol or name.lower() == asset.address.lower():
            return asset
    raise UnsupportedAsset(chain_id, name)


def _preference_of(account: Account | None) -> Settlement:
    return (account.settlement if account else None) or DEFAULT_SETTLEMENT


def _parse_payer(networks: Networks, address: str | None, source: Asset) -> str | None:
    if address is None:
        return None
    try:
        chain_type = networks.find_network(source.chain_id).chain_type
        return networks.normalize_wallet_address(chain_type, address)
    except AddressError as error:
        raise ValidationFailed.at("source_address", str(error)) from None


def _parse_amount(new: NewQuote, source: Asset) -> int:
    if new.amount is not None:
        return parse_positive_amount(new.amount, source)
    assert new.raw_amount is not None
    amount = int(new.raw_amount)
    if amount == 0:
        raise AmountOutOfRange("it must be greater than zero")
    if amount > MAX_ATOMIC:
        raise AmountOutOfRange("it is larger than any token supports")
    return amount
