"""The inbox: what waits for a person, since when, with the way there; and what is counted."""

from __future__ import annotations

import re
from typing import Any

import attrs
import pytest

from payments_core import inbox
from payments_core.clock import DAY, HOUR, MINUTE, SECOND, FixedClock
from payments_core.engine.jobs.parking import CLAIMS_BEFORE_PARKING
from payments_core.maintenance.parked_jobs import retry
from payments_core.notices.record import StoredNotice
from payments_core.payments.record import Payment
from payments_core.payments.transitions import PAYMENT
from payments_core.storage.jobs import Job, ParkedJobMark
from payments_core.storage.memory.transaction import MemorySnapshot
from payments_core.storage.port import DIRECTORY
from payments_core.tenants.record import PRODUCTS
from payments_core_http.dashboard.words import LABEL_WORDS
from tests.http.api_harness import ApiHarness
from tests.http.console import LATER, NEVER, Console
from tests.http.dashboard.operator_browser import OperatorBrowser, open_browser
from tests.http.pages.html import Html
from tests.service.notices.office import Office

INBOX = "/dashboard/inbox"
REVIEWED = "0x" + "ab" * 18 + "4e71"


@pytest.fixture
def browser(console: Console) -> OperatorBrowser:
    return open_browser(console.api)


def pay_late(console: Console, key: str = "late", **more: Any) -> Any:
    """A Payment that is paid after its end, and waits for a decision."""
    payment = console.create(key=key, **more).json
    console.advance(3_700)
    console.transfer(payment["escrow"]["address"], "25")
    assert console.read(payment["id"])["status"] == "action_required"
    return payment


def list_links(page: Html) -> list[str]:
    """Where the main part of a page leads."""
    found = [str(one["href"]) for one in page.all("a")]
    return [href for href in found if re.match(r"/dashboard/\w+/", href)]


def read_counts(page: Html) -> dict[str, str]:
    """What is counted, by section."""
    return dict(re.findall(r"(\w+)\s+(\d+\+?) waiting", page.text))


def test_nothing_waits(browser: OperatorBrowser) -> None:
    page = browser.open(INBOX)
    assert "Nothing waits for you." in page.text
    assert read_counts(page) == {}


def test_the_dashboard_begins_with_it(browser: OperatorBrowser) -> None:
    assert browser.get("/dashboard").headers["location"] == INBOX


def test_a_payment_that_needs_a_decision(console: Console, browser: OperatorBrowser) -> None:
    payment = pay_late(console, reference="<b>order</b>-1")
    since = next(
        entry["at"]
        for entry in console.read(payment["id"])["timeline"]
        if entry["status"] == "action_required"
    )
    page = browser.open(INBOX)
    assert list_links(page) == [f"/dashboard/payments/{payment['id']}"]
    assert "Decide about 25.00 USDC, <b>order</b>-1" in page.text
    assert LABEL_WORDS["late"] in page.text
    assert since in [one["datetime"] for one in page.all("time")]
    counts = {"Inbox": "1", "Payments": "1"}
    assert read_counts(page) == counts
    assert read_counts(browser.open("/dashboard/keys")) == counts
    path = f"/dashboard/payments/{payment['id']}/reconcile"
    assert browser.submit(f"{path}?action=refund", path).status == 303
    console.advance(60)
    assert read_counts(browser.open(INBOX)) == {}


def test_a_transfer_that_screening_holds(console: Console, browser: OperatorBrowser) -> None:
    wallet = {"type": "wallet", "address": REVIEWED}
    payment = console.create(key="held", destination=wallet).json
    console.transfer(payment["escrow"]["address"], "25")
    console.run()
    page = browser.open(INBOX)
    [link] = list_links(page)
    assert link.startswith("/dashboard/screening/")
    assert "the sandbox reviews what ends in 4e71" in page.text
    assert read_counts(page) == {"Inbox": "1", "Screening": "1"}


@pytest.mark.parametrize("answer", [NEVER, LATER])
def test_an_endpoint_that_fails(console: Console, browser: OperatorBrowser, answer: Any) -> None:
    endpoint = console.endpoint()
    console.receiver.answer = answer
    console.happen()
    for _ in range(3):
        console.advance(600)
    page = browser.open(INBOX)
    assert list_links(page) == [f"/dashboard/webhooks/{endpoint['id']}"]
    assert "Not all of its deliveries arrive." in page.text
    assert read_counts(page) == {"Inbox": "1", "Webhooks": "1"}
    console.patch(endpoint, status="disabled")  # its owner has seen to it
    assert read_counts(browser.open(INBOX)) == {}


def test_an_endpoint_that_the_service_disabled(console: Console, browser: OperatorBrowser) -> None:
    console.endpoint()
    console.receiver.answer = NEVER
    for _ in range(15):
        console.happen()
        console.run()
        console.clock.advance_to(console.clock.now() + DAY // 4)
    page = browser.open(INBOX)
    assert "Disabled by the service." in page.text
    assert read_counts(page) == {"Inbox": "1", "Webhooks": "1"}


def test_a_verification_that_has_waited_for_a_day() -> None:
    clock = FixedClock()
    api = ApiHarness(kyc=Office(), clock=clock)
    browser = open_browser(api)
    started = api.call("POST", f"/v2/accounts/{api.account_id}/verifications", {}, key="k").json
    clock.advance((inbox.VERIFICATION_WAITS_MS - MINUTE) / SECOND)
    assert read_counts(log_in_again(browser).open(INBOX)) == {}
    clock.advance(2 * MINUTE / SECOND)
    page = browser.open(INBOX)
    assert list_links(page) == [f"/dashboard/verifications/{started['id']}"]
    assert read_counts(page) == {"Inbox": "1", "Verifications": "1"}


def log_in_again(browser: OperatorBrowser) -> OperatorBrowser:
    """After a day no session is left."""
    renewed = browser.api.service.operators.reset_password("olivia", mode="sandbox")
    assert browser.log_in("olivia", renewed.password).status == 303
    return browser


def test_a_product_that_is_off_is_neither_counted_nor_listed(
    console: Console, browser: OperatorBrowser
) -> None:
    pay_late(console)
    tenants = console.api.service.tenants
    tenants.set_products(console.api.partition, [one for one in PRODUCTS if one != "payments"])
    page = browser.open(INBOX)
    assert "Nothing waits for you." in page.text
    assert read_counts(page) == {}


def test_another_environment_has_an_inbox_of_its_own(
    console: Console, browser: OperatorBrowser
) -> None:
    pay_late(console)
    stranger = log_in_elsewhere(console)
    assert "Nothing waits for you." in stranger.open(INBOX).text


def test_many_are_counted_up_to_a_limit_and_the_oldest_are_listed(
    console: Console, browser: OperatorBrowser
) -> None:
    payment = pay_late(console)
    storage = console.api.service.parts.ports.storage

    def copy(tx: Any) -> None:
        [record] = tx.find(Payment, "by_attention", ("needed",)).records
        for number in range(inbox.MOST_COUNTED + 5):
            id = f"payment_{number:024}"
            newer = record.created_at_ms + 1 + number
            tx.insert(attrs.evolve(record, id=id, version=0, created_at_ms=newer))

    storage.transact(console.api.partition, copy)
    page = browser.open(INBOX)
    assert read_counts(page) == {"Inbox": "99+", "Payments": "99+"}
    links = list_links(page)
    assert len(links) == inbox.LISTED
    assert links[0] == f"/dashboard/payments/{payment['id']}"
    assert "There are more than these 10." in page.text


def test_a_page_counts_with_a_query_for_each_kind_and_reads_no_record_for_it(
    console: Console, browser: OperatorBrowser, monkeypatch: pytest.MonkeyPatch
) -> None:
    pay_late(console)
    asked: list[str] = []
    count = MemorySnapshot.count

    def watch(snapshot: Any, kind: Any, *args: Any, **more: Any) -> int:
        asked.append(kind.collection.name)
        assert more["limit"] == inbox.MOST_COUNTED
        return count(snapshot, kind, *args, **more)

    monkeypatch.setattr(MemorySnapshot, "count", watch)
    for path in (INBOX, "/dashboard/keys"):
        asked.clear()
        browser.open(path)
        assert sorted(asked) == [
            "held_transfers", "payments", "verifications", "webhook_endpoints"
        ]  # fmt: skip


def test_a_form_counts_nothing(console: Console, browser: OperatorBrowser) -> None:
    """Its page may be made inside its transaction, and is stored."""
    pay_late(console)
    endpoint = console.endpoint()
    path = f"/dashboard/webhooks/{endpoint['id']}/rotate"
    seen = browser.submit(path, path, overlap="0")
    assert seen.status == 200
    assert read_counts(Html(seen.body)) == {}


def test_every_label_of_a_payment_that_waits_has_words() -> None:
    rows = [row for row in PAYMENT.transitions if row.target == "action_required" and row.label]
    assert {str(row.label) for row in rows} <= LABEL_WORDS.keys()


def log_in_elsewhere(console: Console) -> OperatorBrowser:
    """The operator of another environment. With a second app a sandbox has no controls any more."""
    other = console.api.service.tenants.create_app("Other", "other").environments["sandbox"]
    made = console.api.service.operators.create(other, "mallory")
    browser = OperatorBrowser(console.api)
    assert browser.log_in("mallory", made.password).status == 303
    return browser


class TestTheDeployment:
    """What only its operator can mend is shown to the log-ins that the settings name."""

    @pytest.fixture
    def host(self, console: Console) -> OperatorBrowser:
        return open_browser(console.api, "hera")

    def park(self, console: Console, partition: str) -> None:
        """Have the worker find a job that has taken processes down."""
        now = console.clock.now()
        tired = Job(
            id="tired", queue="sandbox.timers", lane="tired", kind="mend", due_at=now,
            subject="payment_7", claims=CLAIMS_BEFORE_PARKING,
        )  # fmt: skip
        console.api.service.parts.ports.storage.transact(partition, lambda tx: tx.insert(tired))
        console.run()

    @pytest.mark.parametrize("where", ["environment", "directory"])
    def test_a_parked_job(self, console: Console, host: OperatorBrowser, where: str) -> None:
        partition = console.api.partition if where == "environment" else DIRECTORY
        self.park(console, partition)
        page = host.open(INBOX)
        assert "mend of payment_7" in page.text
        assert f"payments admin jobs retry {partition} tired" in page.text
        assert read_counts(page) == read_counts(host.open("/dashboard/keys")) == {"Inbox": "1"}
        assert read_counts(log_in_elsewhere(console).open(INBOX)) == {}
        retry(console.api.service.parts.ports, partition, "tired")
        assert read_counts(host.open(INBOX)) == {}
        trail = console.api.service.parts.audit_trail.list_deployment().records
        if where == "environment":
            shop = console.api.service.environment(partition)
            trail = shop.audit.list(operation="jobs.retry").records
        assert [(one.operation, one.actor.type) for one in trail] == [("jobs.retry", "program")]

    def test_another_log_in_of_the_environment_does_not_see_it(self, console: Console) -> None:
        self.park(console, console.api.partition)
        assert read_counts(open_browser(console.api).open(INBOX)) == {}

    def test_a_job_that_runs_again_by_itself_is_no_longer_listed(
        self, console: Console, host: OperatorBrowser
    ) -> None:
        self.park(console, console.api.partition)

        def resume(tx: Any) -> None:
            job = tx.get(Job, "tired", for_update=True)
            tx.replace(attrs.evolve(job, due_at=job.due_at + 1, lease_until=0))

        storage = console.api.service.parts.ports.storage
        storage.transact(console.api.partition, resume)
        assert read_counts(host.open(INBOX)) == {}
        console.advance(2 * HOUR // SECOND)  # its mark is purged
        [newer] = storage.read(
            console.api.partition, lambda snapshot: snapshot.find(ParkedJobMark, "newest")
        ).records  # of the job that was parked again
        assert newer.job_version > 3

    def test_a_kept_notice(self, console: Console, host: OperatorBrowser) -> None:
        now = console.clock.now()
        notice = StoredNotice(
            id="sandbox:kyc:office:1", mode="sandbox", kind="kyc", provider="office",
            notice_id="1", reference="case-<b>9</b>", status="unknown",
            received_at_ms=now, updated_at_ms=now,
        )  # fmt: skip
        storage = console.api.service.parts.ports.storage
        storage.transact(DIRECTORY, lambda tx: tx.insert(notice))
        page = host.open(INBOX)
        assert "kyc/office: case-<b>9</b>" in page.text
        assert read_counts(page) == {"Inbox": "1"}
        stranger = log_in_elsewhere(console)
        assert read_counts(stranger.open(INBOX)) == {}
        assert f"payments admin notices retry {notice.id}" in page.text

    def test_a_sender_that_is_low_on_gas(self, console: Console, host: OperatorBrowser) -> None:
        chain: Any = console.api.service.chains[8453]
        chain.set_coins(console.api.partition, 3)
        assert read_counts(host.open(INBOX)) == {}  # nobody has read it yet, and a page does not
        chain.heads()
        page = host.open(INBOX)
        assert "It has coins for the fees of 3 more transfers." in page.text
        assert read_counts(page) == {"Inbox": "1"}
        stranger = log_in_elsewhere(console)
        assert read_counts(stranger.open(INBOX)) == {}
