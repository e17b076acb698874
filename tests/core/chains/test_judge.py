"""The judge: every reason, in its order, and nothing proven before it is final."""

from __future__ import annotations

import attrs
import pytest

from payments_core.chains.judge import ExpectedTransfer, Reason, Verdict, judge, lacks_transfer
from payments_core.chains.port import Block, Heads, TransactionView, TransferLog

HEADS = Heads(Block(103, "0xl"), Block(100, "0xf"))
WANTED = ExpectedTransfer(8453, "0xT", "0xR")
LOG = TransferLog(0, 7, "0xT", "0xS", "0xR", 5)
VIEW = TransactionView("0xh", Block(100, "0xb"), True, (LOG,))


def reasons(view: TransactionView, *, chain_id: int = 8453, consumed: frozenset[int] = frozenset()):
    verdicts = judge(WANTED, chain_id, view, HEADS, consumed)
    assert verdicts, "there is always a verdict"
    return [verdict.reason for verdict in verdicts]


def changed(log: TransferLog = LOG, **view: object) -> TransactionView:
    return attrs.evolve(VIEW, logs=(log,), **view)


def test_the_expected_transfer_in_a_final_block_is_proven() -> None:
    [verdict] = judge(WANTED, 8453, VIEW, HEADS, frozenset())
    assert (verdict.reason, verdict.log) == (None, LOG)
    assert not verdict.is_pending


YOUNG = Block(101, "0xy")
WRONG = {"token_address": "0xU", "recipient": "0xQ", "amount_atomic": 0}


@pytest.mark.parametrize(
    ("reason", "view"),
    [
        ("wrong_token", changed(attrs.evolve(LOG, token_address="0xU"))),
        ("wrong_token", changed(attrs.evolve(LOG, token_address="0xU", amount_atomic=0))),
        ("wrong_token", changed(attrs.evolve(LOG, token_address="0xU"), block=YOUNG)),
        ("wrong_recipient", changed(attrs.evolve(LOG, recipient="0xQ"))),
        ("wrong_recipient", attrs.evolve(VIEW, logs=())),
        ("wrong_recipient", changed(attrs.evolve(LOG, recipient="0xQ", amount_atomic=0))),
        ("wrong_amount", changed(attrs.evolve(LOG, amount_atomic=0))),
        ("wrong_amount", changed(attrs.evolve(LOG, amount_atomic=0), block=YOUNG)),
        ("transaction_failed", changed(succeeded=False)),
        ("transaction_failed", attrs.evolve(VIEW, logs=(), succeeded=False)),
        ("not_final", changed(succeeded=False, block=YOUNG)),
        ("not_final", changed(block=YOUNG)),
        ("not_final", changed(block=None)),
        ("not_final", attrs.evolve(VIEW, block=None, logs=())),
        ("not_final", attrs.evolve(VIEW, block=None, logs=(), succeeded=False)),
    ],
)
def test_the_first_reason_is_reported(reason: Reason, view: TransactionView) -> None:
    assert reasons(view) == [reason]


@pytest.mark.parametrize(
    ("lacks", "view"),
    [
        (False, VIEW),
        (False, changed(attrs.evolve(LOG, token_address="0xU"))),
        (False, changed(attrs.evolve(LOG, amount_atomic=0))),
        (True, attrs.evolve(VIEW, logs=())),
        (True, changed(attrs.evolve(LOG, recipient="0xQ"))),
        (False, attrs.evolve(VIEW, logs=(), succeeded=False)),
        (False, attrs.evolve(VIEW, logs=(), block=None)),
    ],
)
def test_a_success_without_a_transfer_to_the_recipient_lacks_it(
    lacks: bool, view: TransactionView
) -> None:
    assert lacks_transfer(view, "0xR") is lacks


@pytest.mark.parametrize(("token_address", "amount_atomic"), [("0xU", None), (None, 1), ("0xU", 1)])
def test_a_transfer_of_another_token_or_amount_is_not_the_one_that_must_be_there(
    token_address: str | None, amount_atomic: int | None
) -> None:
    same = lacks_transfer(
        VIEW, "0xR", token_address=LOG.token_address, amount_atomic=LOG.amount_atomic
    )
    other = lacks_transfer(VIEW, "0xR", token_address=token_address, amount_atomic=amount_atomic)
    assert (same, other) == (False, True)


def test_another_chain_is_reported_before_all_else() -> None:
    worst = changed(attrs.evolve(LOG, **WRONG), succeeded=False, block=None)
    assert reasons(worst, chain_id=1) == ["wrong_chain"]


@pytest.mark.parametrize("block", [Block(100, "0xb"), YOUNG, None])
def test_on_another_chain_every_transfer_to_the_recipient_is_reported(block: Block | None) -> None:
    """They must be found and shown, since somebody has sent funds to the wrong place."""
    logs = (
        LOG,
        attrs.evolve(LOG, position=1, recipient="0xQ"),
        attrs.evolve(LOG, position=2, token_address="0xU", amount_atomic=0),
    )
    verdicts = judge(WANTED, 1, attrs.evolve(VIEW, logs=logs, block=block), HEADS, frozenset({0}))
    assert verdicts == (Verdict(LOG, "wrong_chain"), Verdict(logs[2], "wrong_chain"))
    assert not any(verdict.is_pending for verdict in verdicts)


def test_on_another_chain_nothing_to_the_recipient_has_no_log() -> None:
    for view in (changed(attrs.evolve(LOG, recipient="0xQ")), attrs.evolve(VIEW, logs=())):
        assert judge(WANTED, 1, view, HEADS, frozenset()) == (Verdict(None, "wrong_chain"),)


def test_a_log_counts_once() -> None:
    assert reasons(VIEW, consumed=frozenset({0})) == ["already_used"]
    assert reasons(VIEW, consumed=frozenset({1})) == [None]
    assert reasons(changed(block=YOUNG), consumed=frozenset({0})) == ["not_final"]


def test_every_transfer_to_the_recipient_is_judged_by_itself() -> None:
    logs = (
        attrs.evolve(LOG, position=0, recipient="0xQ"),
        attrs.evolve(LOG, position=1),
        attrs.evolve(LOG, position=2, token_address="0xU"),
        attrs.evolve(LOG, position=3, amount_atomic=0),
        attrs.evolve(LOG, position=4),
    )
    verdicts = judge(WANTED, 8453, attrs.evolve(VIEW, logs=logs), HEADS, frozenset({4}))
    assert [(v.log.position, v.reason) for v in verdicts if v.log] == [
        (1, None), (2, "wrong_token"), (3, "wrong_amount"), (4, "already_used"),
    ]  # fmt: skip


def test_only_what_lacks_finality_is_pending() -> None:
    [verdict] = judge(WANTED, 8453, changed(block=YOUNG), HEADS, frozenset())
    assert verdict.is_pending
    [verdict] = judge(WANTED, 8453, changed(succeeded=False), HEADS, frozenset())
    assert not verdict.is_pending


def test_what_comes_from_a_sender_that_is_left_out_is_passed_over() -> None:
    """A router that returns funds to an escrow pays nothing there."""
    wanted = attrs.evolve(WANTED, not_from="0xS")
    [verdict] = judge(wanted, 8453, VIEW, HEADS, frozenset())
    assert (verdict.reason, verdict.log) == ("wrong_recipient", None)
    other = attrs.evolve(LOG, position=1, sender="0xT")
    both = attrs.evolve(VIEW, logs=(LOG, other))
    [verdict] = judge(wanted, 8453, both, HEADS, frozenset())
    assert (verdict.reason, verdict.log) == (None, other)
