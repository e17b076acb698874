"""Random runs on an EVM chain: however nodes, fees, reorgs and crashes come, money moves once.

`simulation/` says what may come and what must hold; `make evm-simulation` makes more runs.
"""

from __future__ import annotations

import logging
import random
from typing import Any

import attrs
import pytest

from payments_core.chains.judge import judge
from payments_core.chains.outbox import outbox
from payments_core.chains.outbox.rebroadcast import Rebroadcaster
from payments_core.chains.rotated_signer import RotatedSigner
from tests.chains.evm.simulation import run
from tests.chains.evm.simulation.run import KINDS, Run, simulate
from tests.chains.evm.test_stalled_senders import OUTBOX_LOG

STEPS = 100
"""Of each run; a run takes some seconds, and most of them are its end."""

SEED_OF_A_FAILED_RELEASE = 8
SEED_OF_A_KEY_CHANGE_AT_LOW_FEES = 28


@pytest.mark.parametrize("seed", range(len(KINDS)))
def test_the_chain_and_the_books_say_the_same_after_known_runs(seed: int) -> None:
    assert simulate(seed, STEPS).violations == ()


def test_the_chain_and_the_books_say_the_same_after_a_new_run(
    capsys: pytest.CaptureFixture[str],
) -> None:
    seed = random.SystemRandom().randrange(10**9)
    with capsys.disabled():
        print(f" seed {seed} ", end="")
    assert simulate(seed, STEPS).violations == ()


def test_a_seed_makes_the_same_run_again() -> None:
    first, again = simulate(7, 40), simulate(7, 40)
    assert first == again
    assert sum(first.tally.values()) > 20


def test_a_sender_that_offers_nothing_again_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Rebroadcaster, "push", lambda *_, **__: None)
    monkeypatch.setattr(run, "MAX_ROUNDS", 12)
    runs = (simulate(seed, STEPS) for seed in (3, 5, 8))  # not every run loses a transaction
    assert any("is executing" in said for one in runs for said in one.violations)


def test_former_keys_raise_fees_and_a_forgotten_one_is_noticed(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    seed, make_signer = SEED_OF_A_KEY_CHANGE_AT_LOW_FEES, Run.make_signer
    assert simulate(seed, STEPS).violations == ()
    monkeypatch.setattr(Run, "make_signer", lambda it: RotatedSigner(make_signer(it).current, ()))
    monkeypatch.setattr(run, "MAX_ROUNDS", 60)
    log = logging.getLogger(OUTBOX_LOG)
    log.addHandler(caplog.handler)
    said = simulate(seed, STEPS).violations
    log.removeHandler(caplog.handler)
    assert any("is executing" in one for one in said)
    assert all(one.endswith(("is executing", "reserved")) for one in said)  # it waits, no more
    assert "ALARM" in caplog.text
    assert "is not configured: give it in providers.signer.former_urls" in caplog.text


def test_a_failed_transfer_that_counts_as_done_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def believe(*arguments: Any, **options: Any) -> Any:
        verdicts = judge(*arguments, **options)
        return [attrs.evolve(verdict, reason=None) for verdict in verdicts]

    monkeypatch.setattr(outbox, "judge", believe)
    said = simulate(SEED_OF_A_FAILED_RELEASE, STEPS).violations
    assert any("0 transfers on the chain, and the books say True" in one for one in said)
