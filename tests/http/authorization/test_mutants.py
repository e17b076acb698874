"""The matrix sees each of the seeded mistakes, and says where."""

from __future__ import annotations

import pytest

from tests.http.authorization.matrix import Matrix, matrix
from tests.http.authorization.mutants import MUTANTS, Mutant
from tests.http.authorization.sealed import MOVED


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_widening_is_noticed(
    mutant: Mutant, monkeypatch: pytest.MonkeyPatch, record_property: pytest.RecordProperty
) -> None:
    right = matrix()  # made before anything is changed
    assert not list(mutant.cells(right)), "these cells fail without the mutant"
    mutant.apply(monkeypatch)
    killed_by = next(iter(mutant.cells(Matrix() if mutant.anew else right)), None)
    assert killed_by is not None, "nothing noticed it"
    record_property("killed by", str(killed_by))


@pytest.mark.parametrize("what", MOVED)
def test_a_sealed_value_that_was_moved_opens_nothing(what: str) -> None:
    assert not list(MOVED[what](matrix()))
