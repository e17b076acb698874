"""Who gets into the dashboard, for how long, and which attacks are refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import attrs
import pytest

from payments_core.clock import SECOND, FixedClock
from payments_core.errors import Unauthorized, Unavailable
from payments_core.limiters.memory import MemoryLimiter
from payments_core.limiters.policies import RateLimits
from payments_core.tenants.operator_sessions import IDLE_MS, LIFETIME_MS, MAX_SESSIONS
from payments_core.tenants.record import OperatorSession
from payments_core_http.app import create_app
from payments_core_http.dashboard.words import DONE
from payments_core_http.throttling import Throttle
from tests.changed_text import change_end
from tests.http.api_harness import ApiHarness, Seen
from tests.http.dashboard.operator_browser import (
    CHEAP,
    COOKIE,
    LOGIN_COOKIE,
    SCRIPT,
    OperatorBrowser,
)

HOME = "/dashboard/inbox"
PAGE_HEADERS = {
    "cache-control": "no-store",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "cross-origin-opener-policy": "same-origin",
}


@attrs.define
class Office:
    """An API, its clock, and an operator with the password."""

    api: ApiHarness
    clock: FixedClock
    password: str

    def browser(self) -> OperatorBrowser:
        """A browser that is logged in."""
        browser = OperatorBrowser(self.api)
        assert browser.log_in("olivia", self.password).status == 303
        return browser

    def sessions(self) -> list[OperatorSession]:
        found = self.api.service.parts.ports.storage.read(
            self.api.partition, lambda snapshot: snapshot.find(OperatorSession, "by_beginning")
        )
        return list(found.records)


@pytest.fixture
def office() -> Office:
    clock = FixedClock()
    api = ApiHarness(clock)
    api.service.parts.operators._cost = CHEAP
    return Office(api, clock, api.service.operators.create(api.partition, "olivia").password)


def is_out(browser: OperatorBrowser) -> bool:
    seen = browser.get(HOME)
    assert seen.status in (200, 401)
    return seen.status == 401


class TestLogIn:
    def test_the_right_password_opens_the_dashboard(self, office: Office) -> None:
        browser = OperatorBrowser(office.api)
        assert is_out(browser)
        seen = browser.log_in("olivia", office.password)
        assert (seen.status, seen.headers["location"]) == (303, HOME)
        assert "olivia" in browser.open(HOME).text

    @pytest.mark.parametrize(
        ("username", "change"),
        [
            ("olivia", lambda password: password + "x"),
            ("olivia", lambda password: password[:-1]),
            ("olivia", lambda password: ""),
            ("olivia", lambda password: "p" * 257),
            ("nobody", lambda password: password),
            ("", lambda password: password),
            ("Olivia", lambda password: password),
            ("<script>", lambda password: password),
        ],
    )
    def test_any_other_is_refused_and_learns_nothing(
        self, office: Office, username: str, change: Callable[[str], str]
    ) -> None:
        browser = OperatorBrowser(office.api)
        seen = browser.log_in(username, change(office.password))
        assert seen.status == 401
        assert b"The name, the password or the code is wrong." in seen.body
        assert office.password.encode() not in seen.body
        assert b"<script>" not in seen.body
        assert is_out(browser)
        assert office.sessions() == []

    def test_it_leads_back_to_the_page_that_was_asked_for(self, office: Office) -> None:
        browser = OperatorBrowser(office.api)
        seen = browser.get("/dashboard/keys")
        assert seen.status == 401
        assert b'content="0; url=../dashboard/login?next=%2Fdashboard%2Fkeys"' in seen.body
        page = "/dashboard/login?next=%2Fdashboard%2Fkeys"
        seen = browser.submit(page, "/dashboard/login", username="olivia", password=office.password)
        assert seen.headers["location"] == "/dashboard/keys"

    def test_who_is_logged_in_is_led_on(self, office: Office) -> None:
        """A link on another site brings no cookie along, and must not log out who follows it."""
        browser = office.browser()
        seen = OperatorBrowser(office.api).get("/dashboard/login?next=%2Fdashboard%2Fkeys")
        assert seen.headers["set-cookie"].startswith(f"{LOGIN_COOKIE}=")
        seen = browser.get("/dashboard/login?next=%2Fdashboard%2Fkeys")
        assert (seen.status, seen.headers["location"]) == (303, "/dashboard/keys")
        assert "set-cookie" not in seen.headers

    @pytest.mark.parametrize(
        "wanted",
        [
            "https://evil.example/", "//evil.example", "/\\evil.example", "/pay/x",
            "/dashboard/../pay", "/dashboard//evil.example", "javascript:alert(1)",
            "/dashboard/keys\r\nX: y", "/dashboardevil", "/dashboard/keys?a=b",
        ],
    )  # fmt: skip
    def test_it_leads_to_no_other_site(self, office: Office, wanted: str) -> None:
        seen = OperatorBrowser(office.api).log_in("olivia", office.password, next=wanted)
        assert (seen.status, seen.headers["location"]) == (303, HOME)

    def test_tries_are_counted_by_address_and_by_name(self, office: Office) -> None:
        api = office.api
        throttle = Throttle(MemoryLimiter(), clock=office.clock)
        api.validated = create_app(api.service, mode="sandbox", throttle=throttle)  # type: ignore[arg-type]
        office.clock.advance(900 - office.clock.now() // SECOND % 900)  # a window begins
        statuses = [self._try_from(api).status for _ in range(11)]
        assert statuses == [401] * 10 + [429]
        for _ in range(2):  # later, from the same address
            office.clock.advance(60)
            assert [self._try_from(api).status for _ in range(10)] == [401] * 10
        office.clock.advance(60)
        seen = self._try_from(api)
        assert seen.status == 429
        assert int(seen.headers["retry-after"]) > 60
        assert b"Too many requests" in seen.body
        for disguised in ("olivia ", "\tolivia", "\u3000olivia"):
            assert self._try_from(api, username=disguised).status == 429
        assert self._try_from(api, username="someone").status == 401

    def test_a_stranger_keeps_nobody_out(self, office: Office) -> None:
        api = office.api
        throttle = Throttle(MemoryLimiter(), clock=office.clock)
        api.validated = create_app(api.service, mode="sandbox", throttle=throttle)  # type: ignore[arg-type]
        for turn in range(60):
            assert self._try_from(api, f"10.0.0.{turn % 6}").status == 401
        assert self._try_from(api, "10.0.0.1").status == 429
        assert self._try_from(api, "10.0.1.1", password=office.password).status == 303

    def _try_from(
        self,
        api: ApiHarness,
        address: str = "127.0.0.1",
        username: str = "olivia",
        password: str = "wrong",
    ) -> Seen:
        browser = OperatorBrowser(api)
        form = browser.forms("/dashboard/login")["/dashboard/login"]
        fields = {**form, "username": username, "password": password}
        browser.environ = {"REMOTE_ADDR": address}
        return browser.post("/dashboard/login", fields)

    def test_pages_count_for_the_environment_from_whatever_address(self, office: Office) -> None:
        api, browser = office.api, office.browser()
        limits = RateLimits({"operator_minute": 3})
        throttle = Throttle(MemoryLimiter(), limits, clock=office.clock)
        api.validated = create_app(api.service, mode="sandbox", throttle=throttle)  # type: ignore[arg-type]
        seen = []
        for turn in range(4):
            browser.environ = {"REMOTE_ADDR": f"10.0.0.{turn}"}
            seen.append(browser.get("/dashboard/keys").status)
        assert seen == [200, 200, 200, 429]
        assert api.call("GET", "/v2/partners/config").status == 200
        assert OperatorBrowser(api).get("/dashboard/login").status == 200

    def test_only_a_few_passwords_are_hashed_at_the_same_time(self, office: Office) -> None:
        operators = office.api.service.parts.operators
        busy = [operators._verifying.acquire(blocking=False) for _ in range(2)]
        assert busy == [True, True]
        with pytest.raises(Unavailable):
            operators.verify("olivia", office.password, mode="sandbox")
        seen = OperatorBrowser(office.api).log_in("olivia", office.password)
        assert seen.status == 503
        operators._verifying.release()
        assert operators.verify("olivia", office.password, mode="sandbox").username == "olivia"


class TestCookie:
    def test_flags(self, office: Office) -> None:
        seen = OperatorBrowser(office.api).log_in("olivia", office.password)
        name, *flags = seen.headers["set-cookie"].split("; ")
        assert name.startswith(f"{COOKIE}=ops_")
        assert set(flags) == {"Path=/", "HttpOnly", "SameSite=Strict"}

    def test_with_https_it_is_secure_and_of_this_host_alone(self, office: Office) -> None:
        service = office.api.service
        service.settings = attrs.evolve(service.settings, public_url="https://pay.example")
        seen = OperatorBrowser(office.api).get("/dashboard/login")
        name, *flags = seen.headers["set-cookie"].split("; ")
        assert name.startswith("__Host-payments_login=")
        assert set(flags) == {"Path=/", "HttpOnly", "SameSite=Strict", "Secure"}
        begun = service.operator_sessions.begin("olivia", office.password, mode="sandbox")
        opened = {
            name: office.api.call(
                "GET", HOME, auth=None, headers={"Cookie": f"{name}={begun.token}"}
            ).status
            for name in (COOKIE, "__Host-payments_operator")
        }
        assert opened == {COOKIE: 401, "__Host-payments_operator": 200}

    @pytest.mark.parametrize(
        ("public_url", "is_kept"),
        [
            ("http://127.0.0.1:8080", True), ("http://localhost:8080", True),
            ("http://[::1]:8080", True), ("http://pay.localhost", True),
            ("http://192.168.1.5:8080", False), ("http://pay.example", False),
            ("http://localhost.evil.example", False), ("http://127.0.0.1.evil.example", False),
        ],
    )  # fmt: skip
    def test_without_https_it_is_secure_outside_loopback(
        self, office: Office, public_url: str, is_kept: bool
    ) -> None:
        service = office.api.service
        service.settings = attrs.evolve(service.settings, public_url=public_url)
        seen = OperatorBrowser(office.api).get("/dashboard/login")
        name, *flags = seen.headers["set-cookie"].split("; ")
        assert name.startswith(("payments_login=", "payments_login+8080="))
        assert ("Secure" not in flags) == is_kept
        assert (b"Nobody can log in at this address" not in seen.body) == is_kept

    def test_two_of_one_name_are_refused(self, office: Office) -> None:
        token = office.browser().cookie
        headers = {"Cookie": f"{COOKIE}=x; {COOKIE}={token}"}
        assert office.api.call("GET", HOME, auth=None, headers=headers).status == 401

    @pytest.mark.parametrize(
        "change",
        [
            lambda token: token[:-8],
            change_end,
            lambda token: "cat_" + token[4:],
            lambda token: token * 10,
            lambda token: "ops_",
        ],
    )
    def test_a_changed_one_opens_nothing(
        self, office: Office, change: Callable[[str], str]
    ) -> None:
        token = office.browser().cookie
        assert token is not None
        assert office.browser().get(HOME, cookie=change(token)).status == 401

    def test_it_opens_the_dashboard_and_nothing_of_the_api(self, office: Office) -> None:
        token = office.browser().cookie
        for auth in (None, f"Bearer {token}", office.api.basic(token)):
            headers = {"Cookie": f"{COOKIE}={token}"}
            seen = office.api.call("GET", "/v2/payments", auth=auth, headers=headers)
            assert seen.status == 401

    def test_a_key_opens_nothing_of_the_dashboard(self, office: Office) -> None:
        for auth in (office.api.basic(), f"Bearer {office.api.secret}"):
            assert office.api.call("GET", HOME, auth=auth).status == 401

    def test_it_is_refused_in_an_address(self, office: Office) -> None:
        browser = office.browser()
        assert browser.get(f"{HOME}?search={browser.cookie}").status == 400


class TestTheEndOfASession:
    def test_idle(self, office: Office) -> None:
        browser = office.browser()
        for _ in range(3):
            office.clock.advance(IDLE_MS // SECOND - 1)
            assert not is_out(browser)
        office.clock.advance(IDLE_MS // SECOND)
        assert is_out(browser)

    def test_absolute(self, office: Office) -> None:
        browser = office.browser()
        for _ in range(LIFETIME_MS // IDLE_MS * 2 - 1):
            office.clock.advance(IDLE_MS // SECOND // 2)
            assert not is_out(browser)
        office.clock.advance(IDLE_MS // SECOND // 2)
        assert is_out(browser)

    def test_log_out_ends_it_on_the_server(self, office: Office) -> None:
        browser = office.browser()
        token = browser.cookie
        seen = browser.submit(HOME, "/dashboard/logout")
        assert (seen.status, seen.headers["location"]) == (303, "/dashboard/login")
        assert "Max-Age=0" in seen.headers["set-cookie"]
        assert browser.cookie is None
        assert office.sessions() == []
        assert OperatorBrowser(office.api).get(HOME, cookie=token).status == 401

    def test_what_a_form_has_done_is_said_once(self, office: Office) -> None:
        """Also before the log-in; and an address, which anybody can make, says nothing."""
        browser = office.browser()
        for name, sentence in DONE.items():
            browser.done = name
            assert sentence in browser.get(HOME).body.decode()
            assert sentence not in browser.get(HOME).body.decode(), "a reload"
            assert sentence not in browser.get(f"{HOME}?done={name}").body.decode()
        seen = browser.submit(HOME, "/dashboard/logout")
        assert "Max-Age=60" in seen.headers["set-cookie"]
        assert DONE["logout"] in browser.get("/dashboard/login").body.decode()
        assert DONE["logout"] not in browser.get("/dashboard/login").body.decode()

    def test_a_log_out_elsewhere_stops_a_write_that_is_under_way(self, office: Office) -> None:
        browser = office.browser()
        sessions = office.api.service.operator_sessions
        environment, session = sessions.authenticate(str(browser.cookie), mode="sandbox")
        tenants = office.api.service.tenants
        authority = attrs.evolve(tenants.system_authority(environment.id), operator=session)
        sessions.end(authority)
        with pytest.raises(Unauthorized):
            office.api.service.things.make(authority, "a", None)
        assert office.api.service.things.all(environment.id) == []

    def test_a_new_password_ends_it(self, office: Office) -> None:
        browser = office.browser()
        office.clock.advance(1)
        office.api.service.operators.reset_password("olivia", mode="sandbox")
        assert is_out(browser)

    def test_who_was_removed_is_out(self, office: Office) -> None:
        browser = office.browser()
        office.api.service.operators.remove("olivia", mode="sandbox")
        assert is_out(browser)

    def test_log_ins_are_bounded_and_the_oldest_makes_room(self, office: Office) -> None:
        browsers = []
        for _ in range(MAX_SESSIONS + 1):
            office.clock.advance(1)
            browsers.append(office.browser())
        assert [is_out(browser) for browser in browsers] == [True] + [False] * MAX_SESSIONS
        assert len(office.sessions()) == MAX_SESSIONS

    def test_log_ins_of_one_moment_are_bounded_too(
        self, office: Office, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for _ in range(MAX_SESSIONS):
            office.clock.advance(1)
            office.browser()
        committer = office.api.service.parts.ports.committer
        commit, browsers = committer.commit, []

        def commit_behind_another(*given: Any, **more: Any) -> Any:
            monkeypatch.setattr(committer, "commit", commit)
            browsers.append(office.browser())
            return commit(*given, **more)

        monkeypatch.setattr(committer, "commit", commit_behind_another)
        browsers.append(office.browser())
        assert len(office.sessions()) == MAX_SESSIONS
        assert [is_out(browser) for browser in browsers] == [False, False]

    def test_what_is_over_is_removed_with_the_next_log_in(self, office: Office) -> None:
        office.browser()
        office.clock.advance(IDLE_MS // SECOND)
        office.browser()
        assert len(office.sessions()) == 1

    def test_its_use_is_written_down_once_a_minute(self, office: Office) -> None:
        browser = office.browser()
        versions = []
        for seconds in (1, 58, 2, 30, 31):
            office.clock.advance(seconds)
            assert not is_out(browser)
            versions.append(office.sessions()[0].version)
        assert versions == [1, 1, 2, 2, 3]


class TestFixation:
    def test_a_log_in_replaces_the_cookie_that_a_browser_came_with(self, office: Office) -> None:
        browser = OperatorBrowser(office.api)
        browser.get("/dashboard/login")
        number = browser.number
        assert browser.log_in("olivia", office.password).status == 303
        assert number not in (None, browser.cookie)
        assert OperatorBrowser(office.api).get(HOME, cookie=number).status == 401

    def test_a_second_log_in_ends_the_session_that_it_replaces(self, office: Office) -> None:
        browser = OperatorBrowser(office.api)
        form = browser.forms("/dashboard/login")["/dashboard/login"]
        filled = {**form, "username": "olivia", "password": office.password}
        assert browser.post("/dashboard/login", filled).status == 303
        before = browser.cookie
        assert browser.post("/dashboard/login", filled).status == 303
        assert browser.cookie != before
        assert OperatorBrowser(office.api).get(HOME, cookie=before).status == 401
        assert len(office.sessions()) == 1

    def test_a_planted_cookie_becomes_no_session(self, office: Office) -> None:
        planted = "ops_" + "A" * 120
        browser = OperatorBrowser(office.api, planted)
        assert browser.log_in("olivia", office.password).status == 303
        assert browser.cookie != planted
        assert OperatorBrowser(office.api).get(HOME, cookie=planted).status == 401


class TestForgedForms:
    ACTION = "/dashboard/logout"

    def forged(self, office: Office, browser: OperatorBrowser, **change: str) -> Seen:
        seen = browser.post(self.ACTION, {**browser.forms(HOME)[self.ACTION], **change})
        assert not is_out(browser)
        assert seen.code == "form_refused"
        return seen

    @pytest.mark.parametrize("token", ["", "x", "A" * 22, "é", "=" * 22])
    def test_without_its_token_it_is_refused(self, office: Office, token: str) -> None:
        assert self.forged(office, office.browser(), formToken=token).status == 403

    def test_a_token_of_another_session_is_refused(self, office: Office) -> None:
        other = office.browser().forms(HOME)[self.ACTION]["formToken"]
        assert self.forged(office, office.browser(), formToken=other).status == 403

    def test_a_token_of_another_form_is_refused(self, office: Office) -> None:
        login = OperatorBrowser(office.api).forms("/dashboard/login")["/dashboard/login"][
            "formToken"
        ]
        assert self.forged(office, office.browser(), formToken=login).status == 403

    @pytest.mark.parametrize("site", ["cross-site", "same-site"])
    def test_one_that_another_site_sent_is_refused(self, office: Office, site: str) -> None:
        browser = office.browser()
        form = browser.forms(HOME)[self.ACTION]
        seen = browser.post(self.ACTION, form, headers={"Sec-Fetch-Site": site})
        assert (seen.status, seen.code) == (403, "form_refused")
        assert not is_out(browser)
        seen = browser.post(self.ACTION, form, headers={"Sec-Fetch-Site": "same-origin"})
        assert seen.status == 303

    def test_a_log_in_is_forged_no_more_than_another_form(self, office: Office) -> None:
        fields = {"username": "olivia", "password": office.password}
        assert OperatorBrowser(office.api).post("/dashboard/login", fields).code == "form_refused"
        theirs = OperatorBrowser(office.api).forms("/dashboard/login")["/dashboard/login"]
        victim = OperatorBrowser(office.api)
        victim.get("/dashboard/login")
        assert victim.post("/dashboard/login", {**theirs, **fields}).code == "form_refused"

    @pytest.mark.parametrize(
        ("media_type", "status"),
        [("application/json", 415), ("text/plain", 415), ("multipart/form-data", 415), ("", 415)],
    )
    def test_only_forms_are_read(self, office: Office, media_type: str, status: int) -> None:
        browser = office.browser()
        seen = browser.send("POST", self.ACTION, b'{"a": 1}', media_type=media_type)
        assert seen.status == status
        assert not is_out(browser)

    @pytest.mark.parametrize(
        ("raw", "status"),
        [(b"a=1&a=2", 400), (b"\xff=1", 400), (b"a=%ff", 400), (b"a=" + b"x" * 70_000, 413)],
    )
    def test_a_broken_form_is_refused(self, office: Office, raw: bytes, status: int) -> None:
        browser = office.browser()
        assert browser.send("POST", self.ACTION, raw).status == status
        assert not is_out(browser)


class TestHeaders:
    @pytest.mark.parametrize(
        "path", [HOME, "/dashboard/keys", "/dashboard/login", "/dashboard/payments/x", "/dashboard"]
    )
    @pytest.mark.parametrize("is_logged_in", [True, False])
    def test_of_every_page(self, office: Office, path: str, is_logged_in: bool) -> None:
        browser = office.browser() if is_logged_in else OperatorBrowser(office.api)
        seen = browser.get(path)
        for name, value in PAGE_HEADERS.items():
            assert seen.headers[name] == value
        policy = dict(
            part.strip().partition(" ")[::2]
            for part in seen.headers["content-security-policy"].split(";")
        )
        assert policy["default-src"] == "'none'"
        assert policy["frame-ancestors"] == "'none'"
        assert policy["form-action"] == "'self'"
        assert policy["script-src"] == "'self'"
        assert policy["trusted-types"] == "'none'"
        assert not policy.keys() & {"connect-src", "img-src"}
        assert "access-control-allow-origin" not in seen.headers

    def test_a_page_has_one_script_of_ours_and_nothing_inline(self, office: Office) -> None:
        html = office.browser().open(HOME)
        assert html.elements.count(SCRIPT) == 1
        tags = {one[0] for one in html.elements if one != SCRIPT}
        assert not tags & {"script", "style", "iframe", "object", "embed", "img", "base"}
        assert not [
            name for _, given in html.elements for name in given if name.startswith(("on", "style"))
        ]
        for link in html.all("a"):
            assert urlsplit(str(link["href"])).scheme == ""
