"""What v2 takes in: wire classes with the wire's own names.

Types and `Meta` are the whole rule: the bodies are read by it and the schemas printed from it.
Absent and null are the same where the type says `| None`, and null is refused elsewhere.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

import attrs
from msgspec import UNSET, Meta, UnsetType

from payments_core.addresses import AddressError, canonical
from payments_core.errors import FieldError
from payments_core.events import BY_NAME
from payments_core.payments.operations import METHODS
from payments_core.sandbox.operations import LONGEST_ADVANCE_S, MOST_BLOCKS
from payments_core_http.metadata import Metadata

AccountId = Annotated[str, Meta(min_length=1, max_length=64)]
ExternalUserId = Annotated[str, Meta(min_length=1, max_length=128)]
Amount = Annotated[
    str,
    Meta(
        pattern=r"^(0|[1-9][0-9]*)(\.[0-9]+)?$",
        max_length=80,
        extra={"rule": "a decimal string such as 25.00, with no sign or exponent"},
    ),
]
ChainId = Annotated[int, Meta(ge=1)]
AssetSymbol = Annotated[str, Meta(min_length=1, max_length=16)]
Label = Annotated[str, Meta(min_length=1, max_length=128)]
Email = Annotated[
    str, Meta(pattern=r"^[^@\s]+@[^@\s]+$", max_length=254, extra={"rule": "an email address"})
]
Username = Annotated[
    str,
    Meta(
        pattern=r"^[A-Za-z0-9_]{3,20}$",
        extra={"rule": "3 to 20 letters, digits or underscores"},
    ),
]
Url = Annotated[
    str, Meta(pattern=r"^https?://[^\s]+$", max_length=2_048, extra={"rule": "an http(s) URL"})
]
Method = Literal["vault", "direct", "routing", "hosted_onramp"]


@attrs.frozen(kw_only=True)
class CreateClientSession:
    """Access for a browser or mobile app to one existing account."""

    exactly_one_of: ClassVar = (("externalUserId", "accountId"),)

    externalUserId: ExternalUserId | None = None
    accountId: AccountId | None = None
    expiresInSeconds: Annotated[int, Meta(ge=60, le=86_400)] = 900
    permissions: (
        Annotated[
            tuple[Annotated[str, Meta(min_length=1, max_length=64)], ...],
            Meta(min_length=1, max_length=20),
        ]
        | None
    ) = None


# Accounts


@attrs.frozen(kw_only=True)
class Wallet:
    """A wallet address of the account; given here it proves nothing."""

    address: Annotated[str, Meta(min_length=1, max_length=128)]
    chainType: Literal["evm", "solana", "aptos"]
    label: Label | None = None

    def faults(self) -> list[FieldError]:
        """An address that is none of its chain type."""
        try:
            canonical(self.chainType, self.address)
        except AddressError as error:
            return [FieldError("address", str(error))]
        return []


@attrs.frozen(kw_only=True)
class Settlement:
    """Where the account wants to be paid."""

    chainId: ChainId
    assetSymbol: AssetSymbol


@attrs.frozen(kw_only=True)
class CreateAccount:
    """A user of the partner's."""

    externalUserId: ExternalUserId
    subjectType: Literal["individual", "business"]
    username: Username | None = None
    email: Email | None = None
    wallets: Annotated[tuple[Wallet, ...], Meta(max_length=50)] = ()
    settlement: Settlement | None = None
    metadata: Metadata | None = None


@attrs.frozen(kw_only=True)
class ChangeAccount:
    """What is absent stays; null clears."""

    email: Email | UnsetType | None = UNSET
    metadata: Metadata | UnsetType | None = UNSET
    status: Literal["active", "suspended", "closed"] | UnsetType = UNSET


# Payments


@attrs.frozen(kw_only=True)
class AccountDestination:
    """Pay an account."""

    exactly_one_of: ClassVar = (("accountId", "externalUserId"),)

    type: Literal["account"]
    accountId: AccountId | None = None
    externalUserId: ExternalUserId | None = None


@attrs.frozen(kw_only=True)
class PaymentAddressDestination:
    """Pay `<username>@<partner id>`."""

    type: Literal["payment_address"]
    paymentAddress: Annotated[str, Meta(min_length=3, max_length=128)]


@attrs.frozen(kw_only=True)
class WalletDestination:
    """Pay an address on the Payment's chain."""

    type: Literal["wallet"]
    address: Annotated[str, Meta(min_length=1, max_length=128)]


@attrs.frozen(kw_only=True)
class CreatePayment:
    """A receive Payment. `send` and `collect` are not served yet."""

    intent: Literal["receive"]
    amount: Amount
    destination: AccountDestination | PaymentAddressDestination | WalletDestination
    assetSymbol: AssetSymbol | None = None
    chainId: ChainId | None = None
    reference: Annotated[str, Meta(min_length=1, max_length=128)] | None = None
    description: Annotated[str, Meta(max_length=512)] | None = None
    expiresInSeconds: Annotated[int, Meta(ge=300, le=86_400)] = 3_600
    allowedMethods: Annotated[tuple[Method, ...], Meta(min_length=1, max_length=4)] = METHODS
    successUrl: Url | None = None
    cancelUrl: Url | None = None
    metadata: Metadata | None = None


@attrs.frozen(kw_only=True)
class CreateOption:
    """An offer to pay from the caller's own vault, in the Payment's asset."""

    providerCode: Literal["vault"] = "vault"
    chainId: ChainId | None = None
    assetSymbol: AssetSymbol | None = None


@attrs.frozen(kw_only=True)
class Proof:
    """The payer's approval, given to the partner's app."""

    type: Literal["managed_authorization"]
    authorization: Literal["approved"]


@attrs.frozen(kw_only=True)
class Authorize:
    """The one-time action that authorizes exactly one transfer."""

    actionId: Annotated[str, Meta(min_length=1, max_length=128)]
    proof: Proof
    metadata: Metadata | None = None


# Webhooks


EventNames = Annotated[
    tuple[Annotated[str, Meta(min_length=1, max_length=64)], ...], Meta(max_length=100)
]


def unknown_events(names: tuple[str, ...] | None) -> list[FieldError]:
    """The names that are not in the catalog, by their places."""
    return [
        FieldError(f"subscribedEvents[{place}]", "is no event of the catalog")
        for place, name in enumerate(names or ())
        if name not in BY_NAME
    ]


@attrs.frozen(kw_only=True)
class CreateWebhook:
    """An endpoint; without `subscribedEvents` it receives every event."""

    url: Annotated[str, Meta(min_length=1, max_length=2_048)]
    description: Annotated[str, Meta(max_length=512)] | None = None
    subscribedEvents: EventNames = ()

    def faults(self) -> list[FieldError]:
        """Events that there are not."""
        return unknown_events(self.subscribedEvents)


@attrs.frozen(kw_only=True)
class ChangeWebhook:
    """What is absent stays."""

    description: Annotated[str, Meta(max_length=512)] | None = None
    subscribedEvents: EventNames | None = None
    status: Literal["active", "disabled", "archived"] | None = None

    def faults(self) -> list[FieldError]:
        """Events that there are not."""
        return unknown_events(self.subscribedEvents)


# Sandbox


@attrs.frozen(kw_only=True)
class Fund:
    """A credit of the faucet."""

    chainId: ChainId
    assetSymbol: AssetSymbol
    amount: Amount


@attrs.frozen(kw_only=True)
class Mine:
    """Blocks to add to a chain."""

    chainId: ChainId
    count: Annotated[int, Meta(ge=1, le=MOST_BLOCKS)] = 1


@attrs.frozen(kw_only=True)
class Advance:
    """How far to move the clock."""

    advanceSeconds: Annotated[int, Meta(ge=1, le=LONGEST_ADVANCE_S)]
