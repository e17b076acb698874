"""The promises of every provider that reports by webhook (`payments_core.notices.port`).

A suite of one kind of provider has these checks beside its own: `open_case` makes a case of it.
"""

from __future__ import annotations

import re
import unittest
from collections.abc import Mapping
from typing import Any

from payments_core.notices.port import (
    MAX_NAME_LENGTH,
    NoticeRefused,
    ProviderNotice,
    ReadsNotices,
)

Report = tuple[Mapping[str, str], bytes]
"""The headers of a provider's request, with lower-case names, and its body."""


class NoticeChecks:
    """What is not signed is refused, and what is signed names its case and itself."""

    can_report: bool = False
    """`report` works, and the adapter has `read_notices`."""

    can_report_late: bool = False
    """`late_report` works: the provider signs the time of a request."""

    def open(self) -> Any:
        """A handle to the provider."""
        raise NotImplementedError  # the adapter's own test class says how

    def open_case(self) -> Any:
        """A new case, with its `reference`."""
        raise NotImplementedError  # the suite of the kind says how

    def report(self, reference: str) -> Report:
        """A request about a case, signed by the provider; each call reports something new."""
        raise NotImplementedError  # the adapter's own test class says how

    def late_report(self, reference: str) -> Report:
        """A request that the provider signed yesterday."""
        raise NotImplementedError  # the adapter's own test class says how

    def test_the_door_has_a_name(self) -> None:
        name = self._open_reader().name
        assert re.fullmatch("[a-z0-9-]{1,40}", name), f"{name!r} cannot be part of a path"

    def test_a_notice_names_its_case(self) -> None:
        reader, reference = self._open_reader(), self.open_case().reference
        found = reader.read_notices(*self.report(reference))
        assert [notice.reference for notice in found] == [reference], f"it named {found}"
        for notice in found:
            _require_storable(notice)

    def test_a_repeat_has_the_same_id(self) -> None:
        reader, report = self._open_reader(), self.report(self.open_case().reference)
        first, again = reader.read_notices(*report), self._open_reader().read_notices(*report)
        assert [one.id for one in first] == [one.id for one in again], "the same request has one id"

    def test_each_notice_has_its_own_id(self) -> None:
        reader, reference = self._open_reader(), self.open_case().reference
        ids = [
            notice.id for _ in range(2) for notice in reader.read_notices(*self.report(reference))
        ]
        assert len(set(ids)) == len(ids), "two reports must have two ids"

    def test_a_changed_body_is_refused(self) -> None:
        headers, body = self._new_report()
        for changed in (body + b" ", body[:-1], body.replace(b"0", b"1").replace(b"a", b"b"), b""):
            if changed != body:
                self._require_refused(headers, changed)

    def test_what_is_not_signed_is_refused(self) -> None:
        headers, body = self._new_report()
        self._require_refused({}, body)
        for name, value in headers.items():
            if name not in ("content-type", "user-agent", "content-length", "host"):
                without = {other: text for other, text in headers.items() if other != name}
                if not self._is_accepted(without, body):
                    self._require_refused({**headers, name: ""}, body)
                    self._require_refused({**headers, name: value[:-1]}, body)

    def test_a_refusal_does_not_repeat_the_body(self) -> None:
        reader, reference = self._open_reader(), self.open_case().reference
        said = ""
        try:
            reader.read_notices({}, self.report(reference)[1])
        except NoticeRefused as error:
            said = str(error)
        assert reference not in said, "a refusal is logged, and the body may hold secrets"

    def test_what_nobody_sends_is_refused(self) -> None:
        headers, _ = self._new_report()
        for body in (b"\x00\xff", b"null", b"[]", b"{}", b"[" * 2_000, b"0" * 10_000):
            self._require_refused(headers, body)
            self._require_refused(dict.fromkeys(headers, "€"), body)

    def test_a_late_notice_is_refused(self) -> None:
        self._require("can_report_late")
        self._require_refused(*self.late_report(self.open_case().reference))

    def _new_report(self) -> Report:
        self._open_reader()
        return self.report(self.open_case().reference)

    def _open_reader(self) -> ReadsNotices:
        self._require("can_report")
        opened = self.open()
        assert isinstance(opened, ReadsNotices), "the adapter needs `name` and `read_notices`"
        return opened

    def _require(self, capability: str) -> None:
        if not getattr(self, capability):
            raise unittest.SkipTest(f"the adapter does not declare `{capability}`")

    def _is_accepted(self, headers: Mapping[str, str], body: bytes) -> bool:
        try:
            self._open_reader().read_notices(headers, body)
        except NoticeRefused:
            return False
        return True

    def _require_refused(self, headers: Mapping[str, str], body: bytes) -> None:
        try:
            found = self._open_reader().read_notices(headers, body)
        except NoticeRefused:
            return
        except Exception as error:
            raise AssertionError(
                f"the request must raise NoticeRefused, not {type(error).__name__}"
            ) from error
        raise AssertionError(f"the request must be refused, but had the notices {found}")


def _require_storable(notice: ProviderNotice) -> None:
    for name, text in (("id", notice.id), ("reference", notice.reference)):
        assert 0 < len(text) <= MAX_NAME_LENGTH, f"its {name} must have 1 to 500 characters"
        assert text.isprintable(), f"its {name} must be printable"
