"""Altered evidence: each row is something that went wrong, and names the law that must find it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from typing import Any, TypeVar

import attrs

from payments_core.deposits.record import Deposit
from payments_core.onramps.record import BankTransaction
from payments_core.payments.journal.record import JournalEntry
from payments_core.storage.records import Record
from tests.going_live import laws
from tests.going_live.chains import Transfer
from tests.going_live.customers import BLOCKED
from tests.going_live.evidence import Evidence, Place
from tests.service.model.mirror import Mirror

T = TypeVar("T")
Alter = Callable[[Evidence], Evidence]
"""Raises IndexError where the play had nothing of the kind."""


@attrs.frozen
class Tampering:
    """What went wrong, and who must find it."""

    does: str
    alter: Alter
    law: laws.Law


def _cases(change: Callable[[list[Any]], Sequence[Mapping[str, Any]]]) -> Alter:
    return lambda evidence: attrs.evolve(
        evidence, cases=change([_first(evidence.cases), *evidence.cases[1:]])
    )


def _bank(kind: str, change: Callable[[dict[str, Any], str], object]) -> Alter:
    """The bank's rows of a kind are others: `change` gets them, and the first key."""

    def alter(evidence: Evidence) -> Evidence:
        rows = dict(evidence.bank[kind])
        change(rows, _first(sorted(rows)))
        return attrs.evolve(evidence, bank={**evidence.bank, kind: rows})

    return alter


def _twice(rows: dict[str, Any], key: str) -> None:
    rows[f"{key}/2"] = rows[key]


def _first(found: Sequence[T]) -> T:
    """Raises IndexError where the play had none."""
    return found[0]


def _again(recipients: Callable[[Evidence], Sequence[str]]) -> Alter:
    """The first transfer to one of the recipients, in the chain once more."""

    def alter(evidence: Evidence) -> Evidence:
        found = _to(evidence, recipients(evidence))
        twice = attrs.evolve(found, hash="0x" + "77" * 32)
        return attrs.evolve(evidence, transfers=[*evidence.transfers, twice])

    return alter


def _lost(recipients: Callable[[Evidence], Sequence[str]]) -> Alter:
    """The first transfer to one of the recipients is not in the chain."""

    def alter(evidence: Evidence) -> Evidence:
        found = _to(evidence, recipients(evidence))
        return attrs.evolve(evidence, transfers=[t for t in evidence.transfers if t != found])

    return alter


def _to(evidence: Evidence, recipients: Sequence[str]) -> Transfer:
    return _first([t for t in evidence.transfers if t.recipient in recipients])


def _deposit_addresses(evidence: Evidence) -> Sequence[str]:
    return [one.deposit_address for one in evidence.customers]


def _escrows(evidence: Evidence) -> Sequence[str]:
    return [str(one.escrow_address) for one in evidence.payments if one.intent == "receive"]


def _more_at(places: Callable[[Evidence], Sequence[Place]], more: int) -> Alter:
    """An address has more, or less, than the chain said."""

    def alter(evidence: Evidence) -> Evidence:
        place = _first(places(evidence))
        tokens = {**evidence.tokens, place: evidence.tokens[place] + more}
        return attrs.evolve(evidence, tokens=tokens)

    return alter


def _deposit_places(evidence: Evidence) -> Sequence[Place]:
    return [(one.chain_id, one.deposit_address) for one in evidence.customers]


def _escrow_places(evidence: Evidence) -> Sequence[Place]:
    return [(p.chain_id, p.escrow_address) for p in evidence.payments if p.escrow_address]


def _vault_places(evidence: Evidence) -> Sequence[Place]:
    return [(one.chain_id, evidence.vault(one.account_id)) for one in evidence.customers]


def _without(kind: type[Record]) -> Alter:
    """The books lack one record of a kind."""

    def alter(evidence: Evidence) -> Evidence:
        found, mirror = copy(evidence.found), Mirror()
        for partition, kinds in evidence.found.mirror.records.items():
            for each, records in kinds.items():
                mirror.records[partition][each] = dict(records)
        found.mirror = mirror
        records = found.all(kind)
        del records[_first(sorted(records))]
        return attrs.evolve(evidence, found=found)

    return alter


def _bought_twice(evidence: Evidence) -> Evidence:
    first = _first(list(evidence.purchases.values()))
    return attrs.evolve(evidence, purchases={**evidence.purchases, "purchase-2": first})


def _paid_to_blocked(evidence: Evidence) -> Evidence:
    _first([one for one in evidence.customers if one.stopped_id])
    paid = attrs.evolve(_first(evidence.transfers), recipient=BLOCKED)
    return attrs.evolve(evidence, transfers=[*evidence.transfers, paid])


def _sent_more(evidence: Evidence) -> Evidence:
    sender = _first(sorted(evidence.sent))
    return attrs.evolve(evidence, sent={**evidence.sent, sender: evidence.sent[sender] + 1})


TAMPERINGS: tuple[Tampering, ...] = (
    Tampering(
        "a second case of a verification",
        _cases(lambda cases: [*cases, {**cases[0], "id": "case-2"}]),
        laws.each_case_is_opened_once,
    ),
    Tampering(
        "a case that the provider lost",
        _cases(lambda cases: cases[1:]),
        laws.each_case_is_opened_once,
    ),
    Tampering(
        "a case that failed",
        _cases(lambda cases: [{**cases[0], "state": "failed"}, *cases[1:]]),
        laws.each_account_is_verified_once_as_the_provider_says,
    ),
    Tampering(
        "a deposit that nobody saw",
        _again(_deposit_addresses),
        laws.each_deposit_is_credited_once,
    ),
    Tampering(
        "a deposit that never came",
        _lost(_deposit_addresses),
        laws.each_deposit_is_credited_once,
    ),
    Tampering(
        "a deposit that is not in the books",
        _without(Deposit),
        laws.each_deposit_is_credited_once,
    ),
    Tampering(
        "a Payment that was funded twice",
        _again(_escrows),
        laws.what_a_payment_received_was_released_or_refunded,
    ),
    Tampering(
        "a Payment that was never funded",
        _lost(_escrows),
        laws.what_a_payment_received_was_released_or_refunded,
    ),
    Tampering(
        "a route that delivered twice",
        _again(lambda evidence: [one.terms.recipient for one in evidence.routes]),
        laws.each_route_is_delivered_once,
    ),
    Tampering(
        "a route that never delivered",
        _lost(lambda evidence: [one.terms.recipient for one in evidence.routes]),
        laws.each_route_is_delivered_once,
    ),
    Tampering(
        "a card payment that was bought twice",
        _bought_twice,
        laws.each_purchase_is_delivered_once,
    ),
    Tampering(
        "a card payment that never arrived",
        _lost(lambda evidence: [str(one["to"]) for one in evidence.purchases.values()]),
        laws.each_purchase_is_delivered_once,
    ),
    Tampering(
        "a number that nobody asked for",
        _bank("numbers", _twice),
        laws.the_bank_has_each_request_once,
    ),
    Tampering(
        "a payout that was paid twice", _bank("payouts", _twice), laws.each_payout_is_paid_once
    ),
    Tampering(
        "a payout of another amount",
        _bank("payouts", lambda rows, key: rows.update({key: {**rows[key], "cents": 1}})),
        laws.each_payout_is_paid_once,
    ),
    Tampering(
        "dollars that were delivered twice",
        _bank("deliveries", _twice),
        laws.each_bank_transfer_is_credited_once,
    ),
    Tampering(
        "dollars that the bank never got",
        _bank("transfers", lambda rows, key: rows.pop(key)),
        laws.each_bank_transfer_is_credited_once,
    ),
    Tampering(
        "dollars that are not in the books",
        _without(BankTransaction),
        laws.each_bank_transfer_is_credited_once,
    ),
    Tampering(
        "a blocked address that was paid",
        _paid_to_blocked,
        laws.a_blocked_address_gets_nothing,
    ),
    Tampering(
        "a refund that was paid twice",
        _again(lambda evidence: [one.refund_address for one in evidence.customers]),
        laws.each_wallet_is_paid_once,
    ),
    Tampering(
        "a send that never arrived",
        _lost(lambda evidence: [one.wallet for one in evidence.customers]),
        laws.each_wallet_is_paid_once,
    ),
    Tampering(
        "an atom left in an escrow", _more_at(_escrow_places, 1), laws.no_money_is_left_on_the_way
    ),
    Tampering(
        "an atom left at a deposit address",
        _more_at(_deposit_places, 1),
        laws.no_money_is_left_on_the_way,
    ),
    Tampering(
        "an atom that a vault lacks",
        _more_at(_vault_places, -1),
        laws.each_vault_has_what_it_should,
    ),
    Tampering("a transaction that nobody stored", _sent_more, laws.the_chains_have_what_was_stored),
    Tampering("a journal entry that is gone", _without(JournalEntry), laws.the_books_agree),
    Tampering(
        "a Payment that never ends",
        lambda evidence: attrs.evolve(evidence, left={"Payment executing": 1}),
        laws.nothing_is_left_to_do,
    ),
)


def unfound(evidence: Evidence) -> Iterator[tuple[Tampering, bool]]:
    """Each tampering that the play has something for, and whether its law missed it."""
    for tampering in TAMPERINGS:
        try:
            altered = tampering.alter(evidence)
        except IndexError:
            continue
        yield tampering, not any(tampering.law(altered))
