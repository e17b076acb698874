"""The bank suite: each broken bank fails the check that guards its promise."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from payments_core.banks.port import Bank
from payments_core.conformance.bank import BankConformance
from tests.broken_adapters import broken_bank_notices as notices
from tests.broken_adapters import broken_bank_reviews as reviews
from tests.broken_adapters import broken_banks as broken
from tests.broken_adapters.broken_readers import BROKEN_READERS, ReportingSuite, reading
from tests.broken_adapters.failing_checks import RemoteSuite, checks_of, failures

SAME = "the_same_order_again_makes_no_second_payout"
LATER = "the_same_order_after_settlement_makes_no_second_payout"
LOST = "a_lost_answer_is_unavailable_and_its_payout_is_found"
LOST_AGAIN = "after_a_lost_answer_the_same_order_makes_no_second_payout"
FOUND = "a_payout_is_found_by_its_key"
DOWN = "a_bank_that_is_down_is_unavailable"
ANOTHER_ORDER = "a_key_with_another_order_is_refused"
REFUSES = "an_order_that_the_rails_cannot_carry_is_refused"
LEAVES_NOTHING = "a_refused_order_leaves_no_payout"
SECRET = "no_answer_and_no_error_holds_the_account_number"
SUBMITTED = "a_payout_is_submitted_until_it_settles"
SETTLED = "a_settled_payout_says_when"
EARLY_RETURN = "a_return_before_settlement_has_its_code"
LATE_RETURN = "a_return_after_settlement_has_its_code"
SETTLED_NOTICE = "a_settlement_has_a_notice"
RETURNED_NOTICE = "a_return_has_a_notice"
LISTED = "a_notice_is_listed_until_it_is_acknowledged"
REVIEW_FOUND = "a_review_is_found_by_its_key_from_every_handle"
REVIEW_AGAIN = "the_same_request_again_has_the_same_review"
REVIEW_LOST = "a_review_whose_answer_was_lost_is_found"
REVIEW_DOWN = "reviews_of_a_bank_that_is_down_are_unavailable"
LIMIT = "no_list_is_longer_than_its_limit"

EXPECTED_FAILURES: tuple[tuple[type[broken.Plain], str], ...] = (
    (broken.AnswersAnotherAmount, "a_payout_says_what_was_ordered"),
    (broken.FindsNothing, FOUND),
    (broken.NamesItAnew, FOUND),
    (broken.FindsAnythingAsked, "a_key_that_was_never_used_finds_nothing"),
    (broken.FindsOnlyItsOwn, "another_handle_finds_the_payout"),
    (broken.IgnoresKeys, SAME),
    (broken.PaysAgainBehindTheAnswer, SAME),
    (broken.PaysAgainBehindTheAnswer, LATER),
    (broken.ForgetsKeysAfterSettlement, LATER),
    (
        broken.KnowsOrdersByTheirContents,
        "the_same_order_under_other_keys_makes_a_payout_for_each",
    ),
    (broken.RaisesTimeouts, LOST),
    (broken.SaysRefusedWhereItLostTheAnswer, LOST),
    (broken.HidesWhatWasNotAnswered, LOST),
    (broken.HidesWhatWasNotAnswered, LOST_AGAIN),
    (broken.RepeatsWhatWasNotAnswered, LOST_AGAIN),
    (broken.RaisesTimeouts, DOWN),
    (broken.AnswersWhileItIsDown, DOWN),
    (broken.TakesAnyOrderForARepeat, ANOTHER_ORDER),
    (broken.ComparesAmountsAlone, ANOTHER_ORDER),
    (broken.RefusesNothing, REFUSES),
    (broken.CarriesAnyText, REFUSES),
    (broken.RefusesNothing, LEAVES_NOTHING),
    (broken.KeepsWhatItRefuses, LEAVES_NOTHING),
    (broken.KeepsWhatItRefuses, "the_key_of_a_refused_order_can_be_used"),
    (broken.GivesTheAccountNumberAway, SECRET),
    (broken.ReferenceIsTheAccountNumber, SECRET),
    (broken.SettlesAtOnce, SUBMITTED),
    (broken.NeverSettles, SETTLED),
    (broken.SettlesWithoutATime, SETTLED),
    (broken.SettlesOnSundays, "a_payout_settles_on_a_banking_day"),
    (broken.ReturnsWithoutACode, EARLY_RETURN),
    (broken.SettlesWhatItReturns, EARLY_RETURN),
    (broken.ReturnsWithoutACode, LATE_RETURN),
    (broken.ForgetsThatItSettled, LATE_RETURN),
    (broken.SubmitsAgainWhatWasReturned, "a_returned_payout_stays_returned"),
    (notices.NotifiesOfSubmission, "a_payout_that_was_only_submitted_has_no_notice"),
    (notices.NotifiesBeforeItSettles, "a_payout_that_was_only_submitted_has_no_notice"),
    (notices.NotifiesBeforeItSettles, "no_notice_comes_before_what_it_says"),
    (notices.NeverNotifies, SETTLED_NOTICE),
    (notices.NeverNotifies, RETURNED_NOTICE),
    (notices.NotifiesOfSettlementsAlone, RETURNED_NOTICE),
    (notices.ListsANoticeOnce, LISTED),
    (notices.ListsForEver, LISTED),
    (notices.AcknowledgesAll, "acknowledging_one_notice_ends_no_other"),
    (notices.AcknowledgesOnce, "acknowledging_again_or_the_unknown_is_not_an_error"),
    (notices.ListsWithoutALimit, LIMIT),
    (notices.DropsWhatIsBeyondTheLimit, LIMIT),
    (reviews.ForgetsReviews, REVIEW_FOUND),
    (reviews.ReviewsAnew, REVIEW_AGAIN),
    (reviews.TakesAnyRequestForARepeat, "another_request_under_the_same_key_is_refused"),
    (reviews.KnowsEveryReview, "a_request_that_was_never_made_is_not_found"),
    (reviews.KeepsKindsTogether, "a_key_of_another_kind_finds_nothing"),
    (reviews.NeverDecides, "an_approved_request_is_active_and_stays_so"),
    (reviews.ReviewsAgainWhenAskedAgain, "an_approved_request_is_active_and_stays_so"),
    (broken.RaisesTimeouts, REVIEW_LOST),
    (reviews.ForgetsReviews, REVIEW_LOST),
    (broken.RaisesTimeouts, REVIEW_DOWN),
    (reviews.ReviewsWhileItIsDown, REVIEW_DOWN),
    (reviews.RegistersAnything, "an_account_that_no_bank_can_have_is_refused"),
    (reviews.TellsTheAccountOfARejection, "no_review_and_no_error_holds_the_account_number"),
    (broken.LocksNothing, "threads_with_one_key_make_one_payout"),
    (broken.LocksNothing, "handles_with_one_key_make_one_payout"),
    (broken.LocksEachHandle, "handles_with_one_key_make_one_payout"),
    *((reading(broken.Plain, reader), check) for reader, check in BROKEN_READERS),
)


class Suite(RemoteSuite, ReportingSuite, BankConformance):
    can_return = True
    hang_timeout_s = 10.0

    def __init__(self, bank_class: type[broken.Plain]) -> None:
        self.bank_class = bank_class
        self.books = broken.Books()

    def open(self) -> Bank:
        return self.bank_class(self.books)

    def approve_capability(self, key: str) -> None:
        self.bank_class(self.books).approve("capability", key)

    def approve_account(self, key: str) -> None:
        self.bank_class(self.books).approve("account", key)

    def settle(self, key: str) -> None:
        self.bank_class(self.books).settle(key)

    def return_payout(self, key: str, code: str) -> None:
        self.bank_class(self.books).return_payout(key, code)

    def count_payouts(self, keys: Sequence[str]) -> int:
        return sum(key in keys for key in self.books.made)


@pytest.mark.parametrize(("bank", "check"), EXPECTED_FAILURES)
def test_a_broken_bank_fails_its_check(bank: type[broken.Plain], check: str) -> None:
    assert list(failures(Suite(bank), check)), f"{check} passes on {bank.__name__}"


@pytest.mark.parametrize("check", sorted({check for _, check in EXPECTED_FAILURES}))
def test_what_the_broken_banks_are_made_of_is_sound(check: str) -> None:
    """Else a check would fail for a reason that is not the broken promise."""
    for error in failures(Suite(reading(broken.Plain)), check):
        raise AssertionError(f"{check} fails on Plain") from error


def test_every_check_fails_a_broken_bank() -> None:
    assert checks_of(BankConformance) == {check for _, check in EXPECTED_FAILURES}
