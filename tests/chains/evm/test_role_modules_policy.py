"""Which call a vault is asked to make for its role module, by whose signature; and on a node."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
import pytest
from eth_account import Account
from hypothesis import given
from hypothesis import strategies as st

from payments_core.chains.evm import abi as calls
from payments_core.chains.port import ChainUnavailable
from payments_core.chains.role_modules import (
    AvatarCall,
    TxData,
    build_enable_call,
    require_signature,
)
from payments_core.chains.signatures import ORDER
from payments_core.errors import ValidationFailed
from tests.chains.evm.deployed import CHAIN, Deployed, account, signed
from tests.chains.evm.nodes import MERCHANT, OWNER, PAYER, STRANGER
from tests.chains.evm.safes import wrap

VAULT = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"
MODULE = "0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359"
OTHER_MODULE = "0xD1220A0cf47c7B9Be7A2E6BA89F429762e7b9aDb"
ENABLE = calls.enable_module(MODULE)
ASKED = TxData(to=VAULT, value=0, data=ENABLE, operation=0)


def decided(**changes: Any) -> AvatarCall:
    return build_enable_call(VAULT, MODULE, CHAIN, 4, attrs.evolve(ASKED, **changes), (VAULT,))


def faults(failed: pytest.ExceptionInfo[ValidationFailed]) -> dict[str, str]:
    return {fault.path: fault.message for fault in failed.value.fields}


def nobody(address: str, digest: bytes, signature: bytes) -> bool:
    """No contract stands anywhere."""
    return False


def hexed(signature: bytes) -> str:
    return "0x" + signature.hex()


# --- The call -----------------------------------------------------------------------------------


@pytest.mark.parametrize("to", [VAULT, VAULT.lower(), "0x" + VAULT[2:].upper()])
def test_enabling_its_own_module_is_what_a_vault_may_be_asked(to: str) -> None:
    call = decided(to=to)
    assert call == AvatarCall(chain_id=CHAIN, vault=VAULT, nonce=4, to=VAULT, data=ENABLE)
    assert (call.value, call.operation) == (0, 0)


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"operation": 1}, "tx_data.operation"),
        ({"operation": 2}, "tx_data.operation"),
        ({"operation": -1}, "tx_data.operation"),
        ({"value": 1}, "tx_data.value"),
        ({"value": -1}, "tx_data.value"),
        ({"to": MODULE}, "tx_data.to"),
        ({"to": STRANGER}, "tx_data.to"),
        ({"to": "0x" + 40 * "0"}, "tx_data.to"),
        ({"to": ""}, "tx_data.to"),
        ({"to": VAULT[:-1] + "D"}, "tx_data.to"),  # a wrong checksum
        ({"data": b""}, "tx_data.data"),
        ({"data": ENABLE[:4]}, "tx_data.data"),
        ({"data": ENABLE[:-1]}, "tx_data.data"),
        ({"data": ENABLE + b"\0"}, "tx_data.data"),
        ({"data": ENABLE + ENABLE}, "tx_data.data"),
        ({"data": ENABLE[:4] + b"\1" + ENABLE[5:]}, "tx_data.data"),  # bytes before the address
        ({"data": calls.enable_module(OTHER_MODULE)}, "tx_data.data"),
        ({"data": calls.enable_module(VAULT)}, "tx_data.data"),
        ({"data": calls.disable_module(VAULT, MODULE)}, "tx_data.data"),
        ({"data": calls.set_factory_role(allowed=True)}, "tx_data.data"),
        ({"data": calls.transfer(MODULE, 0)}, "tx_data.data"),
        ({"data": calls.execute(VAULT, 0, ENABLE, b"")}, "tx_data.data"),
    ],
)
def test_any_other_call_is_refused_at_its_field(change: dict[str, Any], path: str) -> None:
    with pytest.raises(ValidationFailed) as failed:
        decided(**change)
    assert list(faults(failed)) == [path]


def test_all_faults_are_named_at_once() -> None:
    with pytest.raises(ValidationFailed) as failed:
        build_enable_call(VAULT, MODULE, CHAIN, 0, TxData(STRANGER, 1, b"", 1), (VAULT,))
    assert set(faults(failed)) == {
        "tx_data.to", "tx_data.value", "tx_data.data", "tx_data.operation"
    }  # fmt: skip


def test_with_nobody_on_the_list_nothing_is_allowed() -> None:
    with pytest.raises(ValidationFailed):
        build_enable_call(VAULT, MODULE, CHAIN, 0, ASKED, ())


@given(st.binary(max_size=80) | st.binary(max_size=80).map(lambda more: ENABLE[:20] + more))
def test_no_other_bytes_pass_for_the_call(data: bytes) -> None:
    if data == ENABLE:
        return
    with pytest.raises(ValidationFailed):
        decided(data=data)


# --- The signature ------------------------------------------------------------------------------


def owners(call: AvatarCall, **changes: Any) -> bytes:
    said: dict[str, Any] = {
        "vault": call.vault, "to": call.to, "data": call.data, "nonce": call.nonce,
    }  # fmt: skip
    return signed(account(OWNER), **{**said, **changes})


@pytest.mark.parametrize("recovery", [lambda byte: byte, lambda byte: byte - 27])
def test_an_owners_key_signs_and_the_vault_gets_its_form(recovery: Callable[[int], int]) -> None:
    call = decided()
    signature = owners(call)
    reported = signature[:64] + bytes([recovery(signature[64])])
    assert require_signature(call, OWNER, hexed(reported), nobody) == signature
    assert require_signature(call, OWNER, reported.hex(), nobody) == signature


@pytest.mark.parametrize(
    "change",
    [
        {"nonce": 5},
        {"chain_id": 1},
        {"vault": MODULE},
        {"to": STRANGER},
        {"data": calls.enable_module(OTHER_MODULE)},
        {"value": 1},
        {"operation": 1},
    ],
)
def test_a_signature_over_anything_else_is_refused(change: dict[str, Any]) -> None:
    call = decided()
    with pytest.raises(ValidationFailed) as failed:
        require_signature(call, OWNER, hexed(owners(call, **change)), nobody)
    assert list(faults(failed)) == ["signature"]


def test_a_stranger_a_high_s_and_nonsense_are_refused() -> None:
    call = decided()
    good = owners(call)
    stranger = Account.unsafe_sign_hash(call.digest, account(STRANGER).key).signature
    high = (ORDER - int.from_bytes(good[32:64], "big")).to_bytes(32, "big")
    for signature in (
        hexed(bytes(stranger)),
        hexed(good[:32] + high + bytes([55 - good[64]])),
        hexed(good[:64] + b"\x02"),
        hexed(good[:64]),
        hexed(good + b"\0"),
        hexed(bytes(65)),
        hexed(bytes(4_097)),
        "0x",
        "",
        "0xzz",
        good.hex()[:-1],
    ):
        with pytest.raises(ValidationFailed) as failed:
            require_signature(call, OWNER, signature, nobody)
        assert list(faults(failed)) == ["signature"]


@pytest.mark.parametrize("signature", [b"", b"\1\2\3", bytes(65), b"\1" * 4_096])
def test_a_contract_is_asked_about_what_no_key_signed(signature: bytes) -> None:
    call = decided()
    asked: list[tuple[str, bytes, bytes]] = []

    def contract(address: str, digest: bytes, reported: bytes) -> bool:
        asked.append((address, digest, reported))
        return True

    assert require_signature(call, OWNER, hexed(signature), contract) == signature
    assert asked == [(OWNER, call.digest, signature)]


def test_a_wrapped_signature_is_unwrapped_as_the_vault_asks_a_deployed_contract() -> None:
    call = decided()

    def contract(address: str, digest: bytes, reported: bytes) -> bool:
        return reported == b"signed"

    wrapped = wrap(OWNER, b"deploys it", b"signed")
    assert require_signature(call, OWNER, hexed(wrapped), contract) == b"signed"
    with pytest.raises(ValidationFailed, match="wrapped"):
        require_signature(call, OWNER, hexed(wrapped[-40:]), contract)


def test_another_keys_signature_may_be_a_contracts_and_goes_on_unchanged() -> None:
    call = decided()
    signature = bytes(Account.unsafe_sign_hash(call.digest, account(STRANGER).key).signature)
    signature = signature[:64] + bytes([signature[64] - 27])
    reported = require_signature(call, OWNER, hexed(signature), lambda *asked: True)
    assert reported == signature


def test_an_owners_key_needs_no_chain_and_a_chain_that_is_silent_is_not_an_answer() -> None:
    def silent(address: str, digest: bytes, signature: bytes) -> bool:
        raise ChainUnavailable("no answer")

    call = decided()
    assert require_signature(call, OWNER, hexed(owners(call)), silent) == owners(call)
    with pytest.raises(ChainUnavailable):
        require_signature(call, OWNER, hexed(bytes(65)), silent)


# --- On a node ----------------------------------------------------------------------------------


def test_the_vault_signs_the_same_digest_and_does_what_was_decided(deployed: Deployed) -> None:
    vault = deployed.owned_vault("user", OWNER)
    module = deployed.role_module(vault, deployed.token())
    for _ in range(2):  # again with the next nonce
        nonce = deployed.nonce(vault)
        asked = TxData(vault, 0, calls.enable_module(module.address), 0)
        call = build_enable_call(vault, module.address, CHAIN, nonce, asked, (vault,))
        question = ("address", "uint256", "bytes", "uint8", "uint256")
        theirs = calls.Function("executeDigest", question).call(
            call.to, call.value, call.data, call.operation, call.nonce
        )
        assert deployed.node.call(vault, theirs) == call.digest
        given = owners(call)
        given = given[:64] + bytes([given[64] - 27])  # as some wallets write it
        signature = require_signature(call, OWNER, hexed(given), nobody)
        execute = calls.execute(call.to, call.value, call.data, signature)
        deployed.node.do(MERCHANT, vault, execute)
        enabled = deployed.node.call(vault, calls.IS_MODULE_ENABLED.call(module.address))
        assert int.from_bytes(enabled) == 1
    assert deployed.refuses(PAYER, execute, to=vault) == "WrongSignature"
