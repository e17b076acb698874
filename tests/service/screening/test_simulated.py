"""The simulated provider: the last digits decide, and ordered failures come first."""

from __future__ import annotations

import pytest

from payments_core.chains.simulated.failures import Failures
from payments_core.clock import HOUR
from payments_core.screening.port import (
    Screening,
    ScreeningRequest,
    ScreeningUnavailable,
    Subject,
)
from payments_core.screening.simulated import CLEAR_FOR_MS
from payments_core.storage.port import Storage
from tests.service.world import BASE, World

CLEAR = "0x7476609c9e396ea1ecAFDfaf204457d0B83a338f"
REVIEWED = f"{CLEAR[:-4]}4E71"
BLOCKED = f"{CLEAR[:-4]}B10c"


@pytest.fixture
def world(storage: Storage) -> World:
    return World(storage)


def provider_of(world: World) -> Screening:
    return world.service._providers.screening["sandbox"]


def asked_of(reference: str) -> ScreeningRequest:
    subject = Subject(kind="address", reference=reference, chain_id=BASE)
    return ScreeningRequest(key="out_1/address", subject=subject, direction="out")


@pytest.mark.parametrize(
    ("reference", "outcome"), [(CLEAR, "clear"), (REVIEWED, "review"), (BLOCKED, "blocked")]
)
def test_the_last_digits_decide(world: World, reference: str, outcome: str) -> None:
    verdict = provider_of(world).screen(asked_of(reference))
    assert verdict.outcome == outcome
    assert (verdict.case is None) == (verdict.reason is None) == (outcome == "clear")


def test_a_clear_verdict_counts_for_an_hour_and_the_others_are_not_kept(world: World) -> None:
    now = world.clock.now()
    assert provider_of(world).screen(asked_of(CLEAR)).valid_until_ms == now + HOUR
    assert provider_of(world).screen(asked_of(REVIEWED)).valid_until_ms == now
    assert CLEAR_FOR_MS == HOUR


def test_the_next_answers_fail_when_that_was_ordered(world: World) -> None:
    Failures(world.service.parts.ports).arm("screening", "screen", 2)
    for _ in range(2):
        with pytest.raises(ScreeningUnavailable):
            provider_of(world).screen(asked_of(CLEAR))
    assert provider_of(world).screen(asked_of(CLEAR)).outcome == "clear"


def test_production_has_no_provider_of_its_own(world: World) -> None:
    assert world.service._providers.screening.keys() == {"sandbox"}


def test_a_subject_has_one_key() -> None:
    assert Subject(kind="address", reference=CLEAR, chain_id=BASE).key == f"address:{BASE}:{CLEAR}"
    assert Subject(kind="bank_account", reference="ba_1").key == "bank_account:ba_1"
