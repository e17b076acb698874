"""The transactions that put a role module in place, and the contracts' answers about it (contract
§10).

`chains/role_modules.py` decides what an owner may sign.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol

import attrs

from payments_core.addresses import encode_checksum_address
from payments_core.chains.evm import abi as calls
from payments_core.chains.evm.addresses import DEPLOYER, RoleModule
from payments_core.chains.evm.contract_probe import ProbeResult
from payments_core.chains.port import SignerRefused
from payments_core.chains.role_modules import (
    CALL,
    AvatarCall,
    ModuleState,
    decode_enable_module,
    parse_signatures,
)
from payments_core.chains.typed_data import safe_transaction_message
from payments_core.errors import ValidationFailed


class ContractCaller(Protocol):
    """A reader that can ask contracts: `EvmReader`."""

    def call_contracts(self, asked: Sequence[tuple[str, bytes]]) -> tuple[ProbeResult, ...]:
        """The contracts' answers, all at one block. Raises ChainUnavailable."""


@attrs.frozen
class ModuleCall:
    """A transaction of ours that is to put a module in place: deploy it, or have it enabled."""

    module: RoleModule
    to: str
    data: bytes


def read_module_state(chain: ContractCaller, module: RoleModule) -> ModuleState | None:
    """The state of a module; None if the avatar is neither a vault nor a Safe (yet).

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


def encode_execution(call: AvatarCall, signature: bytes) -> bytes:
    """The calldata to the vault or Safe that carries out the owner's signed call."""
    if call.kind == "safe":
        return calls.exec_transaction(call.to, call.data, signature)
    return calls.execute(call.to, call.value, call.data, signature, operation=call.operation)


def require_safe_signatures(call: AvatarCall, signatures: str, chain: ContractCaller) -> bytes:
    """The bytes with which enough owners signed a Safe's call, in the Safe's form.

    The Safe itself is asked, since it knows its owners and threshold. `signatures` is hex. Raises
    ValidationFailed, ChainUnavailable.
    """
    raw = parse_signatures(signatures)
    forms = [raw]
    if len(raw) == 65 and raw[64] in (0, 1):
        # Some wallets write these, which mean a contract and an approved hash to a Safe.
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
    # It refuses by a revert and accepts by an empty result. So does a contract without the function
    # that accepts all calls, for example a later Safe without a fallback handler: an empty
    # signature must be refused.
    nobodys, *answers = chain.call_contracts(
        [(call.vault, calls.check_signatures(call.digest, message, form)) for form in (b"", *forms)]
    )
    if nobodys.has_code and not nobodys.succeeded:
        for form, answer in zip(forms, answers, strict=True):
            if answer.succeeded and answer.size == 0:
                return form
    raise ValidationFailed.at("signature", "is not the Safe owners' signature of this call")


def deployment_call(module: RoleModule) -> ModuleCall:
    """The transaction that deploys a module; it fails if the module exists already."""
    return ModuleCall(module, DEPLOYER, calls.deploy(module.creation))


def action_of(call: ModuleCall) -> Literal["deploy_role_module", "enable_module"]:
    """The step of a transaction, read from its bytes. Raises SignerRefused for all others."""
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
