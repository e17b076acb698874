"""Simulates the payer of one Payment, for the panel of a sandbox's checkout page.

The effect of an action is decided from the page's data (`plan_moves`, pure), and carried out by the
sandbox's own controls.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, get_args

import attrs

from payments_core.clock import SECOND
from payments_core.errors import InvalidState
from payments_core.money import format_amount
from payments_core.payments.checkout.checkout import Checkout, CheckoutPage
from payments_core.payments.links import environment_of
from payments_core.payments.record import Payment
from payments_core.payments.transitions import OPEN
from payments_core.sandbox.operations import MAX_SANDBOX_REORG_DEPTH, Sandbox
from payments_core.tenants.authorization import Authority
from payments_core.tenants.operations import Tenants

Action = Literal[
    "pay", "pay_short", "pay_over", "pay_twice", "pay_late", "buy", "mine", "reorg", "expire"
]
ACTIONS: tuple[Action, ...] = get_args(Action)

MINED_S = 20
"""A simulated chain adds a block for every second: enough to make all transfers final."""

EXPIRY_LAG_S = 10
"""How long after its time a Payment has expired: a later block is final by then."""


@attrs.frozen
class Send:
    """A stranger sends an amount to the escrow, in atomic units."""

    amount_atomic: int


@attrs.frozen
class Buy:
    """The payer pays the price that the simulated on-ramp has offered for an option."""

    option_id: str


@attrs.frozen
class Pass:
    """Some seconds pass, with their blocks and all jobs that fall due."""

    seconds: int


@attrs.frozen
class Drop:
    """The chain drops this block and all later ones."""

    first_block: int


Move = Send | Buy | Pass | Drop


def plan_moves(page: CheckoutPage) -> Mapping[Action, tuple[Move, ...]]:
    """The moves of each action on the present Payment; an action without effect is absent.

    If nothing is due, the whole amount is sent again.
    """
    payment = page.payment
    if payment.escrow_address is None:
        return {}
    amount = payment.amount_atomic
    due = page.due_atomic or amount
    left_ms = payment.expires_at_ms - page.looked_at
    end = (Pass(left_ms // SECOND + EXPIRY_LAG_S),) if left_ms >= 0 else ()
    found: dict[Action, tuple[Move, ...]] = {
        "pay": (Send(due),),
        "pay_short": (Send(due // 2),) if due >= 2 else (),
        "pay_over": (Send(due + max(1, amount // 10)),),
        "pay_twice": (Send(due), Send(amount)),
        "pay_late": (*end, Send(amount)),
        "buy": _plan_purchase(page),
        "mine": (Pass(MINED_S),),
        "reorg": _plan_reorg(page),
        "expire": end if payment.status in OPEN else (),
    }
    return {action: moves for action, moves in found.items() if moves}


def _plan_purchase(page: CheckoutPage) -> tuple[Move, ...]:
    """Pay for the newest offer of an on-ramp, while it is valid."""
    found = page.offered.get("hosted_onramp")
    if found is None or found.offer is None or not found.offer.is_valid(page.looked_at):
        return ()
    return (Buy(found.option.id),)


def _plan_reorg(page: CheckoutPage) -> tuple[Move, ...]:
    """Drop the newest transfer that counts, while a reorg can still reach its block."""
    blocks = [one.block_number for one in page.receipts if one.status in ("observed", "verified")]
    is_reached = blocks and max(blocks) > page.scanned_height - MAX_SANDBOX_REORG_DEPTH // 2
    return (Drop(max(blocks)),) if is_reached else ()


class SandboxPayer:
    """Simulates the payer, the chain and the clock for the Payment of a link."""

    def __init__(self, sandbox: Sandbox, checkout: Checkout, tenants: Tenants) -> None:
        self._sandbox = sandbox
        self._checkout = checkout
        self._tenants = tenants

    def list_actions(self, page: CheckoutPage) -> tuple[Action, ...]:
        """The actions possible now. Raises NotFound unless the sandbox has only one app."""
        self._sandbox.require_single_app()
        return tuple(self._plan(page))

    def play(self, code: str, action: Action, *, mode: str) -> None:
        """Carry out an action, and all work then due; the transfers are on chain but not final.

        Raises NotFound, EntitlementRequired, InvalidState if the action has no effect now, and
        DependencyFailed.
        """
        page = self._checkout.get_page(code, mode=mode)
        authority = self._tenants.system_authority(environment_of(code))
        moves = self._plan(page).get(action)
        if moves is None:
            raise InvalidState("payment", page.payment.status, action)
        for move in moves:
            self._do(authority, page.payment, move)
        self._sandbox.run(authority)

    def _plan(self, page: CheckoutPage) -> Mapping[Action, tuple[Move, ...]]:
        """The actions whose moves the sandbox can make: a testnet's are the payer's own."""
        if not self._sandbox.runner.controls(page.payment.chain_id):
            return {}
        impossible = (
            *(() if self._sandbox.runner.can_advance else (Pass,)),
            *(() if self._sandbox.sells else (Buy,)),
        )
        return {
            action: moves
            for action, moves in plan_moves(page).items()
            if not any(isinstance(move, impossible) for move in moves)
        }

    def _do(self, authority: Authority, payment: Payment, move: Move) -> None:
        if isinstance(move, Pass):
            self._sandbox.advance_clock(authority, move.seconds)
        elif isinstance(move, Buy):
            self._sandbox.decide_order(authority, move.option_id, "pay")
        elif isinstance(move, Drop):
            latest = self._sandbox.get_chain(payment.chain_id).peek_heads().latest.number
            depth = min(latest - move.first_block + 1, MAX_SANDBOX_REORG_DEPTH)
            self._sandbox.reorg_chain(authority, payment.chain_id, max(1, depth))
        else:
            asset = payment.asset
            assert payment.escrow_address is not None, "no moves are planned without one"
            self._sandbox.transfer(
                authority,
                payment.chain_id,
                payment.asset_symbol,
                format_amount(move.amount_atomic, asset.decimals),
                to=payment.escrow_address,
            )
