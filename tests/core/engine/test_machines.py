"""Every state with every trigger, against the contract's tables; and the engine that steps them."""

from __future__ import annotations

import itertools

import pytest

from payments_core.accounts.bank_accounts.lifecycle import BANK_ACCOUNT
from payments_core.accounts.capabilities.lifecycle import CAPABILITY
from payments_core.accounts.verification.lifecycle import VERIFICATION
from payments_core.deposits.lifecycle import DEPOSIT
from payments_core.engine.events import BY_NAME
from payments_core.engine.state_machine import StateMachine, Transition, transitions_from
from payments_core.errors import InvalidState
from payments_core.legacy.role_modules.lifecycle import ROLE_MODULE
from payments_core.misdirected.lifecycle import SENDING_BACK
from payments_core.onramps.lifecycle import BANK_TRANSACTION
from payments_core.payments.disputes.lifecycle import DISPUTE
from payments_core.payments.funding.lifecycle import FUNDING_OPERATION
from payments_core.payments.mandates.lifecycle import MANDATE
from payments_core.payments.options.lifecycle import OPTION, SELECTION
from payments_core.payments.payouts.lifecycle import PAYOUT
from payments_core.payments.receipts.lifecycle import RECEIPT
from payments_core.payments.refunds.lifecycle import REFUND
from payments_core.payments.transitions import PAYMENT
from tests.core import tables

MACHINES = {
    "PAYMENT": (PAYMENT, tables.PAYMENT),
    "RECEIPT": (RECEIPT, tables.RECEIPT),
    "REFUND": (REFUND, tables.REFUND),
    "SENDING_BACK": (SENDING_BACK, tables.SENDING_BACK),
    "OPTION": (OPTION, tables.OPTION),
    "SELECTION": (SELECTION, tables.SELECTION),
    "FUNDING_OPERATION": (FUNDING_OPERATION, tables.FUNDING_OPERATION),
    "MANDATE": (MANDATE, tables.MANDATE),
    "DEPOSIT": (DEPOSIT, tables.DEPOSIT),
    "DISPUTE": (DISPUTE, tables.DISPUTE),
    "KYC": (VERIFICATION, tables.KYC),
    "CAPABILITY": (CAPABILITY, tables.CAPABILITY),
    "BANK_ACCOUNT": (BANK_ACCOUNT, tables.BANK_ACCOUNT),
    "PAYOUT": (PAYOUT, tables.PAYOUT),
    "ROLE_MODULE": (ROLE_MODULE, tables.ROLE_MODULE),
    "BANK_TRANSACTION": (BANK_TRANSACTION, tables.BANK_TRANSACTION),
}


def grid() -> list[object]:
    """Each state of each machine, and none, with each trigger."""
    return [
        pytest.param(name, state, trigger, id=f"{name}-{state}-{trigger}")
        for name, (machine, table) in MACHINES.items()
        for state, trigger in itertools.product(
            sorted({row[0] for row in table} | {row[2] for row in table} | machine.states),
            sorted({row[1] for row in table} | machine.triggers),
        )
    ]


@pytest.mark.parametrize(("name", "state", "trigger"), grid())
def test_a_trigger_does_what_the_contract_says_or_is_refused(
    name: str, state: str, trigger: str
) -> None:
    machine, table = MACHINES[name]
    wanted = [row for row in table if row[:2] == (state, trigger)]
    source = None if state == tables.NEW else state
    assert machine.allows(source, trigger) == bool(wanted)
    if wanted:
        row = machine.step(source, trigger)
        assert row.target == wanted[0][2]
        assert row.why.endswith(".")
    else:
        with pytest.raises(InvalidState) as caught:
            machine.step(source, trigger)
        assert caught.value.details == {
            "resource": machine.name, "status": source or "new",
            "action": machine.actions.get(trigger, trigger),
        }  # fmt: skip


@pytest.mark.parametrize("name", MACHINES)
def test_a_machine_has_the_contracts_rows_and_no_other(name: str) -> None:
    machine, table = MACHINES[name]
    have = {
        (row.source or tables.NEW, row.trigger, row.target, row.emits, row.label)
        for row in machine.transitions
    }
    assert have == table
    assert len(machine.transitions) == len(table)


@pytest.mark.parametrize("name", MACHINES)
def test_what_is_terminal_is_left_by_nothing_and_all_else_by_something(name: str) -> None:
    machine, _ = MACHINES[name]
    assert machine.terminal == tables.TERMINAL[machine.name]
    left = {row.source for row in machine.transitions if row.source != row.target}
    assert not left & machine.terminal
    assert machine.states - machine.terminal == left - {None}


@pytest.mark.parametrize("name", MACHINES)
def test_every_state_can_be_reached_from_a_creation(name: str) -> None:
    machine, _ = MACHINES[name]
    reached = set(machine.initial)
    for _ in machine.states:
        reached |= {row.target for row in machine.transitions if row.source in reached}
    assert reached == machine.states


@pytest.mark.parametrize("name", MACHINES)
def test_what_a_machine_emits_is_in_the_catalogue(name: str) -> None:
    machine, _ = MACHINES[name]
    assert {row.emits for row in machine.transitions if row.emits} <= set(BY_NAME)


def test_a_machine_with_two_outcomes_for_one_trigger_cannot_be_made() -> None:
    with pytest.raises(ValueError, match="share a source and a trigger"):
        StateMachine("m", (Transition("a", "go", "b"), Transition("a", "go", "c")), terminal=())


def test_a_machine_cannot_end_in_a_state_it_never_reaches() -> None:
    with pytest.raises(ValueError, match=r"no row leads to \['c'\]"):
        StateMachine("m", (Transition(None, "new", "a"),), terminal=("a", "c"))


def test_rows_with_no_target_stay_where_they_are() -> None:
    assert transitions_from(("a", "b"), "note", None, emits="e", label="l", why="w.") == (
        Transition("a", "note", "a", "e", "l", "w."),
        Transition("b", "note", "b", "e", "l", "w."),
    )
    assert [row.target for row in transitions_from(("a", "b"), "go", "c")] == ["c", "c"]


def test_a_refusal_has_the_callers_word_and_no_trigger_of_ours() -> None:
    for machine, trigger, sentence in (
        (PAYMENT, "attempt", "The payment is failed; the action 'pay' is not possible now."),
        (
            VERIFICATION,
            "reject",
            "The verification is failed; the action 'change to rejected' is not possible now.",
        ),
    ):
        with pytest.raises(InvalidState) as caught:
            machine.step("failed", trigger)
        assert caught.value.message == sentence


def test_an_action_is_of_a_trigger_that_there_is() -> None:
    row = Transition(None, "create", "open")
    with pytest.raises(ValueError, match="no row has the trigger"):
        StateMachine("parcel", (row,), terminal=(), actions={"send": "post"})
