"""The states of a deposit (contract §5), and the pure steps through them."""

from __future__ import annotations

from typing import Any

import attrs

from payments_core.clock import Instant
from payments_core.deposits.record import REORGED, Deposit, DepositAddress
from payments_core.engine.events import Happening
from payments_core.engine.state_machine import Machine, Transition, rows
from payments_core.money import Atomic

DEPOSIT = Machine(
    "deposit",
    (
        Transition(
            None,
            "detect",
            "detected",
            emits="deposit.detected",
            why="A transfer to a deposit address is in a block that may not be final.",
        ),
        Transition(
            "detected",
            "confirm",
            "confirmed",
            emits="deposit.confirmed",
            why="The transfer is final; what arrived is sent on to the account's vault.",
        ),
        Transition(
            "confirmed",
            "settle",
            "settled",
            emits="deposit.settled",
            why="The sweep is final: the vault has the funds.",
        ),
        *rows(
            ("detected", "confirmed"),
            "reorg",
            "failed",
            emits="deposit.failed",
            why="Undone by the chain; a confirmed one only while its sweep can be stopped.",
        ),
        Transition(
            "failed",
            "return",
            "detected",
            emits="deposit.detected",
            why="The transaction of a reorged one was included once more.",
        ),
        Transition(
            "confirmed",
            "fail",
            "failed",
            emits="deposit.failed",
            why="The sweep failed for good; the funds are still at the deposit address.",
        ),
        Transition(
            "settled",
            "sweep_reorged",
            "failed",
            emits="deposit.failed",
            why="A reorg beyond finality undid the sweep, and it failed when it was sent again.",
        ),
        Transition(
            "failed",
            "retry",
            "confirmed",
            emits="deposit.confirmed",
            why="A check has asked for the sweep once more.",
        ),
    ),
    terminal=(),
)


@attrs.frozen(kw_only=True)
class Arrival:
    """A transfer to a deposit address as the chain shows it, and the block that it is in."""

    chain_id: int
    asset_symbol: str
    amount: Atomic
    sender: str
    address: str
    transaction_hash: str
    position: int
    log_index: int
    block_number: int
    block_hash: str


@attrs.frozen
class Change:
    """A deposit after one or more steps, with the event of each."""

    deposit: Deposit
    events: tuple[Happening, ...] = ()

    def step(self, trigger: str, *, now: Instant, **changes: Any) -> Change:
        """One step further. Raises InvalidState."""
        row = DEPOSIT.step(self.deposit.status, trigger)
        after = attrs.evolve(
            self.deposit,
            status=row.target,
            status_version=self.deposit.status_version + 1,
            updated_at=now,
            **changes,
        )
        return attrs.evolve(
            self, deposit=after, events=(*self.events, *_happened(row.emits, after))
        )


def detect(
    id: str,
    address: DepositAddress,
    arrival: Arrival,
    *,
    external_user_id: str,
    api_version: str,
    now: Instant,
) -> Change:
    """A new deposit."""
    row = DEPOSIT.step(None, "detect")
    deposit = Deposit(
        id=id,
        account_id=address.account_id,
        deposit_address_id=address.id,
        chain_id=arrival.chain_id,
        asset_symbol=arrival.asset_symbol,
        amount=arrival.amount,
        sender=arrival.sender,
        address=arrival.address,
        transaction_hash=arrival.transaction_hash,
        position=arrival.position,
        log_index=arrival.log_index,
        block_number=arrival.block_number,
        block_hash=arrival.block_hash,
        status=row.target,
        status_version=1,
        external_user_id=external_user_id,
        api_version=api_version,
        created_at=now,
        updated_at=now,
    )
    return Change(deposit, _happened(row.emits, deposit))


def is_same(deposit: Deposit, arrival: Arrival) -> bool:
    """Whether the chain still shows what the deposit says, in whatever block."""
    return (deposit.asset_symbol, deposit.amount, deposit.sender) == (
        arrival.asset_symbol,
        arrival.amount,
        arrival.sender,
    )


def placed(deposit: Deposit, arrival: Arrival) -> Deposit:
    """The deposit as the chain shows it now."""
    return attrs.evolve(
        deposit,
        asset_symbol=arrival.asset_symbol,
        amount=arrival.amount,
        sender=arrival.sender,
        log_index=arrival.log_index,
        block_number=arrival.block_number,
        block_hash=arrival.block_hash,
    )


def confirm(change: Change, sweep_id: str, *, now: Instant) -> Change:
    """Final; `sweep_id` is the transfer that brings it to the vault."""
    return change.step("confirm", now=now, sweep_id=sweep_id, confirmed_at=now)


def settle(change: Change, *, now: Instant) -> Change:
    """In the vault."""
    return change.step("settle", now=now, settled_at=now)


def reorg(change: Change, *, now: Instant) -> Change:
    """Undone by the chain. A sweep that it had must have been withdrawn."""
    return change.step(
        "reorg", now=now, failure=REORGED, block_hash=None, sweep_id=None, confirmed_at=None
    )


def come_back(change: Change, arrival: Arrival, *, now: Instant) -> Change:
    """A reorged one that the chain shows once more, maybe with other facts."""
    back = attrs.evolve(change, deposit=attrs.evolve(placed(change.deposit, arrival), failure=None))
    return back.step("return", now=now)


def fail(change: Change, reason: str, *, now: Instant) -> Change:
    """The sweep failed for good."""
    return change.step("fail", now=now, failure=reason)


def unsettle(change: Change, reason: str, *, now: Instant) -> Change:
    """Out of the vault again: the sweep was undone beyond finality, and failed for good."""
    return change.step("sweep_reorged", now=now, failure=reason, settled_at=None)


def retry(change: Change, sweep_id: str, *, now: Instant) -> Change:
    """The sweep of one whose sweep failed once more, as another transfer."""
    return change.step("retry", now=now, failure=None, sweep_id=sweep_id)


def _happened(name: str | None, deposit: Deposit) -> tuple[Happening, ...]:
    assert name is not None, "every step of a deposit has its event"
    payload = {
        "accountId": deposit.account_id,
        "depositId": deposit.id,
        "status": deposit.status,
        "statusVersion": deposit.status_version,
        "chainId": deposit.chain_id,
        "assetSymbol": deposit.asset_symbol,
        "amountAtomic": str(deposit.amount),
        "transactionHash": deposit.transaction_hash,
    }
    return (
        Happening(name, payload, deposit.api_version, deposit.account_id, deposit.external_user_id),
    )
