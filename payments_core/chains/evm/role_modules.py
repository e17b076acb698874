"""Whether a vault or Safe may be asked to enable its role module (contract §10).

Its owner signs a call that it makes of itself. There is one such call that we bring: enabling the
module whose address follows from this vault or Safe, its avatar, and nothing else; what no line
here allows is refused. The decisions are pure; what only a chain can say is asked of it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Literal, Protocol

import attrs

from payments_core.addresses import AddressError, encode_checksum_address, normalize_address
from payments_core.chains.evm import abi as calls
from payments_core.chains.evm.abi import CALL, ENABLE_MODULE, decode_enable_module
from payments_core.chains.evm.addresses import DEPLOYER, RoleModule
from payments_core.chains.evm.contract_probe import ProbeResult
from payments_core.chains.port import SignerRefused
from payments_core.chains.signatures import SignatureError, parse_contract_signature, recover_signer
from payments_core.chains.typed_data import (
    ZERO_ADDRESS,
    safe_transaction_digest,
    safe_transaction_message,
    vault_execute_digest,
)
from payments_core.errors import FieldError, ValidationFailed

AvatarKind = Literal["vault", "safe"]

AcceptsSignature = Callable[[str, bytes, bytes], bool]
"""Address, digest, signature: whether the contract there accepts it (ERC-1271)."""


class ContractCaller(Protocol):
    """Who can ask contracts: `EvmReader`."""

    def call_contracts(self, asked: Sequence[tuple[str, bytes]]) -> tuple[ProbeResult, ...]:
        """What contracts answer, all at one block. Raises ChainUnavailable."""


@attrs.frozen
class TxData:
    """What the owner wants to be done, as it was received. Only a Safe has the last five."""

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
    """A call that a vault or Safe (`vault`) shall make once its owner signed `digest`."""

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
        """What the owner signs (EIP-712)."""
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

    def calldata(self, signature: bytes) -> bytes:
        """To the vault or Safe: do what its owner signed."""
        if self.kind == "safe":
            return calls.exec_transaction(self.to, self.data, signature)
        return calls.execute(self.to, self.value, self.data, signature, operation=self.operation)


@attrs.frozen
class ModuleCall:
    """A transaction of ours that is to put a module in place: deploy it, or have it enabled."""

    module: RoleModule
    to: str
    data: bytes


@attrs.frozen
class ModuleState:
    """How an avatar and its role module stand, at one block; a vault may have an owner."""

    nonce: int
    owner: str | None
    is_deployed: bool
    is_enabled: bool


def read_module_state(chain: ContractCaller, module: RoleModule) -> ModuleState | None:
    """How it stands with a module; None where the avatar is no vault and no Safe (yet).

    Raises ChainUnavailable.
    """
    nonce, owner, is_enabled, itself = chain.call_contracts(
        (
            (module.avatar, calls.NONCE.call()),
            (module.avatar, calls.OWNER.call()),
            (module.avatar, calls.IS_MODULE_ENABLED.call(module.address)),
            (module.address, b""),
        )
    )
    if nonce.number is None or is_enabled.number is None:
        return None
    named = owner.number if owner.number and owner.number < 1 << 160 else None
    return ModuleState(
        nonce=nonce.number,
        owner=None if named is None else encode_checksum_address(named.to_bytes(20, "big")),
        is_deployed=itself.has_code,
        is_enabled=is_enabled.number == 1,
    )


def build_enable_call(
    vault: str,
    role_module: str,
    chain_id: int,
    nonce: int,
    tx_data: TxData,
    targets: Collection[str],
    kind: AvatarKind = "vault",
) -> AvatarCall:
    """The call that enables the avatar's own module, or ValidationFailed with all its faults.

    `vault` is the avatar, `role_module` where its module is or will be, `nonce` its own, and
    `targets` whom it may be asked to call: itself, since it obeys only itself in this. Addresses
    are canonical, except what was received.
    """
    faults: list[FieldError] = []
    if tx_data.operation != CALL:
        faults.append(FieldError("txData.operation", "must be 0: a DELEGATECALL is refused"))
    faults += [
        FieldError(f"txData.{name}", f"must be {allowed}")
        for name, received, allowed in (
            ("value", tx_data.value, 0),
            # A Safe would pay for the gas, out of the user's tokens and to anybody.
            ("safeTxGas", tx_data.safe_tx_gas, 0),
            ("baseGas", tx_data.base_gas, 0),
            ("gasPrice", tx_data.gas_price, 0),
            ("gasToken", tx_data.gas_token, ZERO_ADDRESS),
            ("refundReceiver", tx_data.refund_receiver, ZERO_ADDRESS),
        )
        if received != allowed
    ]
    try:
        if normalize_address("evm", tx_data.to) not in targets:
            faults.append(FieldError("txData.to", "is not an allowed target"))
    except AddressError as error:
        faults.append(FieldError("txData.to", str(error)))
    fault = _find_data_fault(tx_data.data, role_module)
    if fault is not None:
        faults.append(FieldError("txData.data", fault))
    if faults:
        raise ValidationFailed(tuple(faults))
    to = normalize_address("evm", tx_data.to)
    return AvatarCall(chain_id, vault, nonce, to, tx_data.data, kind=kind)


def require_signature(
    call: AvatarCall, owner: str, signature: str, accepts: AcceptsSignature
) -> bytes:
    """The bytes by which the owner signed a vault's call, as the vault takes them.

    First as a key's signature and then as a contract's, in the order in which the vault looks.
    `signature` is hex. Raises ValidationFailed, and whatever `accepts` raises.
    """
    raw = _parse_signatures(signature)
    digest = call.digest
    try:
        signer = recover_signer(digest, signature)
    except SignatureError as fault:
        if accepts(owner, digest, raw):
            return raw
        raise ValidationFailed.at("signature", str(fault)) from None
    if signer == owner:
        return raw[:64] + bytes([raw[64] % 27 + 27])  # `ecrecover` knows 27 and 28 alone
    if accepts(owner, digest, raw):
        return raw
    raise ValidationFailed.at("signature", "is not the vault owner's signature of this call")


def require_safe_signatures(call: AvatarCall, signatures: str, chain: ContractCaller) -> bytes:
    """The bytes by which enough owners signed a Safe's call, as the Safe takes them.

    The Safe itself is asked, which knows its owners and threshold. `signatures` is hex. Raises
    ValidationFailed, ChainUnavailable.
    """
    raw = _parse_signatures(signatures)
    forms = [raw]
    if len(raw) == 65 and raw[64] in (0, 1):
        # Some wallets write these, which to a Safe mean a contract and an approved hash.
        forms.append(raw[:64] + bytes([raw[64] + 27]))
    message = safe_transaction_message(
        chain_id=call.chain_id,
        safe=call.vault,
        nonce=call.nonce,
        to=call.to,
        value=call.value,
        data=call.data,
        operation=call.operation,
    )
    # It says no by a revert and yes by nothing. So does whoever lacks the function and lets all
    # calls pass, as a later Safe without a fallback handler: nobody's signature must be a no.
    nobodys, *answers = chain.call_contracts(
        [(call.vault, calls.check_signatures(call.digest, message, form)) for form in (b"", *forms)]
    )
    if nobodys.has_code and not nobodys.succeeded:
        for form, answer in zip(forms, answers, strict=True):
            if answer.succeeded and answer.size == 0:
                return form
    raise ValidationFailed.at("signature", "is not the Safe owners' signature of this call")


def deployment_call(module: RoleModule) -> ModuleCall:
    """The transaction that deploys a module; it fails where the module is already."""
    return ModuleCall(module, DEPLOYER, calls.deploy(module.creation))


def action_of(call: ModuleCall) -> Literal["deploy_role_module", "enable_module"]:
    """What a transaction does, read from its bytes. Raises SignerRefused for all but two."""
    module = call.module
    if call.to == DEPLOYER:
        if call.data != calls.deploy(module.creation):
            raise SignerRefused("it would deploy a contract other than the role module")
        return "deploy_role_module"
    if call.to != module.avatar:
        raise SignerRefused("it is neither to the deployer nor to the module's vault or Safe")
    executed = calls.decode_execution(call.data)
    if executed is None:
        raise SignerRefused("it is not a call that an owner signed")
    to, value, data, operation = executed
    if (to, value, operation) != (module.avatar, 0, CALL):
        raise SignerRefused("it must make the vault or Safe call itself, and nothing else")
    if decode_enable_module(data) != module.address:
        raise SignerRefused("it would not enable the role module")
    return "enable_module"


def _parse_signatures(signature: str) -> bytes:
    raw = parse_contract_signature(signature)
    if raw is None:
        raise ValidationFailed.at("signature", "must be a signature in hex")
    return raw


def _find_data_fault(data: bytes, role_module: str) -> str | None:
    """Nothing if it is `enableModule(role_module)` to the byte."""
    module = decode_enable_module(data)
    if module is None:
        return f"must be {ENABLE_MODULE.signature} with exactly its arguments"
    return None if module == role_module else "must enable this avatar's own role module"
