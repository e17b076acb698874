"""Role modules of vaults and Safes: what an owner may sign for one (contract §10).

The owner signs a call that the vault or Safe (the avatar) makes to itself: it enables the module
whose address follows from the avatar, and nothing else; anything not allowed here is refused. The
decisions are pure; facts that only a chain knows are read from it. Transactions are in `evm/`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import cache
from typing import ClassVar, Literal, Protocol, runtime_checkable

import attrs

from payments_core.addresses import AddressError, encode_checksum_address, normalize_address
from payments_core.chains.signatures import (
    SignatureError,
    parse_contract_signature,
    recover_signer,
    unwrap_signature,
)
from payments_core.chains.typed_data import (
    ZERO_ADDRESS,
    safe_transaction_digest,
    vault_execute_digest,
)
from payments_core.errors import FieldError, ValidationFailed

CALL = 0
"""The only operation of a Safe or vault that we make or accept; 1 is DELEGATECALL."""

ENABLE_MODULE = "enableModule(address)"

AvatarKind = Literal["vault", "safe"]

AcceptsSignature = Callable[[str, bytes, bytes], bool]
"""Address, digest, signature: whether the contract there accepts it (ERC-1271)."""


@attrs.frozen
class TxData:
    """The call that the owner requests, as received. Only a Safe has the last five."""

    checked_by_class: ClassVar[bool] = True  # its numbers have 256 bits

    to: str
    value: int
    data: bytes
    operation: int
    safe_tx_gas: int = 0
    base_gas: int = 0
    gas_price: int = 0
    gas_token: str = ZERO_ADDRESS
    refund_receiver: str = ZERO_ADDRESS


@attrs.frozen
class AvatarCall:
    """A call that a vault or Safe (`vault`) is to make when its owner has signed `digest`."""

    chain_id: int
    vault: str
    nonce: int
    to: str
    data: bytes
    value: int = 0
    operation: int = CALL
    kind: AvatarKind = "vault"

    @property
    def digest(self) -> bytes:
        """The typed data that the owner signs (EIP-712)."""
        if self.kind == "safe":
            return safe_transaction_digest(
                chain_id=self.chain_id,
                safe=self.vault,
                nonce=self.nonce,
                to=self.to,
                value=self.value,
                data=self.data,
                operation=self.operation,
            )
        return vault_execute_digest(
            chain_id=self.chain_id,
            vault=self.vault,
            nonce=self.nonce,
            to=self.to,
            value=self.value,
            data=self.data,
            operation=self.operation,
        )


@attrs.frozen
class ModuleState:
    """The state of an avatar and its role module, at one block; a vault may have an owner.

    On a simulated chain `is_simulated`: there, a vault belongs to its account's verified wallets.
    """

    nonce: int
    owner: str | None
    is_deployed: bool
    is_enabled: bool
    is_simulated: bool = False


@runtime_checkable
class ModuleChain(Protocol):
    """A chain on which vaults can have role modules; it signs their steps in `prepare`."""

    def find_module(self, environment_id: str, avatar: str, tokens: tuple[str, ...]) -> str:
        """Where a vault's role module for those tokens is, or will be. Pure: no I/O."""

    def read_module(
        self, environment_id: str, avatar: str, tokens: tuple[str, ...]
    ) -> ModuleState | None:
        """The state of that module; None if no vault is at the address yet.

        Raises ChainUnavailable.
        """


def build_enable_call(
    vault: str,
    role_module: str,
    chain_id: int,
    nonce: int,
    tx_data: TxData,
    targets: Collection[str],
    kind: AvatarKind = "vault",
) -> AvatarCall:
    """The call that enables the avatar's own module, or ValidationFailed with all its errors.

    `vault` is the avatar, `role_module` the address of its module, `nonce` its own, and
    `targets` the allowed targets: itself, since it obeys only itself in this. Addresses
    are canonical, except in the received call.
    """
    faults: list[FieldError] = []
    if tx_data.operation != CALL:
        faults.append(FieldError("tx_data.operation", "must be 0: a DELEGATECALL is refused"))
    faults += [
        FieldError(f"tx_data.{name}", f"must be {allowed}")
        for name, received, allowed in (
            ("value", tx_data.value, 0),
            # A Safe would pay for the gas from the user's tokens, to anybody.
            ("safe_tx_gas", tx_data.safe_tx_gas, 0),
            ("base_gas", tx_data.base_gas, 0),
            ("gas_price", tx_data.gas_price, 0),
            ("gas_token", tx_data.gas_token, ZERO_ADDRESS),
            ("refund_receiver", tx_data.refund_receiver, ZERO_ADDRESS),
        )
        if received != allowed
    ]
    try:
        if normalize_address("evm", tx_data.to) not in targets:
            faults.append(FieldError("tx_data.to", "is not an allowed target"))
    except AddressError as error:
        faults.append(FieldError("tx_data.to", str(error)))
    fault = _find_data_fault(tx_data.data, role_module)
    if fault is not None:
        faults.append(FieldError("tx_data.data", fault))
    if faults:
        raise ValidationFailed(tuple(faults))
    to = normalize_address("evm", tx_data.to)
    return AvatarCall(chain_id, vault, nonce, to, tx_data.data, kind=kind)


def require_signature(
    call: AvatarCall, owner: str, signature: str, accepts: AcceptsSignature
) -> bytes:
    """The bytes with which the owner signed a vault's call, in the vault's form.

    First as a key's signature, then as a contract's, in the order of the vault's checks.
    `signature` is hex. Raises ValidationFailed, and the errors of `accepts`.
    """
    raw = parse_signatures(signature)
    digest = call.digest
    try:
        signer = recover_signer(digest, signature)
    except SignatureError as fault:
        if accepts(owner, digest, raw):
            return raw
        raise ValidationFailed.at("signature", str(fault)) from None
    if signer == owner:
        return raw[:64] + bytes([raw[64] % 27 + 27])  # `ecrecover` knows only 27 and 28
    if accepts(owner, digest, raw):
        return raw
    raise ValidationFailed.at("signature", "is not the vault owner's signature of this call")


def decode_enable_module(data: bytes) -> str | None:
    """The module of an `enableModule`; None for any other calldata, byte for byte.

    It is one address in one word: a sandbox reads it without the encoder of the extra `evm`.
    """
    head = _enable_selector() + bytes(12)
    if len(data) != len(head) + 20 or not data.startswith(head):
        return None
    return encode_checksum_address(data[len(head) :])


def parse_signatures(signature: str) -> bytes:
    """The bytes of signatures in hex, unwrapped: the vault asks a deployed owner on chain.

    Raises ValidationFailed.
    """
    raw = parse_contract_signature(signature)
    if raw is None:
        raise ValidationFailed.at("signature", "must be a signature in hex")
    try:
        wrapped = unwrap_signature(raw)
    except SignatureError as fault:
        raise ValidationFailed.at("signature", str(fault)) from None
    return raw if wrapped is None else wrapped.signature


def _find_data_fault(data: bytes, role_module: str) -> str | None:
    """What differs from exactly `enableModule(role_module)`; None if nothing does."""
    module = decode_enable_module(data)
    if module is None:
        return f"must be {ENABLE_MODULE} with exactly its arguments"
    return None if module == role_module else f"must enable its own role module, {role_module}"


@cache
def _enable_selector() -> bytes:
    from eth_hash.auto import keccak  # slow to import: only its users wait

    return keccak(ENABLE_MODULE.encode())[:4]
