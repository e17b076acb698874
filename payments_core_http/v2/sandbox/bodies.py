"""The sandbox."""

from __future__ import annotations

from typing import Annotated, Literal

import attrs
from msgspec import Meta

from payments_core.chains.simulated.failures import ANY, MAX_TIMES
from payments_core.engine.events import EventName
from payments_core.sandbox.operations import MAX_MINED_BLOCKS, MAX_SANDBOX_REORG_DEPTH
from payments_core.sandbox.runner import MAX_ADVANCE_S
from payments_core.validation.fields import AccountId, Address, Amount, AssetSymbol, ChainId, Id
from payments_core_http.wire.classes import frozen_body


@frozen_body
class Fund:
    """A credit of the faucet."""

    chainId: ChainId
    assetSymbol: AssetSymbol
    amount: Amount


@frozen_body
class Mine:
    """Blocks to add to a chain."""

    chainId: ChainId
    count: Annotated[int, Meta(ge=1, le=MAX_MINED_BLOCKS)] = 1
    """How many blocks to add."""


@frozen_body
class Advance:
    """How far to move the clock."""

    advanceSeconds: Annotated[int, Meta(ge=1, le=MAX_ADVANCE_S)]
    """By how many seconds to advance the clock."""


@frozen_body
class TransferFields:
    """The fields of a transfer, except for `from`."""

    chainId: ChainId
    assetSymbol: AssetSymbol
    amount: Amount
    to: Address
    reverts: bool = False
    """Whether the transaction fails on the chain."""


# A field cannot be called `from` in a class statement, and on the wire it is.
Transfer = attrs.make_class(
    "Transfer",
    {
        "from": attrs.field(
            type=Address | None,  # type: ignore[arg-type]
            default=None,
            alias="from_",
            eq=False,
            repr=False,
        )
    },
    bases=(TransferFields,),
    frozen=True,
    kw_only=True,
)


@frozen_body
class Reorg:
    """How many of a chain's last blocks to drop, and whether their transactions come back."""

    chainId: ChainId
    depth: Annotated[int, Meta(ge=1, le=MAX_SANDBOX_REORG_DEPTH)]
    """How many of the last blocks to drop."""
    reinclude: bool = False
    """Whether the dropped transactions come back in other blocks."""


@frozen_body
class Fail:
    """Which calls fail next, and how often."""

    dependency: Literal["chain", "kyc", "bank", "router", "onramp", "screening"]
    operation: Annotated[str, Meta(min_length=1, max_length=32)] = ANY
    times: Annotated[int, Meta(ge=1, le=MAX_TIMES)] = 1
    chainId: ChainId | None = None
    """The chain that fails; if absent, any chain."""


@frozen_body
class TriggerEvent:
    """An event of the catalog, and what it is about."""

    name: EventName
    """The name."""
    accountId: AccountId | None = None
    paymentId: Id | None = None


@frozen_body
class DecideKyc:
    """The decision about an account's verification."""

    status: Literal["pending", "approved", "rejected"]
    """The provider's decision."""


@frozen_body
class BankDeposit:
    """A bank transfer to an on-ramp bank account, and the bank's decision about it."""

    onrampBankAccountId: Id
    amount: Amount
    rail: Literal["ach_push", "wire"]
    outcome: Literal["receive", "review", "return", "cancel", "unmatched"] = "receive"
    """The bank's decision about the transfer."""


@frozen_body
class DecidePayout:
    """The bank's decision about a payout; a return has its code."""

    outcome: Literal["settle", "return"]
    """The bank's decision about the payout."""
    code: (
        Annotated[str, Meta(pattern=r"^R[0-9]{2}$", extra={"rule": "a return code such as R01"})]
        | None
    ) = None
    """The bank's reason for a return."""


@frozen_body
class DecideOrder:
    """What the buyer at the simulated on-ramp does, or the on-ramp itself.

    The buyer pays the price, half of it or two times, or does not pay (`fail`); with `return` the
    on-ramp gives the money back. After the order's expiry it is late.
    """

    outcome: Literal["pay", "pay_short", "pay_twice", "fail", "return"]
    """What happens."""
