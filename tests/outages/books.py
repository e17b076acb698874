"""What the flows must result in, summed up only from what the partner was answered."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

import attrs

from tests.outages.partner import AnsweredRequest
from tests.shipped import CHAINS, asset_of

Holder = tuple[int, str, str]
"""A chain, a token and an address."""


@attrs.frozen
class Books:
    """The ends that Payments must have reached, by their ids, and what each holder must have.

    `deposits` are the hashes of the transfers to deposit addresses.
    """

    ends: Mapping[str, str]
    holders: Mapping[Holder, int]
    minted: Mapping[tuple[int, str], int]
    deposits: frozenset[str]

    def on_chain(self, chain_id: int, address: str) -> int:
        """What an address has on a chain, where all flows are in one token."""
        return sum(
            n for (chain, _, at), n in self.holders.items() if (chain, at) == (chain_id, address)
        )


def summed(answered: Iterable[AnsweredRequest]) -> Books:
    """The books of all that was answered."""
    of: dict[str | None, dict[str, Any]] = defaultdict(dict)
    # All flows are in one token; on a chain that was only funded, nothing has said its address.
    tokens = {chain_id: asset_of(chain_id, "USDC").address for chain_id in CHAINS}
    vaults: dict[tuple[str, int], str] = {}
    writes = [(one, one.document) for one in answered if one.is_write]
    for one, document in writes:
        of[one.about][one.what] = document
        if one.what == "authorize":
            of[one.about]["payer"] = one.whose
        if one.what == "account":
            for vault in document["vaults"]:
                vaults[document["id"], vault["chainId"]] = vault["address"]
        if one.what in ("receive", "send"):
            of[document["id"]][one.what] = document
            tokens[document["chainId"]] = document["tokenAddress"]
    moved: Counter[Holder] = Counter()
    minted: Counter[tuple[int, str]] = Counter()
    ends, deposits = {}, set()
    for one, document in writes:
        if one.what not in ("fund", "pay", "deposit"):
            continue
        place = document["chainId"], tokens[document["chainId"]]
        amount = int(document["amountAtomic"])
        minted[place] += amount
        if one.what == "deposit":
            deposits.add(document["transactionHash"])
            moved[*place, vaults[str(one.about), document["chainId"]]] += amount
        else:
            moved[*place, document["address" if one.what == "fund" else "to"]] += amount
    for id, parts in of.items():
        if id is None or not {"receive", "send"} & parts.keys():
            continue
        ends[id] = _end(parts)
        if ends[id] in ("succeeded", "partially_refunded"):
            _settle(parts, moved, vaults)
    held = {holder: amount for holder, amount in moved.items() if amount}
    return Books(ends, held, minted, frozenset(deposits))


def _end(parts: Mapping[str, Any]) -> str:
    if "cancel" in parts:
        return "cancelled"
    if "refund" in parts:  # of half of it, and only of what succeeded
        return "partially_refunded"
    return "succeeded" if {"send", "authorize", "pay"} & parts.keys() else "expired"


def _settle(
    parts: Mapping[str, Any], moved: Counter[Holder], vaults: Mapping[tuple[str, int], str]
) -> None:
    """A Payment that went through, and its refund if there is one."""
    payment = parts.get("receive") or parts["send"]
    chain_id, token = payment["chainId"], payment["tokenAddress"]
    amount, fee = int(payment["amountAtomic"]), int(payment["fees"]["feeAmountAtomic"])
    destination = payment["destination"]["address"]
    if "pay" in parts:
        source = payment["escrow"]["address"]
    elif "send" in parts:
        source = payment["source"]["address"]
    else:
        source = vaults[parts["payer"], chain_id]
    moved[chain_id, token, source] -= amount
    moved[chain_id, token, destination] += amount - fee
    if fee:
        moved[chain_id, token, payment["escrow"]["address"]] += fee
    if refund := parts.get("refund"):
        back = int(refund["amountAtomic"])
        moved[chain_id, token, destination] -= back
        moved[chain_id, token, refund["destination"]] += back
