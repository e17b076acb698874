"""The fees offered for a transaction: first ones, higher ones when it is stuck, and its gas limit.

Pure: the node's base fee, tip and gas are arguments, and are trusted only
within the bounds of a table. All fees are in wei for one unit of gas.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import attrs

from payments_core.chains.port import ChainUnavailable
from payments_core.networks import FeePolicy

MILLI_GWEI = 10**6
GWEI = 10**9

HEADROOM = 2
"""The base fee may double before a transaction waits; on Ethereum that takes six full blocks."""

_REPLACEMENT_FACTOR = (9, 8)
"""How much more a replacement offers on both fees: 12.5 %. Geth and its relatives require 10 %
(their `txpool.pricebump`), OpenEthereum required 12.5 %; less is refused, and the old one stays."""


@attrs.frozen
class Fees:
    """The fees of a transaction: the maximum price, and the maximum tip within it."""

    max_fee: int
    max_priority_fee: int

    def covers(self, base_fee: int) -> bool:
        """Whether it can be in a block of this base fee; otherwise it waits for a cheaper one."""
        return self.max_fee >= base_fee


Action = Literal[
    "deploy_factory",
    "set_operator",
    "set_vault_owner",
    "fund",
    "pay",
    "pay_out",
    "sweep",
    "sweep_all",
    "report",
    "deploy_role_module",
    "enable_module",
    "exec_transfer",
    "fill",
]

# The gas that each used on anvil, with our own test token, in the most expensive case: the purses
# not yet created, the recipient without that token. tests/chains/evm/test_fees.py measures it
# again.
MEASURED_GAS: Mapping[Action, int] = {
    "deploy_factory": 2_284_658,
    "set_operator": 48_794,
    "set_vault_owner": 99_611,
    "fund": 114_014,
    "pay": 110_746,
    "pay_out": 173_338,
    "sweep": 111_260,
    "sweep_all": 104_928,
    "report": 50_705,
    "deploy_role_module": 441_273,  # for one token
    "enable_module": 83_008,
    "exec_transfer": 73_862,
    "fill": 21_000,  # the base cost of every transaction
}

GAS_MARGIN = 2
"""A token may cost more than our own, and a purse be created only now; unused gas is not paid."""

MAX_GAS = 2**24
"""The limit of a transaction on Ethereum (EIP-7825); ours stay far below it."""


@attrs.frozen
class FeeBump:
    """A stuck transaction's next fees. If `is_held`, the ceiling leaves no room: they stay."""

    fees: Fees
    is_held: bool


def initial_fees(base_fee: int, priority: int, policy: FeePolicy) -> Fees:
    """The fees of a new transaction; `priority` is the tip that the node suggests.

    Never above the policy: with a base fee beyond it the transaction waits (`Fees.covers`).
    """
    tip = min(max(priority, policy.min_priority), policy.max_initial_priority)
    return Fees(min(HEADROOM * max(base_fee, 0) + tip, policy.fee_ceiling), tip)


def bump_fees(before: Fees, base_fee: int, priority: int, policy: FeePolicy) -> FeeBump:
    """The fees of a stuck transaction's replacement: as if new, and enough more on both fields.

    Nodes replace only for more on both, so if one field has no room neither changes.
    """
    new = initial_fees(base_fee, priority, policy)
    raised = Fees(
        max(_raise_fee(before.max_fee), new.max_fee),
        max(_raise_fee(before.max_priority_fee), new.max_priority_fee),
    )
    if raised.max_fee > policy.fee_ceiling or raised.max_priority_fee > policy.max_priority:
        return FeeBump(before, is_held=True)
    return FeeBump(raised, is_held=False)


def gas_limit(action: Action, estimate: int, policy: FeePolicy) -> int:
    """The gas limit of a transaction with this estimate of a node; 0 means that it has none.

    Without one the policy's margin applies. A refusal may mean that it would fail, or that the node
    is too busy to say.

    The estimate is always requested: on Arbitrum it contains the cost of the data on Ethereum, in
    units of gas, which no table knows. Raises ChainUnavailable for an impossible estimate.
    """
    if not estimate:
        return min(policy.unestimated_margin * MEASURED_GAS[action], MAX_GAS)
    wanted = max(GAS_MARGIN * MEASURED_GAS[action], -(-estimate * 13 // 10))
    if wanted > MAX_GAS:
        raise ChainUnavailable("the node's gas estimate is above the limit of a transaction")
    return wanted


def count_affordable(
    action: Action, balance: int, base_fee: int, priority: int, policy: FeePolicy
) -> int | None:
    """How many such transactions a balance in wei pays for, as nodes count: the whole gas limit, at
    the whole price that is offered. None if they are free.

    The gas limit is the lowest that `gas_limit` may choose: an estimate can only raise it.
    """
    gas = min(GAS_MARGIN, policy.unestimated_margin) * MEASURED_GAS[action]
    cost = gas * initial_fees(base_fee, priority, policy).max_fee
    return balance // cost if cost else None


def _raise_fee(fee: int) -> int:
    """At least an eighth more, rounded up, and more than zero: equal is not a replacement."""
    times, by = _REPLACEMENT_FACTOR
    return max(-(-fee * times // by), fee + 1)
