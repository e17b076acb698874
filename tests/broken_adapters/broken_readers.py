"""Who reads webhooks, broken as KYC providers are: for the suites of other kinds of providers."""

from __future__ import annotations

from typing import Any

from payments_core.conformance.notice_checks import Report
from tests.broken_adapters import broken_kyc as broken
from tests.service.notices.office import NOW_S, Office, new_id, notice

DAY_S = 86_400

BROKEN_READERS: tuple[tuple[type[Office], str], ...] = (
    (broken.HasAPathForAName, "the_door_has_a_name"),
    (broken.NamesNoCase, "a_notice_names_its_case"),
    (broken.CountsItsNotices, "a_repeat_has_the_same_id"),
    (broken.NamesNoticesByTheirCase, "each_notice_has_its_own_id"),
    (broken.SignsTheTimeAlone, "a_changed_body_is_refused"),
    (broken.TrustsWhatIsUnsigned, "what_is_not_signed_is_refused"),
    (broken.RepeatsTheBody, "a_refusal_does_not_repeat_the_body"),
    (broken.ReadsBeforeItVerifies, "what_nobody_sends_is_refused"),
    (broken.AcceptsYesterday, "a_late_notice_is_refused"),
)


def reading(sound: type[Any], reader: type[Office] = Office) -> type[Any]:
    """An adapter that is sound but for the webhooks, which it reads as `reader` does."""
    return type(reader.__name__, (sound, reader), {"name": reader.name})


class ReportingSuite:
    """Its provider signs as the office does."""

    can_report = can_report_late = True

    def report(self, reference: str) -> Report:
        return notice((new_id(), reference))

    def late_report(self, reference: str) -> Report:
        return notice((new_id(), reference), at_s=NOW_S - DAY_S)
