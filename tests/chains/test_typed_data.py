"""Typed data (EIP-712), against digests and signatures that eth-account made."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from payments_core.chains.signatures import recover_signer
from payments_core.chains.typed_data import (
    SAFE_TX,
    SETTLEMENT,
    VAULT_EXECUTE,
    InvalidTypedData,
    safe_transaction_digest,
    settlement_digest,
    typed_digest,
    vault_execute_digest,
)

FOLDER = Path(__file__).parent.parent / "vectors"
CASES = json.loads((FOLDER / "typed_data.json").read_text("utf-8"))["cases"]
CONTRACT = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"
NUMBERS = st.integers(0, 2**256 - 1)

# Which argument of ours has what the vectors call otherwise.
NAMES = {
    "chainId": "chain_id",
    "quoteId": "quote_id",
    "safeTxGas": "safe_tx_gas",
    "baseGas": "base_gas",
    "gasPrice": "gas_price",
    "gasToken": "gas_token",
    "refundReceiver": "refund_receiver",
}
DIGESTS: dict[str, tuple[Callable[..., bytes], str, frozenset[str]]] = {
    "settlement": (settlement_digest, "verifying_contract", frozenset()),
    "vault_execute": (vault_execute_digest, "vault", frozenset({"name", "version"})),
    "safe_transaction": (safe_transaction_digest, "safe", frozenset()),
}
FORMS = {
    "settlement": SETTLEMENT, "vault_execute": VAULT_EXECUTE, "safe_transaction": SAFE_TX,
}  # fmt: skip

SETTLEMENT_NOW: dict[str, Any] = {
    "name": "Money Accounts", "version": "1", "chain_id": 8453, "verifying_contract": CONTRACT,
    "quote_id": "q_1", "nonce": 1, "deadline": 2,
}  # fmt: skip
EXECUTE_NOW: dict[str, Any] = {
    "chain_id": 8453, "vault": CONTRACT, "nonce": 0, "to": CONTRACT, "value": 0, "data": b"",
    "operation": 0,
}  # fmt: skip


def arguments(case: dict[str, Any]) -> dict[str, Any]:
    _, contract, ours = DIGESTS[case["form"]]
    (fields,) = case["types"].values()
    kinds = {field["name"]: field["type"] for field in fields}
    values = {name: read(kinds[name], text) for name, text in case["message"].items()}
    domain = dict(case["domain"])
    values[contract] = domain.pop("verifyingContract")
    values["chainId"] = int(domain.pop("chainId"))
    values |= {name: text for name, text in domain.items() if name not in ours}
    return {NAMES.get(name, name): value for name, value in values.items()}


def read(kind: str, text: str) -> int | bytes | str:
    if kind.startswith("uint"):
        return int(text)
    return bytes.fromhex(text[2:]) if kind == "bytes" else text


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['form']}: {case['name']}")
def test_a_digest_is_what_eth_account_makes_of_it(case: dict[str, Any]) -> None:
    digest = DIGESTS[case["form"]][0](**arguments(case))
    assert "0x" + digest.hex() == case["digest"]
    assert recover_signer(digest, case["signature"]) == case["signer"]


@pytest.mark.parametrize("case", [case for case in CASES if case["name"] == "on another chain"])
def test_a_form_can_be_compared_with_the_types_that_a_client_sends(case: dict[str, Any]) -> None:
    form = FORMS[case["form"]]
    fields = [{"name": name, "type": type} for name, type in form.fields]
    assert {form.name: fields} == case["types"]


def test_no_two_vectors_have_one_digest() -> None:
    assert len({case["digest"] for case in CASES}) == len(CASES)


def test_the_vectors_are_what_their_script_makes_without_our_code() -> None:
    script = FOLDER / "make_typed_data.py"
    assert not re.search(r"^\s*(?:from|import) payments_core", script.read_text("utf-8"), re.M)
    done = subprocess.run(
        [sys.executable, "-I", script, "--check"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("nonce", -1),
        ("nonce", 2**256),
        ("deadline", 2**256),
        ("deadline", "2"),
        ("nonce", True),
        ("nonce", 1.0),
        ("chain_id", -1),
        ("chain_id", 2**256),
        ("quote_id", b"q_1"),
        ("quote_id", "\ud800"),
        ("name", None),
        ("verifying_contract", CONTRACT[2:]),
        ("verifying_contract", CONTRACT + "00"),
        ("verifying_contract", "0x" + "٣" * 40),
        ("verifying_contract", bytes(20)),
    ],
)
def test_what_a_type_does_not_have_is_refused(field: str, value: object) -> None:
    with pytest.raises(InvalidTypedData):
        settlement_digest(**{**SETTLEMENT_NOW, field: value})


@pytest.mark.parametrize(
    ("field", "value"), [("operation", 256), ("operation", -1), ("value", 2**256), ("data", "0x")]
)
def test_a_vault_is_sent_nothing_out_of_range(field: str, value: object) -> None:
    with pytest.raises(InvalidTypedData):
        vault_execute_digest(**{**EXECUTE_NOW, field: value})


@pytest.mark.parametrize("change", [{"more": 1}, {"nonce": None}])
def test_a_message_has_the_fields_of_its_form_and_no_others(change: dict[str, Any]) -> None:
    message = {"quoteId": "q_1", "nonce": 1, "deadline": 2, **change}
    message = {name: value for name, value in message.items() if value is not None}
    with pytest.raises(InvalidTypedData, match="other fields"):
        typed_digest({"chainId": 1}, SETTLEMENT, message)


@pytest.mark.parametrize("domain", [{}, {"chainId": 1, "salt": 2}])
def test_a_domain_is_never_empty_and_has_no_field_that_is_unknown(domain: dict[str, Any]) -> None:
    with pytest.raises(InvalidTypedData, match="other fields"):
        typed_digest(domain, SETTLEMENT, {"quoteId": "q_1", "nonce": 1, "deadline": 2})


@given(
    first=st.tuples(st.text(st.characters(exclude_categories=["Cs"])), NUMBERS, NUMBERS),
    second=st.tuples(st.text(st.characters(exclude_categories=["Cs"])), NUMBERS, NUMBERS),
)
def test_digests_are_alike_for_the_same_settlement_alone(
    first: tuple[str, int, int], second: tuple[str, int, int]
) -> None:
    digests = [
        settlement_digest(
            **{**SETTLEMENT_NOW, "quote_id": quote_id, "nonce": nonce, "deadline": deadline}
        )
        for quote_id, nonce, deadline in (first, second)
    ]
    assert (digests[0] == digests[1]) == (first == second)
