"""Waiting verifications on the dashboard: listed, decided once, of this environment alone."""

from __future__ import annotations

import pytest

from payments_core import NewAccount
from tests.http.api_harness import ApiHarness
from tests.http.dashboard.operator_browser import OperatorBrowser, open_browser
from tests.service.notices.office import Office

LIST = "/dashboard/verifications"


@pytest.fixture
def api() -> ApiHarness:
    return ApiHarness(kyc=Office())


@pytest.fixture
def browser(api: ApiHarness) -> OperatorBrowser:
    return open_browser(api)


def start(api: ApiHarness, account_id: str | None = None) -> str:
    path = f"/v2/accounts/{account_id or api.account_id}/verifications"
    return str(api.call("POST", path, {}, key=account_id or "k").json["id"])


def links(browser: OperatorBrowser) -> list[str]:
    return [
        str(one["href"])
        for one in browser.open(LIST).all("a")
        if str(one["href"]).startswith(f"{LIST}/")
    ]


def kyc_of(api: ApiHarness) -> str:
    return str(api.call("GET", f"/v2/accounts/{api.account_id}").json["kyc"]["status"])


def test_nothing_waits(browser: OperatorBrowser) -> None:
    assert b"No verification waits" in browser.get(LIST).body


@pytest.mark.parametrize("status", ["approved", "rejected"])
def test_a_decision_is_stored_once(api: ApiHarness, browser: OperatorBrowser, status: str) -> None:
    path = f"{LIST}/{start(api)}"
    assert links(browser) == [path]
    shown = browser.get(path).body.decode()
    assert "case-verification_" in shown
    assert "office.invalid" not in shown  # a holder of that URL acts as the user
    fields = {**browser.forms(path)[path], "status": status}
    for _ in range(2):
        seen = browser.post(path, fields)
        assert (seen.status, seen.headers["location"]) == (303, LIST)
    assert kyc_of(api) == status
    assert links(browser) == []
    assert path not in browser.forms(path)  # what is decided has no form


@pytest.mark.parametrize("status", ["", "pending", "not_started", "APPROVED"])
def test_only_decisions_are_taken(api: ApiHarness, browser: OperatorBrowser, status: str) -> None:
    path = f"{LIST}/{start(api)}"
    assert browser.submit(path, path, status=status).status == 400
    assert kyc_of(api) == "pending"


def test_another_decision_is_refused(api: ApiHarness, browser: OperatorBrowser) -> None:
    path = f"{LIST}/{start(api)}"
    fields = browser.forms(path)[path]
    other = browser.forms(path)[path]
    assert browser.post(path, {**fields, "status": "approved"}).status == 303
    assert browser.post(path, {**other, "status": "rejected"}).status == 409
    assert kyc_of(api) == "approved"


def test_a_form_of_another_case_decides_nothing(api: ApiHarness, browser: OperatorBrowser) -> None:
    first = start(api)
    system = api.service.tenants.system_authority(api.partition)
    eve = api.service.acting_as(system).accounts.create(
        NewAccount(external_user_id="eve", subject_type="individual")
    )
    second = start(api, eve.account.id)
    fields = browser.forms(f"{LIST}/{first}")[f"{LIST}/{first}"]
    assert browser.post(f"{LIST}/{second}", {**fields, "status": "approved"}).status == 403
    assert browser.get(f"{LIST}/verification_nobodyxxxxxxxxxxxxxxxxxxxx").status == 404


def test_names_are_text(api: ApiHarness, browser: OperatorBrowser) -> None:
    system = api.service.tenants.system_authority(api.partition)
    eve = api.service.acting_as(system).accounts.create(
        NewAccount(external_user_id="<b>eve</b>", subject_type="individual")
    )
    shown = browser.get(f"{LIST}/{start(api, eve.account.id)}").body.decode()
    assert "<b>eve" not in shown
    assert "&lt;b&gt;eve&lt;/b&gt;" in shown


def test_many_are_listed_by_pages(api: ApiHarness, browser: OperatorBrowser) -> None:
    system = api.service.tenants.system_authority(api.partition)
    shop = api.service.acting_as(system)
    for number in range(27):
        made = shop.accounts.create(
            NewAccount(external_user_id=f"user {number}", subject_type="individual")
        )
        shop.verifications.start(made.account.id)
    assert len(links(browser)) == 25
    [following] = [one["href"] for one in browser.open(LIST).all("a") if one.get("rel") == "next"]
    page = browser.open(LIST + str(following))
    assert sum(str(one["href"]).startswith(f"{LIST}/") for one in page.all("a")) == 2
