"""Every stage of a Payment with everything that anybody may do to it, as a table by hand.

What the operations refuse themselves is tried through a service on memory, with the Payment's
record put into its stage; receipts and the release through the pure functions.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Sequence
from typing import Any

import attrs
import pytest

import payments_core
from payments_core.chains.scanner import SCAN
from payments_core.engine.state_machine import StateMachine
from payments_core.errors import PaymentsError
from payments_core.payments import lifecycle as payments
from payments_core.payments.collects import NewCollect
from payments_core.payments.destinations import ToAccount
from payments_core.payments.details import OptionDetails, PaymentDetails
from payments_core.payments.expiry import EXPIRE_PAYMENT, PaymentExpiry
from payments_core.payments.mandates.operations import NewMandate
from payments_core.payments.refunding import reconciliation as reconciling
from payments_core.payments.sends import NewSend
from payments_core.payments.transitions import PAYMENT
from payments_core.storage.memory.adapter import MemoryStorage
from payments_core.storage.port import ClaimedJob
from payments_core.webhooks.lifecycle import DELIVERY, ENDPOINT
from tests.core.engine.test_machines import MACHINES
from tests.core.examples import (
    NOW,
    Stage,
    a_payment,
    a_receipt,
    collect_stages,
    counted,
    send_stages,
    stages,
)
from tests.service.world import World, write

CODES = {
    "=": "the same",
    "pr": "processing",
    "ac": "accepted",
    "ex": "executing",
    "ar": "action_required",
    "fa": "failed",
    "ep": "expired",
    "ca": "cancelled",
    "I": "invalid_state",
    "X": "payment_expired",
    "L": "option_locked",
    "A": "amount_out_of_range",
    "V": "action_invalid",
    "N": "reconciliation_action_not_allowed",
    "F": "not_found",
    ".": "there is no such thing to try",
}
"""What became of the Payment, or the error's code. A refund that is taken leaves it as it is."""

TABLE = """
                                     can aut opt ref rfd acc all exc ret off exp rec reo rel dis
awaiting_payment                     ca  pr  =   =   I   I   I   I   I   I   ep  ac  .   I   I
awaiting_payment, part received      I   V   =   =   I   I   I   I   I   I   ar  ac  =   I   I
processing                           ca  I   L   =   I   I   I   I   I   I   =   ac  .   I   I
processing, part received            I   I   L   =   I   I   I   I   I   I   =   ac  =   I   I
processing, a transfer seen          I   =   =   =   I   I   I   I   I   I   =   ac  .   I   I
accepted                             I   I   I   I   I   I   I   N   I   I   =   =   ar  ex  I
executing                            I   I   I   I   I   I   I   N   I   I   =   =   =   I   I
succeeded                            I   I   I   I   =   I   I   N   I   I   =   =   =   I   =
succeeded, overpaid                  I   I   I   I   =   I   I   =   I   I   =   =   =   I   =
partially_refunded                   I   I   I   I   =   I   I   N   I   I   =   =   =   I   =
refunded                             I   I   I   I   I   I   I   N   I   I   =   =   =   I   I
refunded, never released             I   I   I   I   I   I   I   N   I   I   =   =   =   I   I
action_required, short               I   I   I   I   =   ac  =   N   N   fa  =   =   =   I   I
action_required, late                I   I   I   I   =   ac  =   N   N   fa  =   =   =   I   I
action_required, overpaid            I   I   I   I   =   ac  =   =   N   fa  =   =   =   I   I
action_required, release failed      I   I   I   I   =   N   =   N   ex  fa  =   =   =   I   I
action_required, reorged             I   I   I   I   A   N   N   N   N   fa  =   =   .   I   I
failed                               I   I   I   I   =   I   =   N   I   I   =   =   =   I   I
expired                              I   X   X   X   A   I   N   N   I   I   =   ar  .   I   I
expired, received after the window   I   X   X   X   =   I   =   N   I   I   =   ar  =   I   I
cancelled                            I   I   I   I   A   I   N   N   I   I   =   ar  .   I   I
cancelled, received after the window I   I   I   I   =   I   =   N   I   I   =   ar  =   I   I
processing, a send                   ca  .   I   .   I   I   I   I   I   I   .   .   .   ex  F
executing, a send                    I   .   I   .   I   I   I   N   I   I   .   .   .   I   F
succeeded, a send                    I   .   I   .   I   I   I   N   I   I   .   .   .   I   F
action_required, a send              I   .   I   .   I   N   N   N   ex  fa  .   .   .   I   F
processing, a collect                ca  I   I   I   I   I   I   I   I   I   =   ac  .   I   F
action_required, a collect           I   I   I   I   A   N   N   N   N   fa  =   =   .   I   F
"""
REFUSED = "IXLAVNF"
ACTIONS = (
    "cancel", "authorize", "create option", "refresh", "refund",
    *(
        f"reconcile {action}"
        for action in reconciling.RECONCILIATION_ACTIONS
        if action != "return_misdirected"  # about a receipt, in any stage
    ),
    "expire", "receipt", "reorg", "release", "dispute",
)  # fmt: skip
"""What the table's columns stand for, in their order; a reconciliation's are in the code's own."""
COLUMNS = {
    "can": "cancel",
    "aut": "authorize",
    "opt": "create option",
    "ref": "refresh",
    "rfd": "refund",
    "acc": "reconcile accept",
    "all": "reconcile refund",
    "exc": "reconcile refund_excess",
    "ret": "reconcile retry_execution",
    "off": "reconcile write_off",
    "exp": "expire",
    "rec": "receipt",
    "reo": "reorg",
    "rel": "release",
    "dis": "dispute",
}


def table() -> dict[tuple[str, str], str]:
    """The cells by stage and action."""
    head, *lines = TABLE.strip("\n").splitlines()
    columns = [COLUMNS[word] for word in head.split()]
    return {
        (line[:37].strip(), column): cell
        for line in lines
        for column, cell in zip(columns, line[37:].split(), strict=True)
    }


CASES = table()


def test_the_table_lacks_no_status_and_no_action() -> None:
    names = {name for name, _ in CASES}
    assert {name.partition(",")[0] for name in names} == PAYMENT.states
    assert names == {*stages(), *send_stages(SEND), *collect_stages(COLLECT)}
    assert {action for _, action in CASES} == set(ACTIONS)
    assert len(CASES) == len(names) * len(ACTIONS)
    assert set(CASES.values()) <= set(CODES)


@pytest.mark.parametrize(("name", "action"), [it for it, cell in CASES.items() if cell != "."])
def test_an_action_in_every_stage(name: str, action: str) -> None:
    cell = CASES[name, action]
    wanted = name.partition(",")[0] if cell == "=" else CODES[cell]
    if action in PURE:
        assert outcome(lambda: PURE[action](PURE_STAGES[name])) == wanted
        return
    case = Case(name)
    assert outcome(lambda: case.after(action)) == wanted
    if cell in REFUSED or action == "refresh" or (action, cell) == ("expire", "="):
        assert case.is_untouched()
    else:
        assert not case.is_untouched()


def outcome(attempt: Callable[[], str]) -> str:
    """The status, or the code of the refusal."""
    try:
        return attempt()
    except PaymentsError as error:
        return error.code


# Through the pure functions.

SEND = a_payment(
    intent="send",
    status="processing",
    escrow_address=None,
    release_id="out_1",
    released_atomic=1_000,
)
COLLECT = a_payment(intent="collect", status="processing", authorized=("op",))
PURE_STAGES = {**stages(), **send_stages(SEND), **collect_stages(COLLECT)}


def receive(stage: Stage) -> str:
    """A receipt of the whole amount, in time where there is a time."""
    return counted(stage.payment, a_receipt(id="new"), now=NOW + 500)[0].record.status


def lose(stage: Stage) -> str:
    """Its receipt is reorged out; a release that is not yet sent is stopped."""
    stopped = stage.payment.status == "accepted"
    change = payments.reverse_receipt(
        stage.payment, stage.receipts[0], now=NOW + 500, release_stopped=stopped
    )
    return change.record.status


def release(stage: Stage) -> str:
    """The worker has handed the transfer to the chain."""
    trigger = "submit" if stage.payment.intent == "send" else "release"
    return payments.apply_trigger(stage.payment, trigger, now=NOW + 500).record.status


PURE: dict[str, Callable[[Stage], str]] = {"receipt": receive, "reorg": lose, "release": release}


# Through the service.


class Case:
    """A service on memory with a Payment of its own in a stage, and an option from before."""

    def __init__(self, name: str) -> None:
        self.world = World(MemoryStorage()).open()
        self.world.fund("1.00")
        self.world.fund("1.00", self.world.merchant)
        self.option: OptionDetails | None = None
        kind = name.rpartition(", a ")[2]
        make = {"send": self._send, "collect": self._collect}.get(kind, self._receive)
        self.details = make()
        self.stage = self._stages(kind)[name]
        stored = self.world.paid(self.id)
        staged = attrs.evolve(self.stage.payment, version=stored.version)
        write(self.world.storage, self.world.environment_id, lambda tx: tx.replace(staged))
        self.before = self.world.paid(self.id)
        self.reported_events = self.world.event_names()

    @property
    def id(self) -> str:
        return self.details.payment.id

    def after(self, action: str) -> str:
        """The status after an action. Raises what the action raises."""
        verb, _, decision = action.partition(" ")
        service, server = self.world.service, self.world.server
        actions: dict[str, Callable[[], Any]] = {
            "cancel": lambda: service.acting_as(server).payments.cancel(self.id),
            "authorize": lambda: self.world.authorize(self._option(), action_id=self._action_id()),
            "create": lambda: self.world.option(self.details),
            "refresh": lambda: service.acting_as(self.world.client).options.refresh(
                self.id, self._option().option.id
            ),
            "refund": lambda: self.world.refund(self.details),
            "reconcile": lambda: self.world.reconcile(self.details, decision),
            "expire": self._expire,
            "dispute": lambda: service.acting_as(server).sessions.flag_dispute(
                self.before.session_id, reason="r"
            ),
        }
        actions[verb]()
        return self.world.paid(self.id).status

    def _expire(self) -> None:
        """Scan the chain past the expiry, run the job at the expiry, and no other."""
        world, service = self.world, self.world.service
        world.clock.advance_to(self.details.payment.expires_at_ms + 10_000)
        service.worker("sandbox")  # a scan is scheduled
        service.parts.scanner("sandbox").wake(self.details.payment.chain_id)
        for scan in self._claim("chain"):
            if scan.job.kind == SCAN:
                service.parts.scanner("sandbox").scan(scan)
        [claimed] = [
            it
            for it in self._claim("timers")
            if (it.job.kind, it.job.subject) == (EXPIRE_PAYMENT, self.id)
        ]
        PaymentExpiry(service.parts.ports, {}, lambda authority, chain_id: None).run(claimed)

    def _claim(self, queue: str) -> Sequence[ClaimedJob]:
        now, storage = self.world.clock.now(), self.world.storage
        return storage.claim(
            f"sandbox.{queue}", now, lease_ms=60_000, limit=100, lane_concurrency=100
        )

    def is_untouched(self) -> bool:
        """Whether the Payment is as it was and nothing was reported: a refusal has no effect."""
        return (self.world.paid(self.id), self.world.event_names()) == (
            self.before,
            self.reported_events,
        )

    def _stages(self, kind: str) -> dict[str, Stage]:
        if kind == "send":
            return send_stages(self.details.payment)
        if kind == "collect":
            return collect_stages(self.details.payment)
        return stages(self.details.payment)

    def _receive(self) -> PaymentDetails:
        details = self.world.payment("0.001")
        self.option = self.world.option(details)
        return attrs.evolve(details, payment=self.world.paid(details.payment.id))

    def _send(self) -> PaymentDetails:
        to = ToAccount(account_id=self.world.merchant.id)
        new = NewSend(amount="0.001", account_id=self.world.payer.id, destination=to)
        return self.world.resources.payments.send(new)

    def _collect(self) -> PaymentDetails:
        world = self.world
        mandate = world.resources.mandates.create(
            world.payer.id,
            NewMandate(vault_id=world.vault_of().id, amount_per_period="1.00", period="day"),
        )
        to = ToAccount(account_id=world.merchant.id)
        new = NewCollect(amount="0.001", mandate_id=mandate.mandate.id, destination=to)
        return world.resources.payments.collect(new)

    def _option(self) -> OptionDetails:
        return self.option or self.details.options[0]

    def _action_id(self) -> str:
        return self._option().option.action_id or "action_used"


# No machine without a table.

IN_THE_TESTS_OF_WEBHOOKS = (ENDPOINT, DELIVERY)


def machines() -> dict[str, StateMachine]:
    """Every machine of the package, wherever it is, by its module and name."""
    found: dict[str, StateMachine] = {}
    for module in pkgutil.walk_packages(payments_core.__path__, "payments_core."):
        names = vars(importlib.import_module(module.name))
        found |= {
            f"{module.name}.{name}": value
            for name, value in names.items()
            if isinstance(value, StateMachine)
        }
    return found


def test_no_machine_is_without_its_table() -> None:
    tabled = [*(machine for machine, _ in MACHINES.values()), *IN_THE_TESTS_OF_WEBHOOKS]
    found = machines()
    assert len(found) >= len(tabled)
    missing = [name for name, machine in found.items() if machine not in tabled]
    assert not missing, f"add them to tables.py and test_machines.py: {missing}"
