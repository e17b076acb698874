"""The body of role modules."""

from __future__ import annotations

from typing import Annotated

import attrs
from msgspec import Meta

from payments_core.chains.role_modules import TxData
from payments_core.validation.fields import AccountId, Address, Signature, Uint256Text
from payments_core_http.wire.classes import frozen_body

Calldata = Annotated[
    str,
    Meta(
        pattern=r"^0x([0-9a-fA-F]{2})*$",
        max_length=2_050,
        extra={"rule": "0x and bytes in hex"},
    ),
]


@frozen_body
class OwnersCall:
    """The call that the vault is to make on itself: `enableModule` of its role module."""

    to: Address
    """The contract to call."""
    value: Uint256Text = "0"
    """The native currency to send along."""
    data: Calldata
    """The call's data in hex."""
    operation: Annotated[int, Meta(ge=0, le=255)] = 0
    """The kind of call; 0 is a plain call."""

    @property
    def tx_data(self) -> TxData:
        """The call as the core expects it."""
        data = bytes.fromhex(self.data[2:])
        return TxData(to=self.to, value=int(self.value), data=data, operation=self.operation)


@frozen_body
class DeployRoleModule:
    """What the owner of an account's vault has signed (EIP-712, or ERC-1271), and the signature."""

    userId: AccountId
    txData: OwnersCall
    """The call that the vault is to make."""
    signature: Signature = attrs.field(repr=False)
