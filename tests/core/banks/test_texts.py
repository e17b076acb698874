"""Texts that end at a bank: the characters and lengths that each rail carries."""

from __future__ import annotations

from typing import Annotated, Any, get_args, get_origin, get_type_hints

import attrs
import pytest
from msgspec import Meta

from payments_core.accounts.bank_accounts.fields import NewBankAccount, field_requirements
from payments_core.banks.rails import RAILS
from payments_core.banks.texts import (
    RAIL_TEXTS,
    AchReference,
    WireMessage,
    find_holder_fault,
    find_statement_fault,
)
from payments_core.payments.destinations import ToBankAccount
from payments_core.validation.constraints import checked_rule

ASCII = "".join(map(chr, range(0x20, 0x7F)))
SET_X = "ABCXYZabcxyz0189 /-?:().,'+"


def texts_of(kind: type, prefix: str = "") -> dict[str, Meta]:
    """The fields of free text, by their paths: those whose rule has a length."""
    found: dict[str, Meta] = {}
    for name, hint in get_type_hints(kind, include_extras=True).items():
        for part in (hint, *get_args(hint)):
            if attrs.has(part):
                found |= texts_of(part, f"{prefix}{name}.")
            elif get_origin(part) is Annotated and get_args(part)[0] is str:
                meta = next(one for one in get_args(part) if isinstance(one, Meta))
                if meta.max_length is not None:
                    found[prefix + name] = checked_rule(meta)
    return found


def test_every_free_text_of_a_bank_account_is_printable_ascii_of_a_carried_length() -> None:
    texts = texts_of(NewBankAccount)
    assert texts.keys() == {
        "account_holder_name", "bank_name", "address.line1", "address.line2", "address.city",
    }  # fmt: skip
    for meta in texts.values():
        assert (meta.pattern, meta.max_length in (22, 35)) == ("^[ -~]*$", True)


def test_the_requirements_say_it() -> None:
    asked = {field.name: field for field in field_requirements()}
    limits = {
        "account_holder_name": 22, "bank_name": 35, "address.line1": 35, "address.line2": 35,
        "address.city": 35,
    }  # fmt: skip
    assert {name: asked[name].max_length for name in limits} == limits
    assert {asked[name].pattern for name in limits} == {"^[ -~]*$"}


def test_both_texts_of_a_destination_have_the_rule_of_their_rail() -> None:
    hints = get_type_hints(ToBankAccount, include_extras=True)
    rules: dict[str, Any] = {"ach_reference": AchReference, "wire_message": WireMessage}
    for name, rule in rules.items():
        assert rule in get_args(hints[name])


@pytest.mark.parametrize("rail", RAILS)
def test_no_rail_carries_what_is_not_ascii(rail: Any) -> None:
    for text in ("José", "Иван", "a\N{EN DASH}b", "\N{PARTY POPPER}", "a\tb", "a\x7f", "", " "):
        assert find_holder_fault(rail, text)
        assert find_statement_fault(rail, text)


def test_ach_carries_printable_ascii_and_a_wire_message_less() -> None:
    assert find_statement_fault("ach", ASCII[:80]) is None
    assert find_statement_fault("ach", ASCII[80:]) is None
    assert find_statement_fault("wire", SET_X) is None
    refused = {letter for letter in ASCII if find_statement_fault("wire", f"a{letter}b")}
    assert refused == set('!"#$%&*;<=>@[\\]^_`{|}~')


@pytest.mark.parametrize(("rail", "holder", "statement"), [("ach", 22, 80), ("wire", 140, 140)])
def test_the_lengths_are_those_of_the_rail(rail: Any, holder: int, statement: int) -> None:
    assert find_holder_fault(rail, "a" * holder) is None
    assert find_holder_fault(rail, "a" * (holder + 1)) == f"must have 1 to {holder} characters"
    assert find_statement_fault(rail, "a" * statement) is None
    assert find_statement_fault(rail, "a" * (statement + 1))
    assert RAIL_TEXTS.keys() == set(RAILS)
