"""Banks that each break one promise about reviews."""

from __future__ import annotations

import attrs

from payments_core.banks.port import (
    AccountRegistration,
    BankRefused,
)
from payments_core.banks.reviews import BankReview
from payments_core.banks.simulated.outcomes import require_valid_account
from tests.broken_adapters.broken_banks import KINDS, Plain


class ForgetsReviews(Plain):
    def _find_review(self, kind: str, key: str) -> BankReview | None:
        return None


class ReviewsAnew(Plain):
    def _review(self, kind: str, key: str, request: object) -> BankReview:
        return self._make_review(kind, key)


class TakesAnyRequestForARepeat(Plain):
    def _review(self, kind: str, key: str, request: object) -> BankReview:
        return self.books.reviews.get((kind, key)) or self._make_review(kind, key)


class KnowsEveryReview(Plain):
    def _find_review(self, kind: str, key: str) -> BankReview | None:
        return super()._find_review(kind, key) or self._make_review(kind, key)


class KeepsKindsTogether(Plain):
    def _find_review(self, kind: str, key: str) -> BankReview | None:
        found = (super(KeepsKindsTogether, self)._find_review(one, key) for one in KINDS)
        return next(filter(None, found), None)


class NeverDecides(Plain):
    def approve(self, kind: str, key: str) -> None:
        """It looks at it still."""


class ReviewsAgainWhenAskedAgain(Plain):
    def _review(self, kind: str, key: str, request: object) -> BankReview:
        made = super()._review(kind, key, request)
        made = self.books.reviews[kind, key] = attrs.evolve(made, status="pending")
        return made


class ReviewsWhileItIsDown(Plain):
    def find_account(self, key: str) -> BankReview | None:
        return self._find_review("account", key)


class RegistersAnything(Plain):
    def _require_valid_account(self, registration: AccountRegistration) -> None:
        """Whatever it is."""


class TellsTheAccountOfARejection(Plain):
    def _require_valid_account(self, registration: AccountRegistration) -> None:
        try:
            require_valid_account(registration.account)
        except BankRefused as error:
            number = registration.account.account_number
            raise BankRefused(error.reason, f"{error}: {number}") from error
