"""The chain's view of a deposit's transfer, as far as it can be trusted."""

from __future__ import annotations

import attrs

from payments_core.chains.judge import ExpectedTransfer, judge
from payments_core.chains.port import (
    Block,
    Chain,
    ChainUnavailable,
    Heads,
    TransactionView,
    TransferLog,
)
from payments_core.chains.replaced_blocks import is_replaced
from payments_core.deposits.lifecycle import IncomingTransfer
from payments_core.deposits.record import Deposit
from payments_core.money import Atomic
from payments_core.networks import Networks


@attrs.frozen
class DepositObservation:
    """The result of a look. Without an arrival, the transfer is certainly not in the chain now.

    `final_height` was the newest final block when the look began.
    """

    incoming: IncomingTransfer | None
    is_final: bool
    final_height: int


def observe_deposit(chain: Chain, deposit: Deposit, networks: Networks) -> DepositObservation:
    """Ask the chain for a deposit's transfer.

    A node that does not know it, for example a lagging one, proves nothing: a transfer is gone
    only if another block has replaced its block. Raises ChainUnavailable.
    """
    heads = chain.heads()
    view = chain.transaction(deposit.transaction_hash)
    seen = None if view is None else _observe_transaction(deposit, view, heads, networks)
    if seen is not None:
        return seen
    if deposit.block_hash is not None and not is_replaced(
        chain, deposit.block_number, deposit.block_hash
    ):
        raise ChainUnavailable("the node cannot return the contents of its own block")
    return DepositObservation(None, is_final=False, final_height=heads.final.number)


def incoming_transfer_of(
    networks: Networks, chain_id: int, transaction_hash: str, block: Block, log: TransferLog
) -> IncomingTransfer | None:
    """The transfer; None if it is of zero or of a token that nobody knows."""
    asset = networks.identify_token(chain_id, log.token_address)
    if asset is None or log.amount_atomic == 0:
        return None
    return IncomingTransfer(
        asset=asset,
        is_misdirected=not networks.is_credited(asset),
        amount_atomic=Atomic(log.amount_atomic),
        sender=log.sender,
        address=log.recipient,
        transaction_hash=transaction_hash,
        position=log.position,
        log_index=log.log_index,
        block_number=block.number,
        block_hash=block.hash,
    )


def _observe_transaction(
    deposit: Deposit, view: TransactionView, heads: Heads, networks: Networks
) -> DepositObservation | None:
    """The transfer at the deposit's place in the transaction, if it is of worth."""
    logs = [log for log in view.logs if log.position == deposit.position]
    if view.block is None or not logs:
        return None
    incoming = incoming_transfer_of(networks, deposit.chain_id, view.hash, view.block, logs[0])
    if incoming is None:
        return None
    expectation = ExpectedTransfer(deposit.chain_id, logs[0].token_address, deposit.address)
    for verdict in judge(expectation, deposit.chain_id, view, heads, consumed=frozenset()):
        if verdict.log == logs[0] and (verdict.reason is None or verdict.is_pending):
            return DepositObservation(incoming, verdict.reason is None, heads.final.number)
    return None
