"""The simulated on-ramp: sells any token of the sandbox's chains for dollars, when it is told to.

Its orders are rows of the same storage, so that a restart or a second process sees the same
provider. It pays with new tokens; each of its transfers has a name, under which the chain makes it
once. It has no pages: `.invalid` is never a site (RFC 2606), and the sandbox orders what its buyers
do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import ROUND_UP, Decimal
from typing import Protocol, TypeVar

from payments_core.chains.port import ChainUnavailable
from payments_core.clock import MINUTE, SECOND
from payments_core.engine.decision import Decision, WorkerAuthority
from payments_core.engine.identifiers import IdSequence
from payments_core.engine.ports import Ports
from payments_core.errors import InvalidState, NotFound, Unavailable
from payments_core.evolve import evolve
from payments_core.hosted_onramps.port import (
    OnrampOffer,
    OnrampOrder,
    OnrampProgress,
    OnrampRefused,
    OnrampUnavailable,
)
from payments_core.hosted_onramps.simulated.records import Outcome, SimulatedOrder
from payments_core.money import Atomic
from payments_core.storage.port import SIMULATED, StorageError, Transaction

T = TypeVar("T")

OFFER_TTL_MS = 10 * MINUTE
FEE_PERCENT = Decimal(2)
"""What a buyer pays beyond the amount."""

TAKES_MS = 5 * SECOND
"""How long the provider takes to pay the escrow."""

_AUTHORITY = WorkerAuthority(SIMULATED, "sandbox")
_INJECTED_FAILURE = "the sandbox makes this call fail"


class SellingChain(Protocol):
    """The part of a sandbox's chain that the on-ramp needs (`sandbox/chains.py`)."""

    @property
    def faucet(self) -> str:
        """The source of new tokens, as a transfer's sender."""

    def transfer(
        self,
        token_address: str,
        source: str | None,
        recipient: str,
        amount_atomic: int,
        name: str,
    ) -> str:
        """A transfer, once for each `name`; without a `source`, of new tokens. Returns the hash."""


class SimulatedOnramp:
    """One on-ramp for a whole sandbox. `fails` is asked with a call's name at each call.

    The calls are `offer`, `refuse_offer`, after which there is no offer, and `look`.
    """

    name = "simulated"

    def __init__(
        self,
        ports: Ports,
        chains: Mapping[int, SellingChain],
        fails: Callable[[str], bool] = lambda call: False,
    ) -> None:
        self._storage = ports.storage
        self._networks = ports.networks
        self._committer = ports.committer
        self._clock = ports.clock
        self._chains = chains
        self._fails = fails

    def offer(self, order: OnrampOrder) -> OnrampOffer:
        """See HostedOnramp."""
        self._require_answer("offer")
        if order.asset.chain_id not in self._chains or self._fails("refuse_offer"):
            raise OnrampRefused("the sandbox does not sell this")
        reference = f"order_{order.key}"
        wanted = SimulatedOrder(
            id=reference,
            key=order.key,
            asset=order.asset.id,
            amount_atomic=Atomic(order.amount_atomic),
            recipient=order.recipient,
            expires_at_ms=self._clock.now() + OFFER_TTL_MS,
        )

        def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[SimulatedOrder]:
            known = tx.get(SimulatedOrder, reference, for_update=True)
            if known is None:
                return Decision(wanted, inserts=(wanted,))
            if _terms(known) != _terms(wanted):
                raise OnrampRefused("this key was used with another order")
            return Decision(known)

        made = self._call(lambda: self._committer.commit(_AUTHORITY, decide))
        amount = Decimal(made.amount_atomic).scaleb(-order.asset.decimals)
        price = (amount * (100 + FEE_PERCENT) / 100).quantize(Decimal("0.01"), ROUND_UP)
        return OnrampOffer(
            reference=reference,
            url=f"https://onramp.invalid/{reference}",
            price=f"{price:f}",
            currency="USD",
            expires_at_ms=made.expires_at_ms,
        )

    def look(self, reference: str) -> OnrampProgress:
        """See HostedOnramp. What is due is done here: nothing happens between calls."""
        self._require_answer("look")
        order = self._call(lambda: self._find(reference))
        if order is None:
            raise OnrampUnavailable("no order has this reference")
        if order.outcome is None or order.due_at_ms is None:
            return OnrampProgress(state="waiting")
        if order.outcome == "fail":
            return OnrampProgress(state="failed")
        if self._clock.now() < order.due_at_ms:
            return OnrampProgress(state="paid")
        if order.outcome == "return":
            return OnrampProgress(state="returned")
        return self._call(lambda: self._pay(order))

    def order(self, reference: str, outcome: Outcome) -> SimulatedOrder:
        """Have the buyer or the provider do this. Repeating it changes nothing.

        A late outcome is one after the order's expiry. Raises NotFound, and InvalidState if
        something else was ordered before.
        """

        def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[SimulatedOrder]:
            known = tx.get(SimulatedOrder, reference, for_update=True)
            if known is None:
                raise NotFound("order")
            if known.outcome is not None:
                if known.outcome != outcome:
                    raise InvalidState("order", known.outcome, outcome)
                return Decision(known)
            due_at = self._clock.now() + TAKES_MS
            ordered = evolve(known, outcome=outcome, due_at_ms=due_at)
            return Decision(ordered, replaces=(ordered,))

        return self._committer.commit(_AUTHORITY, decide)

    def _pay(self, order: SimulatedOrder) -> OnrampProgress:
        """Pay the escrow, as often as ordered; the chain makes each transfer once."""
        chain_id, _, symbol = order.asset.partition("/")
        asset = self._networks.find_asset(int(chain_id), symbol)
        chain = self._chains[asset.chain_id]
        amount = order.amount_atomic // 2 if order.outcome == "pay_short" else order.amount_atomic
        for number in range(2 if order.outcome == "pay_twice" else 1):
            name = f"order/{order.id}/{number}"
            hash = chain.transfer(asset.address, None, order.recipient, amount, name)
        return OnrampProgress(
            state="delivered", transaction_hash=hash, amount_atomic=amount, sender=chain.faucet
        )

    def _find(self, reference: str) -> SimulatedOrder | None:
        return self._storage.read(
            SIMULATED, lambda snapshot: snapshot.get(SimulatedOrder, reference)
        )

    def _require_answer(self, call: str) -> None:
        if self._fails(call):
            raise OnrampUnavailable(_INJECTED_FAILURE)

    def _call(self, call: Callable[[], T]) -> T:
        try:
            return call()
        except (StorageError, Unavailable, ChainUnavailable) as error:
            raise OnrampUnavailable("the simulated on-ramp's books cannot be read") from error


def _terms(order: SimulatedOrder) -> tuple[object, ...]:
    return order.key, order.asset, order.amount_atomic, order.recipient
