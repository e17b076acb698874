"""The limiter suite: each broken limiter fails the check that guards its promise."""

from __future__ import annotations

import pytest

from payments_core.conformance.limiter import AdapterLocation, LimiterConformance
from payments_core.limiters.port import Limiter
from tests.broken_adapters import broken_limiter_clocks as clocks
from tests.broken_adapters import broken_limiter_crowds as crowds
from tests.broken_adapters import broken_limiters as broken
from tests.broken_adapters.failing_checks import checks_of, failures

ADMITS = "the_limit_is_admitted_and_not_one_more"
REMAINS = "what_remains_counts_down_to_zero_and_stays_there"
KEYS = "keys_do_not_share_a_counter"
BACK = "a_clock_that_steps_back_finds_the_counter_as_it_left_it"
FREES = "a_clock_that_steps_back_frees_no_counter"
JUMPS = "no_window_ever_admits_more_however_the_clock_jumps"
APART = "clocks_a_little_apart_are_both_right"
BEGINS = "a_block_begins_with_the_request_that_passes_the_limit"
OUTLASTS = "a_block_outlasts_its_window_to_the_millisecond"
THREADS = "sixteen_threads_never_get_one_too_many"
PROCESSES = "processes_never_get_one_too_many"
SILENCE = "silence_is_unavailable_and_soon_each_time"
BY_ITSELF = "it_comes_back_by_itself_with_its_counters"

EXPECTED_FAILURES: tuple[tuple[type[broken.Plain], str], ...] = (
    (broken.AdmitsOneTooMany, ADMITS),
    (broken.AdmitsOneTooFew, ADMITS),
    (broken.RefusedAreNotCounted, "refused_requests_count_too"),
    (broken.LooksCount, "a_peek_counts_nothing"),
    (broken.GivesNothingBack, "what_is_given_back_can_be_counted_again"),
    (broken.CountsBelowZero, "no_more_is_given_back_than_was_counted"),
    (broken.EveryCostIsOne, "a_cost_is_counted_whole"),
    (broken.RemainsBelowZero, REMAINS),
    (broken.TellsWhatWasLeftBefore, REMAINS),
    (broken.TellsWhatIsLeftForTheLimit, "the_limit_is_returned_as_given"),
    (broken.LooksAreRefusedAtTheLimit, "a_peek_is_refused_only_beyond_the_limit"),
    (broken.StopsAtTheFirstRefusal, "each_check_is_counted_independently"),
    (broken.AnswersTheMostConstrainedFirst, "the_states_are_in_the_order_of_the_checks"),
    (broken.CountsAKeyOnce, "a_key_twice_in_one_call_is_counted_twice"),
    (broken.NeedsAnAsk, "no_checks_give_no_states"),
    (broken.FoldsKeys, KEYS),
    (broken.CutsKeys, KEYS),
    (broken.EndsKeysAtANull, KEYS),
    (broken.AllShareACounter, KEYS),
    (broken.LengthsShareACounter, "windows_of_another_length_have_another_counter"),
    (broken.KeepsTheFirstLimit, "the_limit_may_change_between_two_checks"),
    (broken.CountsInSingleFloats, "large_limits_and_costs_are_exact"),
    (broken.KeepsTenKeys, "many_keys_each_have_their_counter"),
    (clocks.EndsAMillisecondLate, "a_window_ends_where_its_multiple_does"),
    (clocks.Slides, "a_window_does_not_slide"),
    (clocks.BeginsWithTheFirstRequest, "a_window_does_not_begin_with_its_first_request"),
    (clocks.ResetsAWindowFromNow, "the_reset_is_when_the_window_ends"),
    (clocks.ForgetsAllButThePresentWindow, BACK),
    (clocks.ForgetsAllButThePresentWindow, FREES),
    (clocks.ForgetsAllButThePresentWindow, JUMPS),
    (clocks.ForgetsEarlierWindows, BACK),
    (clocks.TakesOneStepBackForSkew, JUMPS),
    (clocks.NeverGoesBack, APART),
    (clocks.DistrustsLeaps, "a_clock_may_leap_ahead"),
    (clocks.NeverBlocks, BEGINS),
    (clocks.BlocksAtTheLimit, BEGINS),
    (clocks.BlocksFromTheEndOfTheWindow, BEGINS),
    (clocks.ForgetsTheBlockWithTheWindow, OUTLASTS),
    (clocks.EndsTheBlockAMillisecondLate, OUTLASTS),
    (clocks.BlocksOnlyThoseWhoAskForIt, "a_block_refuses_checks_that_would_begin_none"),
    (clocks.ProlongsTheBlock, "further_requests_do_not_prolong_a_block"),
    (clocks.LooksBeginBlocks, "a_peek_begins_no_block"),
    (clocks.BlocksOnlyOneStepBeyond, "one_cost_may_pass_the_limit"),
    (clocks.TheBlockEndsTheWindow, "the_window_continues_if_its_block_is_shorter"),
    (clocks.BlocksOnce, "after_a_block_another_may_begin"),
    (clocks.BlocksTheWholePolicy, "a_block_is_of_one_key_alone"),
    (clocks.BlocksWindowsOfAllLengths, "a_block_is_of_one_key_alone"),
    (clocks.TheBlockHasABeginning, "a_clock_that_steps_back_ends_no_block"),
    (clocks.AlwaysBlocksForTheWindow, "without_a_block_the_next_window_is_open"),
    (crowds.Racy, THREADS),
    (crowds.Racy, "no_count_of_a_thread_is_lost"),
    (crowds.Racy, "one_of_many_threads_begins_the_block"),
    (crowds.LocksKeyByKey, "threads_that_ask_in_another_order_do_not_wait_for_each_other"),
    (crowds.CountsForItself, "handles_count_together"),
    (crowds.CountsForItself, PROCESSES),
    (crowds.ClosingForgets, "what_a_closed_handle_counted_is_still_counted"),
    (crowds.AnswersAfterClosing, "a_closed_limiter_is_unavailable"),
    (crowds.CannotBeClosedTwice, "a_closed_limiter_is_unavailable"),
    (crowds.RaisesWhatTheDriverRaises, "a_closed_limiter_is_unavailable"),
    (crowds.RaisesWhatTheDriverRaises, SILENCE),
    (crowds.AdmitsWhereItCannotSay, SILENCE),
    (crowds.TakesItsTime, SILENCE),
    (crowds.NeverComesBack, BY_ITSELF),
    (crowds.ComesBackEmpty, BY_ITSELF),
    (crowds.CountsAloneMeanwhile, "it_does_not_come_back_while_it_is_silent"),
)
ONLY_REAL_SERVERS_PASS = {PROCESSES}


class Suite(LimiterConformance):
    shared = True
    can_fail = True
    unavailable_within_s = 1.0  # a busy machine takes a tenth of a second for nothing
    recovers_within_s = 0.1
    hang_timeout_s = 3.0

    def __init__(self, limiter_class: type[broken.Plain]) -> None:
        self.limiter_class = limiter_class
        self.server = broken.Server()

    def teardown_method(self) -> None:
        if not issubclass(self.limiter_class, crowds.CannotBeClosedTwice):
            super().teardown_method()

    def open(self) -> Limiter:
        return self.limiter_class(self.server)

    def location(self) -> AdapterLocation:
        return AdapterLocation(f"{__name__}:open_alone", "")

    def fail(self) -> None:
        self.server.silent = True

    def restore(self) -> None:
        self.server.silent = False


def open_alone(url: str) -> Limiter:
    """In another process: nothing there is shared with this one."""
    return crowds.CountsForItself(broken.Server())


@pytest.mark.parametrize(("limiter", "check"), EXPECTED_FAILURES)
def test_a_broken_limiter_fails_its_check(limiter: type[broken.Plain], check: str) -> None:
    assert list(failures(Suite(limiter), check)), f"{check} passes on {limiter.__name__}"


@pytest.mark.parametrize(
    "check", sorted({check for _, check in EXPECTED_FAILURES} - ONLY_REAL_SERVERS_PASS)
)
def test_what_the_broken_limiters_are_made_of_is_sound(check: str) -> None:
    """Else a check would fail for a reason that is not the broken promise."""
    for error in failures(Suite(broken.Plain), check):
        raise AssertionError(f"{check} fails on Plain") from error


def test_every_check_fails_a_broken_limiter() -> None:
    assert checks_of(LimiterConformance) == {check for _, check in EXPECTED_FAILURES}
