"""Whether a vault may be asked to enable its role module (contract §10, `deploy-role-module`).

The vault's owner signs a call that the vault makes of itself. There is one such call that we
bring: enabling the module whose address follows from this vault and nothing else; what no line
here allows is refused. Pure: who answers for a contract's signature is passed in.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

import attrs

from payments_core.addresses import AddressError, canonical
from payments_core.chains.evm.calls import CALL, ENABLE_MODULE, enabled_module
from payments_core.chains.typed_data import vault_execute_digest
from payments_core.errors import FieldError, ValidationFailed
from payments_core.evm_signatures import SignatureFault, contract_signature, evm_signer

AcceptsSignature = Callable[[str, bytes, bytes], bool]
"""Address, digest, signature: whether the contract there accepts it (ERC-1271)."""


@attrs.frozen
class TxData:
    """What the owner wants the vault to do, as it was received."""

    to: str
    value: int
    data: bytes
    operation: int


@attrs.frozen
class Call:
    """A call that a vault shall make once its owner signed `digest`."""

    chain_id: int
    vault: str
    nonce: int
    to: str
    data: bytes
    value: int = 0
    operation: int = CALL

    @property
    def digest(self) -> bytes:
        """What the vault's owner signs (EIP-712)."""
        return vault_execute_digest(
            chain_id=self.chain_id,
            vault=self.vault,
            nonce=self.nonce,
            to=self.to,
            value=self.value,
            data=self.data,
            operation=self.operation,
        )


def decide(
    vault: str,
    role_module: str,
    chain_id: int,
    nonce: int,
    tx_data: TxData,
    targets: Collection[str],
) -> Call:
    """The call that enables the vault's own module, or ValidationFailed with all its faults.

    `role_module` is where the module of this vault is or will be, `nonce` the vault's own, and
    `targets` whom a vault may be asked to call: itself, since a vault obeys only itself in this.
    Addresses are canonical, except what was received.
    """
    faults: list[FieldError] = []
    if tx_data.operation != CALL:
        faults.append(FieldError("txData.operation", "must be 0: a DELEGATECALL is refused"))
    if tx_data.value != 0:
        faults.append(FieldError("txData.value", "must be 0"))
    try:
        if canonical("evm", tx_data.to) not in targets:
            faults.append(FieldError("txData.to", "is not an allowed target"))
    except AddressError as error:
        faults.append(FieldError("txData.to", str(error)))
    fault = _fault_of_data(tx_data.data, role_module)
    if fault is not None:
        faults.append(FieldError("txData.data", fault))
    if faults:
        raise ValidationFailed(tuple(faults))
    return Call(chain_id, vault, nonce, canonical("evm", tx_data.to), tx_data.data)


def require_signature(call: Call, owner: str, signature: str, accepts: AcceptsSignature) -> bytes:
    """The bytes by which the owner signed the call, as the vault takes them.

    First as a key's signature and then as a contract's, in the order in which the vault looks.
    `signature` is hex. Raises ValidationFailed, and whatever `accepts` raises.
    """
    raw = contract_signature(signature)
    if raw is None:
        raise ValidationFailed.at("signature", "must be hex of a signature")
    digest = call.digest
    try:
        signer = evm_signer(digest, signature)
    except SignatureFault as fault:
        if accepts(owner, digest, raw):
            return raw
        raise ValidationFailed.at("signature", str(fault)) from None
    if signer == owner:
        return raw[:64] + bytes([raw[64] % 27 + 27])  # `ecrecover` knows 27 and 28 alone
    if accepts(owner, digest, raw):
        return raw
    raise ValidationFailed.at("signature", "is not by the vault's owner over this call")


def _fault_of_data(data: bytes, role_module: str) -> str | None:
    """Nothing if it is `enableModule(role_module)` to the byte."""
    module = enabled_module(data)
    if module is None:
        return f"must be {ENABLE_MODULE.signature} with nothing missing and nothing appended"
    return None if module == role_module else "must enable this vault's own role module"
