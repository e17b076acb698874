"""Policies of acceptance by amount, and what their rows mean, written a second time."""

from __future__ import annotations

import random

import attrs

from payments_core.acceptance import Acceptance
from payments_core.chains.port import Heads
from payments_core.chains.simulated.blocks import SAFE_CONFIRMATIONS
from payments_core.networks import Networks, shipped_networks
from payments_core.payments.record import Payment

_FINAL = Acceptance("finalized")
_LATEST, _ONE_DEEP = Acceptance("latest", up_to="2"), Acceptance(depth=1, up_to="5")
_SAFE = Acceptance("safe", up_to="10")

POLICIES: tuple[tuple[Acceptance, ...], ...] = (
    (_LATEST, _ONE_DEEP, _SAFE, _FINAL),
    (_LATEST, _ONE_DEEP, _SAFE, _FINAL),
    (attrs.evolve(_LATEST, up_to="300"), _FINAL),
    (attrs.evolve(_ONE_DEEP, up_to="25"), attrs.evolve(_SAFE, depth=1, up_to="300"), _FINAL),
    (Acceptance("latest", depth=2, up_to="25"), _FINAL),
)
"""A row of each kind, in the order of the amounts that the rules choose."""


def choose_networks(rng: random.Random, chain_ids: tuple[int, ...]) -> Networks | None:
    """The shipped networks with a policy by amount; in half of the worlds None."""
    if rng.random() < 0.5:
        return None
    shipped = shipped_networks()
    return shipped.merge(
        *(attrs.evolve(shipped[id], acceptance=rng.choice(POLICIES)) for id in chain_ids)
    )


def newest_accepted(payment: Payment, heads: Heads) -> int:
    """The newest block that counts for a stranger's transfer to a Payment."""
    latest, final = heads.latest.number, heads.final.number
    row = payment.early_acceptance
    newest = final
    if row is not None:
        by_tag = {"safe": latest - SAFE_CONFIRMATIONS, "finalized": final}
        newest = max(final, min(by_tag.get(str(row.tag), latest), latest - row.depth))
    return min(newest, latest - payment.confirmations)
