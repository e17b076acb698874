"""Each broken chain fails the check that is for its fault, and the good one passes it."""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from typing import Any

import attrs
import pytest

from examples.custom_chain import test_chain
from examples.custom_chain.adapter import LedgerChain
from examples.custom_chain.network import NETWORK
from payments_core.acceptance import Acceptance
from payments_core.chains.simulated.chain import SimulatedChain
from tests.broken_adapters import broken_chains as broken
from tests.broken_adapters import broken_ledger_chains as ledgers
from tests.broken_adapters.failing_checks import failures
from tests.chains import test_conformance as suites

EXPECTED_FAILURES = [
    (broken.Eager, "the_final_block_is_not_above_the_newest"),
    (broken.Timeless, "every_block_has_its_time"),
    (broken.InSeconds, "every_block_has_its_time"),
    (broken.LatelyFinal, "every_block_has_its_time"),
    (broken.Unrooted, "the_final_block_is_not_above_the_newest"),
    (broken.Prophetic, "blocks_come_and_stay"),
    (broken.Numbered, "a_reorged_transaction_is_in_no_block"),
    (broken.Hopeful, "a_failed_transaction_has_no_transfers"),
    (broken.Forgetful, "what_nobody_sent_is_not_known"),
    (broken.Forgetful, "many_transactions_are_read_like_one_by_one"),
    (broken.Remembering, "a_reorged_transaction_is_in_no_block"),
    (broken.Newest, "a_balance_is_of_the_final_block"),
    (broken.Blended, "balances_of_several_tokens_are_those_of_each"),
    (broken.NewestTokens, "balances_of_several_tokens_are_those_of_each"),
    (broken.HalfOpen, "both_ends_of_the_range_belong_to_it"),
    (broken.LateStart, "both_ends_of_the_range_belong_to_it"),
    (broken.Backwards, "a_scan_finds_each_transfer_once_and_in_order"),
    (broken.Careless, "a_scan_filters_by_recipient_and_token"),
    (broken.Greedy, "a_scan_filters_by_recipient_and_token"),
    (broken.Thrifty, "a_scan_omits_failures_and_keeps_zero_amounts"),
    (broken.Joining, "no_two_purposes_share_an_address"),
    (broken.Folding, "no_two_purposes_share_an_address"),
    (broken.LowerCase, "it_is_written_in_the_canonical_form"),
    (broken.OneSender, "environments_have_senders_of_their_own"),
    (broken.Hasty, "signing_sends_nothing"),
    (broken.Resigning, "sent_again_it_moves_nothing_more"),
    (broken.Overcounting, "final_nonce_counts_what_is_final_and_no_more"),
    (broken.Settled, "pending_nonce_counts_what_is_not_final"),
    (broken.Nameless, "the_payer_is_the_sender_that_the_logs_show"),
    (broken.Doubling, "what_is_not_stuck_may_be_bumped_all_the_same"),
    (broken.Deaf, "an_unreachable_chain_is_unavailable"),
]

EXPECTED_FAILURES_OF_LEDGERS = [
    (ledgers.SenderUnnamed, "final_nonce_counts_what_is_final_and_no_more"),
    (ledgers.SenderUnnamed, "pending_nonce_counts_what_is_not_final"),
    (ledgers.LatestFinal, "the_final_block_is_not_above_the_newest"),
    (ledgers.LatestFinal, "the_final_block_is_that_of_the_policys_last_row"),
    (ledgers.LatestNonces, "final_nonce_counts_what_is_final_and_no_more"),
    (ledgers.LatestBalances, "a_balance_is_of_the_final_block"),
    (ledgers.PolicyIgnored, "the_final_block_is_that_of_the_policys_last_row"),
    (ledgers.FirstRowFinal, "the_final_block_is_that_of_the_policys_last_row"),
    (ledgers.TagsIgnored, "the_safe_block_is_read_for_a_row_that_asks_for_it"),
    (ledgers.NonceChosen, "a_nonce_is_used_once"),
    (ledgers.NonceReused, "nonces_are_used_in_order"),
    (ledgers.NoopMisplaced, "a_noop_uses_its_nonce_and_moves_nothing"),
    (ledgers.PoolIncluded, "nonces_are_used_in_order"),
    (ledgers.DeriveAsks, "an_address_needs_no_node"),
    (ledgers.PayerAsked, "an_address_needs_no_node"),
    (ledgers.SilenceSwallowed, "an_unreachable_chain_is_unavailable"),
]


class Suite(suites.TestSimulated):
    """The suite on a chain of that class."""

    __test__ = False

    def __init__(self, kind: type[SimulatedChain]) -> None:
        self.kind = kind

    def setup_method(self) -> None:
        self.begin()

    def open(self) -> SimulatedChain:
        return self.kind(suites.ETHEREUM, self.ports)


class LedgerSuite(test_chain.TestLedgerChain):
    """The suite of the example's chain, on an adapter of that class."""

    __test__ = False

    def __init__(self, kind: type[LedgerChain]) -> None:
        self.kind = kind

    def open(self) -> LedgerChain:
        return self.kind(self.node, NETWORK, test_chain.SIGNER)

    def open_with(self, acceptance: tuple[Acceptance, ...]) -> LedgerChain:
        network = attrs.evolve(NETWORK, acceptance=acceptance)
        return self.kind(self.node, network, test_chain.SIGNER)


@pytest.mark.parametrize(
    ("kind", "check"),
    EXPECTED_FAILURES,
    ids=[f"{kind.__name__}-{check}" for kind, check in EXPECTED_FAILURES],
)
def test_the_suite_fails_each_broken_chain(kind: type[SimulatedChain], check: str) -> None:
    broken.Greedy.every_token = (Suite.token, str(Suite.other_token))
    assert list(failures(Suite(SimulatedChain), check)) == []
    assert list(failures(Suite(kind), check)), f"{kind.__name__} passes {check}"


@pytest.mark.parametrize(
    ("kind", "check"),
    EXPECTED_FAILURES_OF_LEDGERS,
    ids=[f"{kind.__name__}-{check}" for kind, check in EXPECTED_FAILURES_OF_LEDGERS],
)
def test_the_suite_fails_each_broken_adapter_of_the_page(
    kind: type[LedgerChain], check: str
) -> None:
    assert list(failures(LedgerSuite(LedgerChain), check)) == []
    assert list(failures(LedgerSuite(kind), check)), f"{kind.__name__} passes {check}"


@pytest.mark.parametrize(
    ("module", "sound", "expected"),
    [
        (broken, SimulatedChain, EXPECTED_FAILURES),
        (ledgers, LedgerChain, EXPECTED_FAILURES_OF_LEDGERS),
    ],
)
def test_every_broken_chain_is_tried(
    module: ModuleType, sound: type[Any], expected: Sequence[tuple[type[Any], str]]
) -> None:
    kinds = {
        kind
        for kind in vars(module).values()
        if isinstance(kind, type) and issubclass(kind, sound) and kind is not sound
    }
    assert kinds == {kind for kind, _ in expected}
