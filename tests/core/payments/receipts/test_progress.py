"""How far a transfer is that does not count yet."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from payments_core.acceptance import Acceptance
from payments_core.networks import Network
from payments_core.payments.receipts.progress import ReceiptProgress, find_progress
from tests.core.examples import a_payment, a_receipt
from tests.shipped import CHAINS

BASE = CHAINS[8453]
SEEN = a_receipt(id="receipt_2", status="observed", block_number=100)


@pytest.mark.parametrize(
    ("early", "confirmations", "required", "wait_s"),
    [
        (None, 0, None, 1_200),
        (None, 1_000, None, 2_000),
        (Acceptance(depth=3), 0, 3, 6),
        (Acceptance(depth=3), 5, 5, 10),
        (Acceptance("latest"), 0, 0, 0),
        (Acceptance("safe"), 0, None, None),
    ],
)
def test_the_row_and_the_settings_say_how_long_it_takes(
    early: Acceptance | None, confirmations: int, required: int | None, wait_s: int | None
) -> None:
    payment = a_payment(early_acceptance=early, confirmations=confirmations)
    at = None if wait_s is None else SEEN.observed_at_ms + wait_s * 1_000
    assert find_progress(payment, [SEEN], BASE, 102) == ReceiptProgress(
        "receipt_2", 2, required, at
    )


def test_the_newest_transfer_is_shown() -> None:
    older = a_receipt(id="receipt_1", status="observed", block_number=99)
    found = find_progress(a_payment(), [SEEN, older], BASE, 98)  # the scan is behind
    assert found is not None and (found.receipt_id, found.confirmations) == ("receipt_2", 0)


def test_a_vaults_transfer_waits_for_the_chains_own_finality() -> None:
    payment = a_payment(authorized=("pay_funding_1",), early_acceptance=Acceptance(depth=1))
    found = find_progress(payment, [SEEN], BASE, 100)
    assert found is not None and found.required is None


@pytest.mark.parametrize(
    ("receipts", "network"), [([], BASE), ([a_receipt(status="verified")], BASE), ([SEEN], None)]
)
def test_without_a_transfer_that_waits_there_is_none(
    receipts: Any, network: Network | None
) -> None:
    assert find_progress(a_payment(), receipts, network, 100) is None


@pytest.mark.parametrize(
    ("changes", "early"),
    [({"finalized_s": None}, None), ({"block_ms": None}, Acceptance(depth=3))],
)
def test_nobody_knows_how_long_a_network_without_figures_takes(
    changes: dict[str, None], early: Acceptance | None
) -> None:
    assert attrs.evolve(BASE, **changes).estimate_ms(early, 0) is None
