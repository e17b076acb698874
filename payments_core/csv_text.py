"""Tables as CSV (RFC 4180): exact, the same bytes for the same rows, and safe in a spreadsheet.

A spreadsheet runs a cell that begins like a formula, also one that a stranger wrote as the
reference of a Payment. Such a text gets an apostrophe in front, which spreadsheets show as text
(OWASP, "CSV Injection"). Plain numbers stay numbers, below zero too.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Sequence

Cell = str | int | None

CONTENT_TYPE = "text/csv; charset=utf-8; header=present"

_FORMULA_STARTS = frozenset("=+-@\t\r\n＝＋－＠")  # the wide forms too: some programs run them
_NUMBER = re.compile(r"-?[0-9]+(?:\.[0-9]+)?", re.ASCII)
_PIECE_ROWS = 500


def encode_csv(header: Sequence[str], rows: Iterable[Sequence[Cell]]) -> bytes:
    """A whole table in UTF-8, with its header first.

    >>> encode_csv(("id", "reference"), [("payment_1", "=1+1"), ("payment_2", None)])
    b"id,reference\\r\\npayment_1,'=1+1\\r\\npayment_2,\\r\\n"
    """
    return b"".join(iter_csv(header, rows))


def iter_csv(header: Sequence[str], rows: Iterable[Sequence[Cell]]) -> Iterator[bytes]:
    """The same in pieces of some hundred rows, for a table of any length."""
    piece = io.StringIO(newline="")
    writer = csv.writer(piece)
    writer.writerow(header)
    for number, row in enumerate(rows, start=1):
        writer.writerow([_to_text(cell) for cell in row])
        if number % _PIECE_ROWS == 0:
            yield piece.getvalue().encode()
            piece.seek(0)
            piece.truncate()
    yield piece.getvalue().encode()


def _to_text(cell: Cell) -> str:
    if cell is None:
        return ""
    text = str(cell)
    # Spaces in front hide a formula from this look, and not from every spreadsheet.
    start = text.lstrip(" ")[:1]
    is_formula = start in _FORMULA_STARTS and start and _NUMBER.fullmatch(text) is None
    return f"'{text}" if is_formula else text
