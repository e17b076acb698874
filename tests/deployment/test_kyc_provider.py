"""Accounts are verified at a provider in a process of its own, by webhook and by polling alone,
though `payments serve` and `payments worker` are killed at each of its calls."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import HTTPRedirectHandler, Request, build_opener, urlopen

import pytest

from payments_core_http.cli.api_client import NoResponse
from tests.deployment.deployed import deployed_on, shop
from tests.deployment.installed import install
from tests.deployment.played_provider import Played, PlayedProvider, wait_until

STORAGES = ("sqlite", pytest.param("postgresql", marks=pytest.mark.postgres))
LATE_S = 5.0
RETURN_URL = "https://shop.example/done"

ADAPTER = """
from examples.custom_kyc.adapter import open_url
from payments_core.accounts.verification import following, operations

following.MIN_PAUSE_MS = operations.MIN_PAUSE_MS = {pause_ms}
"""


class NoRedirect(HTTPRedirectHandler):
    def redirect_request(self, *args: Any) -> None:
        return None


def visit(hosted_url: str, state: str) -> None:
    """What the user does on the hosted page, until the provider sends them back."""
    with urlopen(hosted_url) as page:
        assert b'value="passed"' in page.read()
    with pytest.raises(HTTPError) as sent_back:
        build_opener(NoRedirect).open(Request(hosted_url, f"state={state}".encode()))
    with sent_back.value as answer:
        assert (answer.code, answer.headers["location"]) == (303, RETURN_URL)


class Office(Played):
    """What happens to its accounts."""

    def create_account(self, name: str) -> str:
        body = {"externalUserId": name, "subjectType": "individual"}
        return str(self.call("POST", "/v2/accounts", body, key=f"account-{name}")["id"])

    def verify(self, account: str) -> Any:
        path = f"/v2/accounts/{account}/verifications"
        return self.call("POST", path, {"returnUrl": RETURN_URL}, key=f"verify-{account}")

    def status_of(self, account: str) -> str:
        return str(self.call("GET", f"/v2/accounts/{account}")["kyc"]["status"])

    def wait_for_status(self, account: str, status: str) -> None:
        wait_until(lambda: self.status_of(account) == status)

    def require_once(self, account: str, *statuses: str) -> None:
        """One case, one verification, one event for each status, and no job that is given up."""
        verifications = self.call("GET", f"/v2/accounts/{account}/verifications")["data"]
        assert [one["status"] for one in verifications] == [statuses[-1]]
        keys = [case["key"] for case in self.provider.cases()]
        assert keys.count(verifications[0]["id"]) == 1
        path = f"/v2/console/events?limit=100&name=account.updated&accountId={account}"
        assert len(self.call("GET", path)["data"]) == len(statuses)
        assert self.deployed.admin("jobs", "parked") == []
        assert self.deployed.admin("notices", "list") == []


@contextmanager
def office_on(
    storage: str, folder: Path, monkeypatch: pytest.MonkeyPatch, pause_ms: int
) -> Iterator[Office]:
    source = ADAPTER.format(pause_ms=pause_ms)
    install(folder, monkeypatch, source, {"kyc:example": "open_url"})
    provider = PlayedProvider("kyc", "examples.custom_kyc.service")
    with deployed_on(storage, folder) as deployed:
        deployed.configure(**{"providers.kyc": {"url": provider.setting}})
        deployed.run("admin", "migrate")
        app, credential = shop(deployed)
        office = Office(deployed, provider, app["appId"], app["sandboxEnvironmentId"], credential)
        try:
            office.start_serve()
            office.start_worker()
            yield office
        finally:
            office.end()
            provider.child.end()


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("state", ["passed", "failed"])
def test_an_account_is_verified_by_webhook(
    storage: str, state: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with office_on(storage, tmp_path, monkeypatch, 60_000) as office:
        account = office.create_account("alice")
        started = office.verify(account)
        office.provider.order("faults", webhooks="twice")
        visit(started["hostedUrl"], state)
        status = {"passed": "approved", "failed": "rejected"}[state]
        office.wait_for_status(account, status)
        office.require_once(account, "pending", status)


@pytest.mark.parametrize("storage", STORAGES)
def test_an_account_is_verified_by_polling_alone(
    storage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with office_on(storage, tmp_path, monkeypatch, 500) as office:
        office.provider.order("faults", webhooks="none", lost_answers=1)
        account = office.create_account("alice")
        path, body = f"/v2/accounts/{account}/verifications", {"returnUrl": RETURN_URL}
        lost = office.client().call("POST", path, body, authorization=office.credential)
        assert lost.status == 424, lost.body
        started = office.verify(account)
        office.provider.order("faults", is_down=True)
        visit(started["hostedUrl"], "passed")
        time.sleep(1.5)
        assert office.status_of(account) == "pending"
        office.provider.order("faults", is_down=False, lost_answers=1)
        office.wait_for_status(account, "approved")
        office.require_once(account, "pending", "approved")


def verify_killed(office: Office, account: str, *, before: bool) -> Any:
    """Start a verification; `serve` is killed while the provider answers."""
    office.provider.order("faults", late_s={"start": LATE_S}, is_late_before=before)
    serve = office.serve
    assert serve is not None
    path, body = f"/v2/accounts/{account}/verifications", {"returnUrl": RETURN_URL}

    wait = office.provider.watch("start", "received" if before else "done")

    def kill() -> None:
        wait()
        serve.kill()

    killer = threading.Thread(target=kill)
    killer.start()
    with pytest.raises(NoResponse):
        office.client().call(
            "POST", path, body, authorization=office.credential, key=f"verify-{account}"
        )
    killer.join()
    office.provider.order("faults", late_s={})
    office.start_serve()
    return office.verify(account)


def look_killed(office: Office, hosted_url: str, *, before: bool) -> None:
    """Decide a case; `worker` is killed while the provider answers its look."""
    office.provider.order("faults", late_s={"look": LATE_S}, is_late_before=before)
    assert office.worker is not None
    wait = office.provider.watch("look", "received" if before else "done")
    visit(hosted_url, "passed")
    wait()
    office.worker.kill()
    office.provider.order("faults", late_s={})
    office.start_worker()


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("storage", "pause_ms"),
    [
        pytest.param("postgresql", 60_000, id="webhooks-postgresql", marks=pytest.mark.postgres),
        pytest.param("sqlite", 500, id="polling-sqlite"),
    ],
)
def test_kill_9_at_each_call_loses_nothing_and_repeats_nothing(
    storage: str, pause_ms: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with office_on(storage, tmp_path, monkeypatch, pause_ms) as office:
        if pause_ms < 60_000:
            office.provider.order("faults", webhooks="none")
        for number, (start_before, look_before) in enumerate([(True, False), (False, True)]):
            account = office.create_account(f"user-{number}")
            started = verify_killed(office, account, before=start_before)
            look_killed(office, started["hostedUrl"], before=look_before)
            office.wait_for_status(account, "approved")
            office.require_once(account, "pending", "approved")


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("storage", STORAGES)
def test_webhooks_that_meet_a_killed_serve_arrive_in_the_end(
    storage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with office_on(storage, tmp_path, monkeypatch, 60_000) as office:
        for number, kind in enumerate(("once", "twice", "late", "reversed")):
            office.provider.order("faults", webhooks=kind)
            account = office.create_account(f"user-{number}")
            started = office.verify(account)
            assert office.serve is not None
            visit(started["hostedUrl"], "passed")
            office.serve.kill()
            office.start_serve()
            office.wait_for_status(account, "approved")
            office.require_once(account, "pending", "approved")
