"""Providers that each break one promise of those that report by webhook, for every kind of them."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Mapping, Sequence
from typing import Any

from payments_core.conformance.notice_checks import Report
from payments_core.evolve import evolve
from payments_core.notices.port import NoticeRefused, ProviderNotice
from tests.service.notices.office import NOW_S, SECRET, Office, new_id, notice, sign

DAY_S = 86_400


class HasAPathForAName(Office):
    name = "office/2"


class NamesNoCase(Office):
    def read_notices(self, headers: Mapping[str, str], body: bytes) -> Sequence[ProviderNotice]:
        return [evolve(one, reference="a case") for one in super().read_notices(headers, body)]


class CountsItsNotices(Office):
    def read_notices(self, headers: Mapping[str, str], body: bytes) -> Sequence[ProviderNotice]:
        return [evolve(one, id=new_id()) for one in super().read_notices(headers, body)]


class NamesNoticesByTheirCase(Office):
    def read_notices(self, headers: Mapping[str, str], body: bytes) -> Sequence[ProviderNotice]:
        return [evolve(one, id=one.reference) for one in super().read_notices(headers, body)]


class SignsTheTimeAlone(Office):
    def require_signed(self, headers: Mapping[str, str], body: bytes) -> None:
        stamp = headers.get("office-time", "")
        known = {sign(stamp, body), headers.get("office-signature", "")}
        if not stamp or not all(known):
            raise NoticeRefused("not signed")
        try:
            json.loads(body)[0]["case"]
        except (ValueError, LookupError, TypeError) as error:
            raise NoticeRefused("not read") from error


class TrustsWhatIsUnsigned(Office):
    def require_signed(self, headers: Mapping[str, str], body: bytes) -> None:
        if headers.get("office-signature"):
            super().require_signed(headers, body)


class RepeatsTheBody(Office):
    def require_signed(self, headers: Mapping[str, str], body: bytes) -> None:
        try:
            super().require_signed(headers, body)
        except NoticeRefused as error:
            raise NoticeRefused(f"{error}: {body!r}") from error


class ReadsBeforeItVerifies(Office):
    def read_notices(self, headers: Mapping[str, str], body: bytes) -> Sequence[ProviderNotice]:
        read = json.loads(body)
        self.require_signed(headers, body)
        return [ProviderNotice(id=one["id"], reference=one["case"]) for one in read]


class AcceptsYesterday(Office):
    def require_signed(self, headers: Mapping[str, str], body: bytes) -> None:
        stamp = headers.get("office-time", "")
        expected = hmac.digest(SECRET, stamp.encode() + b"." + body, hashlib.sha256).hex()
        given = headers.get("office-signature", "")
        if not given.isascii() or not hmac.compare_digest(given, expected):
            raise NoticeRefused("the signature is wrong")


BROKEN_READERS: tuple[tuple[type[Office], str], ...] = (
    (HasAPathForAName, "the_door_has_a_name"),
    (NamesNoCase, "a_notice_names_its_case"),
    (CountsItsNotices, "a_repeat_has_the_same_id"),
    (NamesNoticesByTheirCase, "each_notice_has_its_own_id"),
    (SignsTheTimeAlone, "a_changed_body_is_refused"),
    (TrustsWhatIsUnsigned, "what_is_not_signed_is_refused"),
    (RepeatsTheBody, "a_refusal_does_not_repeat_the_body"),
    (ReadsBeforeItVerifies, "what_nobody_sends_is_refused"),
    (AcceptsYesterday, "a_late_notice_is_refused"),
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
