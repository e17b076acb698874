"""Usernames: their form, the reserved ones, and what counts as the same."""

from __future__ import annotations

import pytest

from payments_core.accounts.usernames import (
    RESERVED,
    is_reserved,
    require_form,
    require_usable,
    username_key,
)
from payments_core.errors import ValidationFailed


@pytest.mark.parametrize("text", ["abc", "Ada_1", "_" * 3, "a" * 20, "123"])
def test_it_has_3_to_20_letters_digits_or_underscores(text: str) -> None:
    require_usable(text)


@pytest.mark.parametrize(
    "text", ["", "ab", "a" * 21, "a b", "a-b-c", "ada@shop", "ada\n", "аda", "ａｄａ", "ada\u200b"]
)
def test_nothing_else_is_one(text: str) -> None:
    with pytest.raises(ValidationFailed, match="must be 3 to 20"):
        require_form(text)


@pytest.mark.parametrize("text", ["support", "Support", "SUPPORT", "aDmin"])
def test_a_reserved_name_is_refused_in_all_letters(text: str) -> None:
    assert is_reserved(text)
    with pytest.raises(ValidationFailed, match="is reserved"):
        require_usable(text)


def test_every_reserved_name_is_a_key_that_somebody_could_ask_for() -> None:
    for name in RESERVED:
        require_form(name)
        assert username_key(name) == name
