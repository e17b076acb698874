"""The states of a deposit (contract §5), and the pure steps through them."""

from __future__ import annotations

from typing import Any

import attrs

from payments_core.clock import Instant
from payments_core.deposits.record import (
    REORGED,
    AnyDepositAddress,
    Deposit,
    find_returned_transfer,
)
from payments_core.engine.events import BY_NAME, NewEvent
from payments_core.engine.state_machine import StateMachine, Transition, transitions_from
from payments_core.engine.step import Step
from payments_core.evolve import evolve
from payments_core.misdirected import lifecycle as sending_back
from payments_core.misdirected.record import SentBack
from payments_core.money import Atomic
from payments_core.networks import Asset

DEPOSIT = StateMachine(
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
            why="The transfer is final; the service sweeps the funds to the account's vault.",
        ),
        Transition(
            "confirmed",
            "settle",
            "settled",
            emits="deposit.settled",
            why="The sweep is final: the vault has the funds.",
        ),
        Transition(
            "detected",
            "reject",
            "rejected",
            emits="deposit.misdirected",
            why="The transfer is final, and of a token that is not credited.",
        ),
        Transition(
            "rejected",
            "return_succeeded",
            "rejected",
            emits="deposit.returned",
            why="The transfer that sent it back is final.",
        ),
        Transition(
            "rejected",
            "return_failed",
            "rejected",
            emits="deposit.misdirected",
            why="The transfer that sent it back failed, at once or when a reorg undid it; it can be"
            " sent back again.",
        ),
        *transitions_from(
            ("detected", "confirmed", "rejected"),
            "reorg",
            "failed",
            emits="deposit.failed",
            why="A reorg undid it; a confirmed deposit fails only if its sweep can be stopped, and"
            " a rejected one only if nothing of it was sent back.",
        ),
        Transition(
            "failed",
            "return",
            "detected",
            emits="deposit.detected",
            why="The transaction of a reorged deposit was included again.",
        ),
        Transition(
            "confirmed",
            "fail",
            "failed",
            emits="deposit.failed",
            why="The sweep failed permanently; the funds are still at the deposit address.",
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
            why="A check has requested the sweep again.",
        ),
    ),
    terminal=(),
)


@attrs.frozen(kw_only=True)
class IncomingTransfer:
    """A transfer to a deposit address as the chain shows it, and the block that it is in.

    One that `is_misdirected` is of a token that no account is credited with.
    """

    asset: Asset
    is_misdirected: bool
    amount_atomic: Atomic
    sender: str
    address: str
    transaction_hash: str
    position: int
    log_index: int
    block_number: int
    block_hash: str


def apply_trigger(deposit: Deposit, trigger: str, *, now: Instant, **changes: Any) -> Step[Deposit]:
    """The deposit after `trigger`, with `changes`. Raises InvalidState."""
    row = DEPOSIT.step(deposit.status, trigger)
    after = evolve(
        deposit,
        status=row.target,
        status_version=deposit.status_version + 1,
        updated_at_ms=now,
        **changes,
    )
    return Step(after, _build_event(row.emits, after))


def detect(
    id: str,
    address: AnyDepositAddress,
    incoming: IncomingTransfer,
    *,
    external_user_id: str,
    api_version: str,
    now: Instant,
) -> Step[Deposit]:
    """A new deposit."""
    row = DEPOSIT.step(None, "detect")
    deposit = Deposit(
        id=id,
        account_id=address.account_id,
        deposit_address_id=address.id,
        chain_id=incoming.asset.chain_id,
        **_token_fields(incoming),
        amount_atomic=incoming.amount_atomic,
        sender=incoming.sender,
        address=incoming.address,
        transaction_hash=incoming.transaction_hash,
        position=incoming.position,
        log_index=incoming.log_index,
        block_number=incoming.block_number,
        block_hash=incoming.block_hash,
        status=row.target,
        status_version=1,
        returned_from=find_returned_transfer(address),
        external_user_id=external_user_id,
        api_version=api_version,
        created_at_ms=now,
        updated_at_ms=now,
    )
    return Step(deposit, _build_event(row.emits, deposit))


def _token_fields(incoming: IncomingTransfer) -> dict[str, Any]:
    return {
        "asset_symbol": incoming.asset.symbol,
        "token_address": incoming.asset.address,
        "decimals": incoming.asset.decimals,
        "is_misdirected": incoming.is_misdirected,
    }


def is_same(deposit: Deposit, incoming: IncomingTransfer) -> bool:
    """Whether the chain still shows the deposit's transfer, in any block."""
    return (deposit.token_address, deposit.amount_atomic, deposit.sender) == (
        incoming.asset.address,
        incoming.amount_atomic,
        incoming.sender,
    )


def with_location(deposit: Deposit, incoming: IncomingTransfer) -> Deposit:
    """The deposit as the chain shows it now. A changed registry changes nothing of its token."""
    is_same_token = deposit.token_address == incoming.asset.address
    return evolve(
        deposit,
        **({} if is_same_token else _token_fields(incoming)),
        amount_atomic=incoming.amount_atomic,
        sender=incoming.sender,
        log_index=incoming.log_index,
        block_number=incoming.block_number,
        block_hash=incoming.block_hash,
    )


def confirm(deposit: Deposit, sweep_id: str, *, now: Instant) -> Step[Deposit]:
    """Final; `sweep_id` is the transfer that brings it to the vault."""
    return apply_trigger(deposit, "confirm", now=now, sweep_id=sweep_id, confirmed_at_ms=now)


def reject(deposit: Deposit, *, now: Instant) -> Step[Deposit]:
    """Final, and of a token that is not credited: it stays at its address until it is sent back."""
    return apply_trigger(deposit, "reject", now=now, rejection_reason="wrong_token")


def note_sent_back(deposit: Deposit, sent_back: SentBack, *, now: Instant) -> Step[Deposit]:
    """The deposit is back at its sender: nothing of it is held."""
    return apply_trigger(deposit, "return_succeeded", now=now, sent_back=sent_back)


def report_again(deposit: Deposit, sent_back: SentBack, *, now: Instant) -> Step[Deposit]:
    """The way back of the deposit has failed: it is still held."""
    return apply_trigger(deposit, "return_failed", now=now, sent_back=sent_back)


def settle(deposit: Deposit, *, now: Instant) -> Step[Deposit]:
    """In the vault."""
    return apply_trigger(deposit, "settle", now=now, settled_at_ms=now)


def reorg(deposit: Deposit, *, now: Instant) -> Step[Deposit]:
    """Undone by the chain. A transfer of it that was requested must have been withdrawn."""
    sent_back = deposit.sent_back
    if sent_back is not None and sent_back.is_under_way:
        sent_back = sending_back.apply_trigger(sent_back, "withdraw", failure="funds_reorged")
    return apply_trigger(
        deposit,
        "reorg",
        now=now,
        failure=REORGED,
        rejection_reason=None,
        sent_back=sent_back,
        block_hash=None,
        sweep_id=None,
        confirmed_at_ms=None,
    )


def reappear(deposit: Deposit, incoming: IncomingTransfer, *, now: Instant) -> Step[Deposit]:
    """A reorged deposit that the chain shows again, maybe with other facts."""
    return apply_trigger(with_location(deposit, incoming), "return", now=now, failure=None)


def fail(deposit: Deposit, reason: str, *, now: Instant) -> Step[Deposit]:
    """The sweep failed permanently."""
    return apply_trigger(deposit, "fail", now=now, failure=reason)


def reverse_settlement(deposit: Deposit, reason: str, *, now: Instant) -> Step[Deposit]:
    """Out of the vault again: the sweep was undone beyond finality, and failed permanently."""
    return apply_trigger(deposit, "sweep_reorged", now=now, failure=reason, settled_at_ms=None)


def retry_sweep(deposit: Deposit, sweep_id: str, *, now: Instant) -> Step[Deposit]:
    """The sweep of a deposit whose sweep failed, again, as another transfer."""
    return apply_trigger(deposit, "retry", now=now, failure=None, sweep_id=sweep_id)


def _build_event(name: str | None, deposit: Deposit) -> tuple[NewEvent, ...]:
    assert name is not None, "each step of a deposit must have an event"
    sent_back = deposit.sent_back
    known = {
        "accountId": deposit.account_id,
        "depositId": deposit.id,
        "status": deposit.status,
        "statusVersion": deposit.status_version,
        "reason": deposit.rejection_reason,
        "chainId": deposit.chain_id,
        "assetSymbol": deposit.asset_symbol,
        "tokenAddress": deposit.asset.address,
        "amountAtomic": str(deposit.amount_atomic),
        "from": deposit.sender,
        "transactionHash": deposit.transaction_hash,
        "destination": sent_back.destination if sent_back else None,
        "returnTransactionHash": sent_back.transaction_hash if sent_back else None,
    }
    payload = {field: known[field] for field in BY_NAME[name].fields}
    return (
        NewEvent(name, payload, deposit.api_version, deposit.account_id, deposit.external_user_id),
    )
