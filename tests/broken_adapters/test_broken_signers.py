"""The signer suite: each broken signer fails the check that guards its promise."""

from __future__ import annotations

import pytest

from payments_core.chains.rotated_signer import OperatorSigner
from payments_core.conformance.signer import SignerConformance
from tests.broken_adapters import broken_signers as broken
from tests.broken_adapters.failing_checks import checks_of, failures

EXPECTED_FAILURES: tuple[tuple[type[broken.Plain], str], ...] = (
    (broken.ShowsNoChecksum, "an_address_has_its_checksum"),
    (broken.ChangesItsAddress, "an_address_is_always_the_same"),
    (broken.HasOneKey, "each_environment_has_its_own_address"),
    (broken.LeavesSHigh, "a_signature_has_65_bytes_and_a_low_s"),
    (broken.CountsFrom27, "a_signature_has_65_bytes_and_a_low_s"),
    (broken.HashesTheDigest, "a_signature_is_by_the_address"),
    (broken.GuessesTheParity, "a_signature_is_by_the_address"),
    (broken.ReducesTheDigest, "the_digests_of_extreme_values_are_signed"),
    (broken.SignsWithTheFirstKey, "each_environment_signs_with_its_own_key"),
    (broken.SignsAnyLength, "only_a_digest_of_32_bytes_is_signed"),
    (broken.MakesKeysForAnyone, "an_environment_without_a_key_is_refused"),
    (broken.SharesItsState, "threads_get_the_signatures_of_their_digests"),
    (broken.RaisesTimeouts, "a_signer_that_is_down_is_unavailable"),
    (broken.AsksForEachAddress, "a_signer_that_is_down_is_unavailable"),
    (broken.ShowsItsSecret, "nothing_shows_a_secret"),
    (broken.QuotesItsSecret, "nothing_shows_a_secret"),
)


class Suite(SignerConformance):
    can_fail = True
    secrets = (broken.SECRET.hex(),)

    def __init__(self, kind: type[broken.Plain]) -> None:
        self.signer = kind()

    def open(self) -> OperatorSigner:
        return self.signer

    def fail(self) -> None:
        self.signer.is_down = True

    def restore(self) -> None:
        self.signer.is_down = False


@pytest.mark.parametrize(("kind", "check"), EXPECTED_FAILURES)
def test_a_broken_signer_fails_its_check(kind: type[broken.Plain], check: str) -> None:
    assert list(failures(Suite(kind), check)), f"{check} passes on {kind.__name__}"


@pytest.mark.parametrize("check", sorted({check for _, check in EXPECTED_FAILURES}))
def test_what_the_broken_signers_are_made_of_is_sound(check: str) -> None:
    for error in failures(Suite(broken.Plain), check):
        raise AssertionError(f"{check} fails on Plain") from error


def test_every_check_fails_a_broken_signer() -> None:
    assert checks_of(SignerConformance) == {check for _, check in EXPECTED_FAILURES}
