"""Answers of nodes, written by hand from their documentation; each file names its page."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

FOLDER = Path(__file__).parent / "answers"

GONE = object()
"""Instead of a value: the field is not there."""


def written(name: str) -> Any:
    """What a page says that a node answers."""
    return json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))["answer"]


def with_change(answer: Any, path: tuple[str | int, ...], value: Any) -> Any:
    """The same answer with something else at a path; an empty path is all of it."""
    if not path:
        return value
    changed = copy.deepcopy(answer)
    place = changed
    for step in path[:-1]:
        place = place[step]
    if value is GONE:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    return changed


def leaves(answer: Any, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """The paths of everything within an answer, itself included."""
    found: list[tuple[str | int, ...]] = [path]
    steps = answer.items() if isinstance(answer, dict) else ()
    if isinstance(answer, list):
        steps = enumerate(answer)
    for step, inner in steps:
        found += leaves(inner, (*path, step))
    return found


def anything(*likely: Any) -> st.SearchStrategy[Any]:
    """Any JSON, and often one of these."""
    leaf = (
        st.none()
        | st.booleans()
        | st.integers(-(2**70), 2**70)
        | st.floats(allow_nan=False, allow_infinity=False)
        | st.text(max_size=20)
        | st.from_regex(r"[0-9]{1,25}", fullmatch=True)
        | st.sampled_from(likely)
    )
    return st.recursive(
        leaf,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
        max_leaves=5,
    )
