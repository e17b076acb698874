"""The suite of banks that take transfers: each broken bank fails the check that guards it."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from payments_core.banks.incoming import FundingBank
from payments_core.conformance.bank import FundingConformance
from tests.broken_adapters import broken_funding_banks as broken
from tests.broken_adapters.failing_checks import RemoteSuite, checks_of, failures

EXPECTED_FAILURES: tuple[tuple[type[broken.Plain], str], ...] = (
    (broken.MakesNumbersOfLetters, "a_number_can_be_paid_to"),
    (broken.MakesANumberForEachCall, "the_same_request_has_the_same_number_for_ever"),
    (broken.HasOneNumberForAll, "no_two_keys_share_a_number"),
    (broken.TakesAnythingForARepeat, "another_request_under_the_same_key_is_refused"),
    (broken.TakesAnythingForARepeat, "another_order_under_the_same_key_is_refused"),
    (broken.SaysTheNumberInItsName, "no_text_of_a_number_shows_it"),
    (broken.ForgetsTheKey, "a_transfer_is_found_with_its_key_and_amount"),
    (broken.NeverReceives, "a_transfer_that_settles_is_received"),
    (broken.DeliversAtEachCall, "a_delivery_is_made_once_for_its_key"),
    (broken.DeliversForEachKey, "a_transfer_is_delivered_once_under_any_key"),
    (broken.DeliversOnCredit, "nothing_is_delivered_before_it_is_received"),
    (broken.SaysReceivedAfterAReturn, "what_is_sent_back_is_returned_and_stays_so"),
    (broken.SendsBackWhatItDelivered, "the_money_of_a_transfer_leaves_once"),
    (broken.DeliversOnCredit, "the_money_of_a_transfer_leaves_once"),
    (
        broken.RepeatsWhatWasNotAnswered,
        "after_a_lost_answer_the_same_order_delivers_no_second_time",
    ),
    (broken.RaisesTimeouts, "a_bank_that_is_down_is_unavailable"),
    (broken.NeverNotifies, "each_change_has_a_notice_with_the_key"),
    (broken.NotifiesWithoutAKey, "each_change_has_a_notice_with_the_key"),
    (broken.ListsForEver, "a_notice_is_listed_until_it_is_acknowledged"),
    (broken.AcknowledgesAll, "a_notice_is_listed_until_it_is_acknowledged"),
    (broken.EndsAfterOnePage, "the_pages_have_every_notice"),
)


class Suite(RemoteSuite, FundingConformance):
    def __init__(self, bank_class: type[broken.Plain]) -> None:
        self.bank_class = bank_class
        self.books = broken.FundingBooks()

    def open(self) -> FundingBank:
        return self.bank_class(self.books)

    def send_transfer(self, account_key: str, amount_cents: int) -> str:
        return self.bank_class(self.books).send(account_key, amount_cents)

    def receive(self, incoming_id: str) -> None:
        self.bank_class(self.books).receive(incoming_id)

    def count_deliveries(self, incoming_ids: Sequence[str]) -> int:
        return sum(id in incoming_ids for id in self.books.delivered)


@pytest.mark.parametrize(("bank", "check"), EXPECTED_FAILURES)
def test_a_broken_bank_fails_its_check(bank: type[broken.Plain], check: str) -> None:
    assert list(failures(Suite(bank), check)), f"{check} passes on {bank.__name__}"


@pytest.mark.parametrize("check", sorted({check for _, check in EXPECTED_FAILURES}))
def test_what_the_broken_banks_are_made_of_is_sound(check: str) -> None:
    """Else a check would fail for a reason that is not the broken promise."""
    for error in failures(Suite(broken.Plain), check):
        raise AssertionError(f"{check} fails on Plain") from error


def test_every_check_fails_a_broken_bank() -> None:
    assert checks_of(FundingConformance) == {check for _, check in EXPECTED_FAILURES}
