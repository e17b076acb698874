"""What senders have for gas: the calls that are added to those of the heads, and their answers.

A node that does not answer them, or answers nonsense, still counts for the heads.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

from payments_core.chains.evm import responses as answers
from payments_core.chains.evm.fee_market import MARKET_CALLS, FeeMarket, parse_market
from payments_core.chains.evm.responses import BadResponse
from payments_core.chains.evm.rpc import Refusal, Result, RpcCall


@attrs.frozen
class EvmGas:
    """What a sender has, in wei, and the prices of gas at that time."""

    balance: int
    market: FeeMarket


def gas_calls(senders: Sequence[str]) -> list[RpcCall]:
    """The calls for these senders, and none without one."""
    if not senders:
        return []
    return [*MARKET_CALLS, *(RpcCall("eth_getBalance", (one, "latest")) for one in senders)]


def parse_gas(senders: Sequence[str], results: Sequence[Result]) -> Mapping[str, EvmGas]:
    """What a node says, by sender, in its results of `gas_calls`; nothing if that is nonsense."""
    if not senders:
        return {}
    history, tip, *balances = results
    if isinstance(history, Refusal) or isinstance(tip, Refusal):
        return {}
    found = {}
    try:
        market = parse_market(history, tip)
        for sender, balance in zip(senders, balances, strict=True):
            if not isinstance(balance, Refusal):
                found[sender] = EvmGas(answers.parse_wei(balance), market)
    except BadResponse:
        return {}
    return found


def agree_on_gas(
    senders: Sequence[str], replies: Sequence[Mapping[str, EvmGas]], enough: int
) -> Mapping[str, EvmGas]:
    """What enough nodes say, by sender: at most this balance, and at least these prices.

    So fewer nodes than must agree cannot make a sender look too poor.
    """
    agreed = {}
    for sender in senders:
        said = [reply[sender] for reply in replies if sender in reply]
        if len(said) < enough:
            continue
        balances = sorted(one.balance for one in said)
        base_fees = sorted((one.market.base_fee for one in said), reverse=True)
        priorities = sorted((one.market.priority for one in said), reverse=True)
        place = enough - 1
        agreed[sender] = EvmGas(balances[place], FeeMarket(base_fees[place], priorities[place]))
    return agreed
