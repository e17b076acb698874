"""Tables as CSV."""

from __future__ import annotations

import csv
import io

import pytest

from payments_core.csv_text import encode_csv, iter_csv


def _read(content: bytes) -> list[list[str]]:
    return list(csv.reader(io.StringIO(content.decode(), newline="")))


@pytest.mark.parametrize(
    "text",
    [
        "=1+1", "+1+1", "-1+1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "＝1+1", "＠a", "  =1+1",
        '=HYPERLINK("http://example.com")', "-", "--1", "-1e9", "+1", "-١",
    ],
)  # fmt: skip
def test_a_text_that_a_spreadsheet_would_run_gets_an_apostrophe(text: str) -> None:
    assert _read(encode_csv(("a",), [(text,)])) == [["a"], [f"'{text}"]]


@pytest.mark.parametrize(
    "text", ["-5.00", "-1", "0", "25.000001", "order 7", "a=b", "", 'a,"b"', "two\r\nlines", "é"]
)
def test_numbers_and_other_texts_stay_as_they_are(text: str) -> None:
    assert _read(encode_csv(("a", "b"), [(text, "x")])) == [["a", "b"], [text, "x"]]


def test_cells_are_exact_and_an_absent_one_is_empty() -> None:
    atoms = 10**77 + 1
    assert _read(encode_csv(("a", "b"), [(atoms, None), (-1, "x")])) == [
        ["a", "b"],
        [str(atoms), ""],
        ["-1", "x"],
    ]


def test_a_long_table_comes_in_pieces_that_are_the_whole() -> None:
    rows = [(number, f"r{number}") for number in range(1_234)]
    pieces = list(iter_csv(("n", "r"), iter(rows)))
    assert len(pieces) == 3
    assert b"".join(pieces) == encode_csv(("n", "r"), rows)
    assert _read(b"".join(pieces))[1:] == [[str(n), r] for n, r in rows]
