"""Native coin at an account's deposit addresses: a check looks for it, and has its log made."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from payments_core.chains.port import Chain, Contract
from payments_core.clock import Instant
from payments_core.deposits.record import DepositAddress
from payments_core.engine.decision import Decision
from payments_core.engine.identifiers import IdSequence
from payments_core.evolve import evolve
from payments_core.misdirected.coin_reports import (
    FoundCoin,
    find_coin,
    is_under_way,
    request_report,
)
from payments_core.networks import Networks
from payments_core.storage.port import Transaction

CoinAtAddress = tuple[DepositAddress, FoundCoin]


def find_coins(
    chains: Mapping[int, Chain],
    networks: Networks,
    partition: str,
    addresses: Iterable[DepositAddress],
) -> Sequence[CoinAtAddress]:
    """The addresses with native coin that has no log. Raises ChainUnavailable."""
    looks = (
        (
            row,
            find_coin(
                chains,
                networks,
                partition,
                row.chain_id,
                Contract("deposit", row.account_id, row.address),
            ),
        )
        for row in addresses
    )
    return [(row, found) for row, found in looks if found is not None]


def decide_reports(
    tx: Transaction,
    id_sequence: IdSequence,
    partition: str,
    coins: Sequence[CoinAtAddress],
    *,
    now: Instant,
) -> Decision[None]:
    """The transactions that make the logs, except where one is under way."""
    requested: Decision[None] = Decision(None)
    for row, found in coins:
        address = tx.get(DepositAddress, row.id, for_update=True)
        if address is None or is_under_way(tx, address.coin_report_id):
            continue
        id = id_sequence.issue("out")
        changed = Decision(None, replaces=(evolve(address, coin_report_id=id),))
        requested = requested.merge(changed, request_report(partition, id, found, now=now))
    return requested
