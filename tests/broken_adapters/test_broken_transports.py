"""The transport suite: each broken transport fails the check that guards its promise."""

from __future__ import annotations

from pathlib import Path

import pytest

from payments_core.conformance.transport import TransportConformance
from payments_core.webhooks.transports.port import Transport
from tests.broken_adapters import broken_transports as broken
from tests.broken_adapters.failing_checks import failures

EXPECTED_FAILURES: tuple[tuple[type[broken.Plain], str], ...] = (
    (broken.FollowsRedirects, "a_redirect_is_the_answer"),
    (broken.FollowsRedirects, "a_redirect_to_itself_is_the_answer"),
    (broken.ResolvesTheName, "the_name_is_not_resolved_again"),
    (broken.ResolvesTheName, "without_an_address_nothing_is_sent"),
    (broken.TakesNamesForAddresses, "a_name_among_the_addresses_is_not_looked_up"),
    (broken.TakesHostsForAddresses, "a_host_that_looks_like_an_address_leads_to_the_vetted_one"),
    (broken.UsesProxies, "the_environments_proxies_are_not_used"),
    (broken.TriesOnlyTheFirstAddress, "the_next_address_is_tried_where_one_refuses"),
    (broken.SendsToEveryAddress, "only_the_first_address_that_accepts_gets_the_request"),
    (broken.ATimeoutForEachRead, "a_head_that_drips_meets_the_deadline"),
    (broken.ATimeoutForEachRead, "a_body_that_drips_meets_the_deadline_and_the_status_counts"),
    (broken.WaitsWithoutEnd, "a_handshake_that_never_ends_meets_the_deadline"),
    (broken.WaitsWithoutEnd, "a_deadline_that_has_passed_connects_to_nothing"),
    (broken.ReadsTheWholeBody, "an_endless_body_is_cut"),
    (broken.ReadsTheWholeBody, "endless_chunks_are_cut"),
    (broken.ReadsTrailers, "trailers_without_end_are_not_read"),
    (broken.KeepsTheWholeBody, "no_more_of_a_body_is_kept_than_the_limit"),
    (broken.StatusGoesWithTheBody, "a_status_counts_though_its_body_is_cut_short"),
    (broken.ErrorsComeOut, "a_reset_is_a_failure"),
    (broken.HeadersAreNotChecked, "a_line_break_in_a_header_sends_nothing"),
    (broken.NameNotVerified, "a_certificate_for_another_name_is_refused"),
    (broken.NothingVerified, "an_expired_certificate_is_refused"),
    (broken.NothingVerified, "a_self_signed_certificate_is_refused"),
    (broken.NothingVerified, "a_certificate_of_an_unknown_authority_is_refused"),
    (broken.SharesAnAddress, "a_connection_for_one_name_is_not_used_for_another"),
    (broken.SharesAnAddress, "names_on_one_address_have_connections_of_their_own"),
    (broken.KeepsToTheName, "a_connection_to_an_address_no_longer_vetted_is_not_used"),
    (broken.ForgetsTheScheme, "a_plain_connection_is_not_used_for_tls"),
    (broken.SharesAmongThreads, "each_of_many_threads_gets_its_own_answer"),
    (broken.Keeping, "a_connection_closed_between_two_requests_is_no_failure"),
    (broken.Keeping, "a_connection_that_breaks_at_the_next_request_is_no_failure"),
    (broken.Keeping, "what_was_not_read_to_its_end_answers_no_other_request"),
    (broken.Keeping, "what_is_left_over_answers_no_other_request"),
    (broken.Keeping, "what_comes_between_two_requests_answers_neither"),
)


class Suite(TransportConformance):
    endless_timeout_s = 2.0

    def __init__(self, transport_class: type[broken.Plain]) -> None:
        self.transport_class = transport_class

    def open(self, ca_file: Path | None) -> Transport:
        return self.transport_class(ca_file)


@pytest.mark.parametrize(("transport", "check"), EXPECTED_FAILURES)
@pytest.mark.filterwarnings("ignore::ResourceWarning")  # they are broken in that as well
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_broken_transport_fails_its_check(transport: type[broken.Plain], check: str) -> None:
    assert list(failures(Suite(transport), check)), f"{check} passes on {transport.__name__}"


KEPT_WELL = (
    "a_connection_for_one_name_is_not_used_for_another",
    "names_on_one_address_have_connections_of_their_own",
    "a_connection_to_an_address_no_longer_vetted_is_not_used",
    "a_plain_connection_is_not_used_for_tls",
    "each_of_many_threads_gets_its_own_answer",
)


@pytest.mark.parametrize(
    ("transport", "check"),
    [
        (broken.Plain, check)
        for check in sorted({check for transport, check in EXPECTED_FAILURES})
        if (broken.ReadsTrailers, check) not in EXPECTED_FAILURES
    ]
    + [(broken.Keeping, check) for check in KEPT_WELL],
)
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_what_the_broken_transports_are_made_of_is_sound(
    transport: type[broken.Plain], check: str
) -> None:
    """Else a check would fail for a reason that is not the broken promise."""
    for error in failures(Suite(transport), check):
        raise AssertionError(f"{check} fails on {transport.__name__}") from error
