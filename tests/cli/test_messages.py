"""What the commands say to a person: each fault once, what was meant, and where an event goes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from payments_core.engine.events import BY_NAME
from payments_core_http.cli.api_client import ApiClient, basic_authorization
from payments_core_http.cli.child_processes import SandboxChild
from payments_core_http.cli.event_names import suggest_event_names
from tests.cli.test_listen import ask, listen, options, payments


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SandboxChild]:
    child = SandboxChild(tmp_path_factory.mktemp("messages") / "sandbox-data")
    yield child
    child.end()


@pytest.mark.parametrize(
    "call",
    [("trigger", "payment.succeded"), ("events", "--name", "payment.succeded")],
)
def test_a_wrong_name_is_reported_once_with_the_one_that_was_meant(
    sandbox: SandboxChild, call: tuple[str, ...]
) -> None:
    done = payments(*call, *options(sandbox))
    assert done.returncode == 1
    assert done.stderr.count("not an event of the catalog") == 1
    assert "Did you mean payment.succeeded" in done.stderr


def test_a_wrong_name_among_several_is_reported_with_the_one_that_was_meant(
    sandbox: SandboxChild,
) -> None:
    done = payments("listen", "--events", "payment.late,acount.created", *options(sandbox))
    assert done.returncode == 1
    assert "subscribedEvents[1]" in done.stderr
    assert "Did you mean account.created?" in done.stderr


def test_several_faults_are_reported_once_each(sandbox: SandboxChild) -> None:
    done = payments("trigger", "payment.succeded", "color=red", *options(sandbox))
    assert done.returncode == 1
    assert "2 fields are wrong" in done.stderr
    assert done.stderr.count("not an event of the catalog") == 1
    assert done.stderr.count("color") == 1


def test_for_a_name_like_no_other_all_events_are_named() -> None:
    reported = suggest_event_names(["no.such"])
    assert all(name in reported for name in BY_NAME)
    assert max(map(len, reported.splitlines())) <= 96
    assert suggest_event_names(BY_NAME) == suggest_event_names([]) == ""


def test_trigger_says_when_no_endpoint_is_subscribed(sandbox: SandboxChild) -> None:
    child = listen(sandbox, "--events", "payment.late", "--name", "late")
    try:
        child.wait_until_ready()
        done = payments("trigger", "payment.failed", "--json", *options(sandbox))
        assert done.returncode == 0
        assert json.loads(done.stdout)["name"] == "payment.failed"
        assert "no active endpoint is subscribed to payment.failed" in done.stderr
        done = payments("trigger", "payment.late", *options(sandbox))
        assert (done.returncode, done.stderr) == (0, "")
    finally:
        child.end()
    done = payments("trigger", "payment.late", *options(sandbox))
    assert "no active endpoint is subscribed to payment.late" in done.stderr


def test_an_endpoint_without_subscriptions_is_subscribed_to_everything(
    sandbox: SandboxChild,
) -> None:
    child = listen(sandbox, "--name", "everything")
    try:
        child.wait_until_ready()
        done = payments("trigger", "payment.failed", *options(sandbox))
        assert (done.returncode, done.stderr) == (0, "")
    finally:
        child.end()


def test_an_empty_list_says_that_it_is_empty(tmp_path: Path) -> None:
    fresh = SandboxChild(tmp_path / "sandbox-data")
    try:
        done = payments("events", *options(fresh))
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "No event yet.\n")
        ask(fresh, "POST", "/v2/accounts", {"externalUserId": "u", "subjectType": "individual"})
        done = payments("events", "--name", "payment.late", *options(fresh))
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "No payment.late yet.\n")
    finally:
        fresh.end()


def test_open_says_where_the_pages_are(sandbox: SandboxChild) -> None:
    """The output is not a terminal, so nothing is opened."""
    url, facts = sandbox.base_url, sandbox.facts
    assert payments("open", *options(sandbox)).stdout == f"{url}/dashboard\n"
    done = payments("open", "reference", "--json", *options(sandbox))
    assert json.loads(done.stdout) == {"url": f"{url}/docs"}
    wallet = {"type": "wallet", "address": "0x8ba1f109551bD432803012645Ac136ddd64DBA72"}
    body = {"intent": "receive", "amount": "5", "destination": wallet}
    credential = basic_authorization(facts["appId"], facts["appSecret"])
    answer = ApiClient(url).call(
        "POST", "/v2/payments", body, authorization=credential, key="open-1"
    )
    made = answer.document
    done = payments("open", made["id"], *options(sandbox))
    assert done.stdout == f"{made['paymentUrl']}\n"


def test_open_says_what_may_be_opened(sandbox: SandboxChild) -> None:
    done = payments("open", "dashbord", *options(sandbox))
    assert done.returncode == 1
    assert "dashboard, reference or the id of a Payment" in done.stderr
