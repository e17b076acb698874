"""Bytes that sort as values do."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from payments_core.storage.records import Value
from payments_core.storage.sort_keys import make_sort_key

TEXTS = st.text(st.characters(exclude_characters="\0", exclude_categories=()), max_size=5)
ROWS = st.tuples(st.integers(-(2**63), 2**63 - 1), TEXTS, TEXTS)


@given(st.lists(ROWS, unique=True))
def test_keys_sort_as_the_rows_do(rows: list[tuple[int, str, str]]) -> None:
    assert sorted(rows, key=make_sort_key) == sorted(rows)
    descending = sorted(rows, key=lambda row: make_sort_key(row, descending=True))
    assert descending == sorted(rows, reverse=True)


@given(ROWS, ROWS, st.integers(0, 3))
def test_rows_that_begin_alike_have_keys_that_begin_alike(
    one: tuple[Value, ...], other: tuple[Value, ...], count: int
) -> None:
    begins = make_sort_key(other).startswith(make_sort_key(one[:count]))
    assert begins == (one[:count] == other[:count])


def test_a_question_may_name_what_no_column_holds() -> None:
    column = [None, -(2**63), 0, 2**63 - 1]
    keys = [make_sort_key([value]) for value in (*column[:1], -(2**70), *column[1:], 2**70)]
    assert keys == sorted(keys) and len(set(keys)) == len(keys)
