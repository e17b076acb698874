"""The storage suite: each broken adapter fails the check that guards its promise."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from payments_core.conformance.storage import AdapterLocation, StorageConformance, job_partitions
from payments_core.storage.port import Storage
from payments_core.storage.records import Record
from payments_core.storage.sqlite.adapter import SqliteStorage
from tests.broken_adapters import (
    broken,
    broken_bulk,
    broken_files,
    broken_lookups,
    broken_measures,
    broken_reads,
    broken_turns,
    broken_wholes,
)
from tests.broken_adapters.failing_checks import failures

IN_MEMORY: dict[type[broken.Wrapped], str] = {
    broken.HoldDoesNothing: "hold_prevents_write_skew",
    broken.HoldChecksButDoesNotLock: "hold_prevents_write_skew",
    broken.ForUpdateDoesNotLock: "get_for_update_loses_no_update",
    broken.ForUpdateReadsTheFirstLook: "get_for_update_is_current_also_after_a_plain_get",
    broken.StaleVersionAccepted: "a_stale_version_is_refused",
    broken.DeleteIgnoresTheVersion: "a_stale_version_is_refused",
    broken.MissingMayBeHeld: "a_missing_record_is_refused",
    broken.OwnWritesUnseen: "a_work_sees_its_own_writes",
    broken.ErrorsLeaveTheirWrites: "an_error_undoes_everything_and_comes_out_unchanged",
    broken.ErrorsAreWrapped: "an_error_undoes_everything_and_comes_out_unchanged",
    broken.SwallowedConflictCommits: "a_conflict_that_the_work_swallows_commits_nothing",
    broken.RerunLeaksWrites: "a_work_has_one_effect_however_often_it_runs",
    broken.LostCommitIsSuccess: "a_lost_commit_that_was_not_applied_leaves_nothing",
    broken.LostCommitIsUnavailable: (
        "a_lost_commit_that_was_applied_is_reported_and_can_be_looked_up"
    ),
    broken.UniqueNotEnforcedOnReplace: "a_unique_key_is_enforced_on_replace",
    broken.UniqueNeverReleased: "replace_and_delete_release_a_unique_key",
    broken.UniqueCheckedTooEarly: "a_unique_key_is_taken_once_by_concurrent_inserts",
    broken.IdCheckedTooEarly: "an_id_is_taken_once_by_concurrent_inserts",
    broken.NullsCollide: "a_null_excuses_from_a_unique_key",
    broken.UniqueIsNotNamed: "a_unique_key_is_taken_once",
    broken_reads.SnapshotTorn: "a_reader_never_sees_half_a_transaction",
    broken_reads.SnapshotStale: "a_snapshot_has_every_answered_commit",
    broken_reads.SnapshotDirty: "a_snapshot_does_not_see_what_is_not_committed",
    broken_reads.PagingDropsTies: "records_come_in_the_order_of_the_index_then_by_id",
    broken_reads.PagingRepeats: "records_come_in_the_order_of_the_index_then_by_id",
    broken_reads.PositionsMayBeDigits: "a_query_that_does_not_fit_the_index_is_refused",
    broken_reads.CollationWrong: "texts_are_ordered_by_code_point",
    broken_reads.NullIsUnequal: "a_null_compares_with_nothing",
    broken_reads.NullKeyFindsNothing: "a_null_key_finds_the_nulls",
    broken_reads.DescendingIdsAscend: "a_descending_index_turns_the_ids_round_too",
    broken_reads.ScanLimitIgnored: "a_page_ends_short_at_the_scan_limit",
    broken_reads.ScanLimitEndsTheRows: "a_page_ends_short_at_the_scan_limit",
    broken_reads.DamagedRowRaises: "a_damaged_row_is_skipped_if_that_is_requested",
    broken_reads.DamagedRowIsAlwaysSkipped: "a_damaged_row_is_skipped_if_that_is_requested",
    broken_reads.DamagedRowEndsTheRows: "a_damaged_row_is_skipped_if_that_is_requested",
    broken_measures.AllPartitionsAreMeasured: "the_measured_bytes_are_those_of_the_bodies",
    broken_measures.CharactersAreMeasured: "the_measured_bytes_are_those_of_the_bodies",
    broken_measures.DamagedRowsAreNotMeasured: "damaged_rows_are_measured_too",
    broken_measures.OldBodiesAreMeasured: "the_measured_bytes_follow_each_change",
    broken_measures.MeasuredPagesHaveNoLimit: "a_page_of_measured_rows_ends_at_its_limit",
    broken_measures.MeasuredPagesOverlap: "a_page_of_measured_rows_ends_at_its_limit",
    broken_reads.UnknownFieldsDropped: "an_older_release_keeps_the_fields_that_it_does_not_know",
    broken_reads.SchemaGoesBack: "an_older_release_keeps_the_fields_that_it_does_not_know",
    broken_reads.AmountsAreFloats: "amounts_of_78_digits_survive",
    broken_reads.LongBodiesAreCut: "a_large_body_survives",
    broken_reads.TextsAreStripped: "texts_survive",
    broken_reads.PartitionsLeak: "partitions_are_apart",
    broken_reads.LeaseNotFenced: "an_expired_lease_comes_back_with_a_higher_counter",
    broken_reads.LeaseNotStored: "two_claimers_never_get_the_same_job",
    broken_reads.RenewalDoesNothing: "a_renewed_lease_lasts_longer_and_can_be_finished_with",
    broken_reads.RenewalTakesANewVersion: "a_renewed_lease_lasts_longer_and_can_be_finished_with",
    broken_reads.RenewalStaysInOnePartition: "leases_of_several_partitions_are_renewed_at_once",
    broken_reads.RenewalTakesBackWhatWasLost: "a_lease_that_was_lost_is_not_renewed",
    broken_reads.HolderIsForgotten: "the_leases_of_a_dead_holder_end",
    broken_reads.EveryLeaseIsEnded: "the_leases_of_a_dead_holder_end",
    broken_reads.EndedLeasesAreNotFenced: "a_holder_whose_leases_were_ended_is_fenced",
    broken_reads.ParkedJobsAreFreed: "no_lease_is_ended_but_those_that_live",
    broken_reads.LeasesOfOnePartitionAreFound: "the_latest_leases_are_found",
    broken_reads.EarliestLeasesAreFound: "the_latest_leases_are_found",
    broken_reads.ParkedJobsAreFound: "the_latest_leases_are_found",
    broken_reads.JobsDueLaterAreFound: "the_latest_leases_are_found",
    broken_reads.SlotsIgnored: "a_lane_gives_no_more_than_its_concurrency",
    broken_reads.OwnSlotsIgnored: "a_lane_may_have_a_concurrency_of_its_own",
    broken_reads.LanesEmptyInTurn: "each_lane_gives_one_before_any_gives_a_second",
    broken_bulk.WritesManyForgetsOne: "many_are_written_like_one_by_one",
    broken_bulk.WritesManyInTheWrongOrder: "a_unique_key_moves_from_one_of_many_to_another",
    broken_bulk.WritesManyOverAnything: (
        "one_stale_record_of_many_is_refused_and_nothing_is_written"
    ),
    broken_bulk.ReadsManyMissesSome: "many_are_read_like_one_by_one",
    broken_bulk.ReadsAheadForGood: "what_a_work_writes_counts_over_what_it_read_ahead",
    broken_bulk.ReadsPagesAheadForGood: "what_a_work_writes_counts_over_what_it_read_ahead",
    broken_bulk.ReadsAheadInTheWrongOrder: "what_is_read_ahead_changes_no_answer",
    broken_bulk.ReadsAheadMissesTheEndOfALongList: "a_long_list_read_ahead_changes_no_answer",
    broken_bulk.ReadsApartFromLongAgo: "what_is_read_apart_is_as_new_as_what_was_committed",
    broken_bulk.HoldsWhatItRead: "what_is_held_after_a_change_of_its_own_is_refused",
    broken_bulk.CountsFromTheStart: "as_many_are_counted_as_are_found",
    broken_reads.LimitIgnored: "no_more_than_the_limit_are_claimed",
    broken_reads.RingStarves: "lanes_take_turns",
    broken_reads.LaneOutOfOrder: "a_lane_keeps_its_order",
    broken_reads.FullLaneStopsTheRing: "a_saturated_lane_starves_no_other",
    broken_reads.QueuesMix: "queues_are_apart",
    broken_reads.ClaimsStayInOnePartition: "claims_cross_partitions_and_say_which",
    broken_reads.NextDueIgnoresLeases: "next_due_is_the_earliest_that_can_be_claimed",
    broken_reads.ClosedStillAnswers: "a_closed_storage_is_unavailable",
    broken_lookups.LocateStaysInOnePartition: (
        "records_of_every_partition_are_located_and_say_which"
    ),
    broken_lookups.LocateDropsKeys: "many_keys_are_located_at_once",
    broken_lookups.KeyTwiceLocatesTwice: "a_key_that_is_asked_for_twice_locates_a_record_once",
    broken_lookups.KeysMix: "a_key_is_located_by_all_its_columns_together",
    broken_lookups.LocateFoldsCase: "keys_are_compared_to_the_letter",
    broken_lookups.NullKeyLocatesNulls: "a_null_in_a_key_locates_nothing",
    broken_lookups.ImpossibleKeysFail: "what_no_record_can_have_locates_nothing",
    broken_lookups.AnythingMayBeAsked: "a_query_that_does_not_fit_the_lookup_is_refused",
    broken_lookups.LocateIgnoresComparisons: "every_comparison_must_hold_for_what_is_located",
    broken_lookups.LocateComparesAfterTheLimit: "every_comparison_must_hold_for_what_is_located",
    broken_lookups.LocateTakesNullsForUnequal: "every_comparison_must_hold_for_what_is_located",
    broken_lookups.LocatedByIdFirst: "located_records_come_by_partition_then_by_id",
    broken_lookups.LocatedKeyByKey: "located_records_come_by_partition_then_by_id",
    broken_lookups.LocateGoesOnByIdAlone: "locating_continues_after_the_last_row",
    broken_lookups.LocateRepeatsTheLast: "locating_continues_after_the_last_row",
    broken_lookups.LocateLooksForTheLast: "a_place_stays_while_records_come_and_go",
    broken_lookups.ReplacedIsFoundAsEntered: "a_changed_record_is_located_by_what_it_says_now",
    broken_lookups.DeletedIsStillFound: "a_changed_record_is_located_by_what_it_says_now",
    broken_lookups.LocateStale: "an_answered_commit_is_located",
    broken_lookups.LocateDirty: "what_is_not_committed_is_not_located",
    broken_lookups.DamagedRowStopsLocating: "a_damaged_row_is_reported_if_that_is_requested",
    broken_lookups.DamagedRowIsNotToldOf: "a_damaged_row_is_reported_if_that_is_requested",
    broken_lookups.NextDueIgnoresAfter: "next_due_after_an_instant_is_later_than_it",
    broken_lookups.NextDueIsNotLater: "next_due_after_an_instant_is_later_than_it",
    broken_lookups.NextDueOfTheFirstAlone: "next_due_after_an_instant_is_later_than_it",
    broken_turns.LanesSpanPartitions: "a_lane_belongs_to_its_partition",
    broken_turns.FirstPartitionStarvesTheOthers: (
        "a_partition_with_many_lanes_starves_none_with_few"
    ),
    broken_turns.FullClaimKeepsTheTurn: "a_partition_that_fills_a_claim_lets_the_others_go_first",
    broken_turns.LanesBeginAnewWithEachTurn: (
        "lanes_go_on_where_they_stood_when_their_partition_has_its_turn"
    ),
    broken_turns.FullPartitionHoldsUpTheOthers: (
        "a_partition_whose_lanes_are_full_holds_up_no_other"
    ),
    broken_turns.LanesWithNothingDueAreCounted: (
        "a_due_job_behind_many_lanes_with_nothing_due_is_found_at_once"
    ),
    broken_turns.LanesWithoutRoomAreCounted: ("a_lane_behind_many_without_room_is_found_at_once"),
    broken_turns.OldestJobsHideTheOthers: "a_lane_among_long_ones_has_its_turn",
    broken_turns.HintsAreTrusted: "jobs_that_were_loaded_are_found",
    broken_wholes.WalksOnePartition: "a_scan_visits_every_partition_in_order_a_batch_at_a_time",
    broken_wholes.WalksById: "a_scan_visits_every_partition_in_order_a_batch_at_a_time",
    broken_wholes.WalkStopsAtAnId: "a_scan_visits_every_partition_in_order_a_batch_at_a_time",
    broken_wholes.ReadsOnePartition: (
        "rows_of_every_partition_are_read_as_stored_damaged_ones_too"
    ),
    broken_wholes.ReadsSoundRowsOnly: (
        "rows_of_every_partition_are_read_as_stored_damaged_ones_too"
    ),
    broken_wholes.RowsForgetColumns: "rows_are_returned_as_stored",
    broken_wholes.LoadBeginsVersionsAnew: "what_is_loaded_is_as_it_was_and_can_be_found",
    broken_wholes.LoadTakesNoUniqueKey: "what_is_loaded_is_as_it_was_and_can_be_found",
    broken_wholes.LoadReplacesWhatIsThere: "a_load_that_breaks_a_key_leaves_nothing",
    broken_wholes.SwallowedLoadIsKept: "a_swallowed_refusal_of_a_load_comes_out_at_the_end",
    broken_wholes.LoadIsNotUndone: "an_error_undoes_what_was_loaded_and_access_can_be_taken_again",
    broken_wholes.NotAlone: "nobody_else_writes_during_exclusive_access",
    broken_wholes.ClosedIsStillSeen: "a_closed_storage_refuses_maintenance_access",
}

ON_FILE: dict[type[SqliteStorage], str] = {
    broken_files.CommitForgotten: "a_killed_process_loses_nothing_that_was_answered",
    broken_files.EveryStatementCommits: "what_was_not_committed_is_gone_after_a_crash",
    broken_files.UniqueIndexesForgotten: "a_unique_key_is_taken_once_by_two_handles",
    broken_files.MigrationRaces: "two_handles_migrate_at_once",
    broken_files.MigrationFillsNothing: "columns_indexes_and_unique_keys_can_come_later",
    broken_files.OthersJobsAreNotFound: "jobs_of_another_handle_are_found",
    broken_files.NothingOutlivesTheHandle: "what_was_committed_is_there_after_closing",
}

OPENERS = {
    broken_files.CommitForgotten: "open_commit_forgotten",
    broken_files.OneHandle: "open_one_handle",
}


@pytest.fixture(autouse=True)
def _no_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a broken adapter never finds is not waited for."""
    monkeypatch.setattr(job_partitions, "FOUND_WITHIN_S", 0.1)


class InMemory(StorageConformance):
    can_lose_commits = True
    maintenance_access = True
    adapter: type[broken.Wrapped]

    def open(self, record_types: Sequence[type[Record]]) -> Storage:
        return self.adapter(record_types)

    def lose_next_commit(self, storage: Storage, *, applied: bool) -> None:
        assert isinstance(storage, broken.Losing)
        storage.lost = applied


class OnFile(StorageConformance):
    persistent = True
    multi_process = True
    maintenance_access = True
    adapter: type[SqliteStorage]
    path: Path

    def open(self, record_types: Sequence[type[Record]]) -> Storage:
        return self.adapter(self.path, record_types)

    def location(self) -> AdapterLocation:
        opener = OPENERS.get(self.adapter, "open_every_statement_commits")
        return AdapterLocation(f"{broken_files.__name__}:{opener}", str(self.path))


@pytest.mark.parametrize("adapter", IN_MEMORY, ids=lambda adapter: adapter.__name__)
def test_a_broken_adapter_fails_its_check(adapter: type[broken.Wrapped]) -> None:
    suite = InMemory()
    suite.adapter = adapter
    check = IN_MEMORY[adapter]
    assert list(failures(suite, check)), f"{check} passes on {adapter.__name__}"


@pytest.mark.parametrize("adapter", ON_FILE, ids=lambda adapter: adapter.__name__)
def test_a_broken_file_fails_its_check(adapter: type[SqliteStorage], tmp_path: Path) -> None:
    suite = OnFile()
    suite.adapter, suite.path = adapter, tmp_path / "data.db"
    check = ON_FILE[adapter]
    assert list(failures(suite, check)), f"{check} passes on {adapter.__name__}"


@pytest.mark.parametrize(
    ("check", "who"),
    [
        ("what_was_not_committed_is_gone_after_a_crash", "another process"),
        ("a_killed_process_loses_nothing_that_was_answered", "another process"),
        ("two_processes_lose_no_update", "another process"),
        ("processes_migrate_at_once", "another process"),
        ("a_unique_key_is_taken_once_by_two_handles", "another handle"),
        ("the_release_before_still_reads_after_a_migration", "another handle"),
    ],
)
def test_a_database_of_one_process_learns_what_to_declare(
    check: str, who: str, tmp_path: Path
) -> None:
    suite = OnFile()
    suite.adapter, suite.path = broken_files.OneHandle, tmp_path / "data.db"
    [error] = failures(suite, check)
    assert str(error).startswith(f"{who} could not open the data: OSError: the lock on")
    assert "declares neither `persistent` nor `multi_process`" in str(error)


@pytest.mark.parametrize("adapter", [broken.Wrapped, broken.Interleaved, broken.Losing])
def test_what_the_broken_adapters_are_made_of_is_sound(adapter: type[broken.Wrapped]) -> None:
    """Else a check would fail for a reason that is not the broken promise."""
    suite = InMemory()
    suite.adapter = adapter
    needs_losing = {check for check in IN_MEMORY.values() if "lost_commit" in check}
    checks = set(IN_MEMORY.values())
    for check in sorted(checks if adapter is broken.Losing else checks - needs_losing):
        for error in failures(suite, check):
            raise AssertionError(f"{check} fails on {adapter.__name__}") from error
