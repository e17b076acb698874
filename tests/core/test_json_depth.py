"""How deeply JSON nests."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from payments_core.json_depth import exceeds_depth

TEXTS = st.text(alphabet='[]{}"\\ax\n', max_size=6)
DOCUMENTS = st.recursive(
    TEXTS | st.integers(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=2),
    max_leaves=30,
)


def depth(document: Any) -> int:
    if isinstance(document, dict):
        document = list(document.values())
    return 1 + max(map(depth, document), default=0) if isinstance(document, list) else 0


@given(DOCUMENTS, st.integers(0, 6))
def test_it_is_decided_for_every_document(document: Any, limit: int) -> None:
    for ascii_only in (True, False):
        raw = json.dumps(document, ensure_ascii=ascii_only).encode()
        assert exceeds_depth(raw, limit) is (depth(document) > limit)


def test_it_is_decided_for_what_no_parser_survives() -> None:
    for opening in (b"[", b'{"a":', b'[{"[":'):
        assert exceeds_depth(opening * 1_000_000, 64)
    assert not exceeds_depth(b'["' + b"[" * 1_000_000 + b'"]', 64)
    assert not exceeds_depth(b"[]," * 1_000_000, 64)
