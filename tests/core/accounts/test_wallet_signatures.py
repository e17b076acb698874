"""Signatures of wallets, against vectors that other libraries made.

EVM: eth-account 0.14 (`encode_defunct`), and the example of web3.js's documentation for
`accounts.sign("Some data")`, whose r and s eth-account agrees with. Solana: solders 0.29. Aptos:
aptos-sdk 0.11, and again cryptography 50. The private keys are the SHA-256 of
`payments-core wallet vector evm` (`solana`, `aptos`).
"""

from __future__ import annotations

import base64
from typing import Any

import attrs
import pytest

from payments_core.accounts.wallet_signatures import (
    SignatureError,
    SignedText,
    aptos_address,
    find_signature_faults,
    personal_digest,
    recover_signer,
)
from payments_core.addresses import decode_base58
from tests.signers import AptosWallet, EvmWallet, SolanaWallet, base58

TEXT = (
    "Acme asks you to link this wallet to an account.\n\n"
    "Nonce: 00112233445566778899aabbccddeeff – é"
)
NONCE = "00112233445566778899aabbccddeeff"
ORDER = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141

EVM = SignedText(
    chain_type="evm",
    address="0xc28e2480Bc862529cE43Ca0135507C8b407312ED",
    text=TEXT,
    nonce=NONCE,
    signature="0x"
    "06bf4826df3cf4b323f049ce818df03fba4b0779694d42a626f5aaddbfa13632"
    "60eee7bc369afbff1b158209c1e2b37a8241ce96f49f8a57f6a58c5aa733b6f51b",
)
SOLANA = SignedText(
    chain_type="solana",
    address="2o5t2dDLtH7yPk1rGwKEfPC3Fudfc1fbLzfpzpzfPk7U",
    text=TEXT,
    nonce=NONCE,
    signature="2py6orew7YZLYCRLW5vR46p8wiS5DjvMSV9zgRnLw4S1"
    "SzvJ27BJw2vVnr37Cq78YfUDVdzL5gHRmE6rpAaS2qKY",
)
SOLANA_BASE64 = (
    "W2HTLb+NOCjqAI1CkXK1yfPUyoNOG9PYwVj9Ui5cxVS7/CNFbHZwxA+bnvzwcU3bCalw6mY5zdTZK9mvwnaSCw=="
)
APTOS = SignedText(
    chain_type="aptos",
    address="0xd2aa51ba32cb473e20e102cf1468974f00db1208c0dbae61e65f1dd02ca72827",
    text=TEXT,
    nonce=NONCE,
    public_key="0x2d9b95133bfca97ef93c5ce2e504e54883271f8d7a75508ebf0327fac76b3f34",
    signature="0x"
    "11fff6686ed64d5821e9e1ebb0e2d09a7b2bbbfadae1e3729a77537d07add4b1"
    "da768cde3bc707488dcca46c3fecac358f5864743c6d3ffa9f6edf935c770c08",
)
VECTORS = {"evm": EVM, "solana": SOLANA, "aptos": APTOS}


def paths(signed: SignedText) -> list[str]:
    return [fault.path for fault in find_signature_faults(signed)]


def altered(signed: SignedText, **changes: Any) -> SignedText:
    return attrs.evolve(signed, **changes)


def with_recovery_byte(byte: int) -> str:
    return EVM.signature[:-2] + f"{byte:02x}"


def high_s(signature: str) -> str:
    """The other form of the same signature, which recovers the same key."""
    raw = bytes.fromhex(signature.removeprefix("0x"))
    s = ORDER - int.from_bytes(raw[32:64], "big")
    return "0x" + raw[:32].hex() + s.to_bytes(32, "big").hex() + f"{55 - raw[64]:02x}"


@pytest.mark.parametrize("name", VECTORS)
def test_a_signature_that_another_library_made_is_good(name: str) -> None:
    assert find_signature_faults(VECTORS[name]) == ()


def test_the_example_of_web3_js_is_good() -> None:
    signature = (
        "0xb91467e570a6466aa9e9876cbcd013baba02900b8979d43fe208a4a4f339f5fd"
        "6007e74cd82e037b800186422fc2da167c747ef045e5d18a5f5d4300f8e1a0291c"
    )
    signer = recover_signer(personal_digest("Some data"), signature)
    assert signer == "0x2c7536E3605D9C16a7a3D7b1898e529396a65c23"


@pytest.mark.parametrize("name", VECTORS)
@pytest.mark.parametrize("change", ["text", "address", "signature"])
def test_a_signature_of_something_else_proves_nothing(name: str, change: str) -> None:
    others = {"evm": EvmWallet(7), "solana": SolanaWallet(7), "aptos": AptosWallet(7)}
    signed, other = VECTORS[name], others[name]
    given = {
        "text": signed.text + " ",
        "address": other.address,
        "signature": other.sign(signed.text, signed.nonce),
    }
    [path] = paths(altered(signed, **{change: given[change]}))
    assert path == ("public_key" if (name, change) == ("aptos", "address") else "signature")


@pytest.mark.parametrize("name", VECTORS)
def test_what_the_wallets_of_the_tests_sign_is_good(name: str) -> None:
    for number in range(1, 20):
        wallet = {"evm": EvmWallet, "solana": SolanaWallet, "aptos": AptosWallet}[name](number)
        signed = SignedText(
            chain_type=wallet.chain_type,
            address=wallet.address,
            text=TEXT,
            nonce=NONCE,
            signature=wallet.sign(TEXT, NONCE),
            public_key=wallet.public_key,
        )
        assert find_signature_faults(signed) == ()


class TestEvm:
    @pytest.mark.parametrize(
        "signature",
        [
            EVM.signature.removeprefix("0x"),
            "0x" + EVM.signature[2:].upper(),
            with_recovery_byte(0),
            with_recovery_byte(27),
        ],
    )
    def test_the_text_of_a_signature_has_some_freedom(self, signature: str) -> None:
        assert paths(altered(EVM, signature=signature)) == []

    @pytest.mark.parametrize("byte", [1, 28])
    def test_the_other_recovery_byte_is_another_signer(self, byte: int) -> None:
        assert paths(altered(EVM, signature=with_recovery_byte(byte))) == ["signature"]

    @pytest.mark.parametrize("byte", [2, 3, 26, 29, 37, 255])
    def test_no_other_recovery_byte_is_taken(self, byte: int) -> None:
        with pytest.raises(SignatureError, match="recovery byte"):
            recover_signer(personal_digest(TEXT), with_recovery_byte(byte))

    def test_a_high_s_is_refused_though_it_recovers_the_signer(self) -> None:
        twin = high_s(EVM.signature)
        assert high_s(twin) == EVM.signature
        with pytest.raises(SignatureError, match="low s"):
            recover_signer(personal_digest(TEXT), twin)

    @pytest.mark.parametrize(
        "signature",
        [
            "0x", "", "0xzz", EVM.signature[:-2], EVM.signature + "00", EVM.signature[:-1],
            EVM.signature + "\n", " " + EVM.signature, "0x" + EVM.signature,
            EVM.signature[:-2] + "١b",
        ],
    )  # fmt: skip
    def test_a_signature_of_another_length_or_alphabet_is_refused(self, signature: str) -> None:
        with pytest.raises(SignatureError, match="65 bytes in hex"):
            recover_signer(personal_digest(TEXT), signature)

    @pytest.mark.parametrize("r", [0, ORDER, 2**256 - 1, 5])
    def test_numbers_off_the_curve_sign_nothing(self, r: int) -> None:
        signature = r.to_bytes(32, "big").hex() + EVM.signature[66:]
        with pytest.raises(SignatureError, match="not this wallet's"):
            recover_signer(personal_digest(TEXT), signature)

    def test_a_zero_s_signs_nothing(self) -> None:
        signature = EVM.signature[:66] + "00" * 32 + "1b"
        with pytest.raises(SignatureError, match="not this wallet's"):
            recover_signer(personal_digest(TEXT), signature)

    def test_a_public_key_is_not_for_it(self) -> None:
        assert paths(altered(EVM, public_key="0x00")) == ["public_key"]
        assert paths(altered(EVM, public_key="0x00", signature="0x")) == ["public_key", "signature"]


class TestSolana:
    def test_base64_is_as_good_as_base58(self) -> None:
        assert paths(altered(SOLANA, signature=SOLANA_BASE64)) == []
        assert decode_base58(SOLANA.signature, 64) == base64.b64decode(SOLANA_BASE64)

    @pytest.mark.parametrize(
        "signature",
        [
            "", "=", "==", "0" * 88, SOLANA.signature[:-1] + "l", SOLANA.signature + "1",
            SOLANA_BASE64[:-2], SOLANA_BASE64[4:], SOLANA_BASE64 + "=", "é" * 86 + "==",
            "1" * 64, "z" * 256,
        ],
    )  # fmt: skip
    def test_no_other_text_is_taken(self, signature: str) -> None:
        assert paths(altered(SOLANA, signature=signature)) == ["signature"]

    def test_a_public_key_beside_the_address_is_refused(self) -> None:
        assert paths(altered(SOLANA, public_key=SOLANA.address)) == ["public_key"]

    def test_a_key_of_small_order_signs_nothing(self) -> None:
        """Under such a key anyone could sign anything: R = the key, s = 0."""
        for raw in (b"\x01" + b"\0" * 31, b"\xec" + b"\xff" * 30 + b"\x7f"):
            forged = base58(raw + b"\0" * 32)
            assert paths(altered(SOLANA, address=base58(raw), signature=forged)) == ["signature"]

    def test_a_second_form_of_a_signature_is_refused(self) -> None:
        order = 2**252 + 27742317777372353535851937790883648493
        raw = base64.b64decode(SOLANA_BASE64)
        s = int.from_bytes(raw[32:], "little") + order
        again = base58(raw[:32] + s.to_bytes(32, "little"))
        assert paths(altered(SOLANA, signature=again)) == ["signature"]


class TestAptos:
    def test_the_address_follows_from_the_key(self) -> None:
        assert aptos_address(bytes.fromhex((APTOS.public_key or "")[2:])) == APTOS.address

    def test_the_nonce_is_signed_too(self) -> None:
        assert paths(altered(APTOS, nonce="0" * 32)) == ["signature"]

    def test_another_wallets_key_is_refused(self) -> None:
        other = AptosWallet(3)
        signed = altered(
            APTOS, public_key=other.public_key, signature=other.sign(TEXT, APTOS.nonce)
        )
        assert paths(signed) == ["public_key"]

    @pytest.mark.parametrize(
        ("changes", "wrong"),
        [
            ({"public_key": None}, ["public_key"]),
            ({"public_key": "0x12"}, ["public_key"]),
            ({"signature": "0x12"}, ["signature"]),
            ({"signature": "", "public_key": "x"}, ["signature", "public_key"]),
        ],
    )
    def test_every_fault_is_named(self, changes: dict[str, Any], wrong: list[str]) -> None:
        assert paths(altered(APTOS, **changes)) == wrong
