"""Each chain that is wrong about contract wallets fails the check of its fault."""

from __future__ import annotations

from itertools import count

import pytest

from payments_core.conformance.chain.signatures import SignatureChecks
from tests.broken_adapters import broken_signatures as broken
from tests.broken_adapters.failing_checks import checks_of, failures
from tests.chains import test_conformance as suites

OWN = "a_contract_accepts_its_signature_of_that_digest_alone"
ABSENT = "an_address_without_a_contract_does_not_answer"
EARLY = "a_wrapped_signature_is_answered_before_the_contract_is_deployed"
DEPLOYED = "a_wrapped_signature_is_answered_by_a_deployed_contract"
OTHERS = "the_deployment_of_another_contract_proves_nothing"
EXPECTED_FAILURES = [
    (broken.AcceptsAnything, OWN),
    (broken.RefusesForTheAbsent, ABSENT),
    (broken.KnowsNoWrapping, EARLY),
    (broken.DeploysWhatItSimulates, EARLY),
    (broken.UnwrapsForTheAbsentAlone, DEPLOYED),
    (broken.TrustsAnyDeployment, OTHERS),
    (broken.AsksTheDeployedInstead, OTHERS),
]


class Suite(suites.TestSimulated):
    """The suite on a chain of that class."""

    __test__ = False
    can_hold_contracts = True
    _salts = count()

    def __init__(self, kind: type[broken.Plain]) -> None:
        self.kind = kind
        self.codes: dict[str, bytes] = {}

    def setup_method(self) -> None:
        self.begin()

    def open(self) -> broken.Plain:
        chain = self.kind(suites.ETHEREUM, self.ports)
        chain.codes = self.codes
        return chain

    def new_contract_wallet(self) -> broken.ListedWallet:
        return broken.ListedWallet(b"secret %d" % next(self._salts), self.codes)


@pytest.mark.parametrize(("kind", "check"), EXPECTED_FAILURES)
def test_the_suite_fails_each_broken_chain(kind: type[broken.Plain], check: str) -> None:
    assert list(failures(Suite(broken.Plain), check)) == []
    assert list(failures(Suite(kind), check)), f"{kind.__name__} passes {check}"


def test_every_check_fails_and_every_broken_chain_is_tried() -> None:
    assert {check for _, check in EXPECTED_FAILURES} == checks_of(SignatureChecks)
    kinds = {
        kind
        for kind in vars(broken).values()
        if isinstance(kind, type) and issubclass(kind, broken.Plain) and kind is not broken.Plain
    }
    assert kinds == {kind for kind, _ in EXPECTED_FAILURES}
