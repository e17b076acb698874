"""The canonical text of a body, by which a retry is known again (contract §4, RFC 8785)."""

from __future__ import annotations

import json

import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from payments_core_http.wire.json_text import canonicalize, parse

TEXT = st.text(st.characters(exclude_categories=["Cs"]))
WITHOUT_FRACTIONS = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=12,
)


@given(WITHOUT_FRACTIONS)
def test_it_agrees_with_rfc_8785_where_no_number_has_a_fraction(document: object) -> None:
    assert canonicalize(document).encode() == rfc8785.dumps(document)  # type: ignore[arg-type]


@given(st.dictionaries(TEXT, WITHOUT_FRACTIONS, max_size=4), st.randoms())
def test_the_order_of_keys_and_the_white_space_do_not_matter(
    document: dict[str, object], random: object
) -> None:
    items = list(document.items())
    random.shuffle(items)  # type: ignore[attr-defined]
    shuffled = json.dumps(dict(items), indent=random.randint(0, 3))  # type: ignore[attr-defined]
    assert canonicalize(parse(shuffled.encode())) == canonicalize(
        parse(json.dumps(document).encode())
    )


def test_numbers_differ_where_their_texts_do() -> None:
    assert canonicalize(parse(b'{"a": 1}')) != canonicalize(parse(b'{"a": 1.0}'))
    assert canonicalize(parse(b'{"a": 9007199254740993}')) != canonicalize(
        parse(b'{"a": 9007199254740992}')
    )
