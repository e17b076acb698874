"""Wire classes compare, hash and show themselves by their fields, though they share the methods."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
import pytest

from payments_core_http.wire.classes import frozen_body, frozen_view

DECORATORS = (frozen_body, frozen_view)


def make(decorator: Callable[[type], type]) -> Any:
    class Card:
        number: str = attrs.field(repr=False)
        holder: str | None = None

    return decorator(Card)


@pytest.mark.parametrize("decorator", DECORATORS)
def test_instances_are_equal_if_their_classes_and_fields_are(
    decorator: Callable[[type], type],
) -> None:
    card, other = make(decorator), make(decorator)
    assert card(number="1") == card(number="1")
    assert hash(card(number="1")) == hash(card(number="1"))
    assert card(number="1") != card(number="1", holder="Ada")
    assert card(number="1") != other(number="1")


@pytest.mark.parametrize("decorator", DECORATORS)
def test_a_repr_hides_the_fields_that_say_so(decorator: Callable[[type], type]) -> None:
    assert repr(make(decorator)(number="1", holder="Ada")).endswith("Card(holder='Ada')")


@pytest.mark.parametrize("decorator", DECORATORS)
def test_fields_are_frozen_and_given_by_keyword(decorator: Callable[[type], type]) -> None:
    card = make(decorator)
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        card(number="1").number = "2"
    with pytest.raises(TypeError):
        card("1")
