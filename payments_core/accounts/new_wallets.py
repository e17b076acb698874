"""The wallets that a new account lists."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import attrs
from msgspec import Meta

from payments_core.accounts.record import MAX_WALLETS
from payments_core.addresses import AddressError
from payments_core.brief_repr import brief_repr
from payments_core.errors import FieldError, ValidationFailed
from payments_core.evolve import evolve
from payments_core.networks import ChainType, Networks
from payments_core.validation.fields import Address, Label


@attrs.frozen(kw_only=True)
class NewWallet:
    """A wallet that a new account lists. Nothing proves yet that the account holds its key.

    `address` is in its chain type's form; an EVM address may have any case, or EIP-55's.
    """

    __repr__ = brief_repr

    address: Address
    chain_type: ChainType
    label: Label | None = None


NewWallets = Annotated[Sequence[NewWallet], Meta(max_length=MAX_WALLETS)]


def normalize_wallets(given: Sequence[NewWallet], networks: Networks) -> list[NewWallet]:
    """The wallets with addresses in canonical form. Raises ValidationFailed with every error."""
    faults: list[FieldError] = []
    wallets: list[NewWallet] = []
    seen: set[tuple[str, str]] = set()
    for place, wallet in enumerate(given):
        try:
            address = networks.normalize_wallet_address(wallet.chain_type, wallet.address)
        except AddressError as error:
            faults.append(FieldError(f"wallets[{place}].address", str(error)))
            continue
        if (wallet.chain_type, address) in seen:
            faults.append(FieldError(f"wallets[{place}].address", "is given twice"))
        seen.add((wallet.chain_type, address))
        wallets.append(evolve(wallet, address=address))
    if faults:
        raise ValidationFailed(tuple(faults))
    return wallets
