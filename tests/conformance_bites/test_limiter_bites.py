"""The limiter suite bites: each broken limiter fails the check that guards its promise."""

from __future__ import annotations

import unittest
from collections.abc import Iterator

import pytest

from payments_core.conformance.limiter import Address, LimiterConformance
from payments_core.limiters.port import Limiter
from tests.conformance_bites import broken_limiters as broken

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

BITES: tuple[tuple[type[broken.Plain], str], ...] = (
    (broken.AdmitsOneTooMany, ADMITS),
    (broken.AdmitsOneTooFew, ADMITS),
    (broken.RefusedAreNotCounted, "refused_requests_count_too"),
    (broken.LooksCount, "a_look_counts_nothing"),
    (broken.EveryCostIsOne, "a_cost_is_counted_whole"),
    (broken.RemainsBelowZero, REMAINS),
    (broken.TellsWhatWasLeftBefore, REMAINS),
    (broken.TellsWhatIsLeftForTheLimit, "the_limit_is_told_as_it_was_asked"),
    (broken.LooksAreRefusedAtTheLimit, "a_look_is_refused_only_beyond_the_limit"),
    (broken.StopsAtTheFirstRefusal, "each_ask_is_counted_whatever_becomes_of_its_neighbours"),
    (broken.AnswersTheMostConstrainedFirst, "the_answers_are_in_the_order_of_the_asks"),
    (broken.CountsAKeyOnce, "a_key_twice_in_one_call_is_counted_twice"),
    (broken.NeedsAnAsk, "no_ask_has_no_answer"),
    (broken.FoldsKeys, KEYS),
    (broken.CutsKeys, KEYS),
    (broken.EndsKeysAtANull, KEYS),
    (broken.AllShareACounter, KEYS),
    (broken.LengthsShareACounter, "windows_of_another_length_have_another_counter"),
    (broken.KeepsTheFirstLimit, "the_limit_may_change_between_two_asks"),
    (broken.CountsInSingleFloats, "large_limits_and_costs_are_exact"),
    (broken.KeepsTenKeys, "many_keys_each_have_their_counter"),
    (broken.EndsAMillisecondLate, "a_window_ends_where_its_multiple_does"),
    (broken.Slides, "a_window_does_not_slide"),
    (broken.BeginsWithTheFirstRequest, "a_window_does_not_begin_with_its_first_request"),
    (broken.ResetsAWindowFromNow, "the_reset_is_when_the_window_ends"),
    (broken.ForgetsAllButThePresentWindow, BACK),
    (broken.ForgetsAllButThePresentWindow, FREES),
    (broken.ForgetsAllButThePresentWindow, JUMPS),
    (broken.ForgetsEarlierWindows, BACK),
    (broken.TakesOneStepBackForSkew, JUMPS),
    (broken.NeverGoesBack, APART),
    (broken.DistrustsLeaps, "a_clock_may_leap_ahead"),
    (broken.NeverBlocks, BEGINS),
    (broken.BlocksAtTheLimit, BEGINS),
    (broken.BlocksFromTheEndOfTheWindow, BEGINS),
    (broken.ForgetsTheBlockWithTheWindow, OUTLASTS),
    (broken.EndsTheBlockAMillisecondLate, OUTLASTS),
    (broken.BlocksOnlyThoseWhoAskForIt, "a_block_refuses_asks_that_would_begin_none"),
    (broken.ProlongsTheBlock, "further_requests_do_not_prolong_a_block"),
    (broken.LooksBeginBlocks, "a_look_begins_no_block"),
    (broken.BlocksOnlyOneStepBeyond, "one_cost_may_pass_the_limit"),
    (broken.TheBlockEndsTheWindow, "the_window_goes_on_where_its_block_is_shorter"),
    (broken.BlocksOnce, "after_a_block_another_may_begin"),
    (broken.BlocksTheWholePolicy, "a_block_is_of_one_key_alone"),
    (broken.BlocksWindowsOfAllLengths, "a_block_is_of_one_key_alone"),
    (broken.TheBlockHasABeginning, "a_clock_that_steps_back_ends_no_block"),
    (broken.AlwaysBlocksForTheWindow, "without_a_block_the_next_window_is_open"),
    (broken.Racy, THREADS),
    (broken.Racy, "no_count_of_a_thread_is_lost"),
    (broken.Racy, "one_of_many_threads_begins_the_block"),
    (broken.LocksKeyByKey, "threads_that_ask_in_another_order_do_not_wait_for_each_other"),
    (broken.CountsForItself, "handles_count_together"),
    (broken.CountsForItself, PROCESSES),
    (broken.ClosingForgets, "what_a_closed_handle_counted_is_still_counted"),
    (broken.AnswersAfterClosing, "a_closed_limiter_is_unavailable"),
    (broken.CannotBeClosedTwice, "a_closed_limiter_is_unavailable"),
    (broken.RaisesWhatTheDriverRaises, "a_closed_limiter_is_unavailable"),
    (broken.RaisesWhatTheDriverRaises, SILENCE),
    (broken.AdmitsWhereItCannotSay, SILENCE),
    (broken.TakesItsTime, SILENCE),
    (broken.NeverComesBack, BY_ITSELF),
    (broken.ComesBackEmpty, BY_ITSELF),
    (broken.CountsAloneMeanwhile, "it_does_not_come_back_while_it_is_silent"),
)
ONLY_REAL_SERVERS_PASS = {PROCESSES}


class Suite(LimiterConformance):
    shared = True
    can_fail = True
    mended_within_s = 0.1
    hang_s = 3.0
    limiter_class: type[broken.Plain]

    def setup_method(self) -> None:
        super().setup_method()
        self.server = broken.Server()

    def open(self) -> Limiter:
        return self.limiter_class(self.server)

    def address(self) -> Address:
        return Address(f"{__name__}:open_alone", "")

    def fail(self) -> None:
        self.server.silent = True

    def mend(self) -> None:
        self.server.silent = False


def open_alone(url: str) -> Limiter:
    """In another process: nothing there is shared with this one."""
    return broken.CountsForItself(broken.Server())


def failures(limiter: type[broken.Plain], check: str) -> Iterator[BaseException]:
    """What the check raises on a limiter."""
    suite = Suite()
    suite.limiter_class = limiter
    suite.setup_method()
    try:
        getattr(suite, f"test_{check}")()
    except unittest.SkipTest:
        raise
    except Exception as error:
        yield error
    if not issubclass(limiter, broken.CannotBeClosedTwice):
        suite.teardown_method()


@pytest.mark.parametrize(("limiter", "check"), BITES)
def test_a_broken_limiter_fails_its_check(limiter: type[broken.Plain], check: str) -> None:
    assert list(failures(limiter, check)), f"{check} passes on {limiter.__name__}"


@pytest.mark.parametrize("check", sorted({check for _, check in BITES} - ONLY_REAL_SERVERS_PASS))
def test_what_the_broken_limiters_are_made_of_is_sound(check: str) -> None:
    """Else a check would fail for a reason that is not the broken promise."""
    for error in failures(broken.Plain, check):
        raise AssertionError(f"{check} fails on Plain") from error


def test_every_check_has_a_limiter_that_it_bites() -> None:
    checks = {name.removeprefix("test_") for name in dir(LimiterConformance) if "test_" in name}
    assert checks == {check for _, check in BITES}
