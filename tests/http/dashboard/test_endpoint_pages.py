"""Endpoints of webhooks on the dashboard: created, changed, switched off, archived."""

from __future__ import annotations

import pytest

from tests.http.console import HOOK, OTHER, Console
from tests.http.dashboard.operator_browser import OperatorBrowser, open_browser

LIST = "/dashboard/webhooks"
NEW = f"{LIST}/new"


@pytest.fixture
def browser(console: Console) -> OperatorBrowser:
    return open_browser(console)


def urls(console: Console) -> list[str]:
    return sorted(one["url"] for one in console.get("webhooks").json["webhookEndpoints"])


class TestCreation:
    def test_the_secret_is_shown_once(self, console: Console, browser: OperatorBrowser) -> None:
        fields = {
            **browser.forms(NEW)[NEW], "url": HOOK, "description": "Ours",
            "subscribedEvents:payment.succeeded": "on",
        }  # fmt: skip
        first, second = (browser.post(NEW, fields) for _ in range(2))
        assert (first.status, first.body) == (200, second.body), "the second is the first's answer"
        assert b"whsec_" in first.body
        [made] = console.get("webhooks").json["webhookEndpoints"]
        assert made["url"] == HOOK
        assert made["description"] == "Ours"
        path = f"{LIST}/{made['id']}"
        for page in (path, LIST, f"{path}/change"):
            assert b"whsec_" not in browser.get(page).body

    @pytest.mark.parametrize(
        ("url", "words"),
        [
            ("", "is required"),
            ("http://93.184.216.34/", "https"),
            ("https://127.0.0.1/hook", "public"),
            ("https://user:pass@93.184.216.34/", "credentials"),
        ],
    )
    def test_what_is_wrong_is_beside_the_field(
        self, console: Console, browser: OperatorBrowser, url: str, words: str
    ) -> None:
        seen = browser.submit(NEW, NEW, url=url, description="Kept <b>")
        assert seen.status in (400, 422)
        text = seen.body.decode()
        assert 'aria-invalid="true"' in text
        assert words in text.partition('id="field-url-about"')[2].partition("</div>")[0]
        assert 'value="Kept &lt;b&gt;"' in text
        assert urls(console) == []

    def test_a_url_in_use_is_reported_and_the_form_can_be_corrected(
        self, console: Console, browser: OperatorBrowser
    ) -> None:
        console.endpoint()
        seen = browser.submit(NEW, NEW, url=HOOK)
        assert seen.status == 409
        assert b'href="#field-url"' in seen.body
        assert browser.submit(NEW, NEW, url=OTHER).status == 200
        assert urls(console) == [HOOK, OTHER]

    def test_a_form_of_another_browser_adds_nothing(
        self, console: Console, browser: OperatorBrowser
    ) -> None:
        fields = {**browser.forms(NEW)[NEW], "url": HOOK}
        assert browser.post(NEW, {**fields, "formToken": "A" * 43}).status == 403
        other = {"Sec-Fetch-Site": "cross-site"}
        assert browser.post(NEW, fields, headers=other).status == 403
        assert urls(console) == []


class TestFilters:
    def test_a_rule_in_each_line(self, console: Console, browser: OperatorBrowser) -> None:
        rules = "payload.amountAtomic >= 100000000\r\npayload.assetSymbol in USDC, EURC\r\n"
        seen = browser.submit(NEW, NEW, url=HOOK, filters=rules, bodyFormat="cloudevents")
        assert seen.status == 200
        [made] = console.get("webhooks").json["webhookEndpoints"]
        assert [(one["field"], one["value"], one["values"]) for one in made["filters"]] == [
            ("payload.amountAtomic", "100000000", []),
            ("payload.assetSymbol", None, ["USDC", "EURC"]),
        ]
        path = f"{LIST}/{made['id']}"
        page = browser.get(path).body.decode()
        assert "payload.amountAtomic &gt;= 100000000" in page
        assert "CloudEvents 1.0" in page
        shown = browser.forms(f"{path}/change")[f"{path}/change"]
        assert shown["bodyFormat"] == "cloudevents"
        assert str(shown["filters"]).split() == rules.split()
        browser.post(f"{path}/change", {**shown, "filters": ""})
        [now] = console.get("webhooks").json["webhookEndpoints"]
        assert (now["filters"], now["bodyFormat"]) == ([], "cloudevents")

    def test_a_change_of_something_else_keeps_every_rule(
        self, console: Console, browser: OperatorBrowser
    ) -> None:
        made = console.endpoint()
        console.patch(
            made,
            filters=[
                {"field": "payload.reference", "op": "in", "values": ["Doe, Jane", ' "x" ', "y"]},
                {"field": "payload.reference", "op": "!=", "value": "two\r\nlines "},
                {"field": "payload.metadata.my key", "op": "exists"},
            ],
        )
        [before] = console.get("webhooks").json["webhookEndpoints"]
        path = f"{LIST}/{made['id']}/change"
        browser.submit(path, path, description="Ours")
        [after] = console.get("webhooks").json["webhookEndpoints"]
        assert (after["description"], after["filters"]) == ("Ours", before["filters"])

    def test_what_is_wrong_is_beside_the_rules(
        self, console: Console, browser: OperatorBrowser
    ) -> None:
        seen = browser.submit(NEW, NEW, url=HOOK, filters="name\npayload.amountAtomic >= 1.5")
        assert seen.status == 400
        about = seen.body.decode().partition('id="field-filters-about"')[2].partition("</div>")[0]
        assert "Item 1: op must be one of" in about
        seen = browser.submit(NEW, NEW, url=HOOK, filters="payload.amountAtomic >= 1.5")
        assert b"Item 1: value must be a whole number in the smallest unit" in seen.body
        assert urls(console) == []


class TestChanges:
    def test_the_form_has_what_is_there(self, console: Console, browser: OperatorBrowser) -> None:
        made = console.endpoint(HOOK, "payment.succeeded", "payment.failed")
        path = f"{LIST}/{made['id']}/change"
        html = browser.open(path)
        chosen = [one["name"] for one in html.all("input") if "checked" in one]
        assert chosen == ["subscribedEvents:payment.succeeded", "subscribedEvents:payment.failed"]

    def test_boxes_that_are_not_sent_are_taken_away(
        self, console: Console, browser: OperatorBrowser
    ) -> None:
        made = console.endpoint(HOOK, "payment.succeeded", "payment.failed")
        path = f"{LIST}/{made['id']}/change"
        shown = browser.forms(path)[path]
        hidden = {name: shown[name] for name in ("formToken", "idempotencyKey")}
        fields = {**hidden, "description": "Ours", "subscribedEvents:payment.failed": "on"}
        seen = browser.post(path, fields)
        assert (seen.status, seen.headers["location"]) == (303, f"{LIST}/{made['id']}")
        [now] = console.get("webhooks").json["webhookEndpoints"]
        assert (now["description"], now["subscribedEvents"]) == ("Ours", ["payment.failed"])
        browser.post(path, {**hidden, "idempotencyKey": "another", "description": ""})
        [now] = console.get("webhooks").json["webhookEndpoints"]
        assert (now["description"], now["subscribedEvents"]) == (None, [])

    @pytest.mark.parametrize("status", ["disabled", "archived"])
    def test_a_status_is_confirmed_first(
        self, console: Console, browser: OperatorBrowser, status: str
    ) -> None:
        made = console.endpoint()
        path = f"{LIST}/{made['id']}"
        [link] = [
            str(one["href"]) for one in browser.open(path).all("a")
            if str(one["href"]).endswith(f"status={status}") and "/status?" in str(one["href"])
        ]  # fmt: skip
        page = browser.open(link)
        assert ("This cannot be undone" in page.text) == (status == "archived")
        [before] = console.get("webhooks").json["webhookEndpoints"]
        assert before["status"] == "active"
        fields = browser.forms(link)[f"{path}/status"]
        for _ in range(2):
            seen = browser.post(f"{path}/status", fields)
            assert (seen.status, seen.headers["location"]) == (303, path)
        [now] = console.get("webhooks").json["webhookEndpoints"]
        assert now["status"] == status
        offered = [str(one["href"]) for one in browser.open(path).all("a")]
        assert any(one.endswith("/status?status=active") for one in offered) == (
            status == "disabled"
        )

    def test_what_is_archived_stays_so(self, console: Console, browser: OperatorBrowser) -> None:
        made = console.endpoint()
        path = f"{LIST}/{made['id']}/status"
        fields = browser.forms(f"{path}?status=disabled")[path]
        console.patch(made, status="archived")
        assert f"{path}" not in browser.forms(f"{path}?status=active")
        assert browser.post(path, {**fields, "status": "active"}).status == 409

    @pytest.mark.parametrize("status", ["", "gone"])
    def test_no_other_status(self, console: Console, browser: OperatorBrowser, status: str) -> None:
        path = f"{LIST}/{console.endpoint()['id']}/status"
        assert browser.get(f"{path}?status={status}").status == 400
