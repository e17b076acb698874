"""The second factor, recovery codes, the history of log-ins, and the page of the audit trail."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import attrs
import pyotp
import pytest

from payments_core.clock import MINUTE, FixedClock
from payments_core.engine.audit import AuditEntry
from payments_core.errors import NotFound
from payments_core.storage.maintenance import scan_all
from payments_core.tenants.second_factor import (
    LOCKED_MS,
    MAX_FAILURES,
    RECOVERY_CODES,
    STEP_MS,
    SecondFactor,
)
from tests.http.api_harness import ApiHarness, Seen
from tests.http.dashboard.operator_browser import CHEAP, OperatorBrowser
from tests.http.pages.html import Html

PAGE = "/dashboard/security"
WRONG = b"The name, the password or the code is wrong."


@attrs.define
class Office:
    """An operator with a browser that is logged in, and with an app once it has a key."""

    api: ApiHarness
    clock: FixedClock
    password: str
    secret: str = ""

    @property
    def browser(self) -> OperatorBrowser:
        return self._browser

    _browser: OperatorBrowser = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._browser = OperatorBrowser(self.api)
        assert self.log_in(self._browser).status == 303

    def log_in(self, browser: OperatorBrowser | None = None, code: str = "") -> Seen:
        browser = browser or OperatorBrowser(self.api)
        return browser.log_in("olivia", self.password, code=code)

    def code(self, steps: int = 0) -> str:
        """What the app shows now, or some steps later."""
        return pyotp.TOTP(self.secret).generate_otp(self.clock.real_now() // STEP_MS + steps)

    def submit(self, action: str, **fields: str) -> Seen:
        return self.browser.submit(PAGE, f"{PAGE}/{action}", **fields)

    def begin(self) -> None:
        assert self.submit("begin", password=self.password).status == 303
        found = re.search(rb'class="copy">([A-Z2-7]{32})<', self.browser.get(PAGE).body)
        assert found is not None
        self.secret = found[1].decode()

    def enrol(self) -> list[str]:
        """Set the second factor up, and wait for the next code; the recovery codes."""
        self.begin()
        shown = self.submit("confirm", code=self.code())
        assert shown.status == 200
        self.wait()
        return find_codes(shown)

    def wait(self, ms: int = STEP_MS) -> None:
        self.clock.advance(ms / 1_000)

    def trail(self, operation: str) -> Sequence[AuditEntry]:
        shop = self.api.service.environment(self.api.partition)
        return shop.audit.list(operation=operation).records

    def factor(self) -> SecondFactor:
        [found] = scan_all(self.api.service.parts.ports.storage, SecondFactor)
        return found.record


def find_codes(shown: Seen) -> list[str]:
    return re.findall(r"[A-Z2-7]{6}(?:-[A-Z2-7]{6}){3}", shown.body.decode())


@pytest.fixture
def office() -> Office:
    clock = FixedClock()
    api = ApiHarness(clock)
    api.service.parts.operators._cost = CHEAP
    return Office(api, clock, api.service.operators.create(api.partition, "olivia").password)


class TestSettingUp:
    def test_the_page_shows_a_qr_code_and_its_key_until_it_is_confirmed(
        self, office: Office
    ) -> None:
        office.begin()
        body = office.browser.get(PAGE).body
        assert b"<svg" in body and office.secret.encode() in body
        codes = office.enrol()
        assert len(set(codes)) == RECOVERY_CODES
        page = office.browser.open(PAGE)
        assert f"{RECOVERY_CODES} recovery codes" in page.text
        assert office.secret not in office.browser.get(PAGE).body.decode()

    def test_neither_key_nor_codes_are_stored_in_the_clear(self, office: Office) -> None:
        codes = office.enrol()
        stored = repr(attrs.asdict(office.factor()))
        for hidden in (office.secret, *codes, *(code.replace("-", "") for code in codes)):
            assert hidden not in stored
        assert "sealed_secret" not in repr(office.factor())

    def test_a_stolen_session_cannot_set_one_up(self, office: Office) -> None:
        refused = office.submit("begin", password="guess")
        assert refused.status == 400
        assert list(scan_all(office.api.service.parts.ports.storage, SecondFactor)) == []

    def test_a_wrong_code_does_not_turn_it_on(self, office: Office) -> None:
        office.begin()
        assert office.submit("confirm", code="000000").status == 400
        assert office.factor().confirmed_at_ms is None
        assert office.log_in().status == 303, "it does not count yet"

    def test_other_sessions_end_with_it(self, office: Office) -> None:
        other = OperatorBrowser(office.api)
        office.log_in(other)
        office.enrol()
        assert other.get(PAGE).status == 401
        assert office.browser.get(PAGE).status == 200

    def test_a_session_that_begins_meanwhile_ends_too(
        self, office: Office, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Somebody with the password logs in between the look at the code and the commit."""
        office.begin()
        other, commits = OperatorBrowser(office.api), iter(range(100))
        storage = office.api.service.parts.ports.storage
        transact = storage.transact

        def log_in_first(partition: str, work: Any) -> Any:
            if next(commits) == 1:
                assert office.log_in(other).status == 303
            return transact(partition, work)

        form = {**office.browser.forms(PAGE)[f"{PAGE}/confirm"], "code": office.code()}
        monkeypatch.setattr(storage, "transact", log_in_first)
        assert office.browser.post(f"{PAGE}/confirm", form).status == 200
        assert other.cookie is not None
        assert other.get(PAGE).status == 401

    def test_a_form_that_is_sent_twice_shows_the_same_codes(self, office: Office) -> None:
        office.begin()
        form = {**office.browser.forms(PAGE)[f"{PAGE}/confirm"], "code": office.code()}
        first, second = (office.browser.post(f"{PAGE}/confirm", form) for _ in range(2))
        assert find_codes(first) == find_codes(second) != []

    @pytest.mark.parametrize("action", ["begin", "confirm", "recovery-codes", "turn-off"])
    def test_a_form_of_another_site_is_refused(self, office: Office, action: str) -> None:
        office.enrol()
        fields = {"code": office.code(), "password": office.password, "idempotencyKey": "x" * 20}
        assert office.browser.post(f"{PAGE}/{action}", fields).status == 403
        assert office.factor().confirmed_at_ms is not None


class TestLoggingIn:
    def test_the_password_alone_is_refused_as_a_wrong_password_is(self, office: Office) -> None:
        office.enrol()
        without = office.log_in()
        other = OperatorBrowser(office.api).log_in("olivia", "wrong", code=office.code())
        assert without.status == other.status == 401
        assert WRONG in without.body and WRONG in other.body
        assert office.log_in(code=office.code()).status == 303

    def test_a_code_counts_once_and_none_before_it(self, office: Office) -> None:
        office.enrol()
        used = office.code()
        earlier = office.code(-1)
        assert office.log_in(code=f"{used[:3]} {used[3:]}").status == 303
        assert office.log_in(code=used).status == 401
        assert office.log_in(code=earlier).status == 401
        assert office.log_in(code=office.code(1)).status == 303, "a clock may be half a minute off"
        office.wait()
        assert office.log_in(code=office.code(2)).status == 401
        assert office.log_in(code=office.code(1)).status == 303

    def test_a_recovery_code_counts_once_in_any_case(self, office: Office) -> None:
        first, second, *_ = office.enrol()
        assert office.log_in(code=first.lower()).status == 303
        assert office.log_in(code=first).status == 401
        assert office.log_in(code=second.replace("-", "")).status == 303
        assert f"{RECOVERY_CODES - 2} recovery codes" in office.browser.open(PAGE).text

    def test_guesses_lock_it_for_a_while(self, office: Office) -> None:
        office.enrol()
        for _ in range(MAX_FAILURES):
            assert office.log_in(code="000000").status == 401
        assert office.log_in(code=office.code()).status == 401, "the right one does not count"
        office.wait(LOCKED_MS)
        assert office.log_in(code=office.code()).status == 303

    def test_who_sends_wrong_codes_locks_nobody_out(self, office: Office) -> None:
        first, *_ = office.enrol()
        for _ in range(MAX_FAILURES + 1):
            assert office.log_in(code="000000").status == 401
        assert office.log_in(code=first).status == 303, "nobody can guess a recovery code"

    def test_a_new_operator_of_the_name_has_no_second_factor(self, office: Office) -> None:
        office.enrol()
        operators = office.api.service.operators
        operators.remove("olivia", mode="sandbox")
        office.wait()
        office.password = operators.create(office.api.partition, "olivia").password
        assert office.log_in().status == 303

    def test_the_session_is_new(self, office: Office) -> None:
        """A cookie that somebody planted is worth nothing after the log-in."""
        office.enrol()
        planted = office.browser.cookie
        browser = OperatorBrowser(office.api, cookie="ops_planted")
        assert office.log_in(browser, code=office.code()).status == 303
        assert browser.cookie not in (planted, "ops_planted", None)


class TestAfterwards:
    def test_codes_are_renewed_with_a_code(self, office: Office) -> None:
        before = office.enrol()
        fresh = find_codes(office.submit("recovery-codes", code=office.code()))
        assert len(fresh) == RECOVERY_CODES and not set(fresh) & set(before)
        assert office.log_in(code=before[0]).status == 401
        assert office.log_in(code=fresh[0]).status == 303

    def test_it_is_turned_off_with_a_code(self, office: Office) -> None:
        codes = office.enrol()
        assert office.submit("turn-off", code="000000").status == 400
        assert office.submit("turn-off", code=codes[0]).status == 303
        assert "The second factor is off." in office.browser.open(PAGE).text
        assert office.log_in().status == 303

    def test_who_runs_the_deployment_resets_it(self, office: Office) -> None:
        office.enrol()
        factors = office.api.service.parts.second_factors
        factors.reset("olivia", mode="sandbox")
        assert office.log_in().status == 303
        for name in ("olivia", "nobody"):
            with pytest.raises(NotFound):
                factors.reset(name, mode="sandbox")
        assert [entry.actor_type for entry in office.trail("second_factor.reset")] == ["program"]


class TestHistory:
    def test_log_ins_are_listed_with_their_address_and_outcome(self, office: Office) -> None:
        office.wait(MINUTE)
        OperatorBrowser(office.api).log_in("olivia", "wrong")
        OperatorBrowser(office.api).log_in("olivia", "wrong")
        refused, succeeded = office.trail("dashboard.log_in")
        assert (refused.outcome, succeeded.outcome) == ("refused", "succeeded")
        assert refused.actor_id == succeeded.actor_id == "olivia"
        assert refused.address == succeeded.address == "127.0.0.1"
        text = office.browser.open(PAGE).text
        assert "Refused" in text and "Logged in" in text and "127.0.0.1" in text

    def test_a_wrong_code_or_password_on_the_page_is_in_the_trail(self, office: Office) -> None:
        """Once a minute: who has a stolen session guesses here, and not at the log-in."""
        assert office.submit("begin", password="guess").status == 400
        office.begin()
        for _ in range(3):
            assert office.submit("confirm", code="000000").status == 400
        office.enrol()
        for action in ("recovery-codes", "turn-off"):
            assert office.submit(action, code="ABCDEF-ABCDEF-ABCDEF-ABCDEF").status == 400
        for operation in ("begin", "confirm", "renew_recovery_codes", "turn_off"):
            trail = office.trail(f"second_factor.{operation}")
            [refused] = [entry for entry in trail if entry.outcome == "refused"]
            assert (refused.actor_type, refused.actor_id) == ("operator", "olivia")
            assert refused.address == "127.0.0.1"

    def test_an_unknown_name_belongs_to_nobody_and_is_not_stored(self, office: Office) -> None:
        OperatorBrowser(office.api).log_in("my-password-by-mistake", "olivia")
        assert len(office.trail("dashboard.log_in")) == 1
        [entry] = office.api.service.parts.audit_trail.list_deployment().records
        assert (entry.outcome, entry.actor_id) == ("refused", None)
        assert "mistake" not in repr(attrs.asdict(entry))

    def test_changes_of_operators_are_in_the_trail_of_their_environment(
        self, office: Office
    ) -> None:
        office.api.service.operators.reset_password("olivia", mode="sandbox")
        for operation in ("operators.create", "operators.reset"):
            [entry] = office.trail(operation)
            assert entry.object_id == office.api.partition

    def test_the_page_of_the_trail_filters(self, office: Office) -> None:
        page: Html = office.browser.open("/dashboard/audit")
        assert "keys.create" in page.text and "olivia" in page.text
        filtered = office.browser.open("/dashboard/audit?operation=keys.create&actorType=program")
        assert "keys.create" in filtered.text and "dashboard.log_in" not in filtered.text
        nothing = office.browser.open("/dashboard/audit?object=%3Cscript%3E")
        assert "No entry on this page matches" in nothing.text
