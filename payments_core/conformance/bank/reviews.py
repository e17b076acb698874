"""Reviews: capabilities and recipients' accounts, which the bank reviews before it agrees."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator

import attrs

from payments_core.banks.port import Bank, BankRefused, KeyReused
from payments_core.banks.reviews import BankReview
from payments_core.conformance.bank.harness import Harness
from payments_core.evolve import evolve

PLANTED_NUMBER = "60473918255"


@attrs.frozen
class Reviewed:
    """One kind of request, with the calls for it."""

    name: str
    key: str
    ask: Callable[[Bank], BankReview]
    ask_otherwise: Callable[[Bank], BankReview]
    find: Callable[[Bank, str], BankReview | None]
    approve: Callable[[str], None]


class ReviewChecks(Harness):
    """A request is made once per key, and decided once."""

    def test_a_review_is_found_by_its_key_from_every_handle(self) -> None:
        for reviewed in self._each_kind():
            made = reviewed.ask(self.open())
            found = reviewed.find(self.open(), reviewed.key)
            assert found is not None, f"the bank must know the {reviewed.name}"
            shown, expected = (found.key, found.reference), (reviewed.key, made.reference)
            assert shown == expected, f"the {reviewed.name} must be {expected}, not {shown}"

    def test_the_same_request_again_has_the_same_review(self) -> None:
        for reviewed in self._each_kind():
            bank = self.open()
            references = {reviewed.ask(handle).reference for handle in (bank, bank, self.open())}
            assert len(references) == 1, f"one {reviewed.name} has {len(references)} reviews"

    def test_another_request_under_the_same_key_is_refused(self) -> None:
        for reviewed in self._each_kind():
            bank = self.open()
            reviewed.ask(bank)
            try:
                reviewed.ask_otherwise(bank)
            except KeyReused:
                continue
            raise AssertionError(f"another {reviewed.name} under a used key must be refused")

    def test_a_request_that_was_never_made_is_not_found(self) -> None:
        for reviewed in self._each_kind():
            found = reviewed.find(self.open(), reviewed.key)
            assert found is None, f"no {reviewed.name} was given, and this was found: {found}"

    def test_a_key_of_another_kind_finds_nothing(self) -> None:
        capability, account = self._each_kind()
        bank = self.open()
        capability.ask(bank)
        account.ask(bank)
        assert account.find(bank, capability.key) is None, "a capability is not an account"
        assert capability.find(bank, account.key) is None, "an account is not a capability"

    def test_an_approved_request_is_active_and_stays_so(self) -> None:
        for reviewed in self._each_kind():
            bank = self.open()
            reviewed.ask(bank)
            reviewed.approve(reviewed.key)
            for shown in (reviewed.find(bank, reviewed.key), reviewed.ask(self.open())):
                status = shown.status if shown else None
                assert status == "active", f"the {reviewed.name} was approved, and is {status}"

    def test_a_review_whose_answer_was_lost_is_found(self) -> None:
        self.require_capability("can_lose_answers")
        for reviewed in self._each_kind():
            bank = self.open()
            self.lose_next_answer()
            self.require_unavailable(lambda: reviewed.ask(bank))  # noqa: B023
            found = reviewed.find(bank, reviewed.key)
            assert found is not None, f"the {reviewed.name} was given, and its answer was lost"
            again = reviewed.ask(bank)
            assert again.reference == found.reference, "asking again must give the same review"

    def test_reviews_of_a_bank_that_is_down_are_unavailable(self) -> None:
        self.require_capability("can_fail")
        kinds = tuple(self._each_kind())
        bank = self.open()
        self.fail()
        for reviewed in kinds:
            self.require_unavailable(lambda: reviewed.ask(bank))  # noqa: B023
            self.require_unavailable(lambda: reviewed.find(bank, reviewed.key))  # noqa: B023
        self.restore()
        for reviewed in kinds:
            assert reviewed.find(bank, reviewed.key) is None, "a bank that is down must do nothing"

    def test_an_account_that_no_bank_can_have_is_refused(self) -> None:
        bank, good = self.open(), self.new_registration()
        wrong_routing_number = (
            f"{self.routing_number[:-1]}{(int(self.routing_number[-1]) + 1) % 10}"
        )
        accounts = {
            "routing number": evolve(good.account, routing_number=wrong_routing_number),
            "account number": evolve(good.account, account_number="1" * 18),
        }
        for name, account in accounts.items():
            bad = evolve(good, account=account)
            try:
                bank.register_account(bad)
            except BankRefused:
                assert bank.find_account(bad.key) is None, "a refused account must not be known"
                continue
            raise AssertionError(f"an account with a wrong {name} must be refused")

    def test_no_review_and_no_error_holds_the_account_number(self) -> None:
        bank = self.open()
        good = self.new_registration(account_number=PLANTED_NUMBER)
        texts = [repr(bank.register_account(good)), repr(bank.find_account(good.key))]
        savings = evolve(good.account, account_type="savings")
        unknown = evolve(good.account, routing_number="000000000")
        for other in (
            evolve(good, account=savings),
            evolve(self.new_registration(), account=unknown),
        ):
            try:
                bank.register_account(other)
            except (BankRefused, KeyReused) as error:
                texts.append("".join(traceback.format_exception(error)))
        assert not [text for text in texts if PLANTED_NUMBER in text], (
            "an account number must not be in reviews and errors"
        )

    def _each_kind(self) -> Iterator[Reviewed]:
        request = self.new_capability_request()
        other_request = evolve(request, account_id="acct_other")
        yield Reviewed(
            "capability",
            request.key,
            lambda bank: bank.request_capability(request),
            lambda bank: bank.request_capability(other_request),
            lambda bank, key: bank.find_capability(key),
            self.approve_capability,
        )
        registration = self.new_registration()
        other_account = evolve(registration.account, account_number="000987654321")
        other_registration = evolve(registration, account=other_account)
        yield Reviewed(
            "account",
            registration.key,
            lambda bank: bank.register_account(registration),
            lambda bank: bank.register_account(other_registration),
            lambda bank, key: bank.find_account(key),
            self.approve_account,
        )
